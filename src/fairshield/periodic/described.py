"""What a kind of period says of itself to people and to files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from fairshield.base.counts import Counts, Group, in_words
from fairshield.inputs import Inputs

VACUOUS = "vacuous: the property can never bind, so nothing is promised"
"""What people read of the guarantee of such a property."""


class DescribedPeriods(ABC):
    """The description of a policy: data for JSON, and lines for people."""

    if TYPE_CHECKING:  # dataclass fields of some kinds, properties of others

        @property
        def inputs(self) -> Inputs: ...
        @property
        def start(self) -> Counts: ...
        @property
        def groups(self) -> tuple[Group, ...]: ...
        @property
        def labelled(self) -> bool: ...

    def options(self) -> dict[str, Any]:
        """The options that only this kind has, as JSON-able data."""
        return {}

    @abstractmethod
    def summary_data(self) -> dict[str, Any]:
        """What ``synthesize --json`` prints of the policy."""

    def detail_data(self) -> dict[str, Any]:
        """What ``inspect --json`` prints besides :meth:`summary_data`."""
        return {
            "groups": list(self.groups),
            "inputs": self.inputs.to_dict(),
            "start": [[group, *count] for group, count in self.start.items()],
        }

    @abstractmethod
    def lines(self) -> list[tuple[str, str]]:
        """What ``inspect`` prints: a name and a value for each line."""

    @abstractmethod
    def cost_line(self) -> str:
        """What ``synthesize`` prints of the expected cost, and whether that buys anything."""

    def _group_lines(self) -> list[tuple[str, str]]:
        needs = "group, proposed, cost" + (", outcome" if self.labelled else "")
        return [("groups", in_words(self.groups)), ("needs", needs)]

    def _start_line(self) -> tuple[str, str]:
        if not any(count.seen for count in self.start.values()):
            return "start", "nobody seen"
        told = (f"{g} {c.accepted} of {c.seen} accepted" for g, c in self.start.items())
        return "start", ", ".join(told)
