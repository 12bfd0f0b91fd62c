"""Plan: the policy that decides the window in progress of a run, and its shield."""

from __future__ import annotations

from fairshield.base.counts import At
from fairshield.periodic.policy import WindowPolicy
from fairshield.periodic.state import Mended, RunState
from fairshield.runtime.shield import Shield
from fairshield.runtime.step import Decision, Why


class Plan:
    """Plan decides the window in progress, or the rest of it, and knows how far it has got.

    ``window`` is what the kind of period named, ``number`` counts the windows of the run from 0.
    ``mended`` has the decisions before this plan, if the window was planned anew.
    """

    __slots__ = ("_shift", "_start", "about_run", "mended", "number", "shield", "window")

    def __init__(
        self,
        window: WindowPolicy,
        shield: Shield,
        number: int,
        *,
        about_run: bool,
        mended: Mended | None = None,
    ) -> None:
        self.window, self.shield, self.number = window, shield, number
        self.about_run, self.mended = about_run, mended
        start = window.policy.since_start(window.counts)
        position, before = mended or (0, (0,) * len(start))
        # Subtracted from the policy's position and counters, they give those of the run's window.
        self._shift = window.decided - position
        self._start = tuple(n - m for n, m in zip(start, before, strict=True))

    def resume(self, state: RunState) -> None:
        """Continue the window from the counters and the position of ``state``."""
        policy = self.window.policy
        gained = (
            now - then
            for group in policy.groups
            for now, then in zip(state.counts[group], state.start[group], strict=True)
        )
        at = tuple(n + begun for n, begun in zip(gained, self._start, strict=True))
        self.shield = Shield(
            policy,
            counts=policy.start.plus(at),
            decided=state.position + self._shift,
            pending=None if state.pending is None else self.in_policy(state.pending),
            window=self.number,
        )

    def gained(self) -> At:
        """Counters since the start of the run's window."""
        return tuple(n - m for n, m in zip(self.shield.gained, self._start, strict=True))

    def broken_by(self, decision: Decision) -> bool:
        """Whether ``decision``, the last one, is a person's and ended the policy's guarantee."""
        if decision.why is not Why.HUMAN or self.shield.guaranteed:
            return False
        return self.window.policy.feasible(decision.position, decision.seen_before)

    def made(self, decision: Decision) -> bool:
        """Whether the decision was made by this plan, or will be."""
        begun = 0 if self.mended is None else self.mended.position
        return decision.window == self.number and decision.position >= begun

    def in_run(self, decision: Decision) -> Decision:
        """The decision with its position in the run's window."""
        if not self._shift:
            return decision
        return decision._replace(position=decision.position - self._shift)

    def in_policy(self, decision: Decision) -> Decision:
        """The decision with its position in the policy's window."""
        return decision._replace(position=decision.position + self._shift)
