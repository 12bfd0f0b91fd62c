"""Policies that clients upload or specify are made and verified in other processes."""
