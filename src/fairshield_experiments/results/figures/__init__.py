"""Figures of the paper and further ones: pure functions of the results."""

from __future__ import annotations

from fairshield_experiments.results.figures import (
    beyond,
    finite,
    periodic,
    resources,
    utility,
)
from fairshield_experiments.results.figures.look import drawn, render, save

FIGURES = (
    *utility.ITEMS,
    *finite.ITEMS,
    *periodic.ITEMS,
    *resources.ITEMS,
    *beyond.ITEMS,
)
"""Items in the order of the report."""

__all__ = ["FIGURES", "drawn", "render", "save"]
