"""The engine applies commands to streams in order, commits them in groups, then answers."""
