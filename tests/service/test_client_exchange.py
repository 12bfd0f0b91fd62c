"""What clients do about answers and silence, without a network."""

from __future__ import annotations

import inspect
import math
import pickle
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fairshield as fs
from fairshield.client import AsyncStream, Stream, calls
from fairshield.client.calls import Calls
from fairshield.client.errors import (
    BY_KIND,
    ServiceError,
    TooManyRequestsError,
    UnavailableError,
    UnexpectedAnswerError,
)
from fairshield.client.exchange import (
    RETRIED,
    ClientPatience,
    Flow,
    HttpAnswer,
    HttpRequest,
    Lost,
    Pause,
    Send,
    ask,
    exchange,
)
from fairshield.service.api.endpoints import ENDPOINTS
from fairshield.service.web.http import problem
from fairshield.wire.messages import MOST_IN_BATCH, DecisionMessage, StateMessage
from fairshield.wire.problems import _KIND_OF, KINDS, Refusal

REQUEST = HttpRequest(method="POST", path="/v1/x", body=b"{}", key="k")
LOST = Lost("connection refused")


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Ran:
    """A flow that is answered by ``results``, the last one again and again."""

    def __init__(self, flow: Flow[Any], results: list[Any], clock: Clock, takes: float = 0.0):
        self.sent: list[Send] = []
        self.pauses: list[float] = []
        self.value: Any = None
        self.error: Exception | None = None
        answers = self._answers(results)
        result = None
        try:
            while True:
                step = flow.send(result)
                if isinstance(step, Send):
                    self.sent.append(step)
                    clock.now += takes
                    result = next(answers)
                else:
                    assert isinstance(step, Pause)
                    self.pauses.append(step.seconds)
                    clock.now += step.seconds
                    result = None
        except StopIteration as done:
            self.value = done.value
        except fs.FairshieldError as error:
            self.error = error

    @staticmethod
    def _answers(results: list[Any]) -> Iterator[Any]:
        yield from results
        while True:
            yield results[-1]


def refused(kind: str, **headers: str) -> HttpAnswer:
    """What the service answers."""
    reply = problem(Refusal(kind, "the detail"), "/v1/x")
    return HttpAnswer(
        reply.status, {"content-type": "application/problem+json"} | headers, reply.body
    )


not_now = st.one_of(
    st.just(LOST),
    st.builds(
        lambda status, after: HttpAnswer(status, {"retry-after": str(after)}, b""),
        st.sampled_from(sorted(RETRIED)),
        st.integers(0, 3),
    ),
)


@given(
    faults=st.lists(not_now, max_size=12),
    attempts=st.integers(1, 12),
    patience=st.floats(0.5, 30.0),
    takes=st.floats(0.0, 2.0),
    chance=st.floats(0.0, 1.0, exclude_max=True),
)
def test_the_same_request_is_sent_until_it_is_answered_or_patience_ends(
    faults: list[Any], attempts: int, patience: float, takes: float, chance: float
) -> None:
    clock = Clock()
    terms = ClientPatience(attempts=attempts, patience=patience, clock=clock, chance=lambda: chance)
    good = HttpAnswer(200, {}, b"")
    ran = Ran(exchange(REQUEST, terms), [*faults, good], clock, takes)
    assert all(step.request is REQUEST for step in ran.sent)
    assert len(ran.sent) <= attempts
    assert sum(ran.pauses) + takes * (len(ran.sent) - 1) <= patience * (1 + 1e-9)
    for i, (pause, fault) in enumerate(zip(ran.pauses, faults, strict=False)):
        asked = 0.0 if isinstance(fault, Lost) else float(fault.headers["retry-after"])
        assert asked <= pause <= asked + min(terms.longest, terms.first * 2**i)
    spent = sum(ran.pauses) + takes * len(ran.sent)
    if ran.error is not None and len(ran.sent) < attempts:
        last = faults[len(ran.sent) - 1]
        asked = 0.0 if isinstance(last, Lost) else float(last.headers["retry-after"])
        assert spent + asked >= patience * (1 - 1e-9), "it was given up too early"
    if ran.error is None:
        assert ran.value is good
        assert len(ran.sent) == len(faults) + 1
    else:
        assert isinstance(ran.error, UnavailableError)
        assert ran.error.key == "k"
        assert "key='k'" in str(ran.error)


