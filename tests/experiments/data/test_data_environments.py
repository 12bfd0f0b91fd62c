"""The seven environments are those of the paper."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import fairshield as fs
from fairshield_experiments.data import ENVIRONMENTS, Dataset, describe, load

PUBLISHED = {  # the paper's table of data sets, as printed
    "adult-race": "income race 43131 5 7 75.10 24.90 9.80 90.20 0.14",
    "adult-gender": "income gender 45222 5 7 75.22 24.78 32.50 67.50 0.20",
    "bank-age": "credit age 41188 9 10 88.73 11.27 2.59 97.41 0.13",
    "compas-gender": "recidivism gender 6172 5 4 54.49 45.51 19.04 80.96 0.13",
    "compas-race": "recidivism race 6172 5 4 54.49 45.51 65.93 34.07 0.10",
    "german-gender": "credit gender 1000 6 13 30.00 70.00 31.00 69.00 0.07",
    "german-age": "credit age 1000 6 13 30.00 70.00 19.00 81.00 0.15",
}
COLUMNS = [
    "task",
    "attribute",
    "instances",
    "numeric",
    "categorical",
    "y0",
    "y1",
    "ga",
    "gb",
    "parity",
]

SIZE_OF_B = {  # people, where the table has shares
    "adult-race": 38_903,
    "adult-gender": 30_527,
    "bank-age": 40_120,
    "compas-gender": 4_997,
    "compas-race": 2_103,
    "german-gender": 690,
    "german-age": 810,
}

each_environment = pytest.mark.parametrize("name", ENVIRONMENTS)


@cache
def loaded(name: str) -> Dataset:
    return load(name)


def printed(column: str, value: object) -> str:
    if column in {"y0", "y1", "ga", "gb"}:
        return f"{100 * float(str(value)):.2f}"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def test_environments_are_in_the_order_of_the_table() -> None:
    assert tuple(PUBLISHED) == ENVIRONMENTS


@pytest.mark.parametrize("column", COLUMNS)
@each_environment
def test_every_cell_of_the_table_comes_out(data_directory: Path, name: str, column: str) -> None:
    cell = dict(zip(COLUMNS, PUBLISHED[name].split(), strict=True))[column]
    assert printed(column, describe(loaded(name))[column]) == cell


@each_environment
def test_a_description_has_the_environments_name_first(data_directory: Path, name: str) -> None:
    row = describe(loaded(name))
    assert list(row) == ["environment", "title", *COLUMNS, "problems"]
    assert row["environment"] == name


@each_environment
def test_group_b_has_the_published_size(data_directory: Path, name: str) -> None:
    dataset = loaded(name)
    assert int(dataset.group.sum()) == SIZE_OF_B[name]
    assert set(np.unique(dataset.group)) == {0, 1}


@each_environment
def test_columns_are_complete_and_of_one_length(data_directory: Path, name: str) -> None:
    dataset = loaded(name)
    for column in (*dataset.numeric.values(), *dataset.categorical.values(), dataset.target):
        assert column.shape == (len(dataset),)
        assert not column.flags.writeable
    assert all(np.isfinite(column).all() for column in dataset.numeric.values())
    assert all((column != "").all() for column in dataset.categorical.values())


@each_environment
def test_no_feature_is_sensitive_or_the_target(data_directory: Path, name: str) -> None:
    dataset = loaded(name)
    features = {*dataset.numeric, *dataset.categorical}
    hidden = {"gender": {"sex", "personal_status"}, "race": {"race"}, "age": {"age", "age_cat"}}
    assert not features & hidden[dataset.attribute]
    assert not features & {"income", "y", "two_year_recid", "credit", "fnlwgt", "is_recid"}


@each_environment
def test_no_feature_is_the_group_or_the_target_by_another_name(
    data_directory: Path, name: str
) -> None:
    dataset = loaded(name)
    for answer in (dataset.group, dataset.target):
        for column in dataset.categorical.values():
            values, counts = np.unique(column, return_counts=True)
            assert len(np.unique(answer[column == values[counts.argmax()]])) == 2
        for numbers in dataset.numeric.values():
            assert abs(np.corrcoef(numbers, answer)[0, 1]) < 0.9


def test_the_other_sensitive_attribute_stays_a_feature(data_directory: Path) -> None:
    assert "sex" in loaded("adult-race").categorical
    assert "race" in loaded("adult-gender").categorical
    assert "race" in loaded("compas-gender").categorical
    assert "sex" in loaded("compas-race").categorical
    assert set(loaded("german-gender").categorical["age"]) == {"25 or younger", "older than 25"}
    assert set(loaded("german-age").categorical["sex"]) == {"female", "male"}


def test_a_missing_charge_is_a_category(data_directory: Path) -> None:
    charges = loaded("compas-gender").categorical["c_charge_desc"]
    assert (charges == "missing").sum() == 5
    assert len(np.unique(charges)) == 389 + 1


@each_environment
def test_problems_are_told(data_directory: Path, name: str) -> None:
    assert loaded(name).problems.endswith(".")


def test_compas_warns_of_its_use(data_directory: Path) -> None:
    for words in ("not a new crime", "must not be used to judge a real deployment"):
        assert words in loaded("compas-race").problems


def test_a_data_set_travels_between_processes(data_directory: Path) -> None:
    dataset = loaded("german-age")
    again = pickle.loads(pickle.dumps(dataset))
    assert describe(again) == describe(dataset)


def test_an_unknown_environment_lists_the_known_ones() -> None:
    with pytest.raises(fs.InvalidValueError) as caught:
        load("adult")
    for name in ("'adult'", *ENVIRONMENTS):
        assert name in str(caught.value)
