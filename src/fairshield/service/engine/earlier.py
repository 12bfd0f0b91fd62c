"""Earlier recognises, by idempotency key, requests that were answered before."""

from __future__ import annotations

from collections.abc import Sequence

from fairshield.service.engine.jobs import Ask
from fairshield.service.log.entries import AnyEntry, EntryRow, Logged, follows, logged
from fairshield.service.log.live import BrokenLogError
from fairshield.service.store import Connection
from fairshield.wire.problems import Refusal

Key = tuple[int, str]
"""A stream's number, and an idempotency key used in it."""


class Earlier:
    """Earlier finds the entries of requests with the same keys, in the log and in this batch."""

    def __init__(self) -> None:
        self._stored: dict[Key, EntryRow] = {}
        self._made: dict[Key, list[Logged]] = {}

    def find(self, store: Connection, keys: Sequence[Key]) -> None:
        """Look for keys in the log."""
        if keys:
            self._stored = store.find(keys)

    def add(self, stream: int, key: str | None, made: list[Logged]) -> None:
        """Note what a request of this batch has led to."""
        if key is not None:
            self._made[stream, key] = made

    def entries(self, stream: int, key: str | None, store: Connection) -> list[Logged] | None:
        """The entries that an earlier request with this key led to, if there was one.

        Raises
        ------
        BrokenLogError
            If these entries are not in the chain of hashes of the log.
        """
        if key is None:
            return None
        first = self._stored.get((stream, key))
        return self._made.get((stream, key)) if first is None else _read(first, store)


def _read(first: EntryRow, store: Connection) -> list[Logged]:
    """All entries of the request whose first entry is ``first``."""
    entry = logged(first).entry
    size = getattr(entry, "size", 1)
    before, *rows = store.entries(first.stream, after=entry.seq - 2, limit=size + 1)
    if len(rows) < size:
        raise BrokenLogError(f"entries of the request that led to entry {first.seq} are missing")
    for row in rows:
        if not follows(row, before.hash):
            raise BrokenLogError(f"entry {row.seq} does not match its hash")
        before = row
    return [logged(row) for row in rows]


def key_reused(ask: Ask, first: AnyEntry) -> Refusal:
    """The refusal of a request whose key another request has used."""
    kind = str(first.__struct_config__.tag)
    did = "decided on other people" if kind == "decision" else f"recorded an {kind}"
    return Refusal(
        "key-reused",
        f"the key {ask.key!r} {did} before (entry {first.seq} of stream {ask.stream!r})",
    )
