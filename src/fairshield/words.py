"""How objects are shown in a notebook or a traceback."""

from __future__ import annotations


def summary(self: object) -> str:
    """A ``__repr__`` that says what ``str`` does, with the name of the class.

    For objects whose fields are tables, or say nothing to a person.
    """
    return f"<{type(self).__name__}: {self}>"
