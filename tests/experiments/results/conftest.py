from __future__ import annotations

from dataclasses import replace

import frames
import pytest

from fairshield_experiments.results.items import ITEMS
from fairshield_experiments.results.parts import Product, Results


@pytest.fixture(scope="session")
def complete() -> Results:
    """Rows of every experiment."""
    return frames.results()


@pytest.fixture(scope="session")
def products(complete: Results) -> dict[str, Product]:
    """Every item by name, made of complete results."""
    return {item.name: item.make(complete) for item in ITEMS}


@pytest.fixture(scope="session")
def small(complete: Results) -> Results:
    """Rows of every experiment in two environments."""
    here = ["adult-race", "bank-age"]
    return replace(
        complete,
        datasets=complete.datasets[complete.datasets["environment"].isin(here)],
        metrics=complete.metrics[complete.metrics["environment"].isin(here)],
        runs=complete.runs[complete.runs["environment"].isin(here)],
        departed=complete.departed[complete.departed["environment"].isin(here)],
    )
