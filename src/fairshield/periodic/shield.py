"""PeriodicShield: one run of decisions, period after period."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairshield.counts import At, Counts, Group
from fairshield.errors import InvalidValueError, WindowOverError
from fairshield.explain import Explanation, explain
from fairshield.groups import Coded, group_column
from fairshield.inputs.columns import outcomes_of
from fairshield.periodic.conditions import Counters
from fairshield.periodic.guarantee import Guarantee
from fairshield.periodic.plan import Plan
from fairshield.periodic.policy import PeriodicPolicy, Window, counters
from fairshield.periodic.state import History, Mended, PeriodicState
from fairshield.records import Flag
from fairshield.runtime.requests import Requests, encode_requests
from fairshield.runtime.shield import Batch, Shield
from fairshield.runtime.step import Decision, Why
from fairshield.spec import NoRequirement, Property, Verdict
from fairshield.synthesis import checked_start, least_cost, remaining_inputs
from fairshield.words import summary

State = PeriodicState | Mapping[str, Any]


@dataclass(frozen=True)
class PeriodicExplanation:
    """Why a decision was made; ``plan`` says what the plan of its period rests on."""

    explanation: Explanation
    plan: str

    def __str__(self) -> str:
        return f"Period {self.explanation.decision.period + 1}. {self.explanation} {self.plan}"


class PeriodicShield:
    """A periodic policy in use: decides, counts, and begins a new period when one is over.

    Parameters
    ----------
    policy
        What to do in every period.
    state
        Where to go on: a :class:`PeriodicState`, or what its ``to_dict`` returned.
    """

    def __init__(self, policy: PeriodicPolicy, *, state: State | None = None) -> None:
        if not isinstance(policy, PeriodicPolicy):
            raise InvalidValueError(
                f"a periodic shield needs a periodic policy, got {type(policy).__name__}: use "
                "Shield for one window"
            )
        self.policy = policy
        self._condition = policy.condition
        self._completed, self._decided = 0, 0
        self._start = policy.start
        self._history = History()
        if not policy.attainable:
            self._history = self._history.broken(0, "period")
        elif not policy.admits(policy.start):
            self._history = self._history.broken(0, "start")
        self._plan: Plan | None = None
        self._earlier: list[Plan] = []
        self._against = False
        if state is None:
            self._begin()
        else:
            self._resume(
                state if isinstance(state, PeriodicState) else PeriodicState.from_dict(state)
            )

    # Where the run stands -------------------------------------------------------------------

    @property
    def prop(self) -> Property:
        """What must hold at the end of every period."""
        return self.policy.prop

    @property
    def period(self) -> int:
        """Decisions in a period."""
        return self.policy.period

    @property
    def completed(self) -> int:
        """Periods completed."""
        return self._completed

    @property
    def decided(self) -> int:
        """Decisions made in all."""
        return self._completed * self.period + self._decided

    @property
    def remaining(self) -> int:
        """Decisions left in the period in progress; 0 after the last period."""
        return 0 if self._over else self.period - self._decided

    @property
    def counts(self) -> Counts:
        """Counters since the beginning of the run, and those it began with."""
        return self._start.plus(self._gained())

    @property
    def pending(self) -> Decision | None:
        """The decision whose outcome must be observed next, if any."""
        if self._plan is None or self._plan.shield.pending is None:
            return None
        pending = self._told(self._plan, self._plan.shield.pending)
        if pending.why is not Why.HUMAN:
            return pending
        return pending._replace(guaranteed=self._guaranteed(self._certain))

    @property
    def planned(self) -> bool:
        """Whether the next decision is decided at once; before a new plan is made, it is not.

        :attr:`guarantee` makes the plan as well.
        """
        if self._plan is None:
            return self._over
        return self._plan.shield.planned > 0 or not self._plan.shield.remaining

    @property
    def at_once(self) -> int:
        """How many decisions can be made before a plan has to be made."""
        return 0 if self._plan is None else min(self._plan.shield.planned, self.remaining)

    @property
    def over(self) -> bool:
        """Whether the last period is over."""
        return self._over

    @property
    def current(self) -> Shield:
        """The shield of the plan in force, which is made if need be; not for deciding."""
        return self._now().shield

    def holds(self) -> bool:
        """Whether the property holds of the counters now."""
        return self.prop.holds(self.counts)

    def verdict(self) -> Verdict:
        """What to say of the counters now: ``"fair"``, ``"unfair"``, or ``"exempt"``."""
        return self.prop.verdict(self.counts)

    __repr__ = summary

    def __str__(self) -> str:
        if self._over:
            where = f"over after {self._completed} periods of {self.period}"
        else:
            where = f"period {self._completed + 1}, {self._decided} of {self.period} decisions"
        return f"{self.prop}, {where}, {self.counts}"

    @property
    def state(self) -> PeriodicState:
        """Everything needed to go on later: ``PeriodicShield(policy, state=...)``."""
        return PeriodicState(
            completed=self._completed,
            decided=self._decided,
            start=self._start,
            counts=self.counts,
            pending=self.pending,
            history=self._history,
            certificate=self.policy.certificate(self._start),
            mended=None if self._plan is None else self._plan.mended,
            fingerprint=self.policy.fingerprint,
        )

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed right now, and on what grounds."""
        plan = None if self._over else self._now().window.policy
        # Only now: a condition on the start of a period is checked when the period begins.
        history, condition, policy = self._history, self._condition, self.policy
        held, certain = history.broken_at is None, self._certain
        sure = self._guaranteed(certain)
        further = plan.further if plan is not None and plan.terminal is not None else None
        until = None if further is None else (self._completed + 1) * self.period + further
        return Guarantee(
            title=policy.title,
            prop=str(self.prop),
            period=self.period,
            theorem=policy.theorem,
            condition=None if condition is None else condition.words,
            unconditional=policy.unconditional,
            can_bind=policy.can_bind,
            held=held,
            certain=certain,
            broken_at=history.broken_at,
            broken_by=history.broken_by,
            guaranteed=sure,
            risk=plan.risk if plan is not None and plan.risk and not sure else None,
            decided=self.decided,
            completed=self._completed,
            over=self._over,
            verdict=self.prop.verdict(self.counts),
            fair_ends=history.fair_ends,
            exempt_ends=history.exempt_ends,
            untold_ends=history.untold_ends,
            unfair_at=history.unfair_at,
            worst_bias=history.worst_bias,
            certificate=policy.certificate(self.counts),
            plan_until=until,
        )

    def _guaranteed(self, by_theorem: bool) -> bool:
        """Whether the period in progress is certain to end fair."""
        if self._over:
            return self.holds()
        plan = self._now()
        if not plan.about_run:
            # The policy keeps something else fair than the counters of the whole run.
            return by_theorem and self._condition is not None
        return plan.shield.guaranteed or self._mendable(plan)

    def _mendable(self, plan: Plan) -> bool:
        """Whether what a person did can be made good whatever outcome is awaited."""
        pending, left = plan.shield.pending, self.remaining
        if pending is None or not self._against:
            return False
        now = plan.shield.counts
        inputs = remaining_inputs(self.policy.inputs, self._decided)
        return all(
            least_cost(self.prop, inputs, horizon=left, start=counts) < math.inf
            if left else self.prop.holds(counts)
            for counts in (now, now.after(pending.group, accepted=pending.accepted))
        )  # fmt: skip

    def _condition_certain(self) -> bool:
        if self._condition is None:
            return True
        start, gained = counters(self._start), Counters(*self._gained())
        # Who awaits an outcome may yet be counted.
        awaited = self._plan is not None and self._plan.shield.pending is not None
        left = self.remaining + awaited
        return bool(self._condition.certain(start, gained, left))

    def _gained(self) -> At:
        """Counters since the start of the period."""
        return (0, 0, 0, 0) if self._plan is None else self._plan.gained()

    # Deciding -------------------------------------------------------------------------------

    def decide(self, group: Group, *, proposed: Flag, cost: float = 1.0) -> Decision:
        """The final decision on one person; it is counted at once.

        ``position`` counts from 0 in the period.
        """
        plan = self._now()
        decision = plan.shield.decide(group, proposed=proposed, cost=cost)
        self._count()
        return self._told(plan, decision)

    def observe(self, decision: Decision, *, outcome: Flag) -> None:
        """Reveal the outcome of the last decision (properties that count by outcome)."""
        plan = self._now()
        plan.shield.observe(plan.in_window(decision), outcome=outcome)
        self._after_decision()

    def decide_many(
        self,
        groups: Sequence[Group] | ArrayLike,
        proposed: ArrayLike,
        costs: ArrayLike | float = 1.0,
        outcomes: ArrayLike | None = None,
        *,
        reasons: bool = False,
    ) -> Batch:
        """Decide requests in order of arrival, over as many periods as they take.

        The answers, and where the run then stands, are those of :meth:`decide` and
        :meth:`observe`; see :meth:`fairshield.Shield.decide_many`.
        """
        who = group_column(groups)
        n = len(who)
        if not n:
            return Batch(np.empty(0, bool), np.empty(0, bool), np.empty(0), () if reasons else None)
        # Every fault is found before anything is decided.
        asked = encode_requests(self._now().window.policy, who, proposed, costs, outcomes)
        self._check_room(n)
        known = None if outcomes is None else outcomes_of(outcomes, n)
        parts, i = [], 0
        while i < n:
            here = slice(i, i + min(n - i, self.remaining))
            part = self._decide_part(asked.part(here), who[here], known, here, reasons=reasons)
            parts.append(part)
            i = here.stop
        why = tuple(w for part in parts for w in part.reasons or ()) if reasons else None
        accepted, overruled, paid = (np.concatenate(c) for c in list(zip(*parts, strict=True))[:3])
        return Batch(accepted, overruled, paid, why)

    def _decide_part(
        self, asked: Requests, who: NDArray[Any] | Coded, known: NDArray[np.bool_] | None,
        here: slice, *, reasons: bool,
    ) -> Batch:  # fmt: skip
        """Decide requests of the period in progress."""
        plan = self._now()
        before = plan.gained()
        outcomes = None if known is None else known[here]
        batch = plan.shield.decide_many(who, asked.proposed, asked.costs, outcomes, reasons=reasons)
        if self._condition is not None and not self._condition.known_at_start:
            gained = asked.gained(batch.accepted)[1:] + np.array(before)
            for step, at in enumerate(gained.tolist(), start=1):
                self._check_condition(Counters(*at), step)
        self._decided += len(who)
        if self._decided == self.period:
            self._end()
        return batch

    def _check_room(self, n: int) -> None:
        last = self.policy.last
        if last is not None and n > last * self.period - self.decided:
            raise WindowOverError(
                f"{n} requests, but only {last * self.period - self.decided} decisions are left "
                f"in the {last} periods of this run: decide fewer, or use a perpetual shield"
            )

    def advise(self, group: Group, *, proposed: Flag, cost: float = 1.0) -> Decision:
        """What the shield would decide; nothing is counted until :meth:`record`."""
        plan = self._now()
        return self._told(plan, plan.shield.advise(group, proposed=proposed, cost=cost))

    def record(self, advice: Decision, *, final: Flag) -> Decision:
        """Count a person's decision on the request that ``advice`` was for.

        The returned decision says whether the period in progress is still guaranteed.
        """
        plan = self._now()
        decision = plan.shield.record(plan.in_window(advice), final=final)
        self._against = plan.broken_by(decision)
        if self._against:
            self._history = self._history.broken(self.decided + 1, "person")
        self._count()
        guaranteed = self._guaranteed(self._certain) if self._plan is not None else self.holds()
        return plan.in_period(decision)._replace(guaranteed=guaranteed)

    def _told(self, plan: Plan, decision: Decision) -> Decision:
        """The decision as one of the run: what is guaranteed is said of the run, too."""
        told = plan.in_period(decision)
        if plan.about_run:
            return told
        promised = self._guaranteed(self._certain) if self._plan is plan else self.holds()
        return told._replace(guaranteed=promised)

    @property
    def _certain(self) -> bool:
        """Whether the theorem's condition has held so far and will in this period."""
        return self._history.broken_at is None and self._condition_certain()

    def explain(self, decision: Decision) -> PeriodicExplanation:
        """Why a decision of the period in progress, or of the one just over, was made."""
        plans = [*self._earlier, *([] if self._plan is None else [self._plan])]
        plan = next((plan for plan in reversed(plans) if plan.made(decision)), None)
        if plan is None:
            raise InvalidValueError(
                f"decision {decision.position} belongs to period {decision.period}, whose plan is "
                "not kept: a decision can be explained in its period and in the next one; explain "
                "older ones from their log, with fairshield explain"
            )
        found = explain(plan.window.policy, plan.in_window(decision))
        return PeriodicExplanation(replace(found, decision=decision), self._grounds(plan))

    def _grounds(self, plan: Plan) -> str:
        policy = plan.window.policy
        if isinstance(policy.prop, NoRequirement):
            return "The shield is inactive: the period cannot be guaranteed to end fair."
        if policy.risk:
            return (
                "Fairness at the end of this period could not be guaranteed when it was planned; "
                "the plan makes a violation as improbable as can be."
            )
        if policy.terminal is not None:
            held = self.policy.certificate(policy.start)
            ahead = (policy.horizon + policy.further) // self.period
            covered = "this period" if ahead == 1 else f"{ahead} periods"
            return f"The plan covers {covered} and ends with a certificate; at its start " + (
                "none was in force." if held is None else f"this one was in force: {held}."
            )
        return f"The plan keeps {policy.prop} over {policy.horizon} decisions."

    # Periods --------------------------------------------------------------------------------

    @property
    def _over(self) -> bool:
        return self.policy.last is not None and self._completed >= self.policy.last

    def _now(self) -> Plan:
        """The plan in force, made when it is first needed."""
        if self._plan is None:
            if self._over:
                raise WindowOverError(
                    f"this run is over after its last period, number {self.policy.last}: plan for "
                    "more periods, or use a perpetual shield"
                )
            self._begin()
        assert self._plan is not None
        return self._plan

    def _begin(self) -> None:
        self._plan = self._first_plan()
        self._check_condition()
        if self.policy.unconditional and self._plan.window.policy.risk:
            self._history = self._history.broken(self.decided, "start")

    def _first_plan(self) -> Plan:
        """The plan that the period begins with."""
        window = self.policy.window(self._start, self._completed)
        shield = Shield(window.policy, counts=window.counts, decided=window.decided)
        return Plan(window, shield, self._completed, about_run=self._about_run(window))

    def _about_run(self, window: Window) -> bool:
        """Whether a policy keeps the property itself, of all that was counted since the start."""
        whole = self.policy.base(self._start) == self._start
        return whole and window.policy.prop == self.prop

    def _mend(self, plan: Plan) -> None:
        """Plan the rest of the period anew, from the counters as they are."""
        self._against = False
        if plan.shield.guaranteed or not self.remaining:
            return
        self._earlier.append(plan)
        self._plan = self._mended_plan(Mended(self._decided, plan.gained()))

    def _mended_plan(self, mended: Mended) -> Plan:
        counts = self.policy.base(self._start).plus(mended.gained)
        window = Window(self.policy.mend(counts, self.period - mended.decided), counts, 0)
        about_run, shield = self._about_run(window), Shield(window.policy)
        return Plan(window, shield, self._completed, about_run=about_run, mended=mended)

    def _count(self) -> None:
        self._decided += 1
        if not self.policy.labelled:
            self._after_decision()

    def _after_decision(self) -> None:
        if self._condition is not None and not self._condition.known_at_start:
            self._check_condition()
        if self._against and self._plan is not None:
            self._mend(self._plan)
        if self._decided == self.period:
            self._end()

    def _check_condition(self, gained: Counters | None = None, later: int = 0) -> None:
        """Whether the condition can still be met with what was gained, ``later`` decisions on."""
        if self._condition is None or self._history.broken_at is not None:
            return
        gained = Counters(*self._gained()) if gained is None else gained
        if not self._condition.possible(counters(self._start), gained, self.remaining - later):
            self._history = self._history.broken(self.decided + later, "arrivals")

    def _end(self) -> None:
        counts = self.counts
        bias, verdict = self.prop.bias_of(counts), self.prop.verdict(counts)
        self._history = self._history.ended(self.decided, bias, verdict)
        self._completed, self._decided, self._start = self._completed + 1, 0, counts
        just_over = [*self._earlier, *([] if self._plan is None else [self._plan])]
        self._earlier = [plan for plan in just_over if plan.period == self._completed - 1]
        self._plan = None

    def _resume(self, state: PeriodicState) -> None:
        policy = self.policy
        if state.fingerprint != policy.fingerprint:
            raise InvalidValueError(
                f"the state belongs to another periodic policy (fingerprint {state.fingerprint!r}, "
                f"this one has {policy.fingerprint!r}): resume with the property, inputs, period "
                "and options that the run began with"
            )
        start, counts = (checked_start(policy.inputs, c) for c in (state.start, state.counts))
        if not self._fits(state, start, counts):
            raise InvalidValueError(
                f"{state.completed} periods and {state.decided} decisions do not lead to {counts} "
                f"in periods of {self.period} decisions: use what shield.state returned"
            )
        if state.certificate != policy.certificate(start):
            raise InvalidValueError(
                f"the state holds the certificate {state.certificate}, which is not that of its "
                f"counters, {policy.certificate(start)}: use what shield.state returned"
            )
        self._completed, self._decided = state.completed, state.decided
        self._start, self._history = start, state.history
        # A period that has not begun begins with the next decision.
        if state.decided:
            at = state.mended
            self._plan = self._first_plan() if at is None else self._mended_plan(at)
            self._plan.resume(replace(state, start=start, counts=counts))
            pending = self._plan.shield.pending
            self._against = pending is not None and self._plan.broken_by(pending)

    def _fits(self, state: PeriodicState, start: Counts, counts: Counts) -> bool:
        """Whether a run can have got where ``state`` says it is."""
        last, waiting = self.policy.last, state.pending is not None
        if last is not None and state.completed >= last:
            in_time = state.completed == last and state.decided == 0
        else:
            in_time = state.decided < self.period + waiting
        begun = state.decided > 0 or (start == counts and not waiting)
        before, most = _seen(start) - _seen(self.policy.start), state.completed * self.period
        counted = before <= most if self.policy.labelled else before == most
        past, total = state.history, most + state.decided
        told = past.exempt_ends + past.untold_ends <= past.fair_ends <= state.completed
        told = told and max(past.unfair_at or 0, past.broken_at or 0) <= total
        mended = state.mended is None or 0 < state.mended.decided <= state.decided
        return in_time and begun and counted and told and mended


def _seen(counts: Counts) -> int:
    return sum(count.seen for count in counts.values())
