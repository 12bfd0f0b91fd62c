"""``published`` reads the numbers of the paper's tables and text from ``published/*.csv``.

Numbers of tables that the paper prints as pictures, raw values behind rounded ones, and the cost of
the published implementation, measured again, are among them.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fairshield_experiments.results.names import ENVIRONMENTS, MEASURES, PROPERTIES, SHIELDS

FILES = {
    "table-datasets": "datasets.csv",
    "table-performance": "performance.csv",
    "table-fairness": "fairness.csv",
    "table-utility": "utility.csv",
    "table-periodic": "periodic.csv",
    "table-resources": "resources.csv",
}
"""Item that reproduces the numbers, and the file they are in."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """Published is a published number and what it is of; what does not apply is empty.

    Attributes
    ----------
    digit
        Unit of the last printed digit.
    unit
        ``"%"``, ``"s"``, ``"MB"`` or nothing.
    source
        Label of the table, figure or section.
    """

    item: str
    measure: str
    value: float
    digit: float
    unit: str
    source: str
    environment: str = ""
    learner: str = ""
    shield: str = ""
    prop: str = ""
    bound: float | None = None
    horizon: int | None = None
    levels: int | None = None

    @property
    def what(self) -> str:
        """Which number it is, in words; unique within the item and source."""
        shield = "Dynamic" if self.shield == "dynamic" else SHIELDS.get(self.shield, "")
        parts = (
            PROPERTIES.get(self.prop, ""),
            ENVIRONMENTS.get(self.environment, ""),
            self.learner,
            shield,
            "" if self.bound is None else f"κ = {self.bound:g}",
            "" if self.horizon is None else f"T = {self.horizon}",
            "" if self.levels is None else f"{self.levels} cost level{'s' * (self.levels > 1)}",
            MEASURES.get(self.measure, self.measure),
        )
        return ", ".join(part for part in parts if part)


@cache
def published(item: str) -> tuple[Published, ...]:
    """The published numbers that an item reproduces; none for items of our own."""
    if item not in FILES:
        return ()
    path = files("fairshield_experiments.results") / "published" / FILES[item]
    rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    return tuple(_number(item, row) for row in rows)


def _number(item: str, row: dict[str, str]) -> Published:
    return Published(
        item=item,
        measure=row["measure"],
        value=float(row["value"]),
        digit=float(row["digit"]),
        unit=row["unit"],
        source=row["source"],
        environment=row.get("environment", ""),
        learner=row.get("learner", ""),
        shield=row.get("shield", ""),
        prop=row.get("property", ""),
        bound=float(row["bound"]) if row.get("bound") else None,
        horizon=int(row["horizon"]) if row.get("horizon") else None,
        levels=int(row["levels"]) if row.get("levels") else None,
    )