@given(status=st.integers(200, 599))
def test_other_statuses_are_never_tried_again(status: int) -> None:
    assume(status not in RETRIED)
    clock = Clock()
    ran = Ran(exchange(REQUEST, ClientPatience(clock=clock)), [HttpAnswer(status, {}, b"")], clock)
    assert len(ran.sent) == 1
    assert ran.value.status == status


def test_whoever_never_gives_up_goes_on() -> None:
    clock = Clock()
    faults = [LOST] * 500 + [HttpAnswer(503, {"retry-after": "9" * 400}, b"")] * 3
    good = HttpAnswer(200, {}, b"")
    ran = Ran(
        exchange(REQUEST, ClientPatience(clock=clock), for_ever=True),
        [*faults, good],
        clock,
        takes=1.0,
    )
    assert ran.value is good
    assert max(ran.pauses) <= 60.0


def test_whoever_never_gives_up_is_told_once_of_each_absence() -> None:
    clock, told = Clock(), list[int]()
    terms = ClientPatience(clock=clock, away=lambda: told.append(1))
    good = HttpAnswer(200, {}, b"")
    for absences, faults in enumerate(([LOST] * 9, [LOST] * 2), 1):
        Ran(exchange(REQUEST, terms, for_ever=True), [*faults, good], clock)
        assert len(told) == absences
    Ran(exchange(REQUEST, terms, for_ever=True), [LOST, good], clock)
    assert len(told) == 2


def test_retry_after_may_be_a_date() -> None:
    clock = Clock()
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    busy = HttpAnswer(503, {"retry-after": at}, b"")
    ran = Ran(
        exchange(REQUEST, ClientPatience(clock=clock)), [busy, HttpAnswer(200, {}, b"")], clock
    )
    assert 15 < ran.pauses[0] < 21


@pytest.mark.parametrize("text", ["soon", "-1", "1.5", "Wed, 99 Foo", "٣", ""])
def test_a_retry_after_that_means_nothing_is_ignored(text: str) -> None:
    clock = Clock()
    busy = HttpAnswer(503, {"retry-after": text}, b"")
    ran = Ran(
        exchange(REQUEST, ClientPatience(clock=clock)), [busy, HttpAnswer(200, {}, b"")], clock
    )
    assert ran.pauses[0] <= 0.1


def test_a_service_that_asks_for_more_than_our_patience_is_not_waited_for() -> None:
    clock = Clock()
    busy = refused("too-many-requests", **{"retry-after": "3600"})
    ran = Ran(exchange(REQUEST, ClientPatience(clock=clock)), [busy], clock)
    assert isinstance(ran.error, TooManyRequestsError)
    assert (ran.error.status, ran.error.kind, ran.pauses) == (429, "too-many-requests", [])


# Errors -------------------------------------------------------------------------------------


def test_every_kind_of_problem_has_an_error_of_its_own() -> None:
    assert set(KINDS) <= set(BY_KIND)
    assert len(set(BY_KIND.values())) == len(BY_KIND)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_says_what_the_problem_says(kind: str) -> None:
    clock = Clock()
    terms = ClientPatience(attempts=1, clock=clock)
    error = Ran(ask(REQUEST, StateMessage, terms), [refused(kind)], clock).error
    assert type(error) is BY_KIND[kind]
    assert isinstance(error, ServiceError)
    assert (error.kind, error.status, error.key) == (kind, KINDS[kind].status, "k")
    assert "the detail" in error.detail
    assert str(error) == error.detail
    assert ("stream.observe(" in error.detail) == (kind == "outcome-pending")


def test_errors_are_the_librarys_where_it_has_them() -> None:
    own = {kind: cls for cls, kind in _KIND_OF if kind != "invalid-request"}
    for kind in ("infeasible", "too-costly"):  # several errors; and one that cannot be pickled
        own.pop(kind)
    for kind, cls in (own | {"infeasible": fs.InfeasibleError}).items():
        assert issubclass(BY_KIND[kind], cls)
    assert issubclass(BY_KIND["invalid-request"], fs.InvalidValueError)
    assert all(issubclass(cls, fs.FairshieldError) for cls in BY_KIND.values())


@pytest.mark.parametrize("cls", BY_KIND.values())
def test_errors_travel_between_processes(cls: type[ServiceError]) -> None:
    error = cls("why", kind="x", status=409, key="k")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (cls, "why")
    assert (again.kind, again.status, again.key, again.detail) == ("x", 409, "k", "why")


