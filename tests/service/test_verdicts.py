"""Windows that are fair, unfair or exempt, said alike by stream, audit, API and metrics."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner
from engines import Artifacts, ask, check_log, log, many, one, opened, overrule, stream
from faults_kit import audited
from in_process import application, post

import fairshield as fs
from fairshield.cli.app import app
from fairshield.periodic import kind_of
from fairshield.policy.artifact import digest_of
from fairshield.records import decisions_of, read_records
from fairshield.service.engine.commands import Close
from fairshield.service.engine.engine import Engine
from fairshield.service.log.entries import Created
from fairshield.service.log.live import LiveStream
from fairshield.service.log.reports import describe, report_of
from fairshield.service.log.snapshots import Snapshot
from fairshield.service.store import SqliteDatabase

INPUTS = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
PARITY = fs.DemographicParity("0.25")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    """Policies that bind some windows (``few``), at a checkpoint too, or no window at all."""
    folder = tmp_path_factory.mktemp("verdicts")
    few = fs.DemographicParity("0.25", min_support=3)
    policies: dict[str, Any] = {
        "few": fs.synthesize(few, INPUTS, horizon=8),
        "checkpoint": fs.synthesize(PARITY, INPUTS, horizon=8, checkpoints=(4,)),
        "vacuous": fs.synthesize(fs.DemographicParity("0.25", min_support=5), INPUTS, horizon=8),
        "periods": fs.PerpetualShield(PARITY, INPUTS, period=4).policy,
        "best-effort": fs.synthesize(
            fs.DemographicParity("0.1", min_support=5),
            INPUTS,
            horizon=8,
            best_effort=True,
            start={"a": (4, 4), "b": (4, 0)},
        ),
    }
    digests = {}
    for name, policy in policies.items():
        policy.save(folder / f"{name}.shield")
        digests[name] = digest_of(folder / f"{name}.shield")
    return Artifacts(folder, policies, digests)


async def decide(engine: Engine, name: str, groups: str, proposed: str) -> None:
    """Decide on people, each a letter, and proposals, ``+`` to accept."""
    people = [(group, sign == "+") for group, sign in zip(groups, proposed, strict=True)]
    await ask(engine, name, many(*people), key=f"{name}-{await engine.query(name, _seq)}")


def _seq(live: LiveStream) -> int:
    return live.seq


# Checkpoints --------------------------------------------------------------------------------


async def fail_a_checkpoint(path: Path, made: Artifacts) -> tuple[Any, ...]:
    """A person breaks the checkpoint after 4 of 8 decisions, and the shield mends the end."""
    request = stream(made, "checkpoint", human=True)
    async with opened(str(path), made, request) as engine:
        for person in ("a", True), ("a", True), ("b", True), ("b", True):
            await ask(engine, "checkpoint", one(*person))
        for n in (3, 4):
            await ask(engine, "checkpoint", overrule(n, False))
        before = await engine.query("checkpoint", describe)
        for group in "bbba":
            await ask(engine, "checkpoint", one(group, group == "b"))
        await check_log(engine, "checkpoint")
        seen = await engine.query("checkpoint", describe)
        ends = await engine.read(lambda c: c.windows(1))
    return before, seen, ends


def test_a_window_that_failed_at_a_checkpoint_is_unfair_everywhere(
    tmp_path: Path, made: Artifacts
) -> None:
    before, seen, ends = asyncio.run(fail_a_checkpoint(tmp_path / "s.db", made))
    found = audited(str(tmp_path / "s.db")).streams[0]
    assert any("does not hold after 4 decisions of window 0" in text for text in found.findings)
    assert PARITY.holds(made.policies["checkpoint"].start)
    assert ends[0].bias <= 0.25
    assert before.status == "at-risk"
    assert seen.status == "violated"
    assert (seen.state.windows_completed, seen.state.windows_fair) == (1, 0)
    assert [end.fair for end in ends] == [False]
    assert (found.windows, found.fair) == (1, 0)


async def review_a_window(path: Path, made: Artifacts, overruled: tuple[int, ...]) -> Any:
    """A person overrides decisions before a checkpoint that has passed, one after the other."""
    async with opened(str(path), made, stream(made, "checkpoint", human=True)) as engine:
        for person in ("a", True), ("a", True), ("b", True), ("b", True):
            await ask(engine, "checkpoint", one(*person))
        for n in overruled[:2]:
            await ask(engine, "checkpoint", overrule(n, False))
        await ask(engine, "checkpoint", one("a", True))
        for n in overruled[2:]:
            await ask(engine, "checkpoint", overrule(n, False))
        for group in "bbb":
            await ask(engine, "checkpoint", one(group, True))
        await check_log(engine, "checkpoint")
        lines = [json.dumps(entry) + "\n" for entry in await log(engine, "checkpoint")]
        path.with_suffix(".jsonl").write_text("".join(lines))
        return await engine.query("checkpoint", describe), await engine.read(lambda c: c.windows(1))


@pytest.mark.parametrize("overruled", [(1, 3, 4), (3, 4, 1, 2), (3, 1, 4, 2), (1, 3)])
def test_a_window_is_judged_by_the_decisions_as_they_stand_at_its_end(
    tmp_path: Path, made: Artifacts, overruled: tuple[int, ...]
) -> None:
    path = tmp_path / "s.db"
    seen, ends = asyncio.run(review_a_window(path, made, overruled))
    found = audited(str(path)).streams[0]
    with path.with_suffix(".jsonl").open() as file:
        records = list(decisions_of(read_records(file, "jsonl")))
    policy = made.policies["checkpoint"]
    report = fs.audit(PARITY, records, groups=("a", "b"), horizon=8, checkpoints=policy.checkpoints)
    assert [row.verdict for row in ends] == [report.verdict]
    assert (seen.status == "violated") == (report.verdict == "unfair")
    assert (found.windows, found.unfair) == (1, report.unfair)
    told = {violation.position for violation in report.violations}
    assert told == {
        decided for decided in (4, 8)
        for text in found.findings if f"after {decided} decisions of window 0" in text
    }  # fmt: skip
    # A person is to blame, and no decision of the shield's.
    assert not any(text.endswith("it was guaranteed") for text in found.findings)


async def reviewed_over_http(
    path: Path, made: Artifacts, overruled: tuple[int, ...]
) -> dict[str, str]:
    """What the service says, and answers, of a window in which a person overrides decisions."""
    base = "/v1/streams/checkpoint"
    wanted = stream(made, "checkpoint", human=True)
    async with application(path, made, wanted) as (client, _):
        for i, group in enumerate("aabbbbba"):
            person = {"group": group, "proposed": i < 7}
            await post(client, f"{base}/decisions", person, f"d{i}")
            for n in overruled if i == 4 else ():
                await post(client, f"{base}/decisions/{n}/override", {"accepted": False}, f"o{n}")
    async with application(path, made) as (client, service):  # which audits its logs as it begins
        while "checkpoint" not in service.findings:
            await asyncio.sleep(0.01)
        addresses = {
            "stream": base, "state": f"{base}/state", "windows": f"{base}/windows",
            "jsonl": f"{base}/log.jsonl", "csv": f"{base}/log.csv", "metrics": "/metrics",
            "overview": "/", "page": "/streams/checkpoint",
        }  # fmt: skip
        answers = {name: await client.get(address) for name, address in addresses.items()}
    assert {answer.status_code for answer in answers.values()} == {200}
    return {name: answer.text for name, answer in answers.items()}


def audit_of(*arguments: str) -> str:
    """The verdict of an audit on the command line.

    It ends with status 1 also where decisions are a person's, and not the policy's.
    """
    result = CliRunner().invoke(app, ["audit", "--json", *arguments])
    verdict: str = json.loads(result.output)["verdict"]
    assert result.exit_code in ((1,) if verdict == "unfair" else (0, 1))
    return verdict


@pytest.mark.parametrize(
    ("overruled", "verdict"), [((3, 4), "unfair"), ((1, 3), "fair"), ((), "fair")]
)
def test_api_dashboard_metrics_and_audits_say_the_same_after_an_override(
    tmp_path: Path, made: Artifacts, overruled: tuple[int, ...], verdict: str
) -> None:
    """A person changes a checkpoint that has passed; the end of the window is fair in any case."""
    path, policy = tmp_path / "s.db", str(made.folder / "checkpoint.shield")
    told = asyncio.run(reviewed_over_http(path, made, overruled))
    unfair = int(verdict == "unfair")

    (end,) = json.loads(told["windows"])["windows"]
    assert end["bias"] <= 0.25
    assert (end["verdict"], end["fair"]) == (verdict, not unfair)
    assert (json.loads(told["stream"])["status"] == "violated") == bool(unfair)
    state = json.loads(told["state"])
    assert (state["windows_fair"], state["windows_unfair"]) == (1 - unfair, unfair)

    lines = told["metrics"].splitlines()
    for name, number in (
        ("windows_fair_total", 1 - unfair),
        ("windows_unfair_total", unfair),
        ("audit_findings", unfair),
    ):
        assert f'fairshield_{name}{{stream="checkpoint"}} {number:.1f}' in lines

    for page in ("overview", "page"):
        light = told[page].partition('class="light ')[2]
        assert light.startswith("violated") == bool(unfair)
    assert ("at a checkpoint" in told["page"]) == bool(unfair)

    assert audit_of("--db", str(path)) == verdict
    for kind in ("jsonl", "csv"):
        file = tmp_path / f"log.{kind}"
        file.write_text(told[kind])
        assert audit_of(str(file), "--policy", policy) == verdict


@pytest.mark.parametrize("reviewed", [(), (3, 4, 1, 2)])
def test_only_what_an_earlier_version_said_otherwise_may_differ_from_a_replay(
    tmp_path: Path, made: Artifacts, reviewed: tuple[int, ...]
) -> None:
    """0.1 stored no cells, and did not judge a checkpoint again that a person had broken."""
    path = tmp_path / "s.db"
    asyncio.run(review_a_window(path, made, reviewed))
    before = audited(str(path)).streams[0].findings
    database = apsw.Connection(str(path))

    def changed(statement: str) -> list[str]:
        database.execute(f"UPDATE windows SET {statement}")
        return [text for text in audited(str(path)).streams[0].findings if text not in before]

    assert changed("snapshot = json_set(snapshot, '$.tally.cells', NULL)") == []
    forged = changed("fair = 1 - fair, verdict = 'exempt'")
    assert (forged == []) == bool(reviewed)
    [found] = changed(
        "measured_bias = 0.99, snapshot = json_set(snapshot, '$.tally.cost_paid', -7)"
    )
    assert "measured_bias = 0.99 instead of" in found
    assert "another snapshot" in found


async def close_at_a_checkpoint(path: Path, made: Artifacts, overruled: tuple[int, ...]) -> Any:
    async with opened(str(path), made, stream(made, "checkpoint", human=True)) as engine:
        for person in ("a", True), ("a", True), ("b", True), ("b", True):
            await ask(engine, "checkpoint", one(*person))
        for n in overruled:
            await ask(engine, "checkpoint", overrule(n, False))
        await ask(engine, "checkpoint", Close())
        await check_log(engine, "checkpoint")
        return await engine.query("checkpoint", describe)


@pytest.mark.parametrize(
    ("overruled", "status", "verdict"),
    [((3, 4), "violated", "unfair"), ((), "finished", "fair")],
)
def test_a_stream_that_is_closed_at_a_checkpoint_is_judged_there(
    tmp_path: Path, made: Artifacts, overruled: tuple[int, ...], status: str, verdict: str
) -> None:
    seen = asyncio.run(close_at_a_checkpoint(tmp_path / "s.db", made, overruled))
    found = audited(str(tmp_path / "s.db")).streams[0]
    assert seen.status == status
    assert (found.verdict, found.unfinished, found.windows) == (verdict, verdict, 0)
    assert found.holds == (verdict != "unfair")


@pytest.mark.parametrize("name", ["few", "checkpoint", "periods"])
async def test_nothing_is_guaranteed_of_a_stream_that_was_closed_before_it_began(
    tmp_path: Path, made: Artifacts, name: str
) -> None:
    async with opened(str(tmp_path / "s.db"), made, stream(made, name)) as engine:
        assert (await engine.query(name, report_of)).guaranteed
        await ask(engine, name, Close())
        report = await engine.query(name, report_of)
        seen = await engine.query(name, describe)
    assert (seen.status, report.guaranteed, seen.state.guaranteed) == ("finished", False, False)


async def export(path: Path, made: Artifacts, groups: str) -> None:
    """A database, and beside it the log of its stream as a file."""
    async with opened(str(path), made, stream(made, "checkpoint")) as engine:
        await decide(engine, "checkpoint", groups, ("++--" * len(groups))[: len(groups)])
        lines = [json.dumps(entry) + "\n" for entry in await log(engine, "checkpoint")]
    path.with_suffix(".jsonl").write_text("".join(lines))


@pytest.mark.parametrize("groups", ["ababababab", "aaaabbbbab", "aaaaaaaaaa"])
@pytest.mark.parametrize("decisions", [3, 4, 5, 8, 9])
def test_a_file_and_a_database_are_judged_alike(
    tmp_path: Path, made: Artifacts, groups: str, decisions: int
) -> None:
    path = tmp_path / "s.db"
    asyncio.run(export(path, made, groups[:decisions]))
    policy = str(made.folder / "checkpoint.shield")
    told = [
        CliRunner().invoke(app, ["audit", "--json", *of])
        for of in (["--db", str(path)], [str(path.with_suffix(".jsonl")), "--policy", policy])
    ]
    assert told[0].exit_code == told[1].exit_code, [result.output for result in told]
    verdicts = [json.loads(result.output)["verdict"] for result in told]
    assert verdicts[0] == verdicts[1]


@pytest.mark.parametrize(
    ("groups", "code", "words"),
    [
        ("aba", 3, "every log replays, and no window has ended yet"),
        ("ababa", 0, "the property held at every checkpoint so far; no window has ended yet"),
        ("aaaaa", 3, "exempt: the property bound nothing at the checkpoints so far"),
        ("aaaaaaaa" + "abab", 0, "at every checkpoint so far; no window that it bound has ended"),
    ],
)
def test_checkpoints_of_an_unfinished_window_are_told(
    tmp_path: Path, made: Artifacts, groups: str, code: int, words: str
) -> None:
    asyncio.run(export(tmp_path / "s.db", made, groups))
    result = CliRunner().invoke(app, ["audit", "--db", str(tmp_path / "s.db")])
    assert (result.exit_code, words in result.output) == (code, True), result.output


# Exempt windows -----------------------------------------------------------------------------


async def fill(path: Path, made: Artifacts) -> dict[str, Any]:
    """One fair window and two exempt ones; a stream that nothing binds; one of periods."""
    requests = [stream(made, name) for name in ("few", "vacuous", "periods")]
    async with opened(str(path), made, *requests) as engine:
        await decide(engine, "few", "aabababb" + "aaaaaabb" + "a" * 8, "+++++-+-" * 3)
        await decide(engine, "vacuous", "ab" * 4, "+-" * 4)
        await decide(engine, "periods", "aaaa" + "bbbb", "++++" + "++--")
        for name in ("few", "vacuous", "periods"):
            await check_log(engine, name)
        return {
            name: (
                await engine.query(name, describe),
                await engine.query(name, report_of),
                await engine.read(lambda c, i=i: c.windows(i)),  # type: ignore[misc]
            )
            for i, name in enumerate(("few", "vacuous", "periods"), 1)
        }


@pytest.fixture(scope="module")
def filled(
    made: Artifacts, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    path = tmp_path_factory.mktemp("exempt") / "s.db"
    return path, asyncio.run(fill(path, made))


def test_windows_that_bound_nothing_are_counted_as_exempt(
    filled: tuple[Path, dict[str, Any]],
) -> None:
    seen, report, ends = filled[1]["few"]
    assert [end.verdict for end in ends] == ["fair", "exempt", "exempt"]
    assert [end.fair for end in ends] == [True, False, False]
    state, whole = seen.state, seen.state.whole_stream
    assert (state.windows_completed, state.windows_fair) == (3, 1)
    assert (state.windows_unfair, state.windows_exempt) == (0, 2)
    assert (whole.windows, whole.fair, whole.unfair, whole.exempt) == (3, 1, 0, 2)
    assert (report.windows_exempt, report.can_bind) == (2, True)
    assert "1 of 1 windows that it bound ended fair" in report.words
    assert "2 of 3 windows were exempt: the property bound nothing." in report.words


@pytest.mark.parametrize(("name", "status"), [("few", "guaranteed"), ("best-effort", "at-risk")])
async def test_the_light_after_an_exempt_window_is_that_of_the_next(
    tmp_path: Path, made: Artifacts, name: str, status: str
) -> None:
    async with opened(str(tmp_path / "s.db"), made, stream(made, name)) as engine:
        before = await engine.query(name, describe)
        await decide(engine, name, "a" * 8, "+" * 8)
        seen, report = await engine.query(name, describe), await engine.query(name, report_of)
        await check_log(engine, name)
    now = seen.state.in_progress
    assert (now.verdict, now.remaining, seen.can_bind) == ("exempt", 0, True)
    assert (before.status, seen.status) == (status, status)
    assert now.guaranteed == report.guaranteed == (status == "guaranteed")
    assert "bound nothing at the end of window 1" in report.words


def test_what_was_measured_is_shown_without_support(
    filled: tuple[Path, dict[str, Any]],
) -> None:
    seen, _, ends = filled[1]["few"]
    exempt = ends[1]
    assert (exempt.bias, exempt.bias_unshielded) == (0, 0)
    assert exempt.measured_bias == exempt.measured_bias_unshielded > 0.25
    now = seen.state.in_progress
    assert (now.verdict, now.bias) == ("exempt", 0)


def test_a_policy_that_can_never_bind_is_said_to(filled: tuple[Path, dict[str, Any]]) -> None:
    seen, report, ends = filled[1]["vacuous"]
    assert (seen.status, seen.can_bind, report.can_bind) == ("vacuous", False, False)
    assert [end.verdict for end in ends] == ["exempt"]
    assert "It can never bind" in report.words
    assert "1 of 1 windows were exempt" in report.words


SUPPORTS = (0, 3, 20)
DECIDERS = {
    "window": lambda prop: fs.synthesize(prop, INPUTS, horizon=6),
    "static": lambda prop: fs.StaticFairShield(prop, INPUTS, period=6).policy,
    "dynamic": lambda prop: fs.DynamicShield(prop, INPUTS, period=6).policy,
    "exact": lambda prop: fs.ExactPeriodicShield(prop, INPUTS, period=6, periods=2).policy,
}


@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("kind", DECIDERS)
def test_whether_a_stream_can_bind_is_what_its_policy_says(kind: str, support: int) -> None:
    for bound in ("0.3", 1):
        policy = DECIDERS[kind](fs.DemographicParity(bound, min_support=support))
        created = Created(stream="s", seq=0, at="2026", policy="0" * 64)
        live = LiveStream(1, created, kind_of(policy), Snapshot(0, "", 0, 0))
        assert live.can_bind == policy.can_bind
        assert (live.status == "vacuous") == (not policy.can_bind)


def test_periods_are_exempt_while_a_group_has_nobody(
    filled: tuple[Path, dict[str, Any]],
) -> None:
    seen, report, ends = filled[1]["periods"]
    assert [end.verdict for end in ends] == ["exempt", "fair"]
    assert (seen.status, seen.state.windows_exempt) == ("guaranteed", 1)
    assert "1 of 1 periods that it bound ended fair" in report.words


def test_the_whole_stream_is_counted_beside_its_window(
    filled: tuple[Path, dict[str, Any]],
) -> None:
    groups = {g.group: g for g in filled[1]["few"][0].state.whole_stream.groups}
    assert {name: group.seen for name, group in groups.items()} == {"a": 18, "b": 6}
    proposals = "+++++-+-" * 3
    people = "aabababb" + "aaaaaabb" + "a" * 8
    for name, group in groups.items():
        asked = [p == "+" for who, p in zip(people, proposals, strict=True) if who == name]
        assert group.proposed == sum(asked)
        assert group.proposed_rate == sum(asked) / len(asked)


@pytest.mark.parametrize(
    ("streams", "code", "words"),
    [
        (["few"], 0, "every window that the property bound was fair"),
        (["vacuous"], 3, "exempt: the property bound nothing in any window"),
        (["few", "vacuous"], 0, "every window that the property bound was fair"),
    ],
)
def test_the_audit_of_a_database_tells_what_bound(
    filled: tuple[Path, dict[str, Any]], streams: list[str], code: int, words: str
) -> None:
    result = CliRunner().invoke(app, ["audit", "--db", str(filled[0]), *streams])
    assert result.exit_code == code, result.output
    assert words in result.output
    told = CliRunner().invoke(app, ["audit", "--db", str(filled[0]), *streams, "--json"])
    data = json.loads(told.output)
    assert data["verdict"] == ("exempt" if code else "fair")
    for one_stream in data["streams"]:
        counted = [one_stream[name] for name in ("fair", "unfair", "exempt")]
        assert sum(counted) == one_stream["windows"]


def test_an_audit_of_nothing_is_inconclusive(tmp_path: Path) -> None:
    connection = SqliteDatabase(tmp_path / "s.db").connect()
    connection.migrate(SqliteDatabase(tmp_path / "s.db").migrations())
    connection.close()
    result = CliRunner().invoke(app, ["audit", "--db", str(tmp_path / "s.db")])
    assert (result.exit_code, "the database has no streams" in result.output) == (3, True)
