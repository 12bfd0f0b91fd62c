"""The compiled recursion: makes tables of all decisions, of least expected cost."""
