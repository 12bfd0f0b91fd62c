"""Tables that cannot be read are refused before anything is read from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from strategies import with_decisions, with_rows, with_spec

import fairshield as fs


def many_levels() -> fs.Policy:
    table = {(g, r, c): 0.125 for g in "ab" for r in (False, True) for c in (1.0, 2.0)}
    return fs.synthesize(fs.DemographicParity("0.25"), fs.InputModel.from_table(table), horizon=4)


def irregular() -> fs.Policy:
    """One cost level, and some rows that two cuts do not describe."""
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    policy = fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=20)
    assert policy.decisions.rows.n_dense > 1
    return policy


def patched(array: np.ndarray, where: Any, value: Any) -> np.ndarray:
    array = array.copy()
    array[where] = value
    return array


BREAKAGES = {
    "needs 34 rows": lambda p: with_spec(p, horizon=5),
    "cuts has type float64": lambda p: with_rows(p, cuts=p.decisions.rows.cuts.astype(float)),
    "cuts has shape": lambda p: with_rows(p, cuts=p.decisions.rows.cuts[:-1]),
    "ranks has shape": lambda p: with_decisions(p, ranks=p.ranks[:, :, :, :1]),
    "edges has 2 dimensions": lambda p: with_decisions(p, edges=p.edges[None]),
    "must rise": lambda p: with_decisions(p, edges=p.edges[::-1].copy()),
    "rise from at least 0": lambda p: with_decisions(p, edges=np.array([math.nan, 1.0])),
    "does not fit its 1 states": lambda p: with_rows(
        p, cuts=patched(p.decisions.rows.cuts, 0, (0, 2))
    ),
    r"reads \[1, 0\]": lambda p: with_rows(p, cuts=patched(p.decisions.rows.cuts, 0, (1, 0))),
    "starts": lambda p: with_rows(p, dense_starts=p.decisions.rows.dense_starts[1:]),
    "must rise and": lambda _: with_rows(
        irregular(), dense_rows=irregular().decisions.rows.dense_rows[::-1].copy()
    ),
    "be rows of the table": lambda _: with_rows(
        irregular(), dense_rows=patched(irregular().decisions.rows.dense_rows, -1, 10**6)
    ),
    "but": lambda _: with_rows(
        irregular(), dense_starts=irregular().decisions.rows.dense_starts[1:]
    ),
    "begins at -2": lambda p: with_rows(
        p, dense_starts=patched(p.decisions.rows.dense_starts, 0, -2)
    ),
    "of 3 codes": lambda p: with_rows(p, dense_codes=p.decisions.rows.dense_codes[:3]),
    "dense_codes has type": lambda p: with_rows(
        p, dense_codes=p.decisions.rows.dense_codes.astype("u1")
    ),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
        ({"horizon": 4.0}, "got 4.0"),
        ({"further": -1}, "further must be"),
        ({"checkpoints": (0,)}, "checkpoints must be whole numbers from 1 to the horizon 4, got 0"),
        ({"checkpoints": (5,)}, "got 5"),
        ({"checkpoints": (3, 2)}, "checkpoints must rise"),
        ({"start": fs.Counts.zero(("b", "a"))}, "groups"),
        ({"terminal": fs.EqualOpportunity("0.1")}, "must count the same people"),
        ({"spread": 0.5}, "spread must be"),
    ],
)
def test_a_specification_that_makes_no_sense_is_refused(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(fs.InvalidValueError, match=message):
        with_spec(many_levels(), **change)


@pytest.mark.parametrize("message", BREAKAGES)
def test_tables_that_cannot_be_read_are_refused(message: str) -> None:
    with pytest.raises(fs.ArtifactError, match=message):
        fs.verify(BREAKAGES[message](many_levels()))


def test_a_cut_beyond_its_row_is_refused(plain_policy: fs.Policy) -> None:
    cuts = plain_policy.decisions.rows.cuts.copy()
    cuts[0] = 0, 1, 0, 9, 0, 0
    with pytest.raises(fs.ArtifactError, match=r"row 0 \(after 0 decisions\)"):
        fs.verify(with_rows(plain_policy, cuts=cuts))
