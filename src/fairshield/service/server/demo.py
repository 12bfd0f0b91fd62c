"""The demonstration of the service: a simulated, biased classifier feeds three streams.

* *loans*: acceptance rates, in windows of 100 decisions.
* *triage*: who is seen at once, among those who turn out to be urgent; everybody is examined in the
  end, so this becomes known of those who were made to wait as well.
* *benefits*: acceptance rates of everybody so far, for ever.

Every stream also counts what its classifier proposed, so it shows decisions without a shield as
well.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from fairshield.base.errors import InvalidValueError
from fairshield.base.words import written
from fairshield.inputs import InputModel
from fairshield.periodic import PeriodicPolicy, Perpetual
from fairshield.policy import Policy
from fairshield.records import ScoreRule
from fairshield.service.engine.commands import Command, Decide, DecideBatch, Observe
from fairshield.service.engine.engine import utc_now
from fairshield.service.log.entries import Created, Decided, entry_of
from fairshield.service.log.reports import state_of
from fairshield.service.store import Connection, StoreError, open_database
from fairshield.service.web.context import RunningService
from fairshield.spec import DemographicParity, EqualOpportunity
from fairshield.synthesis import synthesize
from fairshield.wire.messages import (
    BatchItem,
    DecisionMessage,
    DecisionRequest,
    OutcomeRequest,
    StreamRequest,
)
from fairshield.wire.problems import Refusal

logger = logging.getLogger("fairshield.service")
_HISTORY = 5_000
_SPREAD = 5.0
_RULE = ScoreRule(threshold=0.5)
_AGAIN = 0.5
"""Seconds after which a request that could not be answered is tried again."""


@dataclass(frozen=True, kw_only=True)
class DemoStream:
    """DemoStream says who arrives, how the classifier scores them, and what must hold.

    ``merit`` is the mean chance that a person is suitable, by group; ``penalty`` what the
    classifier takes from the scores of the first group.  ``before`` decisions are made at once, the
    others at ``pace`` a second.  ``labelled``: each decision is followed by its outcome, which is
    for streams where that becomes known of everybody, rejected or not.
    """

    name: str
    groups: tuple[str, str]
    share: float
    merit: tuple[float, float]
    penalty: float
    make: Callable[[InputModel], Policy | PeriodicPolicy]
    before: int
    pace: float
    human: bool = False
    labelled: bool = False

    def people(self, rng: np.random.Generator) -> Iterator[BatchItem]:
        """Yield applicants without end; the cost is the score's distance from the threshold."""
        while True:
            first = rng.random() < self.share
            mean = self.merit[not first]
            merit = rng.beta(mean * _SPREAD, (1 - mean) * _SPREAD)
            proposed, cost = _RULE.one(merit - self.penalty * first)
            group, suitable = self.groups[not first], bool(rng.random() < merit)
            yield BatchItem(group, proposed, round(cost, 2), suitable)

    def policy(self) -> Policy | PeriodicPolicy:
        """The policy, made for what the classifier has done before."""
        people = self.people(np.random.default_rng(len(self.name)))
        past = [next(people) for _ in range(_HISTORY)]
        columns = zip(*((p.group, p.proposed, p.cost, p.outcome) for p in past), strict=True)
        return self.make(InputModel.estimate(*columns, names=self.groups, bins=5))


SCENARIOS = (
    DemoStream(
        name="loans", groups=("under 30", "30 and over"), share=0.35, merit=(0.55, 0.6),
        penalty=0.08, before=930, pace=12.0, human=True,
        make=lambda inputs: synthesize(DemographicParity("0.1"), inputs, horizon=100),
    ),
    DemoStream(
        name="triage", groups=("women", "men"), share=0.45, merit=(0.55, 0.55), penalty=0.2,
        before=570, pace=8.0, labelled=True,
        make=lambda inputs: synthesize(EqualOpportunity("0.2"), inputs, horizon=60),
    ),
    DemoStream(
        name="benefits", groups=("tenants", "owners"), share=0.4, merit=(0.5, 0.6), penalty=0.03,
        before=470, pace=8.0,
        make=lambda inputs: Perpetual(DemographicParity("0.1"), inputs, period=50),
    ),
)  # fmt: skip


