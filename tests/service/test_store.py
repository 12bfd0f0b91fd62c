"""What every store must do, asked of each."""

from __future__ import annotations

import builtins
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from postgres_server import Cluster

from fairshield.base.errors import MissingExtraError
from fairshield.service.log.entries import EntryRow
from fairshield.service.log.snapshots import MonitorRow, WindowRow
from fairshield.service.store import (
    Connection,
    Database,
    KeyRow,
    PolicyRow,
    StoreError,
    open_database,
)
from fairshield.service.store.base import Migration
from fairshield.service.store.postgres import check_server, numbered, without_password

AWKWARD = 'Zoë\'s "loan" 贷款 🏦 ? $1 %s \\ ;--'


@pytest.fixture
def store(database: Database) -> Iterator[Connection]:
    """A connection to a store with an up-to-date schema."""
    connection = database.connect()
    connection.migrate(database.migrations())
    yield connection
    connection.close()


def row(
    stream: int, seq: int, n: int | None = None, key: str | None = None, **more: object
) -> EntryRow:
    given = {"overruled": False, "line": b'{"seq":%d}' % seq, "hash": bytes([seq]) * 32, **more}
    return EntryRow(stream=stream, seq=seq, n=n, key=key, **given)  # type: ignore[arg-type]


def window(stream: int, number: int, **more: object) -> WindowRow:
    given = {
        "seq": 10 * number + 10, "n": 10, "at": "2026", "fair": True, "bias": 0.1,
        "bias_unshielded": None, "overruled": 3, "cost_paid": 0.1 + 0.2, "verdict": "fair",
        "measured_bias": 0.1, "measured_bias_unshielded": None, "snapshot": b"{}", **more,
    }  # fmt: skip
    return WindowRow(stream=stream, window=number, **given)  # type: ignore[arg-type]


def added(store: Connection, *rows: EntryRow) -> None:
    store.begin()
    store.append(rows)
    store.commit()


def made(store: Connection, name: str = "loans") -> int:
    """The number of a new stream."""
    store.begin()
    number = store.insert_stream(name)
    store.commit()
    assert number is not None
    return number


# Streams and entries ------------------------------------------------------------------------


def test_streams_get_numbers_in_order_and_names_are_taken_once(store: Connection) -> None:
    first, second = made(store, "loans"), made(store, "bail")
    store.begin()
    assert store.insert_stream("loans") is None
    store.commit()
    assert store.streams() == [(first, "loans"), (second, "bail")]
    assert store.stream("bail") == second
    assert store.stream("Loans") is None
    assert store.stream(AWKWARD) is None
    assert store.stream("nul\0") is None


def test_an_entry_is_returned_as_it_was_stored(store: Connection) -> None:
    number = made(store)
    rows = [
        row(number, 0, line=f'"{AWKWARD}"'.encode()),
        row(number, 1, 1, key=AWKWARD, overruled=True, hash=bytes(range(32))),
        row(number, 2),
        row(number, 3, 2**53, key="k"),
    ]
    added(store, *rows)
    assert store.entries(number) == rows
    assert [type(field) for field in store.entries(number)[1]] == [
        int, int, int, bool, str, bytes, bytes
    ]  # fmt: skip


def test_entries_come_in_order_of_their_numbers_and_in_pages(store: Connection) -> None:
    first, second = made(store, "x"), made(store, "y")
    shuffled = [row(first, seq) for seq in (2, 0, 3, 1)]
    added(store, *shuffled, row(second, 0))
    assert [r.seq for r in store.entries(first)] == [0, 1, 2, 3]
    assert [r.seq for r in store.entries(first, after=0, limit=2)] == [1, 2]
    assert store.entries(first, after=3) == []
    assert [r.stream for r in store.entries(second)] == [second]
    assert store.entries(second + 1) == []


def test_decisions_are_found_by_number_and_listed_latest_first(store: Connection) -> None:
    number = made(store)
    rows = [row(number, 2 * n, n, overruled=n % 2 == 0) for n in range(1, 6)]
    added(store, row(number, 0), *rows, row(number, 11))
    assert store.decision(number, 3) == rows[2]
    assert store.decision(number, 6) is None
    assert [r.n for r in store.latest(number, limit=10)] == [5, 4, 3, 2, 1]
    assert [r.n for r in store.latest(number, before=5, limit=2)] == [4, 3]
    assert [r.n for r in store.latest(number, limit=10, only_overruled=True)] == [4, 2]


