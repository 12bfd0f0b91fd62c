"""docs/format.md describes the files that the library writes, and its reader can read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from strategies import code_at

import fairshield as fs
from fairshield.periodic import (
    Dynamic,
    ExactPeriodic,
    PeriodicPolicy,
    Perpetual,
    StaticBounded,
    StaticFair,
)
from fairshield.policy.artifact import FORMAT_VERSION
from fairshield.policy.many import StateDecisions
from fairshield.runtime.step import verdict

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(found) == 1
    return str(found[0])


@pytest.fixture(scope="module")
def reader() -> dict[str, Any]:
    """The functions of the page's reader, which knows nothing of fairshield."""
    names: dict[str, Any] = {}
    exec(block("python"), names)
    assert not any("fairshield" in str(value) for key, value in names.items() if key[0] != "_")
    return names


@pytest.fixture(scope="module")
def example() -> bytes:
    return b"".join(bytes.fromhex(line[6:53]) for line in block("hexdump").splitlines())


def test_the_hexdump_shows_its_bytes_twice_alike() -> None:
    at = 0
    for line in block("hexdump").splitlines():
        data = bytes.fromhex(line[6:53])
        assert int(line[:4], 16) == at
        assert line[55:] == "".join(chr(c) if 32 <= c < 127 else "." for c in data)
        at += len(data)


def test_the_example_has_the_documented_fields(reader: dict[str, Any], example: bytes) -> None:
    header, arrays = reader["read"](example)
    table = PAGE.split("## Header")[1].split("## Arrays")[0]
    assert list(header) == re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    table = PAGE.split("## Arrays")[1].split("### Rows")[0]
    names = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert [entry["name"] for entry in header["arrays"]] == names
    assert f"describes version {FORMAT_VERSION}" in PAGE
    assert header["property"] == {
        "kind": "demographic-parity",
        "min_support": 0,
        "undefined": "bias-0",
        "bound": "0",
    }
    assert (header["horizon"], header["expected_cost"]) == (2, 0.25)
    assert (arrays["edges"], arrays["ranks"]) == ((1.0,), (0, 0, 0, 0))


def test_the_explained_rows_are_those_of_the_file(reader: dict[str, Any], example: bytes) -> None:
    header, arrays = reader["read"](example)
    rows = re.findall(
        r"^\| (\d) \| (\d), (\d), (\d) \| (\d) \| `([0-9a-f ]+)` \|", PAGE, re.MULTILINE
    )
    assert len(rows) == 7
    for *numbers, data in rows:
        number, t, n_a, n_b, short = map(int, numbers)
        k_a, k_b = (short, 0) if n_a <= n_b else (0, short)
        at, along = reader["place"](header, arrays, t, n_a, k_a, n_b, k_b)
        assert (at, along) == (number, 0)
        assert bytes(arrays["cuts"][6 * at : 6 * at + 6]) == bytes.fromhex(data)


def test_the_library_still_writes_the_example(
    reader: dict[str, Any], example: bytes, tmp_path: Path
) -> None:
    call = block("text").replace("\n", "").replace('.save("tiny.shield")', "")
    policy = eval(call, {"fs": fs})
    header, _ = reader["read"](example)
    replace(policy, version=header["library"]).save(tmp_path / "tiny.shield")
    assert (tmp_path / "tiny.shield").read_bytes() == example


MODELS = {
    "one level": fs.InputModel.agnostic({"a": 0.3, "b": 0.7}),
    "two levels": fs.InputModel.from_table(
        {
            ("a", True, 0.2): 0.1,
            ("a", False, 1.5): 0.3,
            ("b", True, 1.5): 0.4,
            ("b", False, 0.2): 0.2,
        },
        outcomes={"a": 0.3, "b": 0.6},
    ),
}


def states(policy: fs.Policy) -> Iterator[tuple[int, int, int, int, int]]:
    """Every state in which a decision is made."""
    for t, n_a, n_b in product(range(policy.horizon), repeat=3):
        if n_a + n_b == t or (policy.labelled and n_a + n_b < t):
            for k_a, k_b in product(range(n_a + 1), range(n_b + 1)):
                yield t, n_a, k_a, n_b, k_b


