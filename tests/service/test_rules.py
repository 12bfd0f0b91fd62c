"""A request that breaks a rule is told the rule, in a sentence."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairshield.service.api.endpoints import ENDPOINTS
from fairshield.service.api.log import LogQuery
from fairshield.service.history.loading import create_stream
from fairshield.service.log.entries import BEGINNING, Created, chained
from fairshield.service.web.http import parse_json, parse_query
from fairshield.wire.messages import (
    BatchRequest,
    DecisionRequest,
    OutcomeRequest,
    OverrideRequest,
    StreamRequest,
)
from fairshield.wire.problems import Refusal

DIGEST = "0" * 64
BODIES = [DecisionRequest, BatchRequest, OutcomeRequest, OverrideRequest, StreamRequest]


def told(kind: Any, body: bytes) -> str:
    """What is said about a body."""
    with pytest.raises(Refusal) as refused:
        parse_json(msgspec.json.Decoder(kind), body, ())
    return refused.value.detail


@pytest.mark.parametrize(
    ("kind", "body", "sentence"),
    [
        (DecisionRequest, {"group": "a", "proposed": 1}, "proposed must be true or false"),
        (DecisionRequest, {"group": "a"}, "proposed is missing"),
        (DecisionRequest, [], "the body must be an object"),
        (DecisionRequest, {"group": "a", "proposed": True, "cost": -1}, "cost must be a number"),
        (DecisionRequest, {"group": 1.5, "proposed": True}, "group must be a string of at most"),
        (
            DecisionRequest,
            {"group": "a", "proposed": True, "cst": 1},
            "'cst' is no field of this request: leave it out or correct it",
        ),
        (BatchRequest, {"decisions": []}, "decisions must have at least 1 item"),
        (BatchRequest, {"decisions": [{"group": "a"}]}, "proposed is missing in decisions[0]"),
        (
            BatchRequest,
            {"decisions": [{"group": "a", "proposed": True, "outcome": 3}]},
            "decisions[0].outcome must be true, false or null",
        ),
        (OutcomeRequest, {"decision": 0, "outcome": True}, "decision must be at least 1"),
        (OutcomeRequest, {"decision": "1", "outcome": True}, "decision must be a whole number"),
        (
            OverrideRequest,
            {"accepted": True, "note": "x" * 501},
            "note must have at most 500 characters",
        ),
        (
            StreamRequest,
            {"name": "loans", "policy": "spec-1"},
            "policy must be a digest, 64 hexadecimal digits: GET /v1/policies/{id} shows it once "
            "the policy is ready",
        ),
        (
            StreamRequest,
            {"name": "-", "policy": DIGEST},
            "name must be 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or "
            "digit",
        ),
        (
            StreamRequest,
            {"name": "a", "policy": DIGEST, "windows": "3"},
            "windows must be a whole number or null",
        ),
    ],
)
def test_the_field_and_its_rule_are_named(kind: Any, body: Any, sentence: str) -> None:
    assert told(kind, json.dumps(body).encode()).startswith(sentence)


def test_an_empty_body_is_said_to_be_empty() -> None:
    assert told(StreamRequest, b"") == "the body is empty"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (b"limit=1001", "limit must be at most 1000"),
        (b"wait=61", "wait must be at most 60"),
        (b"after=x", "after must be a whole number"),
        (b"lim=3", "'lim' is no parameter of this request: leave it out or correct it"),
    ],
)
def test_parameters_are_told_of_like_fields(query: bytes, sentence: str) -> None:
    with pytest.raises(Refusal) as refused:
        parse_query(LogQuery, query)
    assert refused.value.detail == sentence


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)  # fmt: skip
names = st.sampled_from(
    sorted({name for kind in BODIES for name in kind.__struct_fields__} | {"x", "` - at `$.x"})
)


@given(kind=st.sampled_from(BODIES), body=st.dictionaries(names, values, max_size=4))
def test_no_rule_is_told_in_words_of_the_parser(kind: Any, body: Any) -> None:
    try:
        parse_json(msgspec.json.Decoder(kind), json.dumps(body).encode(), ())
    except Refusal as refused:
        said = refused.detail.replace("` - at `$.x", "")
        assert not any(word in said for word in ("Expected", "Object", "regex", "$", "`"))


def test_every_field_with_a_pattern_has_words_of_its_own() -> None:
    for endpoint in ENDPOINTS:
        for field in getattr(endpoint.body, "__struct_fields__", ()):
            said = told(endpoint.body, json.dumps({field: "\n"}).encode())
            assert "regex" not in said


class _OneStream:
    """A store with one stream."""

    def __init__(self, created: Created) -> None:
        self._row = chained(created, 1, BEGINNING)

    def insert_stream(self, name: str) -> None:
        """It is there."""

    def stream(self, name: str) -> int:
        return 1

    def entries(self, number: int, *, limit: int) -> list[Any]:
        return [self._row]


def test_other_settings_are_spelled_as_in_json() -> None:
    there = Created(stream="loans", seq=0, at="", policy=DIGEST)
    store: Any = _OneStream(there)
    for setting, sentence in (
        ({"human": True}, "human = false, not true"),
        ({"windows": 3}, "windows = null, not 3"),
    ):
        with pytest.raises(Refusal, match=sentence):
            create_stream(store, msgspec.structs.replace(there, **setting))