def test_keys_are_found_in_their_stream_only(store: Connection) -> None:
    first, second = made(store, "x"), made(store, "y")
    rows = [row(first, 1, 1, "k"), row(first, 2, 2, AWKWARD), row(second, 1, 1, "k")]
    added(store, *rows, row(first, 3, 3))
    wanted = [(first, "k"), (first, AWKWARD), (second, "k"), (second, AWKWARD), (first, "K")]
    assert store.find(wanted) == dict(zip(wanted, rows, strict=False))
    assert store.find([]) == {}
    assert len(store.find(wanted * 500)) == 3


@pytest.mark.parametrize(
    "twice",
    [
        pytest.param({"seq": 1, "n": 9, "key": "z"}, id="seq"),
        pytest.param({"seq": 9, "n": 1, "key": "z"}, id="n"),
        pytest.param({"seq": 9, "n": 9, "key": "k"}, id="key"),
    ],
)
def test_what_is_there_cannot_be_added_again_and_nothing_of_its_batch_is(
    store: Connection, twice: dict[str, object]
) -> None:
    number = made(store)
    added(store, row(number, 1, 1, "k"))
    store.begin()
    with pytest.raises(StoreError):
        store.append([row(number, 2, 2, "l"), row(number, **twice)])  # type: ignore[arg-type]
    store.rollback()
    assert store.entries(number) == [row(number, 1, 1, "k")]
    added(store, row(number, 2, 2, "l"))
    assert len(store.entries(number)) == 2


@pytest.mark.parametrize(
    "sql", ["UPDATE entries SET line = '{}'", "DELETE FROM entries", "TRUNCATE entries"]
)
def test_entries_are_never_changed_or_removed(store: Connection, sql: str) -> None:
    number = made(store)
    added(store, row(number, 0))
    with pytest.raises(StoreError):
        store.run(sql)
    assert store.entries(number) == [row(number, 0)]


def test_what_is_rolled_back_was_never_there(store: Connection) -> None:
    number = made(store)
    store.rollback()
    store.begin()
    store.append([row(number, 0, key="k")])
    store.put_windows([window(number, 0)])
    assert len(store.entries(number)) == 1
    store.rollback()
    store.rollback()
    assert store.entries(number) == [] == store.windows(number)
    assert store.find([(number, "k")]) == {}
    added(store, row(number, 0))


def test_others_see_a_transaction_when_it_is_committed(
    store: Connection, database: Database
) -> None:
    number, other = made(store), database.connect()
    store.begin()
    store.append([row(number, 0)])
    assert other.entries(number) == []
    store.commit()
    assert other.entries(number) == [row(number, 0)]
    other.close()
    other.close()


def test_a_closed_connection_says_so(store: Connection) -> None:
    store.close()
    with pytest.raises(StoreError):
        store.streams()
    store.rollback()


# Windows, policies, access keys -------------------------------------------------------------


def test_windows_are_listed_in_order_and_one_that_ends_again_replaces_itself(
    store: Connection,
) -> None:
    number = made(store)
    ends = [window(number, i, bias=i / 3, snapshot=f'"{AWKWARD}"'.encode()) for i in range(4)]
    store.put_windows(ends[::-1])
    assert store.windows(number) == ends
    assert store.windows(number, first=1, limit=2) == ends[1:3]
    again = window(number, 3, fair=False, bias=None, bias_unshielded=1e-300, overruled=2**40)
    store.put_windows([again])
    assert store.windows(number, first=2) == [ends[2], again]
    assert [type(field) for field in store.windows(number)[0][5:7]] == [bool, float]


def test_the_last_window_is_found_among_those_that_had_ended(store: Connection) -> None:
    number = made(store)
    assert store.last_window(number) is None
    ends = [window(number, i) for i in range(3)]
    store.put_windows(ends)
    assert store.last_window(number) == ends[2]
    assert store.last_window(number, back=1) == ends[1]
    assert store.last_window(number, back=3) is None
    assert store.last_window(number, until=ends[2].seq - 1) == ends[1]


def test_of_a_monitor_only_where_it_stands_is_kept(store: Connection) -> None:
    number, other = made(store), made(store, "other")
    first = MonitorRow(number, 5, "ab" * 32, f'"{AWKWARD}"'.encode())
    store.put_monitors([first, MonitorRow(other, 1, "cd" * 32, b"{}")])
    assert store.monitor(number) == first
    store.put_monitors([first._replace(seq=9)])
    assert store.monitor(number) == first._replace(seq=9)
    assert store.monitor(other) == MonitorRow(other, 1, "cd" * 32, b"{}")