def check_own(address: str) -> None:
    """Refuse a database with streams that are not the demonstration's; nothing is written.

    Other faults of a database are found when it is served.
    """
    shown, strange = "", list[str]()
    with contextlib.suppress(StoreError):
        database = open_database(address, read_only=True)
        shown, connection = database.address, database.connect()
        try:
            strange = [name for i, name in connection.streams() if not _is_own(connection, i)]
        finally:
            connection.close()
    if strange:
        raise InvalidValueError(
            f"{shown} has streams that are not the demonstration's ({', '.join(strange[:3])}"
            f"{', …' * (len(strange) > 3)}): name another file with --db, or leave --db out"
        )


def _is_own(connection: Connection, number: int) -> bool:
    """Whether a stream begins as one of the scenarios does: by its name, settings and groups."""
    entries = [entry_of(row.line) for row in connection.entries(number, limit=2)]
    created = entries[0]
    assert isinstance(created, Created)
    scenario = next((s for s in SCENARIOS if s.name == created.stream), None)
    if scenario is None or created.human != scenario.human or created.windows is not None:
        return False
    return all(e.group in scenario.groups for e in entries[1:] if isinstance(e, Decided))


def feed(service: RunningService) -> Callable[[], Awaitable[None]]:
    """Begin to feed a service that has started; returns what ends it."""
    feeding = asyncio.create_task(_feed_all(service))

    async def end() -> None:
        feeding.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await feeding

    return end


async def _feed_all(service: RunningService) -> None:
    async with asyncio.TaskGroup() as group:
        for i, scenario in enumerate(SCENARIOS):
            try:
                await _prepare(service, scenario)
            except Refusal as why:  # a foreign stream has this name, or the service is stopping
                logger.warning("the demonstration goes on without %s: %s", scenario.name, why)
                continue
            group.create_task(_Feeder(service, scenario).run(i))


async def _prepare(service: RunningService, scenario: DemoStream) -> None:
    """Make the policy, have it verified, and create the stream."""
    content = await asyncio.to_thread(_made, scenario)
    row, _ = await service.policy_jobs.upload(content, written(utc_now()))
    digest, status = row.id, row.status
    while status == "verifying":
        await asyncio.sleep(0.1)
        found = await service.engine.read(lambda connection: connection.policy(digest))
        status = "refused" if found is None else found.status
    await service.engine.create(StreamRequest(scenario.name, digest, human=scenario.human))


def _made(scenario: DemoStream) -> bytes:
    """The policy file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.shield"
        scenario.policy().save(path)
        return path.read_bytes()


class _Feeder:
    """_Feeder sends the people of one scenario to the service."""

    def __init__(self, service: RunningService, scenario: DemoStream) -> None:
        self._service, self._scenario = service, scenario
        self._pause = 1.0 / scenario.pace

    async def run(self, seed: int) -> None:
        """Send the earlier decisions at once, then one person after the other at the given pace."""
        state = await self._service.engine.query(self._scenario.name, state_of)
        people = self._scenario.people(np.random.default_rng([seed, state.decisions]))
        if state.pending is not None:
            await self._observe(state.pending, bool(next(people).outcome))
        if not state.decisions:
            past = tuple(next(people) for _ in range(self._scenario.before))
            await self._submit(DecideBatch(tuple(map(self._known, past))))
        for person in people:
            await asyncio.sleep(self._pause)
            await self._decide(person)

    def _known(self, person: BatchItem) -> BatchItem:
        return person if self._scenario.labelled else msgspec.structs.replace(person, outcome=None)

    async def _decide(self, person: BatchItem) -> None:
        request = DecisionRequest(person.group, person.proposed, person.cost)
        begun = time.perf_counter()
        answer = await self._submit(Decide(request))
        self._service.latencies.add(time.perf_counter() - begun)
        if self._scenario.labelled:
            await asyncio.sleep(self._pause / 5)
            await self._observe(
                msgspec.json.decode(answer, type=DecisionMessage).n, bool(person.outcome)
            )

    async def _observe(self, n: int, outcome: bool) -> None:
        await self._submit(Observe(OutcomeRequest(n, outcome)))

    async def _submit(self, command: Command) -> bytes:
        """Send a command until it is answered; a refusal for now records nothing."""
        while True:
            try:
                return await self._service.engine.submit(self._scenario.name, command)
            except Refusal as why:
                if why.kind != "unavailable":
                    raise
            await asyncio.sleep(_AGAIN)
