r"""Entries of a stream's log are lines of JSON, chained by hashes.

An entry is stored as the bytes of its line, and never changed.  The hash of entry s is

    h(s) = SHA-256(h(s - 1) · line(s)),    h(-1) = 32 zero bytes.

Every answer carries the hash of its last entry as a *receipt*.  A receipt confirms the whole log
before it: whoever changes, drops or swaps entries changes every later receipt.  Entry 0 says
which policy decides, and is part of the chain like the others.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import msgspec

from fairshield.base.counts import Group

BEGINNING = bytes(32)
"""The hash before entry 0."""


class Entry(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", forbid_unknown_fields=True
):
    """Entry holds what all entries say: where in which log, when, by whose request.

    ``key`` is the idempotency key of the request, on the first entry that it led to; ``size`` the
    number of entries it led to; ``actor`` the id of the access key that was used.
    """

    stream: str
    seq: int
    at: str


class Created(Entry, frozen=True, omit_defaults=True, tag="created"):
    """Created is entry 0: the settings of the stream."""

    policy: str
    windows: int | None = None
    human: bool = False
    actor: str | None = None


class Decided(Entry, frozen=True, omit_defaults=True, tag="decision"):
    """Decided is a decision: the request, the answer, and where in the window it was made."""

    n: int
    group: Group
    proposed: bool
    cost: float
    accepted: bool
    why: str
    window: int
    position: int
    guaranteed: bool = True
    key: str | None = None
    size: int = 1
    actor: str | None = None


class Observed(Entry, frozen=True, omit_defaults=True, tag="outcome"):
    """Observed is the outcome of decision ``n``."""

    n: int
    outcome: bool
    key: str | None = None
    actor: str | None = None


class Overridden(Entry, frozen=True, omit_defaults=True, tag="override"):
    """Overridden is a person's decision in place of decision ``n``.

    ``guaranteed`` says whether the property is guaranteed since then.
    """

    n: int
    accepted: bool
    guaranteed: bool = True
    note: str = ""
    key: str | None = None
    actor: str | None = None


class Closed(Entry, frozen=True, omit_defaults=True, tag="closed"):
    """Closed is the last entry of a stream that was closed."""

    actor: str | None = None


AnyEntry = Created | Decided | Observed | Overridden | Closed

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AnyEntry).decode


class EntryRow(NamedTuple):
    """EntryRow is an entry as it is stored.

    Its columns are copies of what the line says, for look-ups.
    """

    stream: int
    seq: int
    n: int | None
    overruled: bool
    key: str | None
    line: bytes
    hash: bytes


class Logged(NamedTuple):
    """Logged holds an entry, and its row in the log."""

    entry: AnyEntry
    row: EntryRow


def chained(entry: AnyEntry, stream: int, before: bytes) -> EntryRow:
    """The row of an entry that follows one with hash ``before``; ``stream`` is its number."""
    line = _encode(entry)
    hashed = hashlib.sha256(before + line).digest()
    return EntryRow(stream, entry.seq, *columns(entry), line, hashed)


def columns(entry: AnyEntry) -> tuple[int | None, bool, str | None]:
    """Values that a row copies from its line: ``n``, ``overruled`` and ``key``."""
    if isinstance(entry, Decided):
        return entry.n, entry.accepted is not entry.proposed, entry.key
    return None, False, getattr(entry, "key", None)


def follows(row: EntryRow, before: bytes) -> bool:
    """Whether a stored row continues a chain whose last hash is ``before``."""
    return hashlib.sha256(before + row.line).digest() == row.hash


def logged(row: EntryRow) -> Logged:
    """A stored row, and the entry that its line says."""
    return Logged(entry_of(row.line), row)


def entry_of(line: bytes | str) -> AnyEntry:
    """The entry that a line encodes."""
    entry: AnyEntry = _decode(line)
    return entry
