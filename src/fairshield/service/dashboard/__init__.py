"""Pages of the dashboard: streams, decisions and policies in a browser."""
