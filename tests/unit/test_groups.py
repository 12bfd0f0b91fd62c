"""Intersectional groups: one name per person, from several columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairshield as fs
from fairshield.base.errors import InvalidValueError

SEX, AGE = ["f", "m", "f", "f"], [1, 1, 2, 1]
NAMES = ["f × 1", "m × 1", "f × 2", "f × 1"]
FRAME = {"sex": SEX, "age": AGE}


@pytest.mark.parametrize(
    "columns",
    [
        (SEX, AGE),
        (pd.Series(SEX, dtype="category"), np.array(AGE)),
        (pl.Series(SEX), pa.array(AGE)),
        (FRAME,),
        (pd.DataFrame(FRAME),),
        (pl.DataFrame(FRAME),),
        (pa.table(FRAME),),
        (np.array([SEX, AGE], object).T,),
    ],
    ids=lambda columns: type(columns[0]).__module__,
)
def test_columns_of_every_kind_give_the_same_names(columns: tuple) -> None:
    assert fs.intersection(*columns).tolist() == NAMES


@given(st.lists(st.tuples(*[st.sampled_from("xyz")] * 3), max_size=20))
def test_people_share_a_name_exactly_if_they_share_all_values(people: list) -> None:
    columns = list(zip(*people, strict=True)) or [[], [], []]
    names = fs.intersection(*map(list, columns)).tolist()
    assert names == [" × ".join(person) for person in people]


def test_one_column_keeps_its_names_as_text() -> None:
    assert fs.intersection([1, 2, 1]).tolist() == ["1", "2", "1"]


def test_missing_values_have_a_name() -> None:
    assert fs.intersection(["f", None], [1, 2]).tolist() == ["f × 1", "(missing) × 2"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((), "no columns"),
        ((["a"], ["b", "c"]), "lengths"),
        ((["a × b"], ["c"]), "separator"),
        (([0.5], ["c"]), "string or an integer"),
        (([1, "1"], ["c", "c"]), "1 and '1' read alike"),
        ((["True", True], ["c", "c"]), "'True' and True read alike"),
        (([None, "(missing)"], ["c", "c"]), "None and '\\(missing\\)' read alike"),
        (([[["a"]]], [["b"]]), "one-dimensional"),
    ],
)
def test_what_has_no_names_is_refused(columns: tuple, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        fs.intersection(*columns)