@pytest.mark.parametrize(
    "answer",
    [
        HttpAnswer(404, {"content-type": "text/html"}, b"<h1>nginx</h1>"),
        HttpAnswer(302, {"location": "/login"}, b""),
        HttpAnswer(200, {"content-type": "text/html"}, b"<h1>welcome</h1>"),
        HttpAnswer(200, {"content-type": "application/json"}, b'{"seq": "one"}'),
        HttpAnswer(400, {"content-type": "application/problem+json"}, b"{}"),
    ],
    ids=lambda answer: f"{answer.status}-{answer.body[:8]!r}",
)
def test_what_is_not_the_service_is_told_apart(answer: HttpAnswer) -> None:
    clock = Clock()
    error = Ran(ask(REQUEST, StateMessage, ClientPatience(clock=clock)), [answer], clock).error
    assert isinstance(error, UnexpectedAnswerError)
    assert error.status == answer.status
    assert "check" in str(error)


def test_a_problem_that_this_version_does_not_know_is_an_error_all_the_same() -> None:
    body = b'{"type": "/problems/new-one", "title": "", "status": 418, "detail": "tea"}'
    answer = HttpAnswer(418, {"content-type": "application/problem+json"}, body)
    clock = Clock()
    error = Ran(ask(REQUEST, StateMessage, ClientPatience(clock=clock)), [answer], clock).error
    assert type(error) is ServiceError
    assert (error.kind, str(error)) == ("new-one", "tea")


# Requests -----------------------------------------------------------------------------------


CALLS = Calls("loans", ClientPatience())


def first(flow: Flow[Any]) -> HttpRequest:
    """The first request of a flow."""
    step = next(flow)
    assert isinstance(step, Send)
    return step.request


def test_every_endpoint_but_events_is_asked_by_a_call() -> None:
    made = [
        CALLS.decide("a", True, 1.0, None), CALLS.decide_many(["a"], [True], 1.0, None, None),
        CALLS.observe(1, True, None), CALLS.override(1, True, "", None), CALLS.describe(),
        CALLS.state(), CALLS.guarantee(), CALLS.outlook(1.0), CALLS.series(10), CALLS.decision(1),
        CALLS.explain(1), CALLS.close(), CALLS.decisions(9, overruled=True), CALLS.windows(0),
        CALLS.log(-1), CALLS.export(Path("x.csv"), None), CALLS.export(Path("x.jsonl"), None),
        calls.streams(ClientPatience()), calls.policies(ClientPatience()),
        calls.policy("x", ClientPatience()),
        calls.add_policy(calls.prepared({}), None, ClientPatience()),
    ]  # fmt: skip
    asked = {(request.method, request.path) for request in map(first, made)}
    asked.add(("POST", "/v1/streams"))  # the second request of create_stream
    for endpoint in ENDPOINTS:
        if not endpoint.path.endswith("/events"):
            pattern = re.sub(r"\{\w+\}", "[^/]+", endpoint.path)
            assert any(
                method == endpoint.method and re.fullmatch(pattern, path) for method, path in asked
            ), endpoint.path


def test_keys_are_made_where_none_are_given() -> None:
    requests = [first(CALLS.decide("a", True, 1.0, None)) for _ in range(100)]
    assert len({request.key for request in requests}) == 100
    assert first(CALLS.decide("a", True, 1.0, "mine")).key == "mine"


@pytest.mark.parametrize("key", ["", "x" * 201, "two words", "naïve", "line\n", 7])
def test_keys_that_no_header_can_carry_are_refused_before_anything_is_sent(key: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match="visible ASCII"):
        CALLS.decide("a", True, 1.0, key)


@given(n=st.integers(0, 3 * MOST_IN_BATCH + 1))
def test_large_batches_are_split_the_same_way_every_time(n: int) -> None:
    keys = calls._part_keys("k", n)
    assert len(keys) == math.ceil(n / MOST_IN_BATCH) == len(set(keys))
    assert keys == calls._part_keys("k", n)
    assert (keys == ["k"]) == (1 <= n <= MOST_IN_BATCH)


