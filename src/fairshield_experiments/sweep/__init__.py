"""A sweep computes many independent tasks in parallel, and resumes if interrupted.

This file exports nothing: a worker process imports :mod:`.call` alone, and limits its threads
before any numeric library has started them.
"""
