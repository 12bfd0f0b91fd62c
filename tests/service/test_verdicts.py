"""Windows that are fair, unfair or exempt, said alike by stream, audit, API and metrics."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from engines import Artifacts, ask, check_log, many, one, opened, overrule, stream
from faults_kit import audited

import fairshield as fs
from fairshield.artifact import digest_of
from fairshield.service.engine import Engine
from fairshield.service.live import LiveStream
from fairshield.service.reports import describe

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
