"""Many independent computations: in parallel, on one machine or several, resumed if interrupted.

Names are imported from the modules: a new process that is to compute loads :mod:`.call` alone and
limits its threads before any numeric library has started them.
"""
