"""COMPAS: whether a person is arrested again within two years.

Origin
    ProPublica, "Machine Bias", 2016: people screened in Broward County, Florida, in 2013 and
    2014; https://github.com/propublica/compas-analysis.
Licence
    None is stated; ProPublica publishes the file for others to check its analysis.
Filters
    7,214 people, less those whose screening lies more than 30 days from the arrest, or at an
    unknown distance: 6,172.  ProPublica's other filters drop nobody else.  Names, dates and the
    COMPAS scores themselves are not read; a missing charge is the category "missing".
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
from fairshield_experiments.data.sources import COMPAS, Progress, locate
from fairshield_experiments.data.table import Dataset

PROBLEMS = (
    "A benchmark with serious ethical and data-quality problems; results on it must not be used "
    "to judge a real deployment. The target is a new arrest or charge, not a new crime: whoever is "
    "policed more is arrested more, so the label itself carries the bias that is to be measured. "
    "ProPublica applied its two-year cutoff to people who were not arrested again but not to those "
    "who were, which keeps over 40 % too many of the latter and raises the rate from 36.2 % to "
    "45.1 % (Barenstein, ProPublica's COMPAS Data Revisited, 2019). Arrests are matched to "
    "screenings by date, with known mismatches; the filter on 30 days removes only the obvious "
    "ones. People in prison cannot be arrested again, and time in custody is not accounted for. "
    "Race is as recorded by the authorities, and here everyone who is not Caucasian is one group. "
    "Age is a feature twice, and the file holds the names of real people. See Bao et al., It's "
    "COMPASlicated, 2021."
)

_NUMERIC = ("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
_CATEGORICAL = ("age_cat", "c_charge_degree", "c_charge_desc")


def load(attribute: Literal["gender", "race"], *, progress: Progress | None = None) -> Dataset:
    """Screened people, compared by gender (Female, Male) or race (all others, Caucasian)."""
    columns = _screened_in_time(progress)
    if attribute == "gender":
        group, other, groups = columns["sex"] == "Male", "race", ("Female", "Male")
    else:
        group, other, groups = (
            columns["race"] == "Caucasian",
            "sex",
            ("not Caucasian", "Caucasian"),
        )
    return Dataset(
        name=f"compas-{attribute}",
        title=f"COMPAS ({attribute})",
        task="recidivism",
        attribute=attribute,
        groups=groups,
        group=codes(group),
        target=frozen(columns["two_year_recid"] == "1"),
        numeric=numbers(columns, _NUMERIC),
        categorical=categories(columns, (*_CATEGORICAL, other)),
        problems=PROBLEMS,
    )


def _screened_in_time(progress: Progress | None) -> dict[str, Column]:
    """Everybody screened within 30 days of the arrest."""
    columns = read_columns(locate(COMPAS, progress=progress))
    days = columns["days_b_screening_arrest"]
    known = days != ""
    near = known & (np.abs(np.where(known, days, "0").astype(np.float64)) <= 30)
    charge = columns["c_charge_desc"]
    columns["c_charge_desc"] = np.where(charge == "", "missing", charge)
    return select(columns, near)
