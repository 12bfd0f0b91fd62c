"""German Credit: whether a loan is paid back.

Origin
    H. Hofmann, loans of a bank in southern Germany, 1973 to 1975 (``german.data`` of Statlog);
    UCI Machine Learning Repository, https://doi.org/10.24432/C5NC77.
Licence
    CC BY 4.0.
Filters
    None: all 1,000 people.  ``personal_status`` (A91 to A94) is reduced to ``sex``: A92 is female,
    the others male.  ``age`` is reduced to whether a person is older than 25, also as a feature.
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
)
from fairshield_experiments.data.sources import GERMAN, Progress, locate
from fairshield_experiments.data.table import Dataset

PROBLEMS = (
    "Sex is not recorded on its own but together with marital status, and the published table of "
    "codes has errors. In the corrected version, South German Credit (Grömping, 2019), the code "
    "read here as female (A92) means a woman who is not single or a man who is, and a code read as "
    "male (A94) means a single woman: sex cannot be recovered, and the groups of this environment "
    "are not women and men. Other attributes were mislabelled as well, which one-hot features do "
    "not notice. The loans were granted from 1973 to 1975 and bad ones were sampled far more "
    "often than they occurred; nobody knows what refused applicants would have done. A thousand "
    "people leave few in a group: differences between methods are mostly noise."
)

_HEADER = (
    "status",
    "month",
    "credit_history",
    "purpose",
    "credit_amount",
    "savings",
    "employment",
    "investment_as_income_percentage",
    "personal_status",
    "other_debtors",
    "residence_since",
    "property",
    "age",
    "installment_plans",
    "housing",
    "number_of_credits",
    "skill_level",
    "people_liable_for",
    "telephone",
    "foreign_worker",
    "credit",
)
_NUMERIC = (
    "month",
    "credit_amount",
    "investment_as_income_percentage",
    "residence_since",
    "number_of_credits",
    "people_liable_for",
)
_CATEGORICAL = (
    "status",
    "credit_history",
    "purpose",
    "savings",
    "employment",
    "other_debtors",
    "property",
    "installment_plans",
    "housing",
    "skill_level",
    "telephone",
    "foreign_worker",
)
_FEMALE = "A92"


def load(attribute: Literal["gender", "age"], *, progress: Progress | None = None) -> Dataset:
    """Borrowers, compared by gender (female, male) or age (25 or younger, older than 25)."""
    columns = _reduced(progress)
    if attribute == "gender":
        group, other, groups = columns["sex"] == "male", "age", ("female", "male")
    else:
        group, other, groups = (
            columns["age"] == "older than 25",
            "sex",
            ("25 or younger", "older than 25"),
        )
    return Dataset(
        name=f"german-{attribute}",
        title=f"German ({attribute})",
        task="credit",
        attribute=attribute,
        groups=groups,
        group=codes(group),
        target=frozen(columns["credit"] == "1"),
        numeric=numbers(columns, _NUMERIC),
        categorical=categories(columns, (*_CATEGORICAL, other)),
        problems=PROBLEMS,
    )


def _reduced(progress: Progress | None) -> dict[str, Column]:
    """Everybody, with sex for the personal status and two classes of age."""
    columns = read_columns(locate(GERMAN, progress=progress), delimiter=" ", header=_HEADER)
    older = columns["age"].astype(np.int64) > 25
    columns["age"] = np.where(older, "older than 25", "25 or younger")
    columns["sex"] = np.where(columns.pop("personal_status") == _FEMALE, "female", "male")
    return columns
