"""Claim says what a verification was about: what the policy promises, what the caller asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fairshield.base.counts import Counts, in_words
from fairshield.base.errors import InvalidValueError
from fairshield.base.plain import plain_counts
from fairshield.policy import Policy
from fairshield.spec import (
    Property,
    both,
    can_bind,
    can_ever_bind,
)


@dataclass(frozen=True)
class Claim:
    """Claim is what is to be shown of a policy.

    All but ``asked`` is what the policy says of itself.  Whether that is the right property, window
    and start, only the reader can judge.

    Attributes
    ----------
    prop
        What must hold.
    due
        After how many decisions; of a periodic policy, those of one period.
    start
        The counters before the first decision, which the property counts in.
    terminal
        What must hold after the last decision as well.
    further
        Decisions planned beyond the last one; nothing is shown about them.
    asked
        What the caller said must hold, if anything; then it must besides all that.
    kind, periods
        Of a periodic policy: which kind, and how many periods there are, if there is a last one.
    asked_periods
        About how many of the first periods the caller asked; ``None``: about all there are.
    risk
        The probability of a violation that a best effort admits; it is not verified.
    in_support
        Whether nothing is claimed but of sequences to which the input model gives a positive
        probability; only these are looked at.
    """

    prop: Property
    due: tuple[int, ...]
    start: Counts
    terminal: Property | None = None
    further: int = 0
    asked: Property | None = None
    kind: str | None = None
    periods: int | None = None
    risk: float = 0.0
    asked_periods: int | None = None
    in_support: bool = False

    @property
    def judged(self) -> Property:
        """The property that decides whether anything is promised: ``asked``, else the policy's."""
        return self.prop if self.asked is None else self.asked

    def can_bind(self, due: Iterable[int] | None) -> bool:
        """Whether :attr:`judged` can bind after one of ``due`` decisions; ``None``: at any time."""
        if due is None:
            return can_ever_bind(self.judged, self.start)
        return can_bind(self.judged, self.start, due)

    def required_of(self, policy: Policy, decided: int) -> tuple[Property, ...]:
        """Return the properties that must hold after so many decisions, with the one asked."""
        own, *more = policy.required(decided) or (None,)
        return () if own is None else (*both(own, self.asked), *more)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        return {
            "property": str(self.prop),
            "asked": None if self.asked is None else str(self.asked),
            "terminal": None if self.terminal is None else str(self.terminal),
            "due": list(self.due),
            "further": self.further,
            "risk": self.risk,
            "start": plain_counts(self.start),
            "periodic": self.kind,
            "periods": self.periods,
            "asked_periods": self.asked_periods,
            "in_support": self.in_support,
        }

    def __str__(self) -> str:
        said = str(self.judged)
        if self.asked is not None and self.asked != self.prop:
            said += f" (the policy says {self.prop})"
        parts = [f"{said} {self._when()}", self._groups(), f"from {self._start()}"]
        if self.terminal is not None:
            parts.insert(1, f"at the end {self.terminal}")
        if self.in_support:
            parts.append("only on sequences to which the input model gives a positive probability")
        elif self.risk:
            parts.append(f"best effort (said to be violated with probability {self.risk:.3g})")
        return ", ".join(parts)

    def _when(self) -> str:
        if self.kind is not None:
            periods = "" if self.periods is None else f", {self.periods} periods"
            if self.asked_periods is not None:
                n = self.asked_periods
                periods = ", the first period" if n == 1 else f", the first {n} periods"
            return f"after every {self.due[0]} decisions, {self.kind}{periods}"
        beyond = f" (and {self.further} more are planned)" if self.further else ""
        return f"after {in_words(map(str, self.due))} decisions{beyond}"

    def _groups(self) -> str:
        return f"groups {in_words(map(str, self.start))}"

    def _start(self) -> str:
        if not any(count.seen for count in self.start.values()):
            return "nobody seen"
        return in_words(f"{c.accepted} of {c.seen} in {g}" for g, c in self.start.items())


def claim_of(policy: Policy, asked: Property | None) -> Claim:
    """Return the claim to be shown of a policy for one window."""
    check_asked(asked, policy.prop, policy.groups)
    _, *more = policy.required(policy.horizon)
    return Claim(
        policy.prop, policy.due, policy.start, more[0] if more else None, policy.further, asked,
        risk=0.0 if policy.fair_in_support else policy.risk, in_support=policy.fair_in_support,
    )  # fmt: skip


def check_asked(asked: Property | None, prop: Property, groups: Sequence[Any]) -> None:
    """Refuse a property that counts other people than the counters of the policy do."""
    if asked is None:
        return
    if not isinstance(asked, Property):
        raise InvalidValueError(
            f"prop is a property such as DemographicParity('0.1'), got {asked!r}"
        )
    asked.check_groups(len(groups))
    if asked.counting != prop.counting:
        raise InvalidValueError(
            f"{asked} counts other people than the policy, which is for {prop}: it cannot be "
            "judged by the policy's counters; synthesise a policy for it"
        )


def implies(prop: Property, asked: Property | None) -> bool:
    """Whether ``asked`` is known to hold wherever ``prop`` does; ``None`` asks nothing."""
    return asked is None or prop.implies(asked)
