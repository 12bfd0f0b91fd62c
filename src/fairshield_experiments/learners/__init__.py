"""Classifiers whose decisions are shielded: five of the paper's, and anybody's own."""
