"""An audit of a database finds every change, and nothing in a database that is as it was."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import msgspec
import pytest
from click.testing import CliRunner, Result
from faults_kit import Load, audited, policies, prepare, send

from fairshield.base.errors import InvalidValueError
from fairshield.cli.app import app
from fairshield.service.engine.commands import Decide, DecideBatch, Observe, Overrule
from fairshield.service.engine.engine import Engine
from fairshield.service.history import audit
from fairshield.service.history.views import explanation, series
from fairshield.service.log.entries import BEGINNING, entry_of
from fairshield.service.log.live import LiveStream
from fairshield.service.server import background
from fairshield.service.store import SqliteDatabase
from fairshield.service.store.policies import LoadedPolicies
from fairshield.wire.messages import (
    BatchItem,
    DecisionRequest,
    OutcomeRequest,
    OverrideRequest,
    StreamRequest,
)
from fairshield.wire.problems import Refusal


async def fill(path: Path) -> None:
    engine = Engine(SqliteDatabase(path), LoadedPolicies())
    await engine.start()
    await prepare(engine)
    load = Load(random.Random(1))
    for _ in range(25):
        assert await send(engine, load, load.next()) == []
    await engine.create(StreamRequest("people", policies()["window"][0], human=True))
    rng = random.Random(2)
    for n in range(1, 26):
        person = DecisionRequest(rng.choice("ab"), rng.random() < 0.5)
        answer = msgspec.json.decode(
            await engine.submit("people", Decide(person), key=f"person-{n}")
        )
        if n in (3, 9, 25):
            override = Overrule(n, OverrideRequest(not answer["accepted"], "a note"))
            await engine.submit("people", override, key=f"override-{n}")
    await engine.create(StreamRequest("batch", policies()["window"][0]))
    people = tuple(BatchItem(rng.choice("ab"), rng.random() < 0.5) for _ in range(7))
    await engine.submit("batch", DecideBatch(people), key="batch")
    await engine.stop()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(tmp_path_factory.mktemp("filled")) / "shield.db"
    asyncio.run(fill(path))
    return path


@pytest.fixture
def tampered(filled: Path, tmp_path: Path) -> Callable[..., str]:
    """Change a copy of the database as its owner can; the address of the copy."""

    def change(*statements: str | tuple[str, tuple[Any, ...]]) -> str:
        path = str(shutil.copy(filled, tmp_path / "shield.db"))
        db = apsw.Connection(path)
        for name in ("entries_stay", "entries_remain"):
            db.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            sql, arguments = (statement, ()) if isinstance(statement, str) else statement
            db.execute(
                sql.replace(":loans", "(SELECT id FROM streams WHERE name = 'loans')"), arguments
            )
            assert db.changes() or sql.startswith("DROP"), sql
        db.close()
        return path

    return change


def lines_of(path: str | Path, stream: str) -> list[bytes]:
    db = apsw.Connection(str(path))
    found = db.execute(
        "SELECT line FROM entries WHERE stream = (SELECT id FROM streams WHERE name = ?) "
        "ORDER BY seq", (stream,)
    )  # fmt: skip
    lines = [line.encode() for (line,) in found]
    db.close()
    return lines


def receipts(lines: list[bytes]) -> list[bytes]:
    """The chain of hashes over lines."""
    hashes = [BEGINNING]
    for line in lines:
        hashes.append(hashlib.sha256(hashes[-1] + line).digest())
    return hashes[1:]


@pytest.mark.parametrize("filled_in", [True, False])
def test_outcomes_that_were_filled_in_are_doubted(tmp_path: Path, filled_in: bool) -> None:
    """Nobody rejected is ever said to have had outcome 1."""

    async def observed(path: Path) -> None:
        engine, rng = Engine(SqliteDatabase(path), LoadedPolicies()), random.Random(3)
        await engine.start()
        await prepare(engine, ["hiring"])
        for n in range(1, 301):
            person = DecisionRequest(rng.choice("ab"), rng.random() < 0.5)
            answer = msgspec.json.decode(await engine.submit("hiring", Decide(person)))
            good = rng.random() < 0.8 and (answer["accepted"] or not filled_in)
            await engine.submit("hiring", Observe(OutcomeRequest(n, good)))
        await engine.stop()

    asyncio.run(observed(tmp_path / "shield.db"))
    (stream,) = audited(str(tmp_path / "shield.db")).streams
    assert stream.holds
    assert (stream.doubt is not None) == filled_in
    result = CliRunner().invoke(app, ["audit", "--db", str(tmp_path / "shield.db")])
    assert result.exit_code == (3 if filled_in else 0), result.output
    assert ("nobody rejected counts" in result.output) == filled_in


def test_nothing_is_found_in_what_a_service_wrote(filled: Path) -> None:
    shares: list[float] = []
    found = audited(str(filled), progress=shares.append)
    # A person's decision may make a window unfair; the log says so.
    unfair = [text for text in found.all_findings if "does not hold" in text]
    assert list(found.all_findings) == unfair
    assert all("stream 'people'" in text for text in unfair)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    by_name = {one.stream: one for one in found.streams}
    assert by_name["loans"].windows == by_name["loans"].decisions // 10 > 5
    assert by_name["loans"].fair == by_name["loans"].windows
    assert by_name["people"].windows == 2
    for one in found.streams:
        lines = lines_of(filled, one.stream)
        assert one.entries == len(lines)
        assert one.receipt == receipts(lines)[-1].hex()
        assert one.decisions == sum(b'"kind":"decision"' in line for line in lines)


CHANGES: dict[str, tuple[list[str], str]] = {
    "a changed line": (
        ["UPDATE entries SET line = replace(line, '\"accepted\":true', '\"accepted\":false') "
         "WHERE stream = :loans AND seq = (SELECT min(seq) FROM entries WHERE stream = :loans "
         "AND line LIKE '%\"accepted\":true%' AND seq > 6)"],
        "of stream 'loans' does not match its hash",
    ),
    "a changed hash": (
        ["UPDATE entries SET hash = zeroblob(32) WHERE stream = :loans AND seq = 8"],
        "entry 8 of stream 'loans' does not match its hash",
    ),
    "a removed entry": (
        ["DELETE FROM entries WHERE stream = :loans AND seq = 9"],
        "entry 10 of stream 'loans' follows entry 8: entries are missing",
    ),
    "a removed first entry": (
        ["DELETE FROM entries WHERE stream = :loans AND seq = 0"],
        "stream 'loans' cannot be replayed: stream number 1 has no entry 0",
    ),
    "swapped entries": (
        ["DROP INDEX entries_by_n", "DROP INDEX entries_by_key",
         "UPDATE entries SET seq = -1 WHERE stream = :loans AND seq = 5",
         "UPDATE entries SET seq = 5 WHERE stream = :loans AND seq = 6",
         "UPDATE entries SET seq = 6 WHERE stream = :loans AND seq = -1"],
        "entry 5 of stream 'loans' does not match its hash",
    ),
    "a doubled entry": (
        ["DROP INDEX entries_by_n", "DROP INDEX entries_by_key",
         "INSERT INTO entries SELECT stream, (SELECT max(seq) + 1 FROM entries WHERE "
         "stream = :loans), n, overruled, key, line, hash FROM entries "
         "WHERE stream = :loans AND seq = 4"],
        "of stream 'loans' does not match its hash",
    ),
    "an inserted entry": (
        ["INSERT INTO entries SELECT stream, -7, NULL, 0, NULL, line, hash FROM entries "
         "WHERE stream = :loans AND seq = 4"],
        "entry -7 of stream 'loans' comes first",
    ),
    "an index that hides an overruling": (
        ["UPDATE entries SET overruled = 1 - overruled WHERE stream = :loans AND seq = 4"],
        "entry 4 of stream 'loans' is indexed as",
    ),
    "another key": (
        ["UPDATE entries SET key = 'mine' WHERE stream = :loans AND seq = 1"],
        "entry 1 of stream 'loans' is indexed as",
    ),
    "a removed window": (
        ["DELETE FROM windows WHERE stream = :loans AND window = 2"],
        "stream 'loans': window 2 ended with entry",
    ),
    "a removed last window": (
        ["DELETE FROM windows WHERE stream = :loans AND window = "
         "(SELECT max(window) FROM windows WHERE stream = :loans)"],
        "but is not stored",
    ),
    "a changed window": (
        ["UPDATE windows SET fair = 0 WHERE stream = :loans AND window = 1"],
        "is stored with fair = False instead of True",
    ),
    "a changed snapshot": (
        ["UPDATE windows SET snapshot = replace(snapshot, '\"fair\":2', '\"fair\":1') "
         "WHERE stream = :loans AND window = 1"],
        "is stored with another snapshot",
    ),
    "a snapshot that cannot be read": (
        ["UPDATE windows SET snapshot = '{broken' WHERE stream = :loans AND window = 1"],
        "is stored with another snapshot",
    ),
    "a snapshot of other fields": (
        ["UPDATE windows SET snapshot = '{\"seq\":[]}' WHERE stream = :loans AND window = 1"],
        "is stored with another snapshot",
    ),
    "a snapshot that is nested too deeply": (
        ["UPDATE windows SET snapshot = substr(snapshot, 1, length(snapshot) - 1) || "
         f"',\"more\":{'[' * 3000}{']' * 3000}}}' WHERE stream = :loans AND window = 1"],
        "is stored with another snapshot",
    ),
    "a snapshot that is no text": (
        ["UPDATE windows SET snapshot = cast(x'ff' AS text) WHERE stream = :loans AND window = 1"],
        "ends of windows from -9223372036854775808 on cannot be read",
    ),
    "a verdict that was taken away": (
        ["UPDATE windows SET verdict = NULL, fair = 0 WHERE stream = :loans AND window = 1"],
        "is stored with fair = False instead of True and verdict = None instead of 'fair'",
    ),
    "the last window there can be": (
        ["UPDATE windows SET window = 9223372036854775807 WHERE stream = :loans AND window = 1"],
        "window 9223372036854775807 is stored as ended with entry",
    ),
    "a window too many": (
        ["INSERT INTO windows SELECT stream, 999, seq + 900000, n, at, fair, bias, "
         "bias_unshielded, overruled, cost_paid, snapshot, verdict, measured_bias, "
         "measured_bias_unshielded FROM windows "
         "WHERE stream = :loans AND window = 0"],
        "window 999 is stored as ended with entry",
    ),
    "an end that was cut off": (
        ["DELETE FROM entries WHERE stream = :loans AND seq >= "
         "(SELECT max(seq) FROM windows WHERE stream = :loans)"],
        "is stored as ended with entry",
    ),
    "another name": (
        ["UPDATE streams SET name = 'loan' WHERE name = 'loans'"],
        "stream 'loan' was created as 'loans'",
    ),
    "another policy": (
        ["UPDATE artifacts SET content = zeroblob(100)"], "stream 'loans' cannot be replayed"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_found_and_named(name: str, tampered: Callable[..., str]) -> None:
    statements, sentence = CHANGES[name]
    found = audited(tampered(*statements))
    assert not found.holds
    assert any(sentence in text for text in found.all_findings), found.all_findings


async def refusals_of(path: str) -> dict[str, Refusal]:
    engine, number = Engine(SqliteDatabase(path), LoadedPolicies()), 1
    await engine.start()
    person, refused = Decide(DecisionRequest("a", True)), {}
    asked = {
        "decision": engine.submit("loans", person, key="new"),
        "series": engine.read(lambda c: series(number, c, engine.policies, after=200)),
        "explanation": engine.readers.read_long(
            lambda c: explanation(number, 70, c, engine.policies)
        ),
    }
    for name, answer in asked.items():
        try:
            await answer
        except Refusal as refusal:
            refused[name] = refusal
    await engine.stop()
    return refused


@pytest.mark.parametrize(
    ("snapshot", "refused"),
    [
        ("'{broken'", {"decision", "series", "explanation"}),
        (
            "json_set(snapshot, '$.tally.overruled_by_group', json('[1]'))",
            {"decision", "explanation"},
        ),
    ],
)
def test_what_is_stored_of_a_window_is_not_said_to_be_the_mistake_of_who_asks(
    snapshot: str, refused: set[str], tampered: Callable[..., str]
) -> None:
    address = tampered(f"UPDATE windows SET snapshot = {snapshot} WHERE stream = :loans")
    found = asyncio.run(refusals_of(address))
    assert set(found) == refused
    for refusal in found.values():
        assert refusal.kind == "log-broken"
        assert "fairshield audit --db says where" in str(refusal)


def test_rows_of_no_stream_are_found(tampered: Callable[..., str]) -> None:
    found = audited(
        tampered(
            "INSERT INTO entries SELECT 77, seq, n, overruled, key, line, hash FROM entries "
            "WHERE stream = :loans AND seq < 3"
        )
    )
    assert found.findings == ("there are entries of stream number 77, which does not exist",)


def rewrite(lines: list[bytes]) -> list[str | tuple[str, tuple[Any, ...]]]:
    """Statements that put lines in the place of the log of ``loans``, with right hashes."""
    statements: list[str | tuple[str, tuple[Any, ...]]] = [
        "DELETE FROM entries WHERE stream = :loans"
    ]
    for seq, (line, hash) in enumerate(zip(lines, receipts(lines), strict=True)):
        entry = entry_of(line)
        n, key = getattr(entry, "n", None), getattr(entry, "key", None)
        overruled = n is not None and entry.accepted is not entry.proposed  # type: ignore[union-attr]
        sql = "INSERT INTO entries VALUES (:loans, ?, ?, ?, ?, ?, ?)"
        statements.append((sql, (seq, n, int(overruled), key, line.decode(), hash)))
    return statements


def test_a_log_with_right_hashes_is_still_replayed(
    filled: Path, tampered: Callable[..., str]
) -> None:
    lines = lines_of(filled, "loans")
    seq = next(i for i, line in enumerate(lines) if i > 5 and b'"accepted":true' in line)
    lines[seq] = lines[seq].replace(b'"accepted":true', b'"accepted":false')
    found = audited(tampered(*rewrite(lines)), ["loans"]).all_findings
    assert f"entry {seq} of stream 'loans' says" in found[0]
    assert "a replay leads to" in found[0]


def test_a_rewritten_log_is_told_by_a_receipt(filled: Path, tampered: Callable[..., str]) -> None:
    lines = lines_of(filled, "loans")
    seq, given = 12, receipts(lines)[12].hex()
    forged = [line.replace(b'"at":"2', b'"at":"1') for line in lines]
    address = tampered(*rewrite(forged), "DELETE FROM windows WHERE stream = :loans")
    windows = audited(address, ["loans"]).all_findings
    assert all("but is not stored" in text for text in windows)
    found = audited(address, ["loans"], expected={"loans": {seq: given}}).all_findings
    assert any(f"entry {seq} of stream 'loans' has receipt" in text for text in found)
    kept = audited(str(filled), ["loans"], expected={"loans": {seq: given.upper()}})
    assert kept.all_findings == ()


def test_a_cut_off_end_is_told_by_a_receipt(filled: Path, tampered: Callable[..., str]) -> None:
    lines = lines_of(filled, "hiring")
    last, given = len(lines) - 1, receipts(lines)[-1].hex()
    address = tampered(
        "DELETE FROM entries WHERE stream = (SELECT id FROM streams WHERE name = 'hiring') "
        f"AND seq = {last}"
    )
    found = audited(address, ["hiring"], expected={"hiring": {last: given}}).all_findings
    assert any(
        f"entry {last} of stream 'hiring' is missing: a receipt was given" in text
        and f"ends with entry {last - 1}" in text
        for text in found
    )
    missing = audited(str(filled), ["loans"], expected={"gone": {3: given}})
    assert missing.findings == ("stream 'gone' is missing: there are receipts for its entries",)


def test_half_a_batch_is_found(tampered: Callable[..., str]) -> None:
    address = tampered(
        "DELETE FROM entries WHERE stream = (SELECT id FROM streams WHERE name = 'batch') "
        "AND seq > 4"
    )
    [found] = audited(address, ["batch"]).all_findings
    assert "entry 1 of stream 'batch' belongs to a request that led to 3 more entries" in found


def test_an_unknown_stream_is_a_mistake_of_the_caller(filled: Path) -> None:
    with pytest.raises(InvalidValueError, match="no stream 'lones'; it has: batch, credit"):
        audited(str(filled), ["lones"])


def test_a_repeated_key_is_found(filled: Path, tampered: Callable[..., str]) -> None:
    lines = lines_of(filled, "loans")
    keyed = [i for i, line in enumerate(lines) if b'"key"' in line]
    first, last = (entry_of(lines[i]).key for i in (keyed[0], keyed[-1]))  # type: ignore[union-attr]
    lines[keyed[-1]] = lines[keyed[-1]].replace(str(last).encode(), str(first).encode())
    address = tampered("DROP INDEX entries_by_key", *rewrite(lines))
    found = audited(address, ["loans"]).all_findings
    assert any(f"entries {keyed[0]} and {keyed[-1]} of stream 'loans' have" in t for t in found)


def test_fairness_is_counted_without_the_shield(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shield that follows every proposal replays its own log; the counters tell all the same."""
    lenient = LiveStream._decided

    def replayed(self: LiveStream, *arguments: Any) -> Any:
        made = lenient(self, *arguments)
        return msgspec.structs.replace(made, accepted=made.proposed)

    monkeypatch.setattr(LiveStream, "_decided", replayed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shield.db"
        asyncio.run(follow_proposals(path))
        found = audited(str(path)).all_findings
    assert any("demographic parity ≤ 1/5 does not hold after 10 decisions" in t for t in found)
    assert any("0 fair and 0 exempt of 1 windows as counted" in text for text in found)


async def follow_proposals(path: Path) -> None:
    engine = Engine(SqliteDatabase(path), LoadedPolicies())
    await engine.start()
    await prepare(engine, ["loans"])
    for i in range(10):
        await engine.submit("loans", Decide(DecisionRequest("ab"[i % 2], i % 2 == 0)), key=f"{i}")
    await engine.stop()


def test_a_stream_is_audited_beside_other_work_until_told_to_stop(filled: Path) -> None:
    database = SqliteDatabase(filled, read_only=True)
    connection, policies, stop = database.connect(), LoadedPolicies(), threading.Event()
    whole = audit.audit_stream(connection, policies, "credit", stop)
    assert whole.finished
    assert whole == audited(str(filled), ["credit"]).streams[0]
    stop.set()
    part = audit.audit_stream(connection, policies, "credit", stop)
    assert (part.finished, part.entries, part.holds) == (False, 0, True)
    with pytest.raises(InvalidValueError, match="no stream 'none'"):
        audit.audit_stream(connection, policies, "none", stop)
    connection.close()


def test_an_audit_that_fails_is_a_finding_and_does_not_hide_other_streams(
    filled: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = background.audit_stream

    def failing(connection: Any, policies: Any, name: str, *more: Any) -> Any:
        if name == "credit":
            raise RuntimeError("a group's name")
        return real(connection, policies, name, *more)

    monkeypatch.setattr(background, "audit_stream", failing)
    service: Any = SimpleNamespace(
        engine=SimpleNamespace(database=SqliteDatabase(filled, read_only=True)),
        policies=LoadedPolicies(), ended=threading.Event(), findings={},
    )  # fmt: skip
    background.audit(service)
    people = service.findings.pop("people")  # what a person's decision has broken
    assert people == len(audited(str(filled), ["people"]).streams[0].findings)
    assert service.findings == {"loans": 0, "batch": 0, "hiring": 0, "credit": 1}
    assert "stream credit: its audit has failed (RuntimeError)" in caplog.text
    assert "a group's name" not in caplog.text


async def audit_while_serving(path: Path) -> list[tuple[str, ...]]:
    engine = Engine(SqliteDatabase(path, serving=True), LoadedPolicies())
    await engine.start()
    await prepare(engine)
    await engine.create(StreamRequest("people", policies()["window"][0], human=True))
    load, found = Load(random.Random(5)), []
    for n in range(1, 13):
        for _ in range(2):
            assert await send(engine, load, load.next()) == []
        audits = asyncio.create_task(asyncio.to_thread(audited, str(path)))
        person = Decide(DecisionRequest("a", True))
        answer = msgspec.json.decode(await engine.submit("people", person, key=f"{n}"))
        if n % 10:  # with its last decision a window is over
            override = Overrule(n, OverrideRequest(not answer["accepted"]))
            await engine.submit("people", override, key=f"o{n}")
        assert await send(engine, load, load.next()) == []
        found.append(
            tuple(t for t in (await audits).all_findings if "does not hold after" not in t)
        )
    await engine.stop()
    return found


def test_an_audit_while_the_service_runs_finds_nothing(tmp_path: Path) -> None:
    found = asyncio.run(audit_while_serving(tmp_path / "shield.db"))
    assert set(found) == {()}


# The command --------------------------------------------------------------------------------


def command(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def test_the_command_tells_that_all_is_well(filled: Path) -> None:
    streams = ("loans", "hiring", "credit", "batch")
    result = command("--db", filled, *streams)
    assert result.exit_code == 0, result.output
    assert "every log replays, and every window that the property bound was fair" in result.output
    assert receipts(lines_of(filled, "credit"))[-1].hex() in result.output
    data = json.loads(command("--db", filled, *streams, "--json").output)
    assert data["holds"] is True
    assert [stream["stream"] for stream in data["streams"]] == list(streams)


def test_the_command_names_what_it_found(filled: Path, tampered: Callable[..., str]) -> None:
    address = tampered("UPDATE entries SET hash = zeroblob(32) WHERE stream = :loans AND seq = 8")
    result = command("--db", address)
    assert result.exit_code == 1
    assert "- entry 8 of stream 'loans' does not match its hash" in result.output
    data = json.loads(command("--db", address, "--json").output)
    assert data["holds"] is False
    assert any("entry 8" in text for text in data["streams"][0]["findings"])


def test_the_command_compares_receipts(filled: Path) -> None:
    given = receipts(lines_of(filled, "loans"))
    for seq, receipt, code in ((7, given[7], 0), (7, given[8], 1), (9999, given[7], 1)):
        expect = f"loans:{seq}:{receipt.hex()}"
        told = command("--db", filled, "loans", "--expect", expect)
        assert told.exit_code == code
        assert f"{1 - code} of 1 match the logs" in told.stdout
    assert "match" not in command("--db", filled, "loans").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say what to audit: one LOG"),
        (["a.jsonl", "b.jsonl"], "say what to audit: one LOG"),
        (["-", "--expect", f"loans:1:{'0' * 64}"], "--db DATABASE, with which go"),
        (["--db", "none.db"], "does not exist"),
        (["--db", "{}", "--expect", "loans:1:abc"], "expected STREAM:SEQ:RECEIPT"),
        (["--db", "{}", "--horizon", "5"], "--db goes without horizon"),
        (["--db", "{}", "--policy", "x.shield"], "--db goes without policy"),
        (["--db", "{}", "lones"], "no stream 'lones'"),
        (
            ["--db", "{}", "--expect", f"a:1:{'0' * 64}", "--expect", f"a:1:{'1' * 64}"],
            "two receipts are expected",
        ),
    ],
)
def test_mistakes_are_told_in_a_sentence(filled: Path, arguments: list[str], message: str) -> None:
    result = command(*(argument.format(filled) for argument in arguments))
    assert result.exit_code == 2
    assert message in result.stderr.replace("\n", " ")
