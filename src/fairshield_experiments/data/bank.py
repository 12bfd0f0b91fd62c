"""Bank Marketing: whether a client who is called makes a term deposit.

Origin
    S. Moro, P. Cortez and P. Rita, calls of a Portuguese bank, May 2008 to November 2010,
    enriched with economic indicators (``bank-additional-full.csv``); UCI Machine Learning
    Repository, https://doi.org/10.24432/C5K306.
Licence
    CC BY 4.0.
Filters
    None: all 41,188 rows, duplicates among them.  ``age`` makes the groups and is no feature.
    "unknown" is a category.
Problems
    :data:`PROBLEMS`.
"""

from __future__ import annotations

import numpy as np

from fairshield_experiments.data.columns import categories, codes, frozen, numbers, read_columns
from fairshield_experiments.data.sources import BANK, Progress, locate
from fairshield_experiments.data.table import Dataset

PROBLEMS = (
    "Success of a sales call, not creditworthiness, although the paper names the task credit. The "
    "duration of the call is among the features, and nobody knows it before the call; its "
    "publishers advise against using it for a realistic model. The calls were made during the "
    "financial crisis of 2008 to 2010, and rows are calls in order of time, duplicates kept. The "
    "999 of pdays means never called before and is standardised like a number of days. Fewer than "
    "3 % of the clients are younger than 25, so windows often hold only a few of them."
)

_NUMERIC = (
    "duration",
    "campaign",
    "pdays",
    "previous",
    "emp.var.rate",
    "cons.price.idx",
    "cons.conf.idx",
    "euribor3m",
    "nr.employed",
)
_CATEGORICAL = (
    "job",
    "marital",
    "education",
    "default",
    "housing",
    "loan",
    "contact",
    "month",
    "day_of_week",
    "poutcome",
)


def load(*, progress: Progress | None = None) -> Dataset:
    """Clients, compared by age: younger than 25, or not."""
    columns = read_columns(locate(BANK, progress=progress), delimiter=";")
    return Dataset(
        name="bank-age",
        title="Bank (age)",
        task="credit",
        attribute="age",
        groups=("younger than 25", "25 or older"),
        group=codes(columns["age"].astype(np.int64) >= 25),
        target=frozen(columns["y"] == "yes"),
        numeric=numbers(columns, _NUMERIC),
        categorical=categories(columns, _CATEGORICAL),
        problems=PROBLEMS,
    )
