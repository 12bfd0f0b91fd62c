"""StoredWindows compares the stored ends of windows with those of a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fairshield.service.log.live import LiveStream
from fairshield.service.log.snapshots import WindowRow, lacks_counters, same_snapshot
from fairshield.service.store import Connection

_FIRST = -(1 << 62)
_PAGE = 4096


class StoredWindows:
    """StoredWindows reads the stored ends of windows in order, and compares them."""

    def __init__(self, connection: Connection, number: int, found: Callable[[str], None]) -> None:
        self._connection, self._number, self._found = connection, number, found
        self._stored = self._pages()
        self._next = next(self._stored, None)

    def _pages(self) -> Iterator[WindowRow]:
        first = _FIRST
        while page := self._connection.windows(self._number, first=first, limit=_PAGE):
            yield from page
            first = page[-1].window + 1

    def compare(self, live: LiveStream, replayed: Iterable[WindowRow], head: int) -> None:
        """Compare those up to the last that ``live`` replayed; its end is entry ``head``."""
        for row in replayed:
            while self._next is not None and self._next.window < row.window:
                self._surplus(head)
            if self._next is None or self._next.window > row.window:
                self._found(f"window {row.window} ended with entry {row.seq}, but is not stored")
                continue
            older = lacks_counters(self._next, live.created, live.policy)
            if differences := _differences(self._next, row, older=older):
                self._found(
                    f"window {row.window}, which ended with entry {row.seq}, is stored "
                    f"with {differences}"
                )
            self._next = next(self._stored, None)

    def finish(self, head: int) -> None:
        """Report stored ends that no replay led to, but for those added during the audit."""
        while self._next is not None:
            self._surplus(head)

    def _surplus(self, head: int) -> None:
        row, self._next = self._next, next(self._stored, None)
        assert row is not None
        if row.seq <= head or row.seq > self._connection.head(self._number):
            self._found(
                f"window {row.window} is stored as ended with entry {row.seq}, the log does not "
                "lead to that"
            )


_UNTOLD = ("fair", "verdict", "measured_bias", "measured_bias_unshielded", "snapshot")
"""Fields that an earlier version did not store, or stored otherwise, and that may differ."""


def _differences(stored: WindowRow, replayed: WindowRow, *, older: bool) -> str:
    untold = _UNTOLD if older else ()
    if same_snapshot(stored.snapshot, replayed.snapshot):
        untold = (*untold, "snapshot")
    return " and ".join(
        "another snapshot" if name == "snapshot" else f"{name} = {ours!r} instead of {right!r}"
        for name, ours, right in zip(WindowRow._fields, stored, replayed, strict=True)
        if ours != right and name not in untold
    )
