"""Deciding: one request at a time, by table look-up."""
