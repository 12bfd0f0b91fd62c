"""Formatters of the log of the process, which never names a person or a group.

A group is a sensitive attribute, and messages of errors quote values of requests.  So an unexpected
error is logged with its class and place in the code, without its message.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal

from fairshield.base.words import written

Format = Literal["plain", "json"]
_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class PlainFormatter(logging.Formatter):
    """PlainFormatter writes ``time level message``."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802  (the name is logging's)
        """Class and place of an error, and of its causes."""
        return placed(ei[1])


class JsonFormatter(PlainFormatter):
    """JsonFormatter writes one JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        fields = {
            "time": written(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def placed(error: BaseException | None) -> str:
    """The class of an error and where it was raised, without its message.

    >>> placed(KeyError("somebody's group"))
    'KeyError'
    """
    parts: list[str] = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        frames = traceback.extract_tb(error.__traceback__)
        places = [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
        parts.append("\n".join([type(error).__name__, *places]))
        error = error.__cause__ or error.__context__
    return "\nafter ".join(parts)


def set_up(level: str, form: Format = "plain") -> None:
    """Write the log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else PlainFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Uvicorn's own lines about starting and stopping repeat ours.
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, root.level))
