"""Run: decides requests by a policy, window after window.

A :class:`~fairshield.Shield` decides one window.  A run begins the next window when one is over,
and applies the rule ``unseen`` to people whose group the policy was not made for.  Frames,
estimators, served models, monitors, the service and the command line decide through it.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairshield._renamed import NAMES
from fairshield.base.counts import Group, GroupCount
from fairshield.base.errors import InvalidValueError, WindowOverError, check_kind
from fairshield.base.groups import Coded, Unseen, group_column, places_among, stranger
from fairshield.base.renamed import Renamed, old_names
from fairshield.base.words import summary
from fairshield.inputs.columns import costs_of, flags, outcomes_of
from fairshield.periodic.conditions import Counters
from fairshield.periodic.course import Course, State
from fairshield.periodic.explanation import RunExplanation, explain_decision
from fairshield.periodic.policy import PeriodicPolicy
from fairshield.policy import Policy
from fairshield.records import Asked, Flag, Request, as_cost, as_flag
from fairshield.runtime.batches import decide_windows
from fairshield.runtime.requests import Requests, encode_requests
from fairshield.runtime.shield import Batch
from fairshield.runtime.step import Decision, Why

__getattr__ = old_names(__name__, NAMES)


class Run(Course):
    """Run decides one request after the other, window after window.

    Parameters
    ----------
    policy
        For one window, which then begins anew whenever one is over, or periodic.
    state
        Where to go on: a :class:`~fairshield.periodic.RunState`, or what its ``to_dict`` returned.
    unseen
        What happens to people of groups that the policy does not know: ``"refuse"``, ``"follow"``,
        ``"map:GROUP"``, a mapping of names, or an :class:`~fairshield.Unseen`.

    Examples
    --------
    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> policy = fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=4)
    >>> run = fs.Run(policy, unseen="follow")
    >>> answers = run.decide_many(list("aabbcab"), [True, True] + [False] * 5)
    >>> answers.accepted.tolist(), answers.window.tolist()
    ([True, True, True, True, False, False, False], [0, 0, 0, 0, 1, 1, 1])
    >>> run.followed, run.completed, run.remaining
    ({'c': GroupCount(seen=1, accepted=0)}, 1, 2)
    """

    period = Renamed("length")
    shield = Renamed("current")
    at_once = Renamed("planned")

    def __init__(
        self,
        policy: Policy | PeriodicPolicy,
        *,
        state: State | None = None,
        unseen: Unseen | str | dict[Group, Group] = "refuse",
    ) -> None:
        super().__init__(policy, state)
        self.unseen = Unseen.of(unseen).among(self.policy.groups)
        self._names = {group: group for group in self.policy.groups}

    __repr__ = summary

    def __str__(self) -> str:
        noun, length = self.policy.noun, self.policy.length
        where = f"{noun} {self.completed + 1}, {self.position} of {length} decisions"
        if self.over:
            where = f"over after {self.completed} {noun}s of {length}"
        strangers = sum(count.seen for count in self.followed.values())
        more = f", {strangers} of unseen groups followed" if strangers else ""
        return f"{self.prop}, {where}, {self.counts}{more}"

    # Deciding -------------------------------------------------------------------------------

    def decide(self, group: Group, *, proposed: Flag, cost: float = 1.0) -> Decision:
        """The final decision on one person; it is counted at once.

        ``window`` counts those of the run from 0, ``position`` the decisions of a window.
        """
        try:
            known = self._names[group]
        except (KeyError, TypeError):  # a group nobody declared, or no name at all
            other = self._known_as(group)
            if other is None:
                return self._follow(group, proposed, cost)
            known = other
        plan = self._now()
        decision = plan.shield.decide(known, proposed=proposed, cost=cost)
        self._watch(decision)
        self._count()
        return self._told(plan, decision)

    def observe(self, decision: Decision, *, outcome: Flag) -> None:
        """Reveal the outcome of the last decision (properties that count by outcome)."""
        check_kind(decision, Decision, "an outcome is observed of a Decision, as decide returned")
        if decision.why is Why.UNSEEN:
            return
        plan = self._now()
        awaited = plan.shield.pending
        plan.shield.observe(self._in_policy(plan, decision), outcome=outcome)
        if awaited is not None:
            self._watch(awaited, as_flag(outcome))
        self._after_decision()

    def advise(self, group: Group, *, proposed: Flag, cost: float = 1.0) -> Decision:
        """Return what the shield would decide; nothing is counted until :meth:`record`."""
        known = self._known_as(group)
        if known is None:
            return self._unseen(group, proposed, cost)
        plan = self._now()
        return self._told(plan, plan.shield.advise(known, proposed=proposed, cost=cost))

    def record(self, advice: Decision, *, final: Flag) -> Decision:
        """Count a person's decision on the request that ``advice`` was for.

        The returned decision says whether the window in progress is still guaranteed.
        """
        check_kind(advice, Decision, "what is recorded is a Decision, as advise returned")
        if advice.why is Why.UNSEEN:
            decision = advice._replace(accepted=as_flag(final))
            self._count_stranger(decision.group, accepted=decision.accepted)
            return decision
        plan = self._now()
        decision = plan.shield.record(self._in_policy(plan, advice), final=final)
        self._judge(plan, decision)
        self._watch(decision)
        self._count()
        guaranteed = self.guaranteed if self.completed == plan.number else self._met
        return plan.in_run(decision)._replace(guaranteed=guaranteed)

    def explain(self, decision: Decision) -> RunExplanation:
        """Why a decision was made: one of the window in progress, or of the one just over.

        Where windows begin anew, decisions of every window can be explained.
        """
        check_kind(decision, Decision, "what is explained is a Decision, as decide returned")
        if decision.why is Why.UNSEEN:
            raise InvalidValueError(f"the policy did not decide: {decision.reason}")
        plans = [*self._earlier, *([] if self._plan is None else [self._plan])]
        plan = next((plan for plan in reversed(plans) if plan.made(decision)), None)
        if plan is None and self.policy.window_policy is not None:
            plan = self._now()
        if plan is None:
            noun = self.policy.noun
            raise InvalidValueError(
                f"decision {decision.position} belongs to {noun} {decision.window}, whose plan is "
                f"not kept: a decision can be explained in its {noun} and in the next one; explain "
                "older ones from their log, with fairshield explain"
            )
        return explain_decision(self.policy, plan, decision)

    # People of unseen groups ----------------------------------------------------------------

    def _known_as(self, group: Group) -> Group | None:
        try:
            known = self._names.get(group)
        except TypeError:  # a value that cannot be hashed is no name
            known = None
        return self.unseen.known_as(group, self.policy.groups) if known is None else known

    def _unseen(self, group: Group, proposed: Flag, cost: float) -> Decision:
        said, window = as_flag(proposed), self.current
        return Decision(
            self.position, stranger(group), said, as_cost(cost), said, Why.UNSEEN, window.gained,
            window.guaranteed, self.completed,
        )  # fmt: skip

    def _follow(self, group: Group, proposed: Flag, cost: float) -> Decision:
        decision = self._unseen(group, proposed, cost)
        self._count_stranger(decision.group, accepted=decision.accepted)
        return decision

    def _count_stranger(self, group: Group, *, accepted: bool) -> None:
        seen, taken = self.followed.get(group, (0, 0))
        self.followed[group] = GroupCount(seen + 1, taken + accepted)

    # One by one, as they come ---------------------------------------------------------------

    def decide_each(self, requests: Iterable[Asked]) -> Iterator[Decision]:
        """Yield decisions on requests, each made when it is asked for; nothing is read ahead.

        A request is a mapping with ``group`` and ``proposed``, perhaps ``cost`` and ``outcome``, or
        a tuple of these.  A mapping may be a row of a CSV: ``"1"`` is the group ``1`` where the
        policy knows no other, and an empty value is not known.  An outcome in the request is
        observed at once.  The caller must :meth:`observe` one that becomes known later before
        taking the next decision.

        >>> import fairshield as fs
        >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
        >>> run = fs.Run(fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=4))
        >>> requests = ({"group": g, "proposed": g == "a"} for g in "aabb")
        >>> [decision.accepted for decision in run.decide_each(requests)]
        [True, True, True, True]
        """
        if isinstance(requests, AsyncIterable):
            raise InvalidValueError(
                f"{type(requests).__name__} is asynchronous: decide its requests with adecide_each"
            )
        if not isinstance(requests, Iterable):
            raise InvalidValueError(
                f"requests must be an iterable of them, got {type(requests).__name__}: one request "
                "is for decide"
            )
        return map(self._answer, requests, count(1))

    async def adecide_each(self, requests: AsyncIterable[Asked]) -> AsyncIterator[Decision]:
        """:meth:`decide_each` for requests that are awaited."""
        if not isinstance(requests, AsyncIterable):
            raise InvalidValueError(
                f"{type(requests).__name__} is not asynchronous: decide its requests with "
                "decide_each"
            )
        lines = count(1)
        async for request in requests:
            yield self._answer(request, next(lines))

    def _answer(self, asked: Asked, line: int) -> Decision:
        empty, labelled = self.unseen.empty, self.policy.labelled
        request = Request.of(asked, self.policy.groups, line=line, empty=empty, labelled=labelled)
        group, proposed, cost, outcome = request
        known = None if outcome is None else as_flag(outcome)
        decision = self.decide(group, proposed=proposed, cost=cost)
        if known is not None and self.policy.labelled:
            self.observe(decision, outcome=known)
        return decision

    # Many at once ---------------------------------------------------------------------------

    def decide_many(
        self,
        groups: Sequence[Group] | ArrayLike,
        proposed: ArrayLike,
        costs: ArrayLike | float = 1.0,
        outcomes: ArrayLike | None = None,
        *,
        reasons: bool = False,
    ) -> Batch:
        """Decide any number of requests in order of arrival; all or, on an error, none.

        Answers and the state of the run afterwards are those of :meth:`decide` and
        :meth:`observe`, compiled where the extra ``synthesis`` is installed.  Names of groups are
        read as by :meth:`decide`.  ``reasons`` are those of
        :meth:`fairshield.Shield.decide_many`, also of people whose proposal was followed.
        """
        given = group_column(groups)
        said, price = flags(proposed, "proposed", len(given)), costs_of(costs, len(given))
        known = None if outcomes is None else outcomes_of(outcomes, len(given))
        who, strangers = self._known(given)
        if strangers is None:
            return self._decide_known(who, said, price, known, reasons=reasons)
        # Every error must come before the first decision is counted.
        names = [stranger(name) for name in given[strangers].tolist()]
        at = np.flatnonzero(~strangers)
        self._check_open_to_strangers(at, len(said))
        decided = self._decide_known(
            who[at], said[at], price[at], None if known is None else known[at], reasons=reasons
        )
        why = {name: self._unseen(name, True, 0.0).reason for name in names} if reasons else {}
        for name, accepted in zip(names, said[strangers].tolist(), strict=True):
            self._count_stranger(name, accepted=accepted)
        answers = _spread(decided, at, said, (self.completed, self.position))
        if answers.reasons is None:
            return answers
        told = list(answers.reasons)
        for place, name in zip(np.flatnonzero(strangers).tolist(), names, strict=True):
            told[place] = why[name]
        return answers._replace(reasons=tuple(told))

    def _known(self, who: NDArray[Any] | Coded) -> tuple[Coded, NDArray[np.bool_] | None]:
        """Each person's group in the policy, and who is followed instead; ``None`` if nobody is."""
        groups = self.policy.groups
        numbers = self.unseen.placed(places_among(groups, who), who, groups, "groups")
        followed = numbers < 0
        return Coded(groups, numbers), followed if followed.any() else None

    def _decide_known(
        self, who: Coded, said: NDArray[np.bool_], price: NDArray[np.float64],
        known: NDArray[np.bool_] | None, *, reasons: bool,
    ) -> Batch:  # fmt: skip
        n, first = len(who), self.decided
        accepted, i = np.empty(n, np.bool_), 0
        why: list[str | None] = []
        if n:
            # Every error must come before the first decision.
            asked = encode_requests(self._now().window.policy, who, said, price, known)
            self._check_room(n)
            self._watch_many(asked)
        while i < n:
            whole = 0 if self.policy.goes_on else (n - i) // self._length
            if whole > 1 and not self._position and not reasons:
                end = i + whole * self._length
                accepted[i:end] = self._decide_whole(asked.in_rows(slice(i, end), self._length))
            else:
                end = i + min(n - i, self.remaining)
                here = slice(i, end)
                outcomes = None if known is None else known[here]
                part = self._decide_part(asked.part(here), who[here], outcomes, reasons=reasons)
                accepted[here] = part.accepted
                why += part.reasons or ()
            i = end
        overruled = accepted != said
        window, position = np.divmod(np.arange(first, first + n), self._length)
        paid = np.where(overruled, price, 0.0)
        return Batch(accepted, overruled, paid, window, position, tuple(why) if reasons else None)

    def _decide_whole(self, rows: Requests) -> NDArray[np.bool_]:
        """Decide whole windows, one to a row; all of them begin with the same counters."""
        policy = self.current.policy
        accepted, ends = decide_windows(policy, self.current.gained, rows)
        start = np.array(self._start.numbers())
        then = ends[:, np.newaxis]
        if self._checkpoints:
            then = rows.gained(accepted, self.prop.counting, len(self.policy.groups))[
                :, self.policy.due
            ]
        self._end_many(start + then)
        return accepted.reshape(-1)

    def _decide_part(
        self, asked: Requests, who: Coded, outcomes: NDArray[np.bool_] | None, *, reasons: bool
    ) -> Batch:
        """Decide requests of the window in progress."""
        plan = self._now()
        before = plan.gained()
        batch = plan.shield.decide_many(who, asked.proposed, asked.costs, outcomes, reasons=reasons)
        if self._condition is not None and not self._condition.known_at_start:
            gained = asked.gained(batch.accepted, self.prop.counting)[1:] + np.array(before)
            for step, at in enumerate(gained.tolist(), start=1):
                self._check_condition(Counters(*at), step)
        here = range(self._position + 1, self._position + len(who) + 1)
        if points := [point for point in self.policy.due[:-1] if point in here]:
            counting, n_groups = self.prop.counting, len(self.policy.groups)
            gained = asked.gained(batch.accepted, counting, n_groups) + np.array(before)
            for point in points:
                then = gained[point - self._position].tolist()
                self._judge_moment(self._start.plus(tuple(then)), point)
        self._position += len(who)
        if self._position == self._length:
            self._end()
        return batch

    def _check_room(self, n: int) -> None:
        last = self.policy.last
        if last is not None and n > last * self._length - self.decided:
            raise WindowOverError(
                f"{n} requests, but only {last * self._length - self.decided} decisions are left "
                f"in the {last} {self.policy.noun}s of this run: decide fewer, or use a perpetual "
                "shield"
            )

    def _check_open_to_strangers(self, at: NDArray[np.intp], n: int) -> None:
        """Refuse people of unseen groups after the last window, as :meth:`decide` does."""
        last = self.policy.last
        if last is None:
            return
        left = last * self._length - self.decided
        if left <= 0 or (len(at) == left and at[-1] < n - 1):
            raise WindowOverError(
                f"this run is over after its last {self.policy.noun}, number {last}, and {n} "
                "requests go beyond it: decide fewer, or use a perpetual shield"
            )


def _spread(
    decided: Batch, at: NDArray[np.intp], said: NDArray[np.bool_], then: tuple[int, int]
) -> Batch:
    """The answers for all requests: those decided, and those whose proposal was followed.

    ``then`` is the window and the position of the decision after all of them.
    """
    n = len(said)
    accepted, overruled, paid = said.copy(), np.zeros(n, np.bool_), np.zeros(n)
    accepted[at], overruled[at], paid[at] = decided.accepted, decided.overruled, decided.paid
    following = np.searchsorted(at, np.arange(n))
    window = np.append(decided.window, then[0])[following]
    position = np.append(decided.position, then[1])[following]
    reasons = None
    if decided.reasons is not None:
        told: list[str | None] = [None] * n
        for place, reason in zip(at.tolist(), decided.reasons, strict=True):
            told[place] = reason
        reasons = tuple(told)
    return Batch(accepted, overruled, paid, window, position, reasons)
