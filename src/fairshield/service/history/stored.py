"""StoredWindows compares the stored ends of windows with those of a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fairshield.service.log.live import LiveStream
from fairshield.service.log.snapshots import (
    WindowRow,
    judged_once,
    lacks_verdict,
    overridden_by,
    same_snapshot,
)
from fairshield.service.store import Connection

_FIRST, _LAST = -(1 << 63), (1 << 63) - 1
_PAGE = 4096


class StoredWindows:
    """StoredWindows reads the stored ends of windows in order, and compares them."""

    def __init__(self, connection: Connection, number: int, found: Callable[[str], None]) -> None:
        self._connection, self._number, self._found = connection, number, found
        self._overridden = 0
        self._stored = self._pages()
        self._next = next(self._stored, None)

    def _pages(self) -> Iterator[WindowRow]:
        first = _FIRST
        while True:
            try:
                page = self._connection.windows(self._number, first=first, limit=_PAGE)
            except UnicodeError as error:
                self._found(f"ends of windows from {first} on cannot be read: {error}")
                return
            yield from page
            if not page or page[-1].window == _LAST:
                return
            first = page[-1].window + 1

    def compare(self, live: LiveStream, replayed: Iterable[WindowRow], head: int) -> None:
        """Compare those up to the last that ``live`` replayed; its end is entry ``head``."""
        for row in replayed:
            while self._next is not None and self._next.window < row.window:
                self._surplus(head)
            if self._next is None or self._next.window > row.window:
                self._found(f"window {row.window} ended with entry {row.seq}, but is not stored")
                continue
            if differences := self._differences(live, self._next, row):
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

    def _differences(self, live: LiveStream, stored: WindowRow, replayed: WindowRow) -> str:
        untold: tuple[str, ...] = ()
        once = judged_once(stored, live.created, live.policy)
        if once:
            before, self._overridden = self._overridden, overridden_by(replayed)
            untold = _JUDGED if self._overridden > before else ()
        if lacks_verdict(stored):
            untold = _UNTOLD
        condition = live.policy.condition
        later = condition is not None and condition.known_at_start
        if same_snapshot(stored.snapshot, replayed.snapshot, judged_once=once, noted_later=later):
            untold = (*untold, "snapshot")
        return " and ".join(
            "another snapshot" if name == "snapshot" else f"{name} = {ours!r} instead of {right!r}"
            for name, ours, right in zip(WindowRow._fields, stored, replayed, strict=True)
            if ours != right and name not in untold
        )


_JUDGED = ("fair", "verdict")
"""Fields that may differ where an earlier version did not judge a window again."""
_UNTOLD = (*_JUDGED, "measured_bias", "measured_bias_unshielded", "snapshot")
"""Fields that the first version did not store, or stored otherwise."""
