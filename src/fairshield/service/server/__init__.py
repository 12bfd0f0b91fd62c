"""The running service: its application, server, log and traces."""
