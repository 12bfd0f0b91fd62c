"""PeriodicShield: one run of decisions, period after period."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fairshield.counts import Counts, Group
from fairshield.errors import InvalidValueError, WindowOverError
from fairshield.explain import Explanation, explain
from fairshield.periodic.conditions import Counters
from fairshield.periodic.guarantee import Guarantee
from fairshield.periodic.policy import PeriodicPolicy, Window, counters
from fairshield.periodic.state import History, PeriodicState
from fairshield.records import Flag
from fairshield.runtime.shield import Shield
from fairshield.runtime.step import Decision
from fairshield.spec import Property
from fairshield.synthesis import checked_start

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
        self._plan: _Plan | None = None
        self._previous: _Plan | None = None
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
        n_a, k_a, n_b, k_b = self._gained()
        (a, of_a), (b, of_b) = self._start.items()
        return Counts(
            {a: (of_a.seen + n_a, of_a.accepted + k_a), b: (of_b.seen + n_b, of_b.accepted + k_b)}
        )

    @property
    def pending(self) -> Decision | None:
        """The decision whose outcome must be observed next, if any."""
        if self._plan is None or self._plan.shield.pending is None:
            return None
        return self._plan.in_period(self._plan.shield.pending)

    def holds(self) -> bool:
        """Whether the property holds of the counters now."""
        return self.prop.holds(self.counts)

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
            fingerprint=self.policy.fingerprint,
        )

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed right now, and on what grounds."""
        plan = None if self._over else self._now().window.policy
        # Only now: a condition on the start of a period is checked when the period begins.
        history, condition, policy = self._history, self._condition, self.policy
        held = history.broken_at is None
        certain = held and self._condition_certain()
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
            held=held,
            certain=certain,
            broken_at=history.broken_at,
            broken_by=history.broken_by,
            guaranteed=sure,
            risk=plan.risk if plan is not None and plan.risk and not sure else None,
            decided=self.decided,
            completed=self._completed,
            over=self._over,
            fair_ends=history.fair_ends,
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
        if plan.window.policy.prop == self.prop and plan.window.counts == self._start:
            return plan.shield.guaranteed
        # The policy keeps something else fair than the counters of the whole run.
        return by_theorem and self._condition is not None

    def _condition_certain(self) -> bool:
        if self._condition is None:
            return True
        start, gained = counters(self._start), Counters(*self._gained())
        # Who awaits an outcome may yet be counted.
        left = self.remaining + (self.pending is not None)
        return bool(self._condition.certain(start, gained, left))

    def _gained(self) -> tuple[int, int, int, int]:
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
        return plan.in_period(decision)

    def observe(self, decision: Decision, *, outcome: Flag) -> None:
        """Reveal the outcome of the last decision (properties that count by outcome)."""
        plan = self._now()
        plan.shield.observe(plan.in_window(decision), outcome=outcome)
        self._after_decision()

    def advise(self, group: Group, *, proposed: Flag, cost: float = 1.0) -> Decision:
        """What the shield would decide; nothing is counted until :meth:`record`."""
        plan = self._now()
        return plan.in_period(plan.shield.advise(group, proposed=proposed, cost=cost))

    def record(self, advice: Decision, *, final: Flag) -> Decision:
        """Count a person's decision on the request that ``advice`` was for.

        The returned decision says whether the period in progress is still guaranteed.
        """
        plan = self._now()
        was_certain = plan.shield.guaranteed
        decision = plan.shield.record(plan.in_window(advice), final=final)
        if was_certain and not decision.guaranteed:
            self._history = self._history.broken(self.decided + 1, "person")
        self._count()
        return plan.in_period(decision)

    def explain(self, decision: Decision) -> PeriodicExplanation:
        """Why a decision of the period in progress, or of the one just over, was made."""
        plans = (plan for plan in (self._plan, self._previous) if plan is not None)
        plan = next((plan for plan in plans if plan.period == decision.period), None)
        if plan is None:
            raise InvalidValueError(
                f"decision {decision.position} belongs to period {decision.period}, whose plan is "
                "not kept: a decision can be explained in its period and in the next one; explain "
                "older ones from their log, with fairshield explain"
            )
        found = explain(plan.window.policy, plan.in_window(decision))
        return PeriodicExplanation(replace(found, decision=decision), self._grounds(plan))

    def _grounds(self, plan: _Plan) -> str:
        policy = plan.window.policy
        if policy.risk:
            return (
                "Fairness at the end of this period could not be guaranteed from its start; the "
                "plan makes a violation as improbable as can be."
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

    def _now(self) -> _Plan:
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
        window = self.policy.window(self._start, self._completed)
        shield = Shield(window.policy, counts=window.counts, decided=window.decided)
        self._plan = _Plan(window, shield, self._completed)
        self._check_condition()

    def _count(self) -> None:
        self._decided += 1
        if not self.policy.labelled:
            self._after_decision()

    def _after_decision(self) -> None:
        if self._condition is not None and not self._condition.known_at_start:
            self._check_condition()
        if self._decided == self.period:
            self._end()

    def _check_condition(self) -> None:
        if self._condition is None or self._history.broken_at is not None:
            return
        start, gained = counters(self._start), Counters(*self._gained())
        if not self._condition.possible(start, gained, self.remaining):
            self._history = self._history.broken(self.decided, "arrivals")

    def _end(self) -> None:
        counts = self.counts
        bias, fair = self.prop.bias_of(counts), self.prop.holds(counts)
        self._history = self._history.ended(self.decided, bias, fair)
        self._completed, self._decided, self._start = self._completed + 1, 0, counts
        self._previous, self._plan = self._plan, None

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
            self._plan = _Plan.resumed(policy.window(start, state.completed), state)

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
        told = past.fair_ends <= state.completed and (past.unfair_at or 0) <= total
        told = told and (past.broken_at or 0) <= total
        return in_time and begun and counted and told


def _seen(counts: Counts) -> int:
    return sum(count.seen for count in counts.values())


class _Plan:
    """What decides the period in progress, and how far it has got."""

    __slots__ = ("_offset", "_start", "period", "shield", "window")

    def __init__(self, window: Window, shield: Shield, period: int) -> None:
        self.window, self.shield, self.period = window, shield, period
        self._offset = window.decided
        self._start = window.policy.since_start(window.counts)

    @classmethod
    def resumed(cls, window: Window, state: PeriodicState) -> _Plan:
        """The plan of a period that had begun before."""
        begun = {
            g: (
                then.seen + state.counts[g].seen - state.start[g].seen,
                then.accepted + state.counts[g].accepted - state.start[g].accepted,
            )
            for g, then in window.counts.items()
        }
        pending = state.pending
        if pending is not None:
            pending = pending._replace(position=pending.position + window.decided)
        decided = window.decided + state.decided
        shield = Shield(window.policy, counts=Counts(begun), decided=decided, pending=pending)
        return cls(window, shield, state.completed)

    def gained(self) -> tuple[int, int, int, int]:
        """Counters since the start of the period."""
        n_a, k_a, n_b, k_b = self.shield.gained
        m_a, l_a, m_b, l_b = self._start
        return n_a - m_a, k_a - l_a, n_b - m_b, k_b - l_b

    def in_period(self, decision: Decision) -> Decision:
        """The decision with its position in the period."""
        return decision._replace(position=decision.position - self._offset, period=self.period)

    def in_window(self, decision: Decision) -> Decision:
        """The decision with its position in the policy's window."""
        if decision.period != self.period:
            raise InvalidValueError(
                f"decision {decision.position} of period {decision.period} is none of period "
                f"{self.period}, which is in progress"
            )
        return decision._replace(position=decision.position + self._offset)
