"""Code that endpoints and pages share: reading requests, access, the running service."""
