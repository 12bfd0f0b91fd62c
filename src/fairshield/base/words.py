"""How objects and numbers are shown to people."""

from __future__ import annotations


def summary(self: object) -> str:
    """A ``__repr__`` made of the name of the class and of what ``str`` returns.

    For objects whose fields are large tables, or of no use to a person who reads them.
    """
    return f"<{type(self).__name__}: {self}>"


def human_size(size: float) -> str:
    """A size in bytes for people.

    >>> human_size(1_083_008)
    '1.1 MB'
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
