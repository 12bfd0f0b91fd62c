"""Window says what a shield of the published runs was made for: one window of decisions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairshield_experiments.published_runs.departures import Departure

At = tuple[int, int, int, int]
"""Counters ``n_a, k_a, n_b, k_b``: people who count and those accepted, by group."""
TABLE_PRICE = 0.25
"""Cost of overruling in the tables of the published runs."""
TIE = 1e-9
"""Values closer than this are equal but for rounding, as in the library."""


@dataclass(frozen=True)
class Welfare:
    """Welfare holds the bounds of a Static-BW shield, and N.

    Rates must lie between ``lower`` and ``upper`` once both groups have ``least`` people.
    """

    lower: Fraction
    upper: Fraction
    least: int


@dataclass(frozen=True, kw_only=True)
class Window:
    """Window says what is decided, and how.

    Attributes
    ----------
    labelled
        Whether only people of outcome 1 count, as for equal opportunity.
    horizon
        Decisions.
    bound
        On the bias at the end.
    undefined
        What becomes of a rate without people.
    share
        Of group a among people.
    history
        Counters of earlier periods, which are part of the bias.
    welfare
        Bounds of a Static-BW shield; ``None``: the bias is bounded.
    departures
        Those of the published runs that apply.
    """

    labelled: bool
    horizon: int
    bound: Fraction
    share: float
    undefined: Literal["bias-0", "rate-0"] = "rate-0"
    history: At = (0, 0, 0, 0)
    welfare: Welfare | None = None
    departures: tuple[Departure, ...] = ()

    @property
    def shares(self) -> tuple[float, float]:
        """Of groups a and b."""
        return self.share, 1.0 - self.share

    @property
    def table_price(self) -> float:
        """Cost of overruling in the table of values."""
        return TABLE_PRICE if "prices" in self.departures else 1.0

    def prices(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cost of overruling people of these scores when they are decided."""
        priced = "prices" in self.departures
        return np.abs(scores - 0.5) if priced else np.ones(np.shape(scores))

    @property
    def last_apart(self) -> bool:
        """Whether the end test of a Static-BW shield leaves the last person out."""
        return self.labelled and self.welfare is not None and "static-bounds" in self.departures


def towards_half(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores moved by 1e-8 towards ½, so that none is a certainty.

    >>> towards_half(np.array([0.0, 0.5, 1.0])).tolist() == [1e-8, 0.5, 1 - 1e-8]
    True
    """
    return np.asarray(scores - 1e-8 * np.sign(scores - 0.5))