def test_columns_may_be_arrays() -> None:
    groups, proposed = np.array(["a", "b"]), np.array([True, False])
    expected = [
        {"group": "a", "proposed": True, "cost": 0.5, "outcome": True},
        {"group": "b", "proposed": False, "cost": 0.5, "outcome": False},
    ]
    for costs in (0.5, np.float64(0.5), np.array(0.5), [0.5, 0.5], np.array([0.5, 0.5])):
        flow = CALLS.decide_many(groups, proposed, costs, np.array([1, 0]), None)
        assert msgspec.json.decode(first(flow).body or b"")["decisions"] == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ab", [True, True], 1.0, None), "groups must be a sequence"),
        ((["a", "b"], [True], 1.0, None), "proposed has 1 entries, groups has 2"),
        ((["a"], [True], [1.0, 2.0], None), "costs has 2"),
        ((["a"], [True], 1.0, []), "outcomes has 0"),
        ((["a"], ["perhaps"], 1.0, None), "perhaps"),
        ((["a"], [True], math.nan, None), "finite"),
        (([None], [True], 1.0, None), "group name"),
    ],
)
def test_a_batch_that_makes_no_sense_is_refused_before_anything_is_sent(
    arguments: tuple[Any, ...], words: str
) -> None:
    with pytest.raises(fs.InvalidValueError, match=words):
        CALLS.decide_many(*arguments, None)


def test_a_group_that_is_a_truth_value_is_sent_by_its_name() -> None:
    body = msgspec.json.decode(first(CALLS.decide(np.True_, True, 1.0, None)).body or b"")
    assert body["group"] == "True"


@pytest.mark.parametrize("wrong", ["1", True, 1.0, None])
def test_a_decision_is_named_by_itself_or_by_its_number(wrong: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match="a decision of this stream"):
        CALLS.observe(wrong, True, None)


# The two clients ----------------------------------------------------------------------------


def public(cls: type) -> dict[str, inspect.Signature]:
    """Methods of a class, with their parameters."""
    return {
        name: inspect.signature(value).replace(return_annotation=None)
        for name, value in vars(cls).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


def test_both_clients_take_the_same_arguments() -> None:
    assert public(fs.Client) == public(fs.AsyncClient)
    one, other = public(Stream), public(AsyncStream)
    assert one == other
    assert inspect.signature(fs.Client) == inspect.signature(fs.AsyncClient)


def test_deciding_takes_what_a_shield_takes() -> None:
    remote, local = (inspect.signature(cls.decide).parameters for cls in (Stream, fs.Shield))
    assert [name for name in remote if name != "key"] == list(local)
    remote, local = (inspect.signature(cls.decide_many).parameters for cls in (Stream, fs.Shield))
    # The service says why without being asked.
    assert [name for name in remote if name != "key"] == [n for n in local if n != "reasons"]


def test_a_decision_has_the_fields_of_the_librarys() -> None:
    fields = set(DecisionMessage.__struct_fields__)
    own = {*fs.Decision._fields, "overruled", "paid", "reason"} - {"seen_before"}
    assert own < fields


def test_a_token_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRSHIELD_TOKEN", "fsk_secret")
    with fs.Client("http://127.0.0.1:1/") as client:
        assert client._http.headers["authorization"] == "Bearer fsk_secret"
        assert "secret" not in repr(client) + repr(client.stream("x")) + repr(client.terms)
    with fs.Client("http://127.0.0.1:1", token="") as client:
        assert "authorization" not in client._http.headers
    with pytest.raises(fs.InvalidValueError) as caught:
        fs.Client("http://127.0.0.1:1", token="fsk_sec ret")
    assert "sec ret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000", "ftp://x", "http://", "", "http://u:p@x", "http://x?y=1", None, b"http://x",
        "http://x:99999", "http://[x", "http://x:port",
    ],
)  # fmt: skip
def test_an_address_is_checked(url: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match="address of a service"):
        fs.Client(url)


@pytest.mark.parametrize("options", [{"timeout": 0}, {"patience": -1.0}, {"retries": -1}])
def test_patience_is_checked(options: dict[str, Any]) -> None:
    with pytest.raises(fs.InvalidValueError, match="must be"):
        fs.Client("http://127.0.0.1:1", **options)


def test_a_policy_is_one_of_four_things() -> None:
    with pytest.raises(fs.InvalidValueError, match="a policy is"):
        calls.prepared(7)  # type: ignore[arg-type]
    assert calls.prepared("0" * 64) == "0" * 64
