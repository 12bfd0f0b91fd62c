"""Streams whose policy trusts the support of its input model are never shown as guaranteed."""

from __future__ import annotations

import pytest
from engines import (
    Artifacts,
    ask,
    check_log,
    one,
    opened,
    overrule,
    reloaded,
    standing,
    stream,
)

import fairshield as fs
from fairshield.adapters.specfile import parse_spec
from fairshield.policy.artifact import digest_of
from fairshield.service.log.live import LiveStream
from fairshield.service.log.reports import describe, report_of
from fairshield.service.policies.making import verified

FIRST_A = fs.InputSchedule(
    [
        (fs.InputModel.agnostic({"a": 1.0, "b": 0.0}), 3),
        (fs.InputModel.agnostic({"a": 0.0, "b": 1.0}), 3),
    ]
)
CONDITION = "every request and outcome is one to which the input model gives a positive probability"


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    """One policy that expects three people of group a, and then three of group b."""
    folder = tmp_path_factory.mktemp("trusting")
    policy = fs.synthesize(fs.DemographicParity("0.2"), FIRST_A, horizon=6, trust_support=True)
    policy.save(folder / "trusting.shield")
    digest = digest_of(folder / "trusting.shield")
    return Artifacts(folder, {"trusting": policy}, {"trusting": digest})


def shown(live: LiveStream) -> tuple[bool, bool, bool, str]:
    """What a stream page and the API say of the guarantee."""
    report, page = report_of(live), describe(live)
    return report.guaranteed, report.unconditional, page.status == "guaranteed", report.words


async def test_nothing_is_green_and_the_condition_is_told(
    address: str, trusting: Artifacts
) -> None:
    async with opened(address, trusting, stream(trusting, "trusting")) as engine:
        for group in "aaabbb" * 2 + "aa":
            answer = await ask(engine, "trusting", one(group, True))
            assert answer["guaranteed"] is False
            *green, words = shown(await reloaded(engine, "trusting"))
            assert green == [False, False, False]
            assert CONDITION in words
            assert "held so far" in words
        await check_log(engine, "trusting")


async def test_what_has_come_all_the_same_is_not_forgotten(
    address: str, trusting: Artifacts
) -> None:
    """Not at the end of the window, and not when the stream is loaded from it."""
    async with opened(address, trusting, stream(trusting, "trusting")) as engine:
        for group in "aab":
            await ask(engine, "trusting", one(group, True))
        assert "broken at decision 3" in shown(await reloaded(engine, "trusting"))[3]
        for group in "bbb" + "aaabbb" + "aa":
            await ask(engine, "trusting", one(group, True))
    async with opened(address, trusting) as engine:
        live = await reloaded(engine, "trusting")
        *green, words = shown(live)
        assert green == [False, False, False]
        assert "broken at decision 3" in words
        assert live.run.guarantee.broken_at == 3
        await ask(engine, "trusting", one("a", False))
        assert standing(await reloaded(engine, "trusting"))
        await check_log(engine, "trusting")


async def test_a_person_who_decides_otherwise_is_not_forgotten(
    address: str, trusting: Artifacts
) -> None:
    async with opened(address, trusting, stream(trusting, "trusting", human=True)) as engine:
        made = await ask(engine, "trusting", one("a", True))
        answer = await ask(engine, "trusting", overrule(1, not made["accepted"]))
        assert answer["guaranteed"] is False
        assert "broken at decision 1 by a person" in shown(await reloaded(engine, "trusting"))[3]
        await check_log(engine, "trusting")


def test_an_uploaded_policy_is_verified_on_its_support(trusting: Artifacts) -> None:
    policy = trusting.policies["trusting"]
    assert "only on sequences to which the input model gives a positive" in verified(policy)


def test_a_specification_asks_for_it() -> None:
    data = {
        "property": "demographic-parity", "bound": "0.2", "horizon": 6,
        "groups": {"a": 1.0, "b": 0.0},
    }  # fmt: skip
    assert not parse_spec(data).synthesize().fair_in_support
    assert parse_spec({**data, "trust_support": True}).synthesize().fair_in_support
