"""What all other folders import: errors, words, counters, names of groups, compiling.

It does not know what fairness is, and imports no other folder of the library.
"""
