"""What is guaranteed right now, and on what grounds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fairshield.base.plain import with_keys
from fairshield.base.renamed import Renamed
from fairshield.periodic.state import plain_past
from fairshield.spec import AT_LAST, UNTOLD, Certificate, Verdict, verdict_of


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """Guarantee reports what a run guarantees, and what it has kept so far.

    Attributes
    ----------
    title, noun
        The kind of shield, and what one of its windows is called.
    prop, length
        What must hold, and after every how many decisions.
    theorem, condition
        The theorem that applies (``None``: none does), and what it assumes of every period
        (``None``: nothing).
    no_theorem
        What is said where no theorem applies.
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
    fair, exempt, untold, unfair_at, largest_bias
        Periods in which the property bound and held whenever it was due; those in which it bound
        nothing; those in which it held and of which a state of an earlier version does not tell
        whether it bound; after how many decisions it was due and did not hold first; the largest
        bias whenever it was due.
    certificate
        The certificate in force, if the shield works with certificates and the counters have one.
    plan_until
        Decisions up to which the plan in force reaches, at whose end there is a certificate.
    """

    title: str
    prop: str
    length: int
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
    fair: int
    unfair_at: int | None
    largest_bias: float
    exempt: int = 0
    untold: int = 0
    certificate: Certificate | None = None
    plan_until: int | None = None
    noun: str = "period"
    no_theorem: str = "No theorem applies."

    period = Renamed("length")
    fair_ends = Renamed("fair + exempt + untold", lambda it: it.fair + it.exempt + it.untold)
    exempt_ends = Renamed("exempt")
    untold_ends = Renamed("untold")
    worst_bias = Renamed("largest_bias")

    @property
    def unfair(self) -> int:
        """Periods that ended unfair."""
        return self.completed - self.fair - self.exempt - self.untold

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data, with the keys that the service sends.

        ``length`` is called ``period`` there; ``fair_ends`` are all at which the property held.
        """
        held = None if self.certificate is None else self.certificate.to_dict()
        data = {"property": self.prop, **asdict(self)}
        del data["prop"], data["noun"], data["no_theorem"]
        return with_keys({**plain_past(data), "certificate": held}, {"length": "period"})

    def __str__(self) -> str:
        return f"{self.now()} {self._past()}"

    def now(self) -> str:
        """Say what is promised and why, without how periods have ended so far."""
        if not self.can_bind:
            return f"{self.prop} can never bind in this run, and so nothing is promised."
        return f"{self._promise()} {self._ground()}"

    def _promise(self) -> str:
        if self.over:
            return f"{self.prop} {AT_LAST[self.verdict]} at the end of the last {self.noun}."
        begun = self.decided % self.length > 0 or not self.completed
        which = f"{'this' if begun else 'the next'} {self.noun}"
        if self.guaranteed:
            return f"{self.prop} is certain to hold at the end of {which}."
        if self.risk is None:
            return f"{self.prop} is not certain to hold at the end of {which}."
        return (
            f"{self.prop} cannot be guaranteed for the end of {which}; the probability of a "
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
            return self.no_theorem
        assumed = f"The theorem ({self.theorem}) assumes that in every {self.noun} {self.condition}"
        return f"{assumed}: {self._condition()}."

    def _condition(self) -> str:
        if self.broken_at is not None:
            if self.broken_by == "period":
                return f"no period of {self.length} decisions can meet it"
            by = {"person": " by a person", "start": " by the counters it started from"}
            return f"broken at decision {self.broken_at}{by.get(self.broken_by or '', '')}"
        return "held so far, and " + (
            f"{'certain to hold' if self.certain else 'still possible'} in this {self.noun}"
        )

    def _past(self) -> str:
        if not self.completed:
            failed = f", but it did not hold at decision {self.unfair_at}"
            return f"No {self.noun} has ended yet{'' if self.unfair_at is None else failed}."
        ends = f"{self.fair} of {self.completed} {self.noun}s ended fair"
        if self.exempt:
            ends += f", {self.exempt} exempt"
        if self.untold:
            ends += f", {self.untold} {UNTOLD}"
        if self.completed == 1:
            known = verdict_of(unfair=self.unfair, fair=self.fair)
            ends = f"The first {self.noun} ended {UNTOLD if self.untold else known}"
        elif self.unfair_at is not None:
            ends += f", the first unfair one at decision {self.unfair_at}"
        return f"{ends}; largest bias {self.largest_bias:.4g}."
