"""Course: counts the decisions of a run, holds the plan in force, and ends windows.

The class is long because its methods read and change the same position, plan and counters.
:class:`~fairshield.Run` adds what decides by them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fairshield.base.counts import At, Counts, Group, GroupCount
from fairshield.base.errors import InvalidValueError, WindowOverError
from fairshield.periodic.conditions import Counters
from fairshield.periodic.cumulative import counters
from fairshield.periodic.guarantee import Guarantee
from fairshield.periodic.plan import Plan
from fairshield.periodic.policy import PeriodicPolicy, WindowPolicy
from fairshield.periodic.repeated import kind_of
from fairshield.periodic.state import History, Mended, RunState, checked_counters, verdicts_of
from fairshield.policy import Policy, Specification
from fairshield.runtime.judging import Ints, VerdictCount, judged
from fairshield.runtime.requests import Requests
from fairshield.runtime.shield import Shield
from fairshield.runtime.step import Decision, Why
from fairshield.spec import Property, Verdict
from fairshield.spec.counting import after_gain
from fairshield.synthesis import least_cost

State = RunState | Mapping[str, Any]


class Course:
    """Course counts the windows of a run, and knows which policy decides the next one.

    :class:`~fairshield.Run` is the subclass that decides.
    """

    def __init__(self, policy: Policy | PeriodicPolicy, state: State | None) -> None:
        self.policy = kind_of(policy)
        self.followed: dict[Group, GroupCount[int]] = {}
        """By unseen group, how many proposals were followed and how many of them accept."""
        self._length, self._condition = self.policy.length, self.policy.condition
        self._support = self.policy.support
        self._labelled, self._checkpoints = self.policy.labelled, frozenset(self.policy.due[:-1])
        self._verdicts, self._position = VerdictCount(), 0
        self._start = self.policy.start
        self._broken_at: int | None = None
        self._broken_by: str | None = None
        if not self.policy.attainable:
            self._break(0, "period")
        elif not self.policy.admits(self._start):
            self._break(0, "start")
        self._plan: Plan | None = None
        self._earlier: list[Plan] = []
        self._met = True  # whether what was due at the last window's end held
        self._against = False  # a person decided against the plan, which is to be made anew
        if state is None:
            self._begin()
        else:
            self._resume(state if isinstance(state, RunState) else RunState.from_dict(state))

    # Where the run stands -------------------------------------------------------------------

    @property
    def prop(self) -> Property:
        """What must hold at the end of every window."""
        return self.policy.prop

    @property
    def length(self) -> int:
        """Decisions in a window."""
        return self._length

    @property
    def completed(self) -> int:
        """Windows that are over."""
        return self._verdicts.windows

    @property
    def position(self) -> int:
        """Decisions made in the window in progress."""
        return self._position

    @property
    def decided(self) -> int:
        """Decisions made since the run began."""
        return self.completed * self._length + self._position

    @property
    def remaining(self) -> int:
        """Decisions left in the window in progress; 0 after the last window."""
        return 0 if self.over else self._length - self._position

    @property
    def over(self) -> bool:
        """Whether the last window is over."""
        return self.policy.last is not None and self.completed >= self.policy.last

    @property
    def counts(self) -> Counts:
        """Counters now, with those that the window in progress began with."""
        return self._start.plus(self._gained())

    @property
    def pending(self) -> Decision | None:
        """The decision whose outcome must be observed next, if any."""
        if self._plan is None or self._plan.shield.pending is None:
            return None
        pending = self._told(self._plan, self._plan.shield.pending)
        if pending.why is not Why.HUMAN:
            return pending
        return pending._replace(guaranteed=self.guaranteed)

    @property
    def planned(self) -> int:
        """How many decisions can be made before a plan has to be computed.

        :meth:`plan` computes it; so do :attr:`guaranteed` and :attr:`guarantee`.
        """
        return 0 if self._plan is None else min(self._plan.shield.planned, self.remaining)

    def plan(self) -> None:
        """Compute now the plan that the next decision needs: of a window, or a long one's end.

        No decision may be made in another thread meanwhile.
        """
        if not self.over:
            _ = self.current.guaranteed

    @property
    def current(self) -> Shield:
        """The shield of the plan in force, made if there is none; only the run may decide by it."""
        return self._now().shield

    def holds(self) -> bool:
        """Whether the property holds of the counters now; it must at the end."""
        return self.prop.holds(self.counts)

    def verdict(self) -> Verdict:
        """The verdict on the counters now: ``"fair"``, ``"unfair"``, or ``"exempt"``."""
        return self.prop.verdict(self.counts)

    @property
    def state(self) -> RunState:
        """Everything needed to go on later: ``Run(policy, state=...)``."""
        past = self._verdicts
        return RunState(
            completed=past.windows,
            position=self._position,
            start=self._start,
            counts=self.counts,
            pending=self.pending,
            history=History(
                broken_at=self._broken_at, broken_by=self._broken_by, fair=past.fair,
                unfair_at=past.unfair_at, largest_bias=past.largest_bias, exempt=past.exempt,
                untold=past.untold, now=past.now,
            ),
            certificate=self.policy.certificate(self._start),
            mended=None if self._plan is None else self._plan.mended,
            followed=Counts(self.followed),
            fingerprint=self.policy.fingerprint,
        )  # fmt: skip

    # What is guaranteed ---------------------------------------------------------------------

    @property
    def guaranteed(self) -> bool:
        """Whether the property is certain to hold whenever it is still due in this window.

        After the last window: whether it holds.  A checkpoint that has failed is past, and counted
        in :attr:`guarantee`.
        """
        if self.over:
            return self.holds()
        plan = self._now()
        if not plan.about_run:
            # The policy's guarantee is about its own window, not about the counters of the run.
            return self._certain and self._condition is not None
        return plan.shield.guaranteed or self._mendable(plan)

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed right now, and on what grounds."""
        plan = None if self.over else self._now().window.policy
        # Read after the plan is made: a condition on a window's start is checked when it begins.
        verdicts, condition, policy = self._verdicts, self._condition, self.policy
        sure = self.guaranteed
        further = plan.further if plan is not None and plan.terminal is not None else None
        until = None if further is None else (self.completed + 1) * self._length + further
        return Guarantee(
            title=policy.title,
            noun=policy.noun,
            no_theorem=policy.no_theorem("this property"),
            prop=str(self.prop),
            length=self._length,
            theorem=policy.theorem,
            condition=None if condition is None else condition.words,
            unconditional=policy.unconditional,
            can_bind=policy.can_bind,
            held=self._broken_at is None,
            certain=self._certain,
            broken_at=self._broken_at,
            broken_by=self._broken_by,
            guaranteed=sure,
            risk=_told_risk(plan) if plan is not None and not sure else None,
            decided=self.decided,
            completed=self.completed,
            over=self.over,
            verdict=self.verdict(),
            fair=verdicts.fair,
            exempt=verdicts.exempt,
            untold=verdicts.untold,
            unfair_at=verdicts.unfair_at,
            largest_bias=verdicts.largest_bias,
            certificate=policy.certificate(self.counts),
            plan_until=until,
        )

    @property
    def _certain(self) -> bool:
        """Whether the theorem's condition has held so far and will in this window."""
        return self._broken_at is None and self._condition_certain()

    def _condition_certain(self) -> bool:
        if self._condition is None:
            return True
        start, gained = counters(self._start), Counters(*self._gained())
        # A person whose outcome is awaited may still be counted.
        awaited = self._plan is not None and self._plan.shield.pending is not None
        return bool(self._condition.certain(start, gained, self.remaining + awaited))

    def _mendable(self, plan: Plan) -> bool:
        """Whether a person's decision leaves the window feasible, whichever outcome is observed."""
        pending, left = plan.shield.pending, self.remaining
        if pending is None or not self._against:
            return False
        now, group = plan.shield.counts, self.policy.groups.index(pending.group)
        nobody = (0, 0) * len(self.policy.groups)
        inputs = self.policy.inputs.after(self._position, left)
        return all(
            least_cost(Specification.of(self.prop, inputs, horizon=left, start=counts)) < math.inf
            if left else self.prop.holds(counts)
            for gain in self.prop.counting.possible(pending.accepted)
            for counts in (now.plus(after_gain(nobody, group, gain)),)
        )  # fmt: skip

    def _gained(self) -> At:
        """Counters since the start of the window."""
        if self._plan is None:
            return (0, 0) * len(self.policy.groups)
        return self._plan.gained()

    def _told(self, plan: Plan, decision: Decision) -> Decision:
        """The decision with its position in the run, and with the run's guarantee."""
        told = plan.in_run(decision)
        if plan.about_run:
            return told
        promised = self.guaranteed if self._plan is plan else self._met
        return told._replace(guaranteed=promised)

    def _in_policy(self, plan: Plan, decision: Decision) -> Decision:
        """A decision of the window in progress, as the plan's policy knows it."""
        if decision.window != plan.number:
            noun = self.policy.noun
            raise InvalidValueError(
                f"decision {decision.position} of {noun} {decision.window} is none of {noun} "
                f"{plan.number}, which is in progress"
            )
        return plan.in_policy(decision)

    # Windows --------------------------------------------------------------------------------

    def _now(self) -> Plan:
        """The plan in force, made when it is first needed."""
        if self._plan is None:
            if self.over:
                raise WindowOverError(
                    f"this run is over after its last {self.policy.noun}, number "
                    f"{self.policy.last}: plan for more {self.policy.noun}s, or use a perpetual "
                    "shield"
                )
            self._begin()
        assert self._plan is not None
        return self._plan

    def _begin_if_planned(self) -> None:
        """Check what is known of the next window, and begin it if that takes no planning."""
        if self.over:
            return
        self._check_condition()
        if not self.policy.largest_plan:
            self._begin()

    def _begin(self) -> None:
        self._plan = self._first_plan()
        if self.policy.unconditional and self._plan.window.policy.risk:
            self._break(self.decided, "start")

    def _first_plan(self) -> Plan:
        """The plan that the window begins with."""
        window = self.policy.window(self._start, self.completed)
        shield = Shield(
            window.policy, counts=window.counts, decided=window.decided, window=self.completed
        )
        about_run = self.policy.about_run(self._start, window.policy)
        return Plan(window, shield, self.completed, about_run=about_run)

    def _mend(self, plan: Plan) -> None:
        """Plan the rest of the window anew, from the present counters."""
        self._against = False
        if plan.shield.guaranteed or not self.remaining:
            return
        self._earlier.append(plan)
        self._plan = self._mended_plan(Mended(self._position, plan.gained()))

    def _mended_plan(self, mended: Mended) -> Plan:
        counts = self.policy.base(self._start).plus(mended.gained)
        window = WindowPolicy(self.policy.mend(counts, self._length - mended.position), counts, 0)
        about_run = self.policy.about_run(self._start, window.policy)
        shield = Shield(window.policy, window=self.completed)
        return Plan(window, shield, self.completed, about_run=about_run, mended=mended)

    def _judge(self, plan: Plan, decision: Decision) -> None:
        """Note whether a person's decision ended what was guaranteed."""
        if plan.broken_by(decision):
            self._against = self.policy.mends
            self._break(self.decided + 1, "person")
        elif self._support is not None and decision.why is Why.HUMAN:
            # Tables that trust the support do not say which other decisions keep the promise.
            self._break(self.decided + 1, "person")

    def _break(self, decided: int, by: str) -> None:
        """Note that the theorem's condition was broken, unless it was before."""
        if self._broken_at is None:
            self._broken_at, self._broken_by = decided, by

    def _watch(self, decision: Decision, outcome: bool | None = None) -> None:
        """Note a request, or the outcome of the last one, that was trusted never to come."""
        if self._support is None:
            return
        known = outcome is not None or not self._labelled
        relevant = outcome == self.prop.relevant_outcome if known else None
        group = self.policy.groups.index(decision.group)
        level = self.current.policy.decisions.levels_of(np.array([decision.cost]))[0]
        step = decision.position
        if not self._support.has(step, group, decision.proposed, level, relevant):
            self._break(self.completed * self._length + step + 1, "arrivals")

    def _watch_many(self, asked: Requests) -> None:
        """:meth:`_watch` all of the next requests, with their outcomes."""
        if self._support is None:
            return
        steps = (self._position + np.arange(len(asked.groups))) % self._length
        possible = self._support.has(
            steps, asked.groups, asked.proposed, asked.levels, asked.relevant
        )
        if not possible.all():
            self._break(self.decided + int(possible.argmin()) + 1, "arrivals")

    def _count(self) -> None:
        self._position += 1
        if not self._labelled:
            self._after_decision()

    def _after_decision(self) -> None:
        if self._condition is not None and not self._condition.known_at_start:
            self._check_condition()
        if self._against and self._plan is not None:
            self._mend(self._plan)
        if self._position in self._checkpoints:
            self._judge_moment(self.counts, self._position)
        if self._position == self._length:
            self._end()

    def _check_condition(self, gained: Counters | None = None, later: int = 0) -> None:
        """Note if the condition can no longer be met with ``gained``, ``later`` decisions on."""
        if self._condition is None or self._broken_at is not None:
            return
        gained = Counters(*self._gained()) if gained is None else gained
        if not self._condition.possible(counters(self._start), gained, self.remaining - later):
            self._break(self.decided + later, "arrivals")

    def _end(self) -> None:
        counts = self.counts
        self._met = self.policy.keeps(counts, self._length)
        just_over = [*self._earlier, *([] if self._plan is None else [self._plan])]
        self._earlier = [plan for plan in just_over if plan.number == self.completed]
        self._judge_moment(counts, self._length)
        self._verdicts.now, self._position = None, 0
        self._start, self._plan = self.policy.carried(counts), None
        self._begin_if_planned()

    def _judge_moment(self, counts: Counts, position: int) -> None:
        """Note what the property says of the counters at a position at which it is due."""
        bias, verdict = self.prop.bias_of(counts), self.prop.verdict(counts)
        decided, ends = self.completed * self._length + position, position == self._length
        self._verdicts.add(verdict, bias, decided, ends=ends)

    def _end_many(self, then: Ints) -> None:
        """End whole windows that one policy decided.

        ``then`` are their counters whenever the property is due, its end last,
        ``(windows, moments, 2 G)``: n_a, k_a, n_b, k_b, ….
        """
        due = np.array(self.policy.due)
        begun = self.decided + self._length * np.arange(len(then))
        at = (begun[:, None] + due).reshape(-1)
        ends = np.tile(due == self._length, len(then))
        self._verdicts.add_many(at, ends, *judged(self.prop, then.reshape(len(at), -1, 2)))
        self._verdicts.now, self._earlier = None, []
        self._begin()

    # Going on -------------------------------------------------------------------------------

    def _resume(self, state: RunState) -> None:
        policy = self.policy
        self._start, counts = checked_counters(state, policy)
        self._verdicts, self._position = verdicts_of(state), state.position
        self._broken_at, self._broken_by = state.history.broken_at, state.history.broken_by
        self.followed = dict(state.followed)
        if not state.position:
            self._begin_if_planned()
            return
        at = state.mended
        self._plan = self._first_plan() if at is None else self._mended_plan(at)
        self._plan.resume(replace(state, start=self._start, counts=counts))
        pending = self._plan.shield.pending
        broken = pending is not None and self._plan.broken_by(pending)
        self._against = broken and policy.mends


def _told_risk(plan: Policy) -> float | None:
    """The risk that is told of a plan; what a trusted model rules out is told as a condition."""
    return plan.risk if plan.risk and not plan.fair_in_support else None