def test_policies_are_added_and_changed_and_found_by_id_or_digest(store: Connection) -> None:
    first = PolicyRow("p1", "synthesising", 0.25, None, None, None, None, None, AWKWARD, "2026-01")
    second = PolicyRow("p2", "refused", 1.0, "d" * 64, AWKWARD, None, "no", 2**40, None, "2026-02")
    store.put_policy(second)
    store.put_policy(first)
    assert store.policies() == [first, second]
    ready = first._replace(status="ready", digest="d" * 64, words="w", verification="v")
    store.put_policy(ready)
    assert store.policy("p1") == ready
    assert store.policy("p2") == second
    assert store.policy("d" * 64) == ready
    assert store.policy("p3") is None
    assert store.policy("\0") is None


def test_artifacts_are_kept_byte_by_byte_and_once(store: Connection) -> None:
    content = bytes(range(256)) * 1000
    store.put_artifact("d", content)
    store.put_artifact("d", b"other")
    assert store.artifact("d") == content
    assert store.artifact("e") is None
    assert store.artifact("\0") is None


def test_access_keys_are_added_listed_and_revoked_once(store: Connection) -> None:
    first = KeyRow("k1", AWKWARD, bytes(range(32)), "decide,read", None, "2026-01", None)
    second = KeyRow("k2", "n", bytes(32), "read", "loans", "2026-02", None)
    store.put_key(second)
    store.put_key(first)
    assert store.access_keys() == [first, second]
    assert store.revoke_key("k1", "2027") is True
    assert store.revoke_key("k1", "2028") is False
    assert store.revoke_key("k3", "2028") is False
    assert store.access_keys()[0] == first._replace(revoked="2027")
    with pytest.raises(StoreError):
        store.put_key(second)


# Schema -------------------------------------------------------------------------------------


def test_migrations_are_numbered_without_gaps_and_the_same_for_all_stores() -> None:
    here = open_database("shield.db").migrations()
    there = open_database("postgresql://localhost/x").migrations()
    assert [m.version for m in here] == list(range(1, len(here) + 1))
    assert [m.name for m in here] == [m.name for m in there]


def test_migrating_again_does_nothing(store: Connection, database: Database) -> None:
    assert store.migrate(database.migrations()) == []
    applied = store.rows("SELECT version, checksum FROM migrations ORDER BY version")
    assert applied == [(m.version, m.checksum) for m in database.migrations()]


def test_an_older_schema_is_brought_up_to_date_with_its_data(database: Database) -> None:
    store, migrations = database.connect(), database.migrations()
    assert store.migrate(migrations[:1]) == migrations[:1]
    number = made(store)
    added(store, row(number, 0), row(number, 1, 1, "k"))
    store.run(
        "INSERT INTO windows VALUES (?, 0, 10, 10, '2026', 1, 0.1, NULL, 3, 0.5, '{}')", number
    )
    assert store.migrate(migrations) == migrations[1:]
    assert store.entries(number) == [row(number, 0), row(number, 1, 1, "k")]
    untold = window(number, 0, cost_paid=0.5, verdict=None, measured_bias=None)
    assert store.windows(number) == [untold]
    assert store.access_keys() == []
    assert store.monitor(number) is None
    store.close()


def test_a_newer_schema_and_an_altered_one_are_refused(
    store: Connection, database: Database
) -> None:
    migrations = database.migrations()
    with pytest.raises(StoreError, match=r"has schema version \d, this library knows versions up"):
        store.migrate(migrations[:1])
    altered = [Migration(1, "0001_log", migrations[0].sql + "\n"), *migrations[1:]]
    with pytest.raises(StoreError, match="version 1 of the database was made by other statements"):
        store.migrate(altered)
    assert store.migrate(migrations) == []


def test_a_migration_that_fails_leaves_nothing_behind(database: Database) -> None:
    store, migrations = database.connect(), database.migrations()
    broken = Migration(
        len(migrations) + 1, "broken", "CREATE TABLE half (x INTEGER); SELECT nothing;"
    )
    with pytest.raises(StoreError):
        store.migrate([*migrations, broken])
    assert store.migrate(migrations) == migrations
    with pytest.raises(StoreError):
        store.rows("SELECT * FROM half")
    store.close()


def test_of_several_processes_that_start_at_once_one_migrates(database: Database) -> None:
    done: list[int] = []

    def start() -> None:
        connection = database.connect()
        done.append(len(connection.migrate(database.migrations())))
        connection.close()

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [0, 0, 0, len(database.migrations())]


# PostgreSQL alone ---------------------------------------------------------------------------


@pytest.fixture
def two(postgres: str) -> Iterator[tuple[Connection, Connection]]:
    """Two connections to a PostgreSQL database."""
    database = open_database(postgres)
    first, second = database.connect(), database.connect()
    first.migrate(database.migrations())
    yield first, second
    first.close()
    second.close()


