"""Streams as their logs say: read from the store, checked by replay."""

from __future__ import annotations

import msgspec

from fairshield.errors import ArtifactError
from fairshield.policy import Policy
from fairshield.service.entries import BEGINNING, Created, chained, entry_of
from fairshield.service.live import AnyPolicy, BrokenLogError, LiveStream
from fairshield.service.problems import Refusal
from fairshield.service.shelf import Shelf
from fairshield.service.snapshots import Snapshot, WindowRow
from fairshield.service.store import Connection


def create_stream(connection: Connection, created: Created) -> bool:
    """Store entry 0 of a new stream; whether it is new, and not one with the same settings."""
    number = connection.insert_stream(created.stream)
    if number is not None:
        connection.append([chained(created, number, BEGINNING)])
        return True
    number = connection.stream(created.stream)
    assert number is not None
    there = entry_of(connection.entries(number, limit=1)[0].line)
    assert isinstance(there, Created)
    settings = ("policy", "windows", "human")
    for setting in settings:
        if getattr(there, setting) != getattr(created, setting):
            raise Refusal(
                "name-taken",
                f"stream {created.stream!r} exists with {setting} = {_json(there, setting)}, "
                f"not {_json(created, setting)}",
            )
    return False


def _json(created: Created, setting: str) -> str:
    return msgspec.json.encode(getattr(created, setting)).decode()


def load_stream(name: str, connection: Connection, shelf: Shelf) -> LiveStream:
    """A stream as its log says: from the end of its last window on, every entry is replayed.

    Raises
    ------
    Refusal
        If there is no such stream.
    BrokenLogError
        If the log does not replay.
    """
    number = connection.stream(name)
    if number is None:
        raise Refusal("not-found", f"there is no stream {name!r}")
    created, hash = first_entry(number, connection)
    try:
        policy = shelf.policy(created.policy, connection)
    except ArtifactError as error:
        raise BrokenLogError(
            f"the policy of stream {name!r} is not what it was: {error}"
        ) from error
    ended = connection.last_window(number)
    if ended is not None and _still_shown(ended, policy, connection):
        ended = connection.last_window(number, back=1)
    snapshot = None if ended is None else checked_snapshot(ended, connection)
    live = LiveStream(number, created, policy, hash=hash, snapshot=snapshot)
    for row in connection.entries(number, after=live.seq):
        live.replay(row)
    live.ended.clear()
    return live


def _still_shown(ended: WindowRow, policy: AnyPolicy, connection: Connection) -> bool:
    """Whether a window that is over is the stream's current one, as no other has begun."""
    return isinstance(policy, Policy) and connection.decision(ended.stream, ended.n + 1) is None


def checked_snapshot(ended: WindowRow, connection: Connection) -> Snapshot:
    """The snapshot of a window's end, if the log passes through it."""
    snapshot = msgspec.json.decode(ended.snapshot, type=Snapshot)
    last = connection.entries(ended.stream, after=snapshot.seq - 1, limit=1)
    if not last or last[0].hash.hex() != snapshot.hash or snapshot.seq != ended.seq:
        raise BrokenLogError(
            f"the end of window {ended.window} of stream number {ended.stream} is not in its log"
        )
    return snapshot


def first_entry(number: int, connection: Connection) -> tuple[Created, bytes]:
    """Entry 0 of a stream, and its hash."""
    first = connection.entries(number, limit=1)
    if not first or first[0].seq != 0:
        raise BrokenLogError(f"stream number {number} has no entry 0")
    try:
        created = entry_of(first[0].line)
    except msgspec.DecodeError as error:
        raise BrokenLogError(f"entry 0 of stream number {number} cannot be read") from error
    expected = chained(created, number, BEGINNING)
    if not isinstance(created, Created) or first[0] != expected:
        raise BrokenLogError(f"entry 0 of stream number {number} does not match its hash")
    return created, first[0].hash
