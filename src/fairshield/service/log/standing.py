"""Standing keeps a run, its ledger, and the decisions that may still be overridden."""

from __future__ import annotations

import msgspec

from fairshield.base.counts import Counts, Group
from fairshield.periodic import PeriodicPolicy, Run, RunState
from fairshield.periodic.state import History
from fairshield.runtime.ledger import Ledger
from fairshield.service.log.entries import Created, EntryRow
from fairshield.service.log.snapshots import Snapshot
from fairshield.wire.messages import Status


class Made(msgspec.Struct):
    """Made is a decision of the window in progress: the policy's, and how it stands."""

    group: Group
    proposed: bool
    cost: float
    decided: bool
    accepted: bool
    outcome: bool | None = None


class Standing:
    """Standing holds the run of a stream and its ledger; a :class:`LiveStream` adds the log.

    A window that is over is shown until the next one begins.  Periods have no such end: their
    counters go on.
    """

    def __init__(self, created: Created, policy: PeriodicPolicy, snapshot: Snapshot) -> None:
        self.created, self.policy, self.n, self.closed = created, policy, snapshot.n, False
        self.length, self.labelled = policy.length, policy.labelled
        self.index = {group: i for i, group in enumerate(policy.groups)}
        self.base = snapshot
        self.made: list[Made] = []
        """Decisions since ``base``, in streams with people who may override them."""
        self.restore(snapshot)

    def restore(self, snapshot: Snapshot) -> None:
        """Set the run and the ledger to those of a snapshot."""
        policy = self.policy
        start = Counts({group: policy.start[group] for group in policy.groups})
        self.ledger = Ledger(policy.prop, start, due=policy.due, goes_on=policy.goes_on)
        state = snapshot.shield if policy.stands else self._begun(snapshot)
        self.run = Run(policy, state=state)
        if snapshot.tally is not None:
            snapshot.tally.resume(self.ledger, snapshot.n, self.run.counts)

    def _begun(self, snapshot: Snapshot) -> RunState | None:
        """The state of a run whose windows each begin anew, after the windows of a snapshot."""
        policy, tally = self.policy, snapshot.tally
        if tally is None or not snapshot.window:
            return None
        fair = min(tally.fair, snapshot.window)
        exempt = 0 if tally.whole is None else min(tally.whole.exempt, snapshot.window - fair)
        return RunState(
            completed=snapshot.window,
            position=0,
            start=policy.start,
            counts=policy.start,
            history=History(fair=fair, exempt=exempt),
            fingerprint=policy.fingerprint,
        )

    # State ----------------------------------------------------------------------------------

    @property
    def shows_end(self) -> bool:
        """Whether a window that is over is shown."""
        ledger = self.ledger
        return not ledger.goes_on and ledger.over and ledger.position == self.length

    @property
    def window(self) -> int:
        """The number of the window that is shown, from 0."""
        return self.run.completed - self.shows_end

    @property
    def position(self) -> int:
        """Decisions made in the window that is shown."""
        return self.length if self.shows_end else self.run.position

    @property
    def remaining(self) -> int:
        """Decisions left in the window that is shown."""
        return 0 if self.shows_end else self.run.remaining

    @property
    def counts(self) -> Counts:
        """Counters of the window that is shown, or of all periods."""
        return self.ledger.counts

    @property
    def capacity(self) -> int | None:
        """Decisions that can still be made; ``None``: no end."""
        last = self.created.windows if self.policy.last is None else self.policy.last
        return None if last is None else last * self.length - self.run.decided

    @property
    def pending(self) -> int | None:
        """The decision whose outcome is awaited."""
        return self.n if self.run.pending is not None else None

    @property
    def finished(self) -> bool:
        """Whether nothing more will be decided."""
        return self.closed or (self.capacity == 0 and self.run.pending is None)

    @property
    def reported(self) -> bool:
        """Whether the last window is over, so that its decisions can no longer be overridden."""
        return self.ledger.over

    @property
    def overridable(self) -> dict[int, bool]:
        """Decisions that a person may override, and how they stand."""
        if self.closed or self.reported:
            return {}
        first = self.base.n + 1
        standing = {
            first + i: made.accepted
            for i, made in enumerate(self.made)
            if made.accepted is made.decided
        }
        if self.labelled:
            return {n: accepted for n, accepted in standing.items() if n == self.pending}
        return standing

    def takes_long(self, decisions: int = 1) -> bool:
        """Whether a request may need a new plan, which the writing thread must not wait for."""
        if self.created.human and self.policy.mends:
            return True
        if decisions <= self.run.planned or self.run.over:
            return False
        return bool(self.policy.largest_plan) or not self.run.current.policy.decisions.tabled

    def replay_takes_long(self, row: EntryRow) -> bool:
        """:meth:`takes_long`, for an entry that is there."""
        person = self.created.human and row.n is None
        return not self.plan_made or (self.policy.mends and person)

    @property
    def plan_made(self) -> bool:
        """Whether the state can be read without making a plan."""
        return self.closed or not self.remaining or self.run.planned > 0

    def plan(self) -> None:
        """Make the plan that the next decision needs, if there is none yet."""
        if not self.plan_made:
            self.run.plan()

    @property
    def guaranteed(self) -> bool:
        """Whether the property is certain to hold whenever it is still due in this window.

        Of a closed stream: whether the property binds and holds, as nothing more will come.  After
        an exempt window: whether the next one is guaranteed, as nothing was kept of this one.
        """
        if self.closed:
            return self.policy.prop.verdict(self.counts) == "fair"
        if self.shows_end:
            kept = self.policy.keeps(self.counts, self.length) and not self.failed
            if self.policy.support is not None:
                # That one window ended fair does not make the next one certain.
                return False
            return kept and (self.ledger.shielded.now == "fair" or self.policy.unconditional)
        return self.run.guaranteed

    @property
    def failed(self) -> bool:
        """Whether the property did not hold at a moment of the window that is shown."""
        return self.ledger.shielded.now == "unfair"

    @property
    def can_bind(self) -> bool:
        """Whether the property can ever bind; if not, what is guaranteed means nothing."""
        return self.policy.can_bind

    @property
    def status(self) -> Status:
        """The status that the dashboard shows."""
        if self.ledger.shielded.unfair or self.failed:
            return "violated"
        if self.finished:
            return "finished"
        if not self.can_bind:
            return "vacuous"
        return "guaranteed" if self.guaranteed else "at-risk"

    # Decisions ------------------------------------------------------------------------------

    def count(self, made: Made) -> None:
        """Count a decision."""
        self.ledger.add_reviewed(
            self.index[made.group], made.proposed, made.decided, made.accepted, made.cost,
            None if self.labelled else True,
        )  # fmt: skip

    def decide_again(self) -> None:
        """Decide the window in progress again, with its decisions as they stand."""
        self.restore(self.base)
        for made in self.made:
            advice = self.run.advise(made.group, proposed=made.proposed, cost=made.cost)
            decision = self.run.record(advice, final=made.accepted)
            self.count(made)
            if made.outcome is not None:
                self.run.observe(decision, outcome=made.outcome)
                self.ledger.observe(made.outcome)
