"""What a request to decide costs: its entry is written once and never read back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from engines import Artifacts, stream
from in_process import application, post

import fairshield as fs
from fairshield.runtime import step
from fairshield.service.log import entries

Person = dict[str, Any]


class Counted:
    """A function that counts its calls by name."""

    def __init__(self, calls: Counter[str], name: str, function: Any) -> None:
        self._calls, self._name, self._function = calls, name, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._calls[self._name] += 1
        return self._function(*args, **kwargs)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often entries are encoded and decoded, and decisions of the library are made."""
    found: Counter[str] = Counter()
    for name in ("_encode", "_decode"):
        monkeypatch.setattr(entries, name, Counted(found, name, getattr(entries, name)))
    count_decisions(monkeypatch, found)
    return found


def count_decisions(patch: pytest.MonkeyPatch, calls: Counter[str]) -> None:
    make = Counted(calls, "Decision", step.Decision.__new__)
    patch.setattr(step.Decision, "__new__", staticmethod(make))


def made_by_a_run(artifacts: Artifacts, name: str, people: list[Person]) -> int:
    """Decisions that the library makes for all but the first of these people."""
    made, run = Counter[str](), fs.Run(artifacts.policies[name])
    run.decide(people[0]["group"], proposed=people[0]["proposed"])
    with pytest.MonkeyPatch.context() as patch:
        count_decisions(patch, made)
        for person in people[1:]:
            run.decide(person["group"], proposed=person["proposed"])
    return made["Decision"]


@pytest.mark.parametrize("name", ["window", "long", "perpetual"])
async def test_the_entry_of_a_decision_is_encoded_once_and_not_decoded(
    tmp_path: Path, artifacts: Artifacts, calls: Counter[str], name: str
) -> None:
    wanted, path = stream(artifacts, name), f"/v1/streams/{name}/decisions"
    people: list[Person] = [{"group": group, "proposed": group == "b"} for group in "abba"]
    made = made_by_a_run(artifacts, name, people)
    async with application(tmp_path / "s.db", artifacts, wanted) as (client, _):
        await post(client, path, people[0], "first")
        calls.clear()
        for i, person in enumerate(people[1:]):
            answer = await post(client, path, person, f"{i}")
            assert answer.json()["reason"]
        # The run's own decisions: none is made up to tell the reason.
        assert calls == Counter(_encode=3, Decision=made)


async def test_entries_of_a_batch_are_encoded_once_and_not_decoded(
    tmp_path: Path, artifacts: Artifacts, calls: Counter[str]
) -> None:
    wanted = stream(artifacts, "long")
    people: list[Person] = [{"group": group, "proposed": True} for group in "abab"]
    made = made_by_a_run(artifacts, "long", people)
    async with application(tmp_path / "s.db", artifacts, wanted) as (client, _):
        await post(client, "/v1/streams/long/decisions", people[0], "first")
        calls.clear()
        path, body = "/v1/streams/long/decisions:batch", {"decisions": people[1:]}
        await post(client, path, body, "others")
        assert calls == Counter(_encode=3, Decision=made)


async def test_outcomes_and_overrides_are_not_decoded(
    tmp_path: Path, artifacts: Artifacts, calls: Counter[str]
) -> None:
    wanted = [stream(artifacts, "labelled"), stream(artifacts, "window", human=True)]
    async with application(tmp_path / "s.db", artifacts, *wanted) as (client, _):
        person = {"group": "a", "proposed": True}
        for name in ("labelled", "window"):
            await post(client, f"/v1/streams/{name}/decisions", person, "one")
        calls.clear()
        await post(client, "/v1/streams/labelled/outcomes", {"decision": 1, "outcome": True}, "o")
        path = "/v1/streams/window/decisions/1/override"
        await post(client, path, {"accepted": False}, "person")
        assert (calls["_encode"], calls["_decode"]) == (2, 0)


async def test_a_repeated_request_is_read_from_the_log(
    tmp_path: Path, artifacts: Artifacts, calls: Counter[str]
) -> None:
    path, person = "/v1/streams/window/decisions", {"group": "a", "proposed": True}
    wanted = stream(artifacts, "window")
    async with application(tmp_path / "s.db", artifacts, wanted) as (client, _):
        first = await post(client, path, person, "one")
        calls.clear()
        again = await post(client, path, person, "one")
        assert again.content == first.content
        assert calls["_decode"] > 0
        assert (calls["_encode"], calls["Decision"]) == (0, 0)
