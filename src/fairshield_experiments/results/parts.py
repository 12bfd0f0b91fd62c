"""The values that results are made of: frames, tables, figures, checks and items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import pandas as pd

from fairshield_experiments.results import render

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Verdict = Literal["agrees", "close", "better", "differs", "not run"]
MISSING = "–"
"""A cell without a value."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
DEPARTED = ("table-fairness", "table-utility", "table-periodic")
"""Items whose numbers the departures of the published runs change: they are simulated."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Results:
    """Results holds all that was measured, as tidy frames; a frame that was not made is empty.

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
    departed
        As ``runs``, of settings with departures of the published runs: ``departures`` names them.
    facts
        Versions, seed, times: what the report prints about itself.
    trainings, training_runs
        Rows as in ``metrics`` and ``runs``, of every training after the first; ``seed`` tells them
        apart.
    """

    datasets: pd.DataFrame
    metrics: pd.DataFrame
    runs: pd.DataFrame
    paths: pd.DataFrame
    resources: pd.DataFrame
    failures: pd.DataFrame
    facts: Mapping[str, Any] = field(default_factory=dict)
    trainings: pd.DataFrame = field(default_factory=pd.DataFrame)
    training_runs: pd.DataFrame = field(default_factory=pd.DataFrame)
    departed: pd.DataFrame = field(default_factory=pd.DataFrame)


@dataclass(frozen=True)
class ReportTable:
    """ReportTable holds cells that are text already; the first ``n_keys`` columns name the row."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_keys: int = 1
    note: str = ""

    def without_gaps(self) -> ReportTable:
        """The table without rows of which nothing was run."""
        kept = (row for row in self.rows if any(cell != MISSING for cell in row[self.n_keys :]))
        return replace(self, rows=tuple(kept))

    def markdown(self) -> str:
        """The table in GitHub's Markdown, with title and note."""
        return render.markdown(self)

    def latex(self) -> str:
        """The table in LaTeX; needs the package ``booktabs``."""
        return render.latex(self)

    def csv(self) -> str:
        """Columns and rows as comma-separated text."""
        return render.as_csv(self)

    def html(self) -> str:
        """A ``<table>`` element and its note."""
        return render.as_html(self)


@dataclass(frozen=True, eq=False)
class Figure:
    """Figure is a picture and what it shows.

    ``files`` has its contents by kind, "svg" and "png"; with them the figure needs no drawing,
    and can be sent to other processes.
    """

    name: str
    title: str
    caption: str
    drawing: Drawing | None
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Check:
    """Check is one published number beside ours.

    Attributes
    ----------
    item, what
        Item that reproduces it, and which number it is.
    undefined
        Convention for groups without relevant people that ours was made with, if it matters.
    unit, source
        ``"%"``, ``"s"``, ``"MB"`` or nothing; label of the table, figure or section it is from.
    ours, error
        Our value and its standard error; ``None``: not run.
    account
        Plain words on why it does not come out, if it does not.
    chance
        How probable it is that another training of ours is at least as far from their mean as the
        published number; ``None``: trained once, or of many classifiers.
    departed, departed_error, departed_verdict
        The same for our value with all departures of the published runs from the paper's text;
        ``None``: not run, or of nothing that they change.
    left
        Plain words on what the departures do not explain, if the number differs with all of them.
    switch
        The departure that explains the difference, if one alone does; ``"several"``: more of them
        do together.
    """

    item: str
    what: str
    published: float
    ours: float | None
    error: float | None
    verdict: Verdict
    account: str = ""
    undefined: str = ""
    unit: str = ""
    source: str = ""
    chance: float | None = None
    departed: float | None = None
    departed_error: float | None = None
    departed_verdict: Verdict | None = None
    left: str = ""
    switch: str = ""

    @property
    def as_published(self) -> Verdict:
        """The verdict with all departures; the usual one where they change nothing."""
        return self.departed_verdict or self.verdict

    @property
    def like_for_like(self) -> bool:
        """Whether ours was measured as the published number was."""
        return self.undefined != "bias-0"


@dataclass(frozen=True, eq=False, kw_only=True)
class Product:
    """Product is an item that was made: its tables, figures and checks."""

    tables: tuple[ReportTable, ...] = ()
    figures: tuple[Figure, ...] = ()
    checks: tuple[Check, ...] = ()

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How many published numbers came out how, by the published convention on empty groups."""
        return Counter(check.verdict for check in self.checks if check.like_for_like)

    @property
    def as_published(self) -> Counter[Verdict]:
        """The same with all departures of the published runs; empty if they were not run."""
        own = [check for check in self.checks if check.like_for_like]
        if own and own[0].item in DEPARTED and not any(c.departed_verdict for c in own):
            return Counter()
        return Counter(check.as_published for check in own)


@dataclass(frozen=True, kw_only=True)
class Item:
    """Item is a table or figure of the paper, or one that the paper could not show.

    ``needs`` names the experiments whose rows it is made of; what is not ``in_all`` takes time of
    its own, and is made when it is asked for by name.
    """

    name: str
    title: str
    needs: tuple[str, ...]
    make: Callable[[Results], Product]
    published: bool = True
    in_all: bool = True
