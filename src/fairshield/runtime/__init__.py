"""Deciding by a given policy, one request at a time, and counting what was decided.

This folder does not know how the policy was made, and needs numpy only.
"""
