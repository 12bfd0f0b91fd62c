"""Streams of long policies: planned elsewhere, replayed alike, fair after a kill in the endgame."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from client_kit import Served, command, served

import fairshield as fs
from fairshield.client.synchronous import Stream

pytestmark = pytest.mark.slow

PARITY = fs.DemographicParity("0.1")
HORIZON, ENDGAME = 1200, 30


@pytest.fixture(scope="module")
def policy() -> fs.Policy:
    inputs = fs.InputModel.agnostic({"a": 0.4, "b": 0.6})
    return fs.synthesize(PARITY, inputs, horizon=HORIZON, method="long", endgame=ENDGAME)


def people(n: int, seed: int = 0) -> list[tuple[str, bool]]:
    """Whom a classifier that is far from fair proposes to accept."""
    rng = random.Random(seed)
    groups = rng.choices("ab", [0.4, 0.6], k=n)
    return [(group, rng.random() < (0.3 if group == "a" else 0.7)) for group in groups]


def batch(stream: Stream, who: list[tuple[str, bool]]) -> list[bool]:
    decided = stream.decide_many([g for g, _ in who], [p for _, p in who])
    return [decision.accepted for decision in decided]


def test_a_kill_in_the_endgame_changes_no_decision(tmp_path: Path, policy: fs.Policy) -> None:
    who = people(HORIZON)
    shield = fs.Shield(policy)
    expected = [shield.decide(group, proposed=proposed).accepted for group, proposed in who]
    with served(tmp_path) as service:
        decided = _decided(service, policy, who, HORIZON - ENDGAME // 2)
        service.kill()
        service.start()
        with fs.Client(service.url) as client:
            stream = client.stream("loans")
            decided += [stream.decide(g, proposed=p).accepted for g, p in who[len(decided) :]]
            state = stream.state()
            assert {g.group: (g.seen, g.accepted) for g in state.groups} == dict(shield.counts)
    assert decided == expected
    assert PARITY.holds(shield.counts)
    audit = command("audit", "--db", tmp_path / "shield.db")
    assert audit.returncode == 0, audit.stdout + audit.stderr


def _decided(
    service: Served, policy: fs.Policy, who: list[tuple[str, bool]], until: int
) -> list[bool]:
    with fs.Client(service.url) as client:
        digest = client.add_policy(policy).digest
        assert digest is not None
        stream = client.create_stream("loans", digest, windows=1)
        before = HORIZON - ENDGAME - 5
        # One batch up to the endgame, one into it, and single decisions.
        found = batch(stream, who[:before]) + batch(stream, who[before : before + 10])
        return found + [stream.decide(g, proposed=p).accepted for g, p in who[before + 10 : until]]


def test_a_specification_too_long_for_a_table_is_served(tmp_path: Path) -> None:
    spec = {
        "property": "demographic-parity", "bound": "0.1", "horizon": 100_000,
        "groups": {"a": 0.4, "b": 0.6},
    }  # fmt: skip
    with served(tmp_path) as service, fs.Client(service.url) as client:
        made = client.add_policy(spec)
        assert made.digest is not None
        stream = client.create_stream("quarter", made.digest)
        batch(stream, people(3000))
        assert stream.state().guaranteed
        first = stream.decide("a", proposed=False)
        assert "decision" in str(stream.explain(first.n)).lower()
        too_many = {**spec, "horizon": 10**9}
        with pytest.raises(fs.FairshieldError, match="more than this service plans"):
            client.add_policy(too_many)
