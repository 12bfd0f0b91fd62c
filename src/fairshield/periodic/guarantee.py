"""What is guaranteed right now, and on what grounds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fairshield.runtime.report import plain_number
from fairshield.spec import UNTOLD, Certificate, Verdict, verdict_of

_AT_LAST: dict[Verdict, str] = {
    "fair": "holds", "unfair": "does not hold", "exempt": "bound nothing"
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The running guarantee report of a periodic shield.

    Attributes
    ----------
    title
        The kind of shield.
    prop, period
        What must hold, and after every how many decisions.
    theorem, condition
        The theorem that applies (``None``: none does), and what it assumes of every period
        (``None``: nothing).
    unconditional
        Whether the theorem needs no condition.
    can_bind
        Whether the property can ever bind in this run; if not, it holds whatever is decided, and
        nothing is promised.
    held
        Whether the condition has held so far, the period in progress included.
    certain
        Whether the condition is certain to hold in the period in progress, whatever comes.
    broken_at, broken_by
        After how many decisions it was broken, and by what: ``"arrivals"``, ``"person"``,
        ``"start"`` (the counters that the run began with) or ``"period"`` (no period of this
        length can meet it).
    guaranteed
        Whether the property is certain to hold at the end of the period in progress; after the
        last one, whether it holds.
    risk
        If not: the probability of a violation under the input model, when the period was last
        planned; ``None`` if nothing was planned for that case.
    decided, completed, over
        Decisions made, periods completed, and whether that was the last one.
    verdict
        What to say of the counters now: ``"fair"``, ``"unfair"``, or ``"exempt"``.
    fair_ends, exempt_ends, untold_ends, unfair_at, worst_bias
        Periods at whose end the property held; those of them at which it bound nothing, and of
        which a state of an earlier version does not tell whether it did; after how many decisions
        one ended unfair first; the largest bias at the end of a period.
    certificate
        The certificate in force, if the shield works with certificates and the counters have one.
    plan_until
        Decisions up to which the plan in force reaches, at whose end there is a certificate.
    """

    title: str
    prop: str
    period: int
    theorem: str | None
    condition: str | None
    unconditional: bool
    can_bind: bool
    held: bool
    certain: bool
    broken_at: int | None
    broken_by: str | None
    guaranteed: bool
    risk: float | None
    decided: int
    completed: int
    over: bool
    verdict: Verdict
    fair_ends: int
    unfair_at: int | None
    worst_bias: float
    exempt_ends: int = 0
    untold_ends: int = 0
    certificate: Certificate | None = None
    plan_until: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        held = None if self.certificate is None else self.certificate.to_dict()
        data = {"property": self.prop, **asdict(self)}
        del data["prop"]
        return {**data, "certificate": held, "worst_bias": plain_number(self.worst_bias)}

    def __str__(self) -> str:
        return f"{self.now()} {self._past()}"

    def now(self) -> str:
        """What is promised and on what grounds, without how periods have ended so far."""
        if not self.can_bind:
            return f"{self.prop} can never bind in this run, and so nothing is promised."
        return f"{self._promise()} {self._ground()}"

    def _promise(self) -> str:
        if self.over:
            return f"{self.prop} {_AT_LAST[self.verdict]} at the end of the last period."
        begun = self.decided % self.period > 0 or not self.completed
        period = "this period" if begun else "the next period"
        if self.guaranteed:
            return f"{self.prop} is certain to hold at the end of {period}."
        if self.risk is None:
            return f"{self.prop} is not certain to hold at the end of {period}."
        return (
            f"{self.prop} cannot be guaranteed for the end of {period}; the probability of a "
            f"violation was {self.risk:.3g} when it was planned."
        )

    def _ground(self) -> str:
        if self.unconditional:
            ground = f"By theorem ({self.theorem}) no condition is needed"
            if self.broken_at is not None:
                by = "a person decided against advice" if self.broken_by == "person" else "it broke"
                ground += f", but {by} at decision {self.broken_at}"
            if self.certificate is not None:
                ground += f"; certificate in force: {self.certificate}"
            elif self.plan_until is not None:
                ground += f"; a certificate is planned for decision {self.plan_until}"
            return f"{ground}."
        if self.condition is None:
            return f"No theorem about {self.title} shields speaks of this property."
        return f"The theorem ({self.theorem}) assumes that in every period {self.condition}: " + (
            self._condition() + "."
        )

    def _condition(self) -> str:
        if self.broken_at is not None:
            if self.broken_by == "period":
                return f"no period of {self.period} decisions can meet it"
            by = {"person": " by a person", "start": " by the counters it started from"}
            return f"broken at decision {self.broken_at}{by.get(self.broken_by or '', '')}"
        return "held so far, and " + (
            "certain to hold in this period" if self.certain else "still possible in this period"
        )

    def _past(self) -> str:
        if not self.completed:
            return "No period has ended yet."
        fair = self.fair_ends - self.exempt_ends - self.untold_ends
        ends = f"{fair} of {self.completed} periods ended fair"
        if self.exempt_ends:
            ends += f", {self.exempt_ends} exempt"
        if self.untold_ends:
            ends += f", {self.untold_ends} {UNTOLD}"
        if self.completed == 1:
            known = verdict_of(unfair=1 - self.fair_ends, fair=fair)
            ends = f"The first period ended {UNTOLD if self.untold_ends else known}"
        elif self.unfair_at is not None:
            ends += f", the first unfair one at decision {self.unfair_at}"
        return f"{ends}; largest bias {self.worst_bias:.4g}."
