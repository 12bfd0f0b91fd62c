"""Adult: whether a person earns more than 50,000 dollars a year.

Origin
    Extract of the 1994 Current Population Survey of the US Census Bureau by B. Becker and
    R. Kohavi; UCI Machine Learning Repository, https://doi.org/10.24432/C5XW20.
Licence
    CC BY 4.0.
Filters
    Training and test file together, 48,842 people, less the 3,620 with a missing value ("?"):
    45,222.  ``fnlwgt`` is no feature: it says how many people a row stands for.  Of race, only
    White and Black people: 43,131.
Problems
    :data:`PROBLEMS`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from fairshield_experiments.data.columns import (
    Column,
    categories,
    codes,
    frozen,
    numbers,
    read_columns,
    select,
)
from fairshield_experiments.data.sources import ADULT_TEST, ADULT_TRAIN, Progress, locate
from fairshield_experiments.data.table import Dataset

PROBLEMS = (
    "A census of 1994, in dollars of 1994. The threshold of 50,000 dollars is arbitrary, and "
    "measured disparities change with it: few women and few Black people lie above it (Ding, "
    "Hardt, Miller and Schmidt, Retiring Adult, 2021). Rows with missing values are dropped, which "
    "is not a random choice of people; the survey weights are ignored. Income is what people were "
    "paid, not what they deserved: predicting it is no decision about anybody."
)

_HEADER = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)
_NUMERIC = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
_CATEGORICAL = (
    "workclass",
    "education",
    "marital_status",
    "occupation",
    "relationship",
    "native_country",
)


def load(attribute: Literal["race", "gender"], *, progress: Progress | None = None) -> Dataset:
    """Adults, compared by race (Black, White) or gender (Female, Male)."""
    columns = _complete(progress)
    if attribute == "race":
        columns = select(columns, np.isin(columns["race"], ("Black", "White")))
        group, other, groups = columns["race"] == "White", "sex", ("Black", "White")
    else:
        group, other, groups = columns["sex"] == "Male", "race", ("Female", "Male")
    return Dataset(
        name=f"adult-{attribute}",
        title=f"Adult ({attribute})",
        task="income",
        attribute=attribute,
        groups=groups,
        group=codes(group),
        # The test file ends its labels with a full stop.
        target=frozen(np.char.startswith(columns["income"], ">50K")),
        numeric=numbers(columns, _NUMERIC),
        categorical=categories(columns, (*_CATEGORICAL, other)),
        problems=PROBLEMS,
    )


def _complete(progress: Progress | None) -> dict[str, Column]:
    """Everybody without a missing value."""
    parts = [
        read_columns(locate(file, progress=progress), header=_HEADER)
        for file in (ADULT_TRAIN, ADULT_TEST)
    ]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in _HEADER}
    missing = np.any([column == "?" for column in columns.values()], axis=0)
    return select(columns, ~missing)
