"""Input models estimated from records: columns of every make, CSV, scores, bins, smoothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairshield as fs
from fairshield.adapters.specfile import parse_inputs

WHO = ["b", "a", "a", "b", "a", "b"]
SAID = [True, True, False, False, True, True]
PRICE = [0.5, 1.0, 1.0, 0.25, 0.5, 0.25]
TRUTH = [1, 1, 0, 0, 1, 0]

COLUMNS = {
    "lists": lambda values: values,
    "numpy": np.array,
    "objects": lambda values: np.array(values, dtype=object),
    "pandas": pd.Series,
    "categories": lambda values: pd.Series(values, dtype="category"),
    "polars": pl.Series,
    "arrow": pa.array,
    "chunks": lambda values: pa.chunked_array([values[:2], values[2:]]),
}


def refused(call: Any, *parts: str) -> None:
    with pytest.raises(fs.InvalidValueError) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)


# Columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_columns_of_every_make_give_the_same_model(column: Any) -> None:
    expected = fs.InputModel.estimate(WHO, SAID, PRICE, TRUTH)
    model = fs.InputModel.estimate(*map(column, (WHO, SAID, PRICE, TRUTH)))
    assert model.to_dict() == expected.to_dict()


def test_shares_are_counted() -> None:
    model = fs.InputModel.estimate(WHO, SAID, PRICE, TRUTH, smoothing=0.0)
    assert model.groups == ("a", "b")
    assert model.levels.tolist() == [0.25, 0.5, 1.0]
    counts = {("a", 1, 2): 1, ("a", 0, 2): 1, ("a", 1, 1): 1,
              ("b", 1, 1): 1, ("b", 0, 0): 1, ("b", 1, 0): 1}  # fmt: skip
    for (g, r, level), n in counts.items():
        assert model.probs["ab".index(g), r, level] == pytest.approx(n / 6)
    assert model.outcomes is not None
    assert model.outcomes[0, 1, 2] == 1.0
    assert model.outcomes[1, 1, 0] == 0.0
    assert model.outcomes[0, 0, 0] == 0.5  # nobody seen: as likely as not


def test_smoothing_adds_imaginary_people_evenly() -> None:
    model = fs.InputModel.estimate(["a", "a", "b"], [1, 1, 0], outcomes=[1, 1, 0], smoothing=2.0)
    # Two more in each of four cells: 2, 4; 3, 2 of 11.
    assert model.probs[:, :, 0].tolist() == pytest.approx(np.array([[2, 4], [3, 2]]) / 11)
    assert model.outcomes is not None
    assert model.outcomes[0, 1, 0] == pytest.approx((2 + 1) / 4)
    assert model.outcomes[1, 0, 0] == pytest.approx((0 + 1) / 3)


@given(st.floats(0.001, 100))
def test_smoothing_leaves_nothing_impossible(smoothing: float) -> None:
    model = fs.InputModel.estimate(WHO, SAID, PRICE, TRUTH, smoothing=smoothing)
    assert (model.probs > 0).all()
    assert model.probs.sum() == pytest.approx(1.0)


def test_costs_default_to_one_and_outcomes_to_unknown() -> None:
    model = fs.InputModel.estimate(WHO, SAID)
    assert model.levels.tolist() == [1.0]
    assert model.outcomes is None


def test_names_give_order_and_an_absent_group() -> None:
    model = fs.InputModel.estimate(["a", "a"], [1, 0], names=("b", "a"), smoothing=0.0)
    assert model.groups == ("b", "a")
    assert model.probs[0].sum() == 0.0


def test_integer_groups() -> None:
    model = fs.InputModel.estimate(np.array([1, 0, 1]), [1, 0, 1])
    assert model.groups == (0, 1)
    assert {type(g) for g in model.groups} == {int}


@pytest.mark.parametrize("said", [["yes", "no"], ["accept", "REJECT"], ["1", "0"], [1.0, 0.0]])
def test_flags_may_be_words(said: list[Any]) -> None:
    model = fs.InputModel.estimate(["a", "b"], said, smoothing=0.0)
    assert model.probs[:, :, 0].tolist() == [[0.0, 0.5], [0.5, 0.0]]


# Bins ---------------------------------------------------------------------------------------


def test_bins_are_represented_by_their_mean_cost() -> None:
    costs = [0.0, 0.1, 0.3, 0.9, 1.0]
    model = fs.InputModel.estimate(["a", "b", "a", "b", "a"], [1] * 5, costs, bins=4)
    # Cells up to 0.25, 0.5, 0.75, 1; the third is empty and has no level.
    assert model.levels.tolist() == pytest.approx([0.05, 0.3, 0.95])
    assert model.edges is not None
    assert model.edges.tolist() == pytest.approx([0.25, 0.5, math.inf])


def test_a_cost_on_the_edge_of_a_bin_belongs_to_it() -> None:
    model = fs.InputModel.estimate(["a", "b", "a"], [1, 1, 1], [0.5, 0.75, 1.0], bins=2)
    assert model.levels.tolist() == [0.5, 0.875]


@given(
    st.lists(st.just(0.0) | st.floats(1e-6, 10), min_size=2, max_size=30),
    st.integers(1, 12),
)
def test_every_recorded_cost_falls_into_its_own_bin(costs: list[float], bins: int) -> None:
    model = fs.InputModel.estimate(
        ["a", "b"] * len(costs), [1] * (2 * len(costs)), costs * 2, bins=bins
    )
    assert len(model.levels) <= max(bins, 1)
    assert model.edges is not None
    cells = np.searchsorted(model.edges, costs, side="left")
    assert cells.max() < len(model.levels)
    means = [
        np.mean([c for c, at in zip(costs, cells, strict=True) if at == i]) for i in set(cells)
    ]
    assert sorted(means) == pytest.approx(model.levels.tolist(), abs=1e-9)


def test_unbinned_costs_are_levels_of_their_own() -> None:
    model = fs.InputModel.estimate(["a", "b", "a"], [1, 1, 0], [0.3, 0.1, 0.3])
    assert model.levels.tolist() == [0.1, 0.3]
    assert model.edges is not None
    assert model.edges.tolist() == [0.1, 0.3]


def test_costs_that_are_all_zero_have_one_level() -> None:
    model = fs.InputModel.estimate(["a", "b"], [1, 0], [0.0, 0.0], bins=10)
    assert model.levels.tolist() == [0.0]


@pytest.mark.parametrize("bins", [0, -1, 2.5, "ten"])
def test_bins_are_a_whole_number(bins: Any) -> None:
    refused(
        lambda: fs.InputModel.estimate(WHO, SAID, PRICE, bins=bins),
        "bins must be a whole number of at least 1", repr(bins),
    )  # fmt: skip


# Scores -------------------------------------------------------------------------------------


def test_scores_are_proposals_and_confidence_their_price() -> None:
    scores, groups = [0.9, 0.5, 0.4, 0.1], ["a", "b", "a", "b"]
    model = fs.InputModel.from_scores(scores, groups, bins=None, smoothing=0.0)
    assert model.levels.tolist() == pytest.approx([0.0, 0.1, 0.4])
    assert model.probs[1, 1, 0] == 0.25  # the threshold itself accepts, and costs nothing
    assert model.probs[0, 0, 1] == 0.25
    assert model.probs[:, :, 2].tolist() == [[0.0, 0.25], [0.25, 0.0]]


def test_scores_have_ten_bins_unless_told() -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(500), rng.choice(["a", "b"], 500)
    assert len(fs.InputModel.from_scores(scores, groups).levels) == 10
    assert len(fs.InputModel.from_scores(scores, groups, bins=3).levels) == 3
    assert len(fs.InputModel.from_scores(scores, groups, bins=None).levels) == 500
    constant = fs.InputModel.from_scores(scores, groups, cost="constant")
    assert constant.levels.tolist() == [1.0]


def test_scores_with_another_threshold_and_outcomes() -> None:
    model = fs.InputModel.from_scores(
        [-1.0, 2.0], ["a", "b"], [0, 1], threshold=1.0, bins=None, smoothing=0.0
    )
    assert model.levels.tolist() == [1.0, 2.0]
    assert model.outcomes is not None
    assert model.outcomes[1, 1, 0] == 1.0


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_scores_are_finite(score: float) -> None:
    refused(
        lambda: fs.InputModel.from_scores([0.5, score], ["a", "b"]),
        f"scores[1] is {score}", "finite",
    )  # fmt: skip


def test_the_price_of_scores_is_one_of_two_words() -> None:
    refused(
        lambda: fs.InputModel.from_scores([0.5, 0.1], ["a", "b"], cost="free"),  # type: ignore[arg-type]
        "'confidence' or 'constant'", "'free'",
    )  # fmt: skip


def test_a_model_from_scores_can_be_used() -> None:
    rng = np.random.default_rng(1)
    scores, groups = rng.random(200), rng.choice([0, 1], 200)
    inputs = fs.InputModel.from_scores(scores, groups, rng.integers(0, 2, 200))
    for prop in (fs.DemographicParity("0.2"), fs.EqualOpportunity("0.2")):
        shield = fs.Shield(fs.synthesize(prop, inputs, horizon=10))
        batch = shield.decide_many(
            groups[:10], scores[:10] >= 0.5, abs(scores[:10] - 0.5), outcomes=[1] * 10
        )
        assert prop.holds(shield.counts)
        assert batch.paid.sum() <= abs(scores[:10] - 0.5).sum()


# CSV ----------------------------------------------------------------------------------------


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_gives_the_model_of_its_columns(tmp_path: Path) -> None:
    lines = ["outcome, group ,proposed,cost,note"]
    for z, g, r, c in zip(TRUTH, WHO, SAID, PRICE, strict=True):
        lines.append(f"{z},{g},{r},{c},whatever")
    model = fs.InputModel.from_csv(write(tmp_path / "x.csv", "\n".join(lines)), bins=2)
    expected = fs.InputModel.estimate(WHO, SAID, PRICE, TRUTH, bins=2)
    assert model.to_dict() == expected.to_dict()


def test_a_csv_needs_neither_costs_nor_outcomes(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "group,proposed\na,1\nb,0\n")
    model = fs.InputModel.from_csv(path, smoothing=0)
    assert model.levels.tolist() == [1.0]
    assert model.outcomes is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["the CSV is empty", "group,proposed,cost"]),
        ("group,proposed\n", ["no records", "at least one"]),
        ("group,proposed\na,1\n", ["1 groups", "names=('first', 'second')"]),
        ("group,proposed\na,1\nb\n", ["line 3", "1 fields where the header has 2"]),
        ("group,proposed\na,1\nb,perhaps\n", ["line 3", "proposed", "'perhaps'"]),
        ("group,proposed,cost\na,1,1\nb,1,-1\n", ["line 3", "cost", "'-1'", "at least 0"]),
        ("group,proposed,cost\na,1,1\nb,1,nan\n", ["line 3", "cost", "'nan'"]),
        ("who,proposed\na,1\n", ["line 2", "no 'group'"]),
        ("group,proposed\n,1\n", ["line 2", "the group is empty"]),
        ("group,proposed\na,1\na,0\n", ["1 groups", "at least two"]),
    ],
)
def test_a_bad_csv_says_where(tmp_path: Path, text: str, parts: list[str]) -> None:
    refused(lambda: fs.InputModel.from_csv(write(tmp_path / "x.csv", text)), *parts)


def test_groups_of_a_csv_are_named_as_written(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "group,proposed\n0,1\n1,0\n")
    assert fs.InputModel.from_csv(path).groups == ("0", "1")
    refused(lambda: fs.InputModel.from_csv(path, names=(0, 1)), "'0'", "(0, 1)")


scored = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 1000).map(lambda n: n / 1000)), max_size=40
).map(lambda people: [("a", 0.25), ("b", 0.75), *people])


@given(scored, st.sampled_from([None, 0.3]), st.sampled_from([{}, {"bins": 3}, {"bins": None}]))
def test_scores_make_one_model_however_they_come(
    tmp_path_factory: pytest.TempPathFactory, people: Any, threshold: Any, options: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "scores.csv"
    write(path, "\n".join(["group,score", *(f"{group},{score}" for group, score in people)]))
    groups, scores = zip(*people, strict=True)
    expected = fs.InputModel.from_scores(scores, groups, threshold=threshold, **options).to_dict()
    reading = fs.Reading(threshold=threshold)
    assert fs.InputModel.from_csv(path, reading=reading, **options).to_dict() == expected
    records = [{"group": group, "score": score} for group, score in people]
    rule = fs.records.ScoreRule(threshold=threshold)
    model = fs.InputModel.from_records(records, scores=rule, **options)
    assert model.to_dict() == expected
    words = {"inputs": str(path), **options} | ({} if threshold is None else {"threshold": 0.3})
    assert parse_inputs(words).to_dict() == expected


def test_scores_with_a_cost_of_their_own_keep_it(tmp_path: Path) -> None:
    text = "group,score,cost\na,0.9,2\nb,0.2,3\n"
    model = fs.InputModel.from_csv(write(tmp_path / "x.csv", text), smoothing=0.0)
    assert model.levels.tolist() == [2.0, 3.0]
    assert [model.probs[0, 1, 0], model.probs[1, 0, 1]] == [0.5, 0.5]


# Bad records --------------------------------------------------------------------------------


def test_no_records() -> None:
    refused(lambda: fs.InputModel.estimate([], []), "no records", "at least one")


@pytest.mark.parametrize("column", ["proposed", "costs", "outcomes"])
def test_columns_are_equally_long(column: str) -> None:
    columns: dict[str, Any] = {"proposed": [1, 0], column: [1, 0, 1]}
    refused(
        lambda: fs.InputModel.estimate(["a", "b"], **columns), f"{column} has 3", "groups has 2"
    )


def test_columns_are_flat() -> None:
    refused(
        lambda: fs.InputModel.estimate([["a"], ["b"]], [1, 0]), "one-dimensional", "[['a'], ['b']]"
    )


@pytest.mark.parametrize("cost", [-1.0, math.nan, math.inf, None])
def test_recorded_costs_are_finite(cost: Any) -> None:
    refused(lambda: fs.InputModel.estimate(["a", "b"], [1, 0], [1.0, cost]), "costs[1]")


def test_recorded_costs_are_numbers() -> None:
    refused(lambda: fs.InputModel.estimate(["a", "b"], [1, 0], ["1", "dear"]), "costs", "dear")
    refused(lambda: fs.InputModel.from_scores(["0.1", "high"], ["a", "b"]), "scores", "high")


def test_recorded_flags_are_flags() -> None:
    refused(lambda: fs.InputModel.estimate(["a", "b"], [1, 2]), "proposed[1]", "got 2")
    refused(lambda: fs.InputModel.estimate(["a", "b"], [1, None]), "proposed[1]", "None")
    refused(
        lambda: fs.InputModel.estimate(["a", "b"], [1, 0], outcomes=[0, 0.5]), "outcomes[1]", "0.5"
    )


def test_missing_groups_are_refused() -> None:
    refused(lambda: fs.InputModel.estimate(pd.Series(["a", None]), [1, 0]), "group name")
    refused(lambda: fs.InputModel.estimate(pd.Series([1.0, math.nan]), [1, 0]), "group name")


@pytest.mark.parametrize(
    ("who", "names"), [(["a", "c"], ("a", "b")), ([1, 2], ("1", "2")), (["1", "2"], (1, 2))]
)
def test_records_of_other_groups_are_refused(who: Any, names: Any) -> None:
    refused(lambda: fs.InputModel.estimate(who, [1, 0], names=names), "not among", repr(who[1]))


@pytest.mark.parametrize("smoothing", [-1.0, math.nan, math.inf])
def test_smoothing_is_finite_and_not_negative(smoothing: float) -> None:
    refused(
        lambda: fs.InputModel.estimate(WHO, SAID, smoothing=smoothing),
        "smoothing must be a finite number >= 0", repr(smoothing),
    )  # fmt: skip


def test_a_rule_says_how_scores_of_a_csv_are_read(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("group,score\na,640\nb,700\na,500\nb,650\n")
    rule = fs.records.ScoreRule(threshold=640, cost="constant")
    made = fs.InputModel.from_csv(path, scores=rule)
    expected = fs.InputModel.from_scores(
        [640, 700, 500, 650], list("abab"), threshold=640, cost="constant"
    )
    assert made.to_dict() == expected.to_dict()