def test_who_waited_for_a_lock_sees_what_its_holder_added(
    two: tuple[Connection, Connection],
) -> None:
    first, second = two
    x, y = made(first, "x"), made(first, "y")
    added(first, row(x, 0), row(y, 0))
    first.begin()
    assert first.lock([x, y]) == {x: 0, y: 0}
    seen: list[object] = []

    def wait() -> None:
        second.begin()
        seen.append(second.lock([x]))
        seen.append(second.find([(x, "k")]))
        second.rollback()

    thread = threading.Thread(target=wait)
    thread.start()
    first.append([row(x, 1, 1, "k"), row(x, 2, 2)])
    assert seen == []
    first.commit()
    thread.join()
    assert seen == [{x: 2}, {(x, "k"): row(x, 1, 1, "k")}]


def test_streams_are_locked_one_by_one(two: tuple[Connection, Connection]) -> None:
    first, second = two
    x, y = made(first, "x"), made(first, "y")
    first.begin()
    first.lock([x])
    second.begin()
    assert second.lock([y]) == {y: None}
    second.append([row(x, 0)])  # the key of a locked stream may still be referred to
    second.rollback()
    first.rollback()


def test_a_transaction_that_has_failed_cannot_be_committed(
    two: tuple[Connection, Connection],
) -> None:
    store = two[0]
    store.begin()
    with pytest.raises(StoreError):
        store.rows("SELECT nothing")
    with pytest.raises(StoreError, match="rolled back"):
        store.commit()


def test_a_lost_connection_is_an_error_of_the_store(
    two: tuple[Connection, Connection], cluster: Cluster
) -> None:
    first, second = two
    first.begin()
    (pid,) = first.rows("SELECT pg_backend_pid()")[0]
    second.rows("SELECT pg_terminate_backend(?::integer)", pid)
    with pytest.raises(StoreError):
        first.streams()
    first.rollback()
    with pytest.raises(StoreError):
        first.commit()


def test_commits_wait_for_the_disk(two: tuple[Connection, Connection]) -> None:
    assert two[0].rows("SHOW synchronous_commit") == [("on",)]
    assert two[0].rows("SHOW fsync") == [("on",)]


def test_servers_that_are_too_old_or_lose_commits_are_refused() -> None:
    check_server(12, "on")
    with pytest.raises(StoreError, match="PostgreSQL 11 is too old; 12 or later"):
        check_server(11, "on")
    with pytest.raises(StoreError, match="fsync = on in"):
        check_server(15, "off")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://tests:s3cret@127.0.0.1:1/x",
        "postgresql://tests:s3cret/part@127.0.0.1:1/x",
        "postgresql://tests:s3cret#@127.0.0.1:1/x",
        "postgres://tests:s3cret@[127.0.0.1:1/x",
        "postgresql://tests:s3cret@127.0.0.1:0/x?sslmode=nonsense",
    ],
)
def test_errors_do_not_tell_the_password(address: str) -> None:
    database = open_database(address)
    assert "s3cret" not in database.address
    with pytest.raises(StoreError) as caught:
        database.connect()
    assert "s3cret" not in str(caught.value)


def test_a_database_that_does_not_exist_is_named(cluster: Cluster) -> None:
    with pytest.raises(StoreError, match='database "nowhere" does not exist') as caught:
        open_database(cluster.address("nowhere")).connect()
    assert "s3cret" not in str(caught.value)


def test_question_marks_become_numbers() -> None:
    assert numbered("SELECT ? + ?, x") == "SELECT $1 + $2, x"
    assert without_password("postgres://u:p@h:1/d?x=y") == "postgresql://u@h:1/d"


def test_without_the_driver_an_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def missing(name: str, *more: object) -> object:
        if name == "asyncpg":
            raise ModuleNotFoundError(name, name=name)
        return found(name, *more)  # type: ignore[arg-type]

    monkeypatch.delitem(sys.modules, "fairshield.service.store.postgres")
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'fairshield\[postgres\]'"):
        open_database("postgresql://localhost/x")


# SQLite alone -------------------------------------------------------------------------------


def test_who_opens_a_new_file_waits_for_whoever_is_writing_it(tmp_path: Path) -> None:
    other = apsw.Connection(str(tmp_path / "new.db"))
    other.execute("BEGIN IMMEDIATE")
    end = threading.Timer(0.2, other.execute, ["COMMIT"])
    end.start()
    open_database(str(tmp_path / "new.db")).connect().close()
    end.join()
    other.close()


def test_a_file_is_served_once_at_a_time(tmp_path: Path) -> None:
    path = str(tmp_path / "shield.db")
    first = open_database(path, serving=True)
    with pytest.raises(StoreError, match="is being served by process"):
        open_database(path, serving=True)
    open_database(path).connect().close()
    first.close()
    open_database(path, serving=True).close()
