"""Makes policies for long windows, without a table of all states."""
