"""A package, so that pytest can tell its conftest from others."""
