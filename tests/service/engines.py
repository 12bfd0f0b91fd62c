"""Engines with policies and streams, and short functions that send requests to them."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

import fairshield as fs
from fairshield.policy.artifact import digest_of
from fairshield.service.engine.commands import Command, Decide, DecideBatch, Observe, Overrule
from fairshield.service.engine.engine import Engine
from fairshield.service.history.loading import load_stream
from fairshield.service.log.live import LiveStream
from fairshield.service.log.reports import state_of
from fairshield.service.log.tallies import StreamTally
from fairshield.service.store import Database, open_database
from fairshield.service.store.policies import LoadedPolicies
from fairshield.wire.messages import (
    BatchItem,
    DecisionRequest,
    OutcomeRequest,
    OverrideRequest,
    StreamRequest,
)
from fairshield.wire.problems import Refusal

Policy = fs.Policy | fs.periodic.PeriodicPolicy


@dataclass(frozen=True)
class Artifacts:
    """Policy files in ``folder``, by name: ``window``, ``long``, ``labelled``, ``perpetual``.

    Groups are ``"a"`` and ``"b"``.  ``window`` decides 12 people, ``long`` 200, ``labelled`` 8
    with outcomes, ``perpetual`` makes a plan for every period of 6, and ``labelled-perpetual``
    for every period of 5, with outcomes.  ``static``, ``exact``, ``optimal`` (two periods each)
    and ``dynamic`` have periods of 6.
    """

    folder: Path
    policies: dict[str, Policy]
    digests: dict[str, str]

    def content(self, name: str) -> bytes:
        """The file."""
        return (self.folder / f"{name}.shield").read_bytes()


def make_artifacts(folder: Path) -> Artifacts:
    """Synthesise and save all of them."""
    inputs = fs.InputModel.agnostic({"a": 0.4, "b": 0.6})
    dp, eq = fs.DemographicParity("0.2"), fs.EqualOpportunity("0.25")
    policies: dict[str, Policy] = {
        "window": fs.synthesize(dp, inputs, horizon=12),
        "long": fs.synthesize(dp, inputs, horizon=200),
        "labelled": fs.synthesize(eq, inputs, horizon=8),
        "perpetual": fs.PerpetualShield(dp, inputs, period=6).policy,
        "labelled-perpetual": fs.PerpetualShield(eq, inputs, period=5).policy,
        "static": fs.StaticFairShield(dp, inputs, period=6).policy,
        "exact": fs.ExactPeriodicShield(dp, inputs, period=6, periods=2).policy,
        "optimal": fs.OptimalPeriodicShield(dp, inputs, period=6, periods=2).policy,
        "dynamic": fs.DynamicShield(dp, inputs, period=6).policy,
    }
    digests = {}
    for name, policy in policies.items():
        policy.save(folder / f"{name}.shield")
        digests[name] = digest_of(folder / f"{name}.shield")
    return Artifacts(folder, policies, digests)


def fixed_clock() -> datetime:
    """Always the same time, so that equal entries are equal bytes."""
    return datetime(2026, 1, 1, tzinfo=UTC)


@contextlib.asynccontextmanager
async def opened(
    store: str | Database,
    artifacts: Artifacts,
    *streams: StreamRequest,
    clock: Callable[[], datetime] = fixed_clock,
) -> AsyncIterator[Engine]:
    """A running engine that holds all artefacts, with these streams (:func:`stream`) in it."""
    database = open_database(store) if isinstance(store, str) else store
    engine = Engine(database, LoadedPolicies(), clock=clock)
    await engine.start()
    try:
        for name, digest in artifacts.digests.items():
            content = artifacts.content(name)
            await engine.write(lambda c, d=digest, b=content: c.put_artifact(d, b))  # type: ignore[misc]
        for request in streams:
            await engine.create(request)
        yield engine
    finally:
        await engine.stop()


def stream(artifacts: Artifacts, policy: str, name: str = "", **settings: Any) -> StreamRequest:
    """A request for a stream with one of the policies, by default under the same name."""
    return StreamRequest(name or policy, artifacts.digests[policy], **settings)


# Requests -----------------------------------------------------------------------------------


def one(group: str = "a", proposed: bool = True, cost: float = 1.0) -> Decide:
    """A request for one decision."""
    return Decide(DecisionRequest(group, proposed, cost))


def many(*people: tuple[Any, ...]) -> DecideBatch:
    """A request for many: (group, proposed) or (group, proposed, cost, outcome)."""
    return DecideBatch(tuple(BatchItem(*person) for person in people))


def outcome(n: int, truth: bool) -> Observe:
    """The outcome of decision ``n``."""
    return Observe(OutcomeRequest(n, truth))


def overrule(n: int, accepted: bool, note: str = "") -> Overrule:
    """A person's decision in place of decision ``n``."""
    return Overrule(n, OverrideRequest(accepted, note))


def anyone(rng: random.Random) -> Decide:
    """A request at random."""
    return one(rng.choice("ab"), rng.random() < 0.5, round(rng.random(), 3))


# Answers ------------------------------------------------------------------------------------


async def ask(engine: Engine, stream: str, command: Command, key: str | None = None) -> Any:
    """The answer, decoded."""
    return msgspec.json.decode(await engine.submit(stream, command, key=key))


async def refused(engine: Engine, stream: str, command: Command, key: str | None = None) -> str:
    """The kind of the refusal that a request gets; ``"answered"`` if none."""
    try:
        await engine.submit(stream, command, key=key)
    except Refusal as refusal:
        return refusal.kind
    return "answered"


async def reloaded(engine: Engine, stream: str) -> LiveStream:
    """The stream as its log says, replayed."""
    return await engine.read(lambda connection: load_stream(stream, connection, engine.policies))


async def log(engine: Engine, stream: str) -> list[dict[str, Any]]:
    """All entries, decoded."""

    def entries(connection: Any) -> Any:
        return connection.entries(connection.stream(stream))

    return [msgspec.json.decode(row.line) for row in await engine.read(entries)]


def standing(live: LiveStream) -> tuple[Any, ...]:
    """Everything about a stream that a replay must make again."""
    tally = StreamTally.of(live.ledger)
    return live.seq, live.hash, live.n, state_of(live), tally, live.capacity, live.closed


async def check_log(engine: Engine, name: str) -> None:
    """Check that the log has no gaps, and replays to the stream in memory."""
    entries = await log(engine, name)
    assert [entry["seq"] for entry in entries] == list(range(len(entries)))
    decided = [entry["n"] for entry in entries if entry["kind"] == "decision"]
    assert decided == list(range(1, len(decided) + 1))
    assert standing(await reloaded(engine, name)) == await engine.query(name, standing)
