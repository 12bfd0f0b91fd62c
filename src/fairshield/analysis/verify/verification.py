"""Verification holds what was found of a policy, and how much of it was looked at."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from fairshield.analysis.verify.claim import Claim
from fairshield.analysis.verify.counterexample import Counterexample
from fairshield.base.words import summary

Verified = Literal["kept", "violated", "vacuous", "inconclusive"]


@dataclass(frozen=True)
class Verification:
    """Verification holds what :func:`verify` found; it is true if its verdict is ``"kept"``.

    Attributes
    ----------
    holds
        Whether no violation was found and, of a long policy, its start has a certificate.  That
        alone promises nothing: see :attr:`verdict`.
    states
        Counter states that some sequence of requests reaches, and that were looked at.
    transitions
        Ways on from them: state, group and decision that some request brings about.
    counterexample
        A shortest sequence of requests after which what is required is violated, if there is one.
    claim
        What was to be shown.
    can_bind
        Whether what was to be shown can bind anywhere it was looked at, or the theorem covers it.
    exhaustive
        Whether everything that can happen under the policy was looked at; of a long policy, whose
        windows are tried and not all explored, it never is.
    rests_on
        If not: the theorem that covers the rest, by its name in docs/guarantees.md; ``None``:
        nothing is shown about the rest.
    periods
        How many periods of a periodic policy were explored, if these are not all there are.
    windows
        How many windows were tried, if there are too many states to look at; every state they
        passed counts as often as it was passed.
    """

    holds: bool
    states: int
    transitions: int
    counterexample: Counterexample | None = None
    _: KW_ONLY
    claim: Claim
    can_bind: bool
    exhaustive: bool
    rests_on: str | None = None
    periods: int | None = None
    windows: int | None = None

    @property
    def verdict(self) -> Verified:
        """``"kept"``, ``"violated"``, ``"vacuous"`` or ``"inconclusive"``.

        Vacuous: nothing was violated, since nothing can bind.  Inconclusive: no violation was
        found in what was looked at, and no theorem covers the rest that was asked about.  Of some
        periods, kept means these if the caller asked about these.
        """
        if not self.holds:
            return "violated"
        if not self.can_bind:
            return "vacuous"
        shown = self.exhaustive or self.rests_on is not None
        shown = shown or (self.periods is not None and self.periods == self.claim.asked_periods)
        return "kept" if shown else "inconclusive"

    def __bool__(self) -> bool:
        return self.verdict == "kept"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        example = self.counterexample
        return {
            "verdict": self.verdict,
            "holds": self.holds,
            "claim": self.claim.to_dict(),
            "can_bind": self.can_bind,
            "exhaustive": self.exhaustive,
            "rests_on": self.rests_on,
            "states": self.states,
            "transitions": self.transitions,
            "counterexample": None if example is None else example.to_dict(),
            "periods": self.periods,
            "windows": self.windows,
        }

    @property
    def result(self) -> str:
        """What was found of the claim, in words."""
        if self.counterexample is not None:
            return f"guarantee violated: {self.counterexample} ({self._looked})"
        if not self.holds:
            return (
                "nothing is guaranteed, as the start has no certificate; not exhaustive: no "
                f"violation in {self._explored}"
            )
        if self.verdict == "vacuous":
            never = "never" if self.periods is None else "not in these periods"
            return f"vacuous: it can {never} bind, so nothing is shown ({self._explored})"
        if self.exhaustive:
            found = f"guarantee holds: {self._looked}, all that can be reached"
            beyond = " in the support; nothing is shown of other sequences"
            return f"{found}{beyond if self.claim.in_support else ''}"
        periods = self.claim.kind is not None and self.windows is None
        rest = "later periods" if periods else "all other windows"
        theorem = f"{rest} rest on a theorem ({self.rests_on})"
        nothing = f"nothing is shown about {rest}"
        if self.verdict == "kept":
            nothing = f"all that was asked about; {nothing}"
        rests = theorem if self.rests_on else nothing
        return f"not exhaustive: no violation in {self._explored}; {rests}"

    @property
    def _looked(self) -> str:
        return f"{self.states:,} states, {self.transitions:,} transitions"

    @property
    def _explored(self) -> str:
        """What was looked at, in words."""
        plan = " of the first plan" if self.claim.kind is not None else ""
        if self.windows is not None:
            return f"{self.windows} hard windows{plan} ({self.transitions:,} decisions)"
        if self.periods is not None:
            periods = "1 period" if self.periods == 1 else f"{self.periods} periods"
            return f"{periods} ({self._looked})"
        return self._looked if self.exhaustive else f"the first plan ({self._looked})"

    __repr__ = summary

    def __str__(self) -> str:
        return f"{self.claim}: {self.result}"
