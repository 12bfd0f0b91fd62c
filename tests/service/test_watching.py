"""The monitor beside a stream: always the same alarms, and never in the way of a decision."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from effort import examples
from engines import Artifacts, ask, check_log, many, one, opened, stream
from hypothesis import given, settings
from hypothesis import strategies as st

import fairshield as fs
from fairshield.periodic import kind_of
from fairshield.service.log import watching
from fairshield.service.log.entries import Created, Decided, Observed
from fairshield.service.log.reports import describe
from fairshield.service.log.snapshots import MonitorRow
from fairshield.service.log.watching import Watcher
from fairshield.wire.messages import AlarmMessage

INPUTS = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
SCHEDULE = fs.InputSchedule([(INPUTS, 5), (INPUTS, 5)])
POLICIES = {
    "plain": kind_of(fs.synthesize(fs.DemographicParity("0.1"), INPUTS, horizon=10)),
    "labelled": kind_of(fs.synthesize(fs.EqualOpportunity("0.1"), INPUTS, horizon=10)),
    "schedule": kind_of(fs.synthesize(fs.DemographicParity("0.1"), SCHEDULE, horizon=10)),
}
PEOPLE = 1300


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that some hundred people are enough for several looks."""
    monkeypatch.setattr(watching, "_EVERY", 512)


def entries(name: str) -> Iterator[Decided | Observed]:
    """A log whose classifier prefers b, and costs what no model knows from half-way on."""
    rng, seq = random.Random(4), 0
    for n in range(1, PEOPLE + 1):
        group, seq = rng.choice("ab"), seq + 1
        at = f"2026-01-05T09:30:00.{n:06}Z"
        proposed = rng.random() < (0.2 if group == "a" else 0.8)
        yield Decided(
            stream="s", seq=seq, at=at, n=n, group=group, proposed=proposed,
            cost=1.0 if n <= PEOPLE // 2 else 3.0, accepted=proposed, why="cheapest",
            window=(n - 1) // 10, position=(n - 1) % 10,
        )  # fmt: skip
        if name == "labelled":
            seq += 1
            yield Observed(stream="s", seq=seq, at=at, n=n, outcome=rng.random() < 0.7)


def told(watcher: Watcher, log: list[Any]) -> tuple[AlarmMessage, ...]:
    for entry in log:
        watcher.add(entry, entry.seq.to_bytes(32, "big"))
    return watcher.alarms


@pytest.mark.parametrize("name", POLICIES)
def test_alarms_are_those_of_a_monitor_that_sees_one_at_a_time(name: str) -> None:
    policy, log = POLICIES[name], list(entries(name))
    alarms = told(Watcher(1, policy), log)
    outcomes = {entry.n: entry.outcome for entry in log if isinstance(entry, Observed)}
    size = 10 if name == "schedule" else None
    monitor = fs.Monitor(policy.prop, groups=("a", "b"), inputs=policy.inputs, horizon=size)
    for entry in log:
        if isinstance(entry, Decided):
            monitor.observe(
                entry.group, accepted=entry.proposed, cost=entry.cost, outcome=outcomes.get(entry.n)
            )
    expected = [(a.kind, a.at) for a in monitor.alarms if a.kind != "violation"]
    assert [(alarm.kind, alarm.n) for alarm in alarms] == expected
    assert {alarm.kind for alarm in alarms} == {"bias", "model"}
    by_seq = {entry.seq: entry for entry in log}
    for alarm in alarms:
        assert (by_seq[alarm.seq].n, by_seq[alarm.seq].at) == (alarm.n, alarm.at)


@pytest.mark.parametrize("name", POLICIES)
@given(looks=st.sets(st.integers(1, 2 * PEOPLE), max_size=6))
@settings(max_examples=examples(8), deadline=None)
def test_alarms_do_not_depend_on_when_somebody_looks(name: str, looks: set[int]) -> None:
    log, watcher = list(entries(name)), Watcher(1, POLICIES[name])
    for entry in log:
        watcher.add(entry, b"")
        if entry.seq in looks:
            _ = watcher.alarms
    assert watcher.alarms == told(Watcher(1, POLICIES[name]), log)


