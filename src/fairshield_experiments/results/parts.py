"""What results are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

Verdict = Literal["agrees", "close", "differs", "not run"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Results:
    """All that was measured, as tidy frames; a frame nobody made is empty.

    Attributes
    ----------
    datasets
        A row per environment.
    metrics
        A row per environment, learner and metric: ``value``, ``error`` (standard error).
    runs
        A row per setting, run and period (see ``docs/reproduce.md`` for the columns).
    paths
        Single runs decision by decision: ``environment, property, bound, shield, run, decision,
        bias``.
    resources
        A row per property and horizon: ``seconds``, ``megabytes`` of a synthesis.
    failures
        What did not finish, and why: ``title, error``.
    facts
        Versions, seed, times: what the report prints about itself.
    """

    datasets: pd.DataFrame
    metrics: pd.DataFrame
    runs: pd.DataFrame
    paths: pd.DataFrame
    resources: pd.DataFrame
    failures: pd.DataFrame
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table for people: cells are text already, the first ``n_keys`` columns name the row."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_keys: int = 1
    note: str = ""


@dataclass(frozen=True, eq=False)
class Figure:
    """A picture and what it shows."""

    name: str
    title: str
    caption: str
    drawing: Drawing


@dataclass(frozen=True, kw_only=True)
class Check:
    """One published number beside ours.

    Attributes
    ----------
    item, what
        Where it is published, and which number it is.
    ours, error
        Our value and its standard error; ``None``: not run.
    account
        Plain words on why it does not come out, if it does not.
    """

    item: str
    what: str
    published: float
    ours: float | None
    error: float | None
    verdict: Verdict
    account: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Product:
    """What one item of the paper became."""

    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Item:
    """A table or figure of the paper, or one that the paper could not show.

    ``needs`` names the experiments whose rows it is made of.
    """

    name: str
    title: str
    needs: tuple[str, ...]
    make: Callable[[Results], Product]
    published: bool = True