@pytest.mark.parametrize("inputs", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(("backend", "spread"), [("cpu", 1.0), ("cpu", 3.0), ("reference", 1.0)])
@pytest.mark.parametrize("prop", [fs.DemographicParity("0.3"), fs.EqualOpportunity("1/3")], ids=str)
def test_the_pages_reader_decides_as_the_library_does(
    prop: fs.Property, inputs: fs.InputModel, backend: Any, spread: float,
    reader: dict[str, Any], tmp_path: Path,
) -> None:  # fmt: skip
    """In every state, for every request, on files of every shape."""
    policy = fs.synthesize(prop, inputs, horizon=5, backend=backend, spread=spread)
    assert_read_alike(policy, reader, tmp_path)


@pytest.mark.parametrize("inputs", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("prop", [fs.DemographicParity("0"), fs.EqualOpportunity("0")], ids=str)
def test_the_pages_reader_makes_the_same_best_effort(
    prop: fs.Property, inputs: fs.InputModel, backend: Any, reader: dict[str, Any], tmp_path: Path
) -> None:
    start = fs.Counts({"a": (2, 1), "b": (3, 1)})
    policy = fs.synthesize(prop, inputs, horizon=5, start=start, best_effort=True, backend=backend)
    assert policy.decisions.salvage is not None
    assert_read_alike(policy, reader, tmp_path)
    header, _ = reader["read"]((tmp_path / "policy.shield").read_bytes())
    assert header["risk"] == policy.risk


def assert_read_alike(policy: fs.Policy, reader: dict[str, Any], tmp_path: Path) -> None:
    policy.save(tmp_path / "policy.shield")
    file = reader["read"]((tmp_path / "policy.shield").read_bytes())
    costs = (0.0, 0.2, 1.0, 1.5, 2.0)
    for at in states(policy):
        where = at[0], at[1:]
        assert (reader["look_up"](*file, *at) is not None) == policy.decisions.feasible(*where)
        for request in product((0, 1), (False, True), costs):
            assert reader["decide"](*file, *at, *request) == verdict(policy, *where, *request)[0]


@pytest.mark.parametrize("prop", [fs.DemographicParity("0.3"), fs.EqualOpportunity("1/3")])
def test_files_of_three_groups_are_as_the_page_says(
    prop: fs.Property, reader: dict[str, Any], tmp_path: Path
) -> None:
    policy = fs.synthesize(prop, fs.InputModel.agnostic(dict.fromkeys("abc", 1 / 3)), horizon=3)
    assert isinstance(policy.decisions, StateDecisions)
    policy.save(tmp_path / "many.shield")
    header, arrays = reader["read"]((tmp_path / "many.shield").read_bytes())
    section = PAGE.split("### Three groups or more")[1].split("### Periodic policies")[0]
    assert header["method"] in section
    assert {entry["name"] for entry in header["arrays"]} == {"codes", "edges", "ranks"}
    groups, n = arrays["codes.shape"]
    found = set()
    for at in product(range(4), repeat=6):
        seen = sum(at[::2])
        fits = all(k <= n for n, k in zip(at[::2], at[1::2], strict=True)) and seen <= 3
        for t in range(seen, 4 if policy.labelled else seen + 1) if fits else ():
            place = reader["number"](header, arrays, t, at)
            codes = [arrays["codes"][g * n + place] for g in range(groups)]
            assert policy.decisions.feasible(t, at) == (codes[0] != -128)
            if codes[0] != -128:
                assert codes == [code_at(policy.decisions, t, at, g) for g in range(groups)]
            found.add(place)
    assert found == set(range(n))


PERIODIC = [
    StaticFair(fs.DemographicParity("0.3"), MODELS["one level"], 4),
    StaticBounded(fs.EqualOpportunity("1/3"), MODELS["two levels"], 4),
    ExactPeriodic(fs.DemographicParity("0.3"), MODELS["two levels"], 2, periods=2),
    Dynamic(fs.DemographicParity("0.3"), MODELS["one level"], 4),
    Perpetual(fs.EqualOpportunity("1/3"), MODELS["one level"], 4),
]


@pytest.mark.parametrize("policy", PERIODIC, ids=lambda policy: policy.kind)
def test_periodic_files_are_as_the_page_says(
    policy: PeriodicPolicy, reader: dict[str, Any], tmp_path: Path
) -> None:
    policy.save(tmp_path / "periodic.shield")
    header, arrays = reader["read"]((tmp_path / "periodic.shield").read_bytes())
    section = PAGE.split("### Periodic policies")[1].split("### Deciding")[0]
    assert set(header) == {*re.findall(r"^\* `(\w+)`", section, re.MULTILINE), "arrays"}
    facts = header["periodic"]
    assert all(f"`{word}`" in section for word in [*facts, *facts["options"], policy.kind])
    assert (facts["kind"], facts["period"]) == (policy.kind, policy.period)
    if header["policy"] is None:
        assert (arrays, policy.tables) == ({}, None)
        return
    assert policy.tables is not None
    ends = list(range(policy.period, header["policy"]["horizon"], policy.period))
    assert header["policy"]["checkpoints"] == ends
    file = header["policy"], arrays
    for at in states(policy.tables):
        for request in product((0, 1), (False, True), (0.2, 1.0, 2.0)):
            ours, _ = verdict(policy.tables, at[0], at[1:], *request)
            assert reader["decide"](*file, *at, *request) == ours


def test_a_perpetual_plan_is_as_the_page_says() -> None:
    policy = Perpetual(fs.DemographicParity("0.3"), MODELS["one level"], 4, lookahead=3)
    plan, _ = policy.window(policy.start, 0).policy.to_artifact()
    assert (plan["horizon"], plan["further"], plan["checkpoints"]) == (4, 8, [4, 8])
    assert plan["terminal"] == {"kind": "sustained", "of": policy.prop.to_dict()}
