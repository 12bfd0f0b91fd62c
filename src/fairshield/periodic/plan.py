"""The plan in force in a period: whose decisions, where it began, how far it has got."""

from __future__ import annotations

from fairshield.counts import At
from fairshield.errors import InvalidValueError
from fairshield.periodic.policy import Window, counters
from fairshield.periodic.state import Mended, PeriodicState
from fairshield.runtime.shield import Shield
from fairshield.runtime.step import Decision, Why


class Plan:
    """What decides the period in progress, or the rest of it, and how far it has got.

    ``mended`` says what had happened in the period before, if it was planned anew since.
    """

    __slots__ = ("_shift", "_start", "about_run", "mended", "period", "shield", "window")

    def __init__(
        self,
        window: Window,
        shield: Shield,
        period: int,
        *,
        about_run: bool,
        mended: Mended | None = None,
    ) -> None:
        self.window, self.shield, self.period = window, shield, period
        self.about_run, self.mended = about_run, mended
        decided, before = (0, (0, 0, 0, 0)) if mended is None else mended
        # What to take from the window's numbers to get those of the period.
        self._shift = window.decided - decided
        start = window.policy.since_start(window.counts)
        self._start = tuple(n - m for n, m in zip(start, before, strict=True))

    def resume(self, state: PeriodicState) -> None:
        """Go on where a period had got."""
        gained = counters(state.counts), counters(state.start)
        in_window = (n - m + at for n, m, at in zip(*gained, self._start, strict=True))
        counts = self.window.policy.start.plus(tuple(in_window))
        pending = None if state.pending is None else self.in_window(state.pending)
        self.shield = Shield(
            self.window.policy,
            counts=counts,
            decided=state.decided + self._shift,
            pending=pending,
        )

    def gained(self) -> At:
        """Counters since the start of the period."""
        n_a, k_a, n_b, k_b = self.shield.gained
        m_a, l_a, m_b, l_b = self._start
        return n_a - m_a, k_a - l_a, n_b - m_b, k_b - l_b

    def broken_by(self, decision: Decision) -> bool:
        """Whether the last decision, a person's, ended what the policy had guaranteed."""
        guaranteed = self.window.policy.feasible(decision.position, decision.seen_before)
        return decision.why is Why.HUMAN and guaranteed and not self.shield.guaranteed

    def made(self, decision: Decision) -> bool:
        """Whether the decision is one of this plan, or may become one."""
        begun = 0 if self.mended is None else self.mended.decided
        return decision.period == self.period and decision.position >= begun

    def in_period(self, decision: Decision) -> Decision:
        """The decision with its position in the period."""
        return decision._replace(position=decision.position - self._shift, period=self.period)

    def in_window(self, decision: Decision) -> Decision:
        """The decision with its position in the policy's window."""
        if decision.period != self.period:
            raise InvalidValueError(
                f"decision {decision.position} of period {decision.period} is none of period "
                f"{self.period}, which is in progress"
            )
        return decision._replace(position=decision.position + self._shift)
