"""``load_stream`` reads a stream from the store and checks it by replaying its log."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fairshield.base.errors import ArtifactError, InvalidValueError
from fairshield.periodic import PeriodicPolicy
from fairshield.service.log.entries import BEGINNING, Created, EntryRow, chained, entry_of
from fairshield.service.log.live import BrokenLogError, LiveStream
from fairshield.service.log.snapshots import (
    Snapshot,
    WindowRow,
    lacks_counters,
    read_snapshot,
)
from fairshield.service.log.watching import Watcher
from fairshield.service.store import Connection
from fairshield.service.store.policies import LoadedPolicies
from fairshield.wire.problems import Refusal

_PAGE = 4096


def create_stream(connection: Connection, created: Created) -> bool:
    """Store entry 0 of a new stream; returns whether it is new.

    A stream that exists with the same settings is not new; one with other settings is refused.
    """
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


def load_stream(name: str, connection: Connection, policies: LoadedPolicies) -> LiveStream:
    """Load a stream: every entry since the end of its last window is replayed.

    If an earlier version stored that end, all entries are replayed, and ``ended`` has the ends of
    all windows, to be stored again.

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
    created, first = first_entry(number, connection)
    try:
        policy = policies.policy(created.policy, connection)
    except ArtifactError as error:
        raise BrokenLogError(
            f"the policy of stream {name!r} is not what it was: {error}"
        ) from error
    last = ended = connection.last_window(number)
    if last is not None and _still_shown(last, policy, connection):
        ended = connection.last_window(number, back=1)
    # A snapshot of an earlier version lacks some counters of this version.
    older = any(row is not None and lacks_counters(row, created, policy) for row in (last, ended))
    snapshot = first if ended is None or older else _checked_snapshot(ended, connection)
    watcher = _watcher(number, policy, connection, snapshot.seq)
    live = LiveStream(number, created, policy, snapshot, watcher=watcher)
    for row in _entries(number, connection, live.seq):
        live.replay(row)
    if not older:
        live.ended.clear()
    return live


def _entries(
    number: int, connection: Connection, after: int, until: int = 1 << 62
) -> Iterator[EntryRow]:
    """Entries in order, a page at a time; none if ``after`` lies beyond ``until``."""
    while after < until and (
        rows := connection.entries(number, after=after, limit=min(_PAGE, until - after))
    ):
        yield from rows
        after = rows[-1].seq


def _watcher(number: int, policy: PeriodicPolicy, connection: Connection, until: int) -> Watcher:
    """The monitor of a stream, told all entries up to ``until``, or more."""
    watcher = _stored_watcher(number, policy, connection) or Watcher(number, policy)
    for row in _entries(number, connection, watcher.seq, until):
        watcher.add(entry_of(row.line), row.hash)
    return watcher


def _stored_watcher(number: int, policy: PeriodicPolicy, connection: Connection) -> Watcher | None:
    """The monitor where it stood last, if the log passes through that."""
    stored = connection.monitor(number)
    if stored is None:
        return None
    there = connection.entries(number, after=stored.seq - 1, limit=1)
    if not there or (there[0].seq, there[0].hash.hex()) != (stored.seq, stored.hash):
        return None
    try:
        return Watcher(number, policy, stored=stored)
    except InvalidValueError:  # stored by another version: it is made from the log instead
        return None


def _still_shown(ended: WindowRow, policy: PeriodicPolicy, connection: Connection) -> bool:
    """Whether a window that is over is the stream's current one, as no other has begun."""
    return not policy.goes_on and connection.decision(ended.stream, ended.n + 1) is None


def begun(
    number: int, connection: Connection, policies: LoadedPolicies, until: int
) -> tuple[Created, PeriodicPolicy, Snapshot]:
    """Entry 0, the policy, and the last snapshot by entry ``until``, where a replay may begin."""
    created, first = first_entry(number, connection)
    policy = policies.policy(created.policy, connection)
    ended = connection.last_window(number, until=until)
    return created, policy, first if ended is None else _checked_snapshot(ended, connection)


def _checked_snapshot(ended: WindowRow, connection: Connection) -> Snapshot:
    """The snapshot of a window's end; raises if it cannot be read, or its hash is not logged."""
    snapshot = read_snapshot(ended.snapshot)
    if snapshot is None:
        raise BrokenLogError(
            f"what is stored of the end of window {ended.window} of stream number {ended.stream} "
            "cannot be read: it was changed after the fact"
        )
    last = connection.entries(ended.stream, after=ended.seq - 1, limit=1)
    if not last or last[0].hash.hex() != snapshot.hash or snapshot.seq != ended.seq:
        raise BrokenLogError(
            f"the end of window {ended.window} of stream number {ended.stream} is not in its log"
        )
    return snapshot


def first_entry(number: int, connection: Connection) -> tuple[Created, Snapshot]:
    """Entry 0 of a stream, and the stream right after it."""
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
    return created, Snapshot(0, expected.hash.hex(), n=0, window=0)