@pytest.mark.parametrize("name", POLICIES)
def test_a_watcher_goes_on_from_what_was_stored(name: str) -> None:
    log, watcher, stored = list(entries(name)), Watcher(1, POLICIES[name]), []
    for entry in log:
        watcher.add(entry, entry.seq.to_bytes(32, "big"))
        if row := watcher.to_store():
            stored.append(row)
    assert len(stored) == PEOPLE // 512
    for row in stored:
        assert row.hash == row.seq.to_bytes(32, "big").hex()
        # Entries that it knows already are told again by a stream that is loaded.
        assert told(Watcher(1, POLICIES[name], stored=row), log[row.seq // 2 :]) == watcher.alarms


def test_what_is_not_its_own_is_refused() -> None:
    for state in (b"{}", b'{"monitor": {}, "alarms": []}', b"not JSON"):
        with pytest.raises(fs.InvalidValueError):
            Watcher(1, POLICIES["plain"], stored=MonitorRow(1, 5, "", state))
    other = Watcher(1, POLICIES["labelled"])
    told(other, list(entries("labelled"))[: 2 * 600])
    with pytest.raises(fs.InvalidValueError, match="another monitor"):
        Watcher(1, POLICIES["plain"], stored=other.to_store())


def test_a_monitor_that_fails_is_in_nobodys_way_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ArithmeticError("too much")

    watcher, log = Watcher(1, POLICIES["plain"]), list(entries("plain"))
    assert watcher.unwatched is None
    watcher.add(log[0], b"")
    monkeypatch.setattr(fs.Monitor, "observe_many", fail)
    assert watcher.unwatched == "the monitor failed at entry 1: ArithmeticError: too much"
    assert told(watcher, log) == ()
    assert watcher.to_store() is None
    assert watcher.unwatched == "the monitor failed at entry 1: ArithmeticError: too much"


def test_a_stream_that_is_only_created_has_no_alarms() -> None:
    created = Created(stream="s", seq=0, at="2026", policy="0" * 64)
    watcher = Watcher(1, POLICIES["plain"])
    watcher.add(created, b"")
    assert watcher.alarms == ()


async def test_alarms_survive_restarts_and_the_loss_of_what_was_stored(
    tmp_path: Path, artifacts: Artifacts
) -> None:
    path, rng = str(tmp_path / "s.db"), random.Random(3)
    people = [(group, rng.random() < (0.2 if group == "a" else 0.8)) for group in "ab" * 400]
    async with opened(path, artifacts, stream(artifacts, "window")) as engine:
        await ask(engine, "window", many(*people[:600]), key="1")
        first = (await engine.query("window", describe)).alarms
    assert {alarm.kind for alarm in first} == {"bias", "model"}
    async with opened(path, artifacts) as engine:
        await ask(engine, "window", many(*people[600:]), key="2")
        assert (await engine.query("window", describe)).alarms == first
    db = apsw.Connection(path)
    ((seq,),) = db.execute("SELECT seq FROM monitors")
    assert seq == 600
    for change in ("UPDATE monitors SET hash = 'x'", "DELETE FROM monitors"):
        db.execute(change)
        async with opened(path, artifacts) as engine:
            assert (await engine.query("window", describe)).alarms == first
    db.close()


@pytest.mark.parametrize("policy", ["window", "long", "perpetual"])
@pytest.mark.parametrize("every", [5, 25])
async def test_a_stream_is_loaded_wherever_its_monitor_was_stored(
    address: str,
    artifacts: Artifacts,
    monkeypatch: pytest.MonkeyPatch,
    policy: str,
    every: int,
) -> None:
    # Windows are shorter than that and longer: the monitor is behind their last end, and beyond.
    monkeypatch.setattr("fairshield.service.log.watching._EVERY", every)
    rng = random.Random(7)
    people = [(rng.choice("ab"), rng.random() < 0.5) for _ in range(60)]
    async with opened(address, artifacts, stream(artifacts, policy)) as engine:
        for size in (1, 4, 8, 17, 30):
            batch, people = people[:size], people[size:]
            await ask(engine, policy, many(*batch))
            await check_log(engine, policy)
        alarms = (await engine.query(policy, describe)).alarms
    async with opened(address, artifacts) as engine:
        assert (await engine.query(policy, describe)).alarms == alarms
        await ask(engine, policy, one())
        await check_log(engine, policy)
