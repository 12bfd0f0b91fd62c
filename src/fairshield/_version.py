"""The version of the library, one place."""

__version__ = "0.1.0"
