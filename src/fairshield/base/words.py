"""How objects, numbers and times are written."""

from __future__ import annotations

from datetime import datetime


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


def written(moment: datetime, timespec: str = "milliseconds") -> str:
    """A time in UTC as the service stores it; entries of logs have microseconds.

    >>> from datetime import UTC
    >>> written(datetime(2026, 1, 5, 9, 30, tzinfo=UTC))
    '2026-01-05T09:30:00.000Z'
    """
    return moment.isoformat(timespec=timespec).replace("+00:00", "Z")
