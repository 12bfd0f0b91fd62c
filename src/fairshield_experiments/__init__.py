"""The paper's experiments, from raw data to a report: data sets, learners, simulation, results.

Needs ``fairshield[experiments]``; imports nothing of :mod:`fairshield` but what it documents.
"""
