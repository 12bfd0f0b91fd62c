"""The version of the library; other files read it from here."""

__version__ = "0.2.0"
