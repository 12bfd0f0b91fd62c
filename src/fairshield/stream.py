"""Stream: a policy in use for as long as people come.

A :class:`~fairshield.Shield` is one window and ends with it.  A stream opens the next one, goes on
from period to period where the policy is periodic, and knows what to do with people whose group
the policy was not made for.  Frames, estimators, served models and the command line decide through
it.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairshield.counts import Counts, Group, GroupCount, place_among
from fairshield.errors import InvalidValueError, WindowOverError, check_kind
from fairshield.explain import Explanation, explain
from fairshield.groups import Coded, Unseen, group_column, places_among, stranger
from fairshield.inputs.columns import costs_of, flags, outcomes_of
from fairshield.periodic import PeriodicExplanation, PeriodicPolicy, PeriodicShield
from fairshield.policy import Policy
from fairshield.records import Flag, Record, as_cost, as_flag
from fairshield.runtime.batches import decide_windows
from fairshield.runtime.requests import encode_requests
from fairshield.runtime.shield import Batch, Shield
from fairshield.runtime.step import Decision, Why
from fairshield.spec import Property, Verdict
from fairshield.words import summary

AnyPolicy = Policy | PeriodicPolicy
AnyShield = Shield | PeriodicShield


class Request(NamedTuple):
    """What is asked about one person; ``outcome`` is ``None`` where it is not known, or needless.

    >>> Request.of({"group": "a", "proposed": True, "name": "Ada"})
    Request(group='a', proposed=True, cost=1.0, outcome=None)
    >>> Request.of(("a", True, 0.3)).cost
    0.3
    """

    group: Group
    proposed: Flag
    cost: float = 1.0
    outcome: Flag | None = None

    @classmethod
    def of(cls, given: Asked) -> Request:
        """From a mapping with these keys, a record, or a tuple in this order."""
        if isinstance(given, cls):
            return given
        fields = given.fields if isinstance(given, Record) else given
        if isinstance(fields, Mapping):
            missing = [key for key in ("group", "proposed") if key not in fields]
            if missing:
                raise InvalidValueError(f"no {missing[0]!r} in the request {fields!r}")
            cost = fields.get("cost")
            return cls(
                fields["group"], fields["proposed"], 1.0 if cost is None else cost,
                fields.get("outcome"),
            )  # fmt: skip
        if isinstance(fields, tuple) and 2 <= len(fields) <= 4:
            return cls(*fields)
        raise InvalidValueError(
            "a request is a mapping with 'group', 'proposed' and perhaps 'cost' and 'outcome', or "
            f"a tuple of these, got {fields!r}"
        )


Asked = Request | Record | Mapping[str, Any] | tuple[Any, ...]


class Answers(NamedTuple):
    """Answers to many requests, as arrays.

    ``window`` counts the windows or periods of the stream from 0, ``position`` the decisions of
    a window; somebody of an unseen group whose proposal was followed has the position of the next
    who is counted.
    """

    accepted: NDArray[np.bool_]
    overruled: NDArray[np.bool_]
    paid: NDArray[np.float64]
    window: NDArray[np.int64]
    position: NDArray[np.int64]
    reasons: tuple[str | None, ...] | None = None
    """Why, of each that was overruled or is of an unseen group, if it was asked for."""


class Stream:
    """Decides one request after the other, window after window or period after period.

    Parameters
    ----------
    policy
        For one window, which then begins anew whenever one is over, or periodic.
    unseen
        What happens to people of groups that the policy does not know: ``"refuse"``, ``"follow"``,
        ``"map:GROUP"``, a mapping of names, or an :class:`~fairshield.Unseen`.

    Examples
    --------
    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> policy = fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=4)
    >>> stream = fs.Stream(policy, unseen="follow")
    >>> answers = stream.decide_many(list("aabbcab"), [True, True] + [False] * 5)
    >>> answers.accepted.tolist(), answers.window.tolist()
    ([True, True, True, True, False, False, False], [0, 0, 0, 0, 1, 1, 1])
    >>> stream.followed, stream.completed, stream.remaining
    ({'c': GroupCount(seen=1, accepted=0)}, 1, 2)
    """

    def __init__(
        self, policy: AnyPolicy, *, unseen: Unseen | str | dict[Group, Group] = "refuse"
    ) -> None:
        check_kind(
            policy, Policy | PeriodicPolicy,
            "a stream needs a policy: make one with synthesize, or load it with Policy.load",
        )  # fmt: skip
        self.policy = policy
        self.unseen = Unseen.of(unseen).among(policy.groups)
        self.followed: dict[Group, GroupCount[int]] = {}
        """By unseen group, how many proposals were followed and how many of them accept."""
        self._window = 0
        self._shield = (
            PeriodicShield(policy) if isinstance(policy, PeriodicPolicy) else Shield(policy)
        )

    # Where the stream stands ----------------------------------------------------------------

    @property
    def prop(self) -> Property:
        """What holds at the end of every window or period."""
        return self.policy.prop

    @property
    def shield(self) -> AnyShield:
        """The shield that decides next: of a new window, where one is over."""
        shield = self._shield
        if isinstance(shield, Shield) and not shield.remaining and shield.pending is None:
            self._window, self._shield = self._window + 1, Shield(shield.policy)
        return self._shield

    @property
    def completed(self) -> int:
        """Windows or periods that are over."""
        shield = self.shield
        return shield.completed if isinstance(shield, PeriodicShield) else self._window

    @property
    def counts(self) -> Counts:
        """Counters of the window in progress; of a periodic policy, since the run began."""
        return self.shield.counts

    @property
    def remaining(self) -> int:
        """Decisions left in the window or period in progress."""
        return self.shield.remaining

    def holds(self) -> bool:
        """Whether the property holds of the counters now; it must at the end."""
        return self.prop.holds(self.counts)

    def verdict(self) -> Verdict:
        """What to say of the counters now: ``"fair"``, ``"unfair"``, or ``"exempt"``."""
        return self.prop.verdict(self.counts)

    __repr__ = summary

    def __str__(self) -> str:
        noun = "period" if isinstance(self.policy, PeriodicPolicy) else "window"
        text = (
            f"{self.prop}, {noun} {self.completed + 1}, {self.position} of "
            f"{_length(self.policy)} decisions, {self.counts}"
        )
        strangers = sum(count.seen for count in self.followed.values())
        return text + (f", {strangers} of unseen groups followed" if strangers else "")

    @property
    def position(self) -> int:
        """Decisions made in the window or period in progress."""
        shield = self.shield
        over = isinstance(shield, PeriodicShield) and shield.over
        return 0 if over else _length(self.policy) - shield.remaining

    @property
    def pending(self) -> Decision | None:
        """The decision whose outcome must be observed next, if any."""
        return self._shield.pending

    @property
    def planned(self) -> bool:
        """Whether the next decision is made at once, without planning."""
        shield = self.shield
        if isinstance(shield, PeriodicShield):
            return shield.planned
        return shield.planned > 0 or not shield.remaining

    def plan(self) -> None:
        """Work out now what the next decision would have to: a period, the end of a long window.

        Nobody may decide meanwhile.
        """
        shield = self.shield
        # Asking what is guaranteed makes the plan.
        _ = shield.guarantee if isinstance(shield, PeriodicShield) else shield.guaranteed

    # Deciding -------------------------------------------------------------------------------

    def decide(self, group: Group, *, proposed: Flag, cost: float = 1.0) -> Decision:
        """The final decision on one person; ``period`` is its window or period."""
        known = self._known_as(group)
        if known is None:
            return self._follow(group, proposed, cost)
        return self._told(self.shield.decide(known, proposed=proposed, cost=cost))

    def observe(self, decision: Decision, *, outcome: Flag) -> None:
        """Reveal the outcome of the last decision (properties that count by outcome)."""
        if decision.why is not Why.UNSEEN:
            self._shield.observe(decision, outcome=outcome)

    def advise(self, group: Group, *, proposed: Flag, cost: float = 1.0) -> Decision:
        """What the shield would decide; nothing is counted until :meth:`record`."""
        known = self._known_as(group)
        if known is None:
            return self._unseen(group, proposed, cost)
        return self._told(self.shield.advise(known, proposed=proposed, cost=cost))

    def record(self, advice: Decision, *, final: Flag) -> Decision:
        """Count a person's decision on the request that ``advice`` was for."""
        if advice.why is Why.UNSEEN:
            decision = advice._replace(accepted=as_flag(final))
            self._count_stranger(decision.group, accepted=decision.accepted)
            return decision
        return self._told(self.shield.record(advice, final=final))

    def explain(self, decision: Decision) -> Explanation | PeriodicExplanation:
        """Why a decision was made; of a periodic policy, one of this period or the last."""
        if decision.why is Why.UNSEEN:
            raise InvalidValueError(f"the policy did not decide: {decision.reason}")
        if isinstance(self._shield, PeriodicShield):
            return self._shield.explain(decision)
        return explain(self._shield.policy, decision)

    # One by one, as they come ---------------------------------------------------------------

    def decide_each(self, requests: Iterable[Asked]) -> Iterator[Decision]:
        """Decisions on requests, each made when it is asked for; nothing is read ahead.

        A request is a mapping with ``group`` and ``proposed``, perhaps ``cost`` and ``outcome``, or
        a tuple of these.  An outcome is observed at once; one that becomes known later is for the
        caller to :meth:`observe` before going on.

        >>> import fairshield as fs
        >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
        >>> stream = fs.Stream(fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=4))
        >>> requests = ({"group": g, "proposed": g == "a"} for g in "aabb")
        >>> [decision.accepted for decision in stream.decide_each(requests)]
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
        return map(self._answer, requests)

    async def adecide_each(self, requests: AsyncIterable[Asked]) -> AsyncIterator[Decision]:
        """:meth:`decide_each` for requests that are awaited."""
        if not isinstance(requests, AsyncIterable):
            raise InvalidValueError(
                f"{type(requests).__name__} is not asynchronous: decide its requests with "
                "decide_each"
            )
        async for request in requests:
            yield self._answer(request)

    def _answer(self, asked: Asked) -> Decision:
        group, proposed, cost, outcome = Request.of(asked)
        known = None if outcome is None else as_flag(outcome)
        decision = self.decide(group, proposed=proposed, cost=cost)
        if known is not None and self.policy.labelled:
            self.observe(decision, outcome=known)
        return decision

    def _known_as(self, group: Group) -> Group | None:
        known = self.policy.groups
        place = place_among(known, group)
        return self.unseen.known_as(group, known) if place < 0 else known[place]

    def _told(self, decision: Decision) -> Decision:
        if isinstance(self._shield, PeriodicShield):
            return decision
        return decision._replace(period=self._window)

    def _unseen(self, group: Group, proposed: Flag, cost: float) -> Decision:
        shield, said = self.shield, as_flag(proposed)
        window = shield.current if isinstance(shield, PeriodicShield) else shield
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

    # Many at once ---------------------------------------------------------------------------

    def decide_many(
        self,
        groups: Sequence[Group] | ArrayLike,
        proposed: ArrayLike,
        costs: ArrayLike | float = 1.0,
        outcomes: ArrayLike | None = None,
        *,
        reasons: bool = False,
    ) -> Answers:
        """Decide any number of requests in order of arrival; all or, on an error, none.

        The same decisions as :meth:`decide`, compiled where the extra ``synthesis`` is installed;
        groups of whatever types are those that :meth:`decide` knows them as.  ``reasons`` as for
        :meth:`fairshield.Shield.decide_many`, and of those whose proposal was followed.
        """
        given = group_column(groups)
        said, price = flags(proposed, "proposed", len(given)), costs_of(costs, len(given))
        known = None if outcomes is None else outcomes_of(outcomes, len(given))
        who, strangers = self._known(given)
        if strangers is None:
            return self._decide_known(who, said, price, known, reasons=reasons)
        # Every fault is found before anybody is counted.
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

    def _check_open_to_strangers(self, at: NDArray[np.intp], n: int) -> None:
        """Refuse those who would come after the last period, as :meth:`decide` does."""
        last = self.policy.last if isinstance(self.policy, PeriodicPolicy) else None
        if last is None:
            return
        left = (last - self.completed) * _length(self.policy) - self.position
        if left <= 0 or (len(at) == left and at[-1] < n - 1):
            raise WindowOverError(
                f"this run is over after its last period, number {last}, and {n} requests go "
                "beyond it: decide fewer, or use a perpetual shield"
            )

    def _known(self, who: NDArray[Any] | Coded) -> tuple[Coded, NDArray[np.bool_] | None]:
        """Everybody as one of the policy's groups, and who is followed instead, if anybody."""
        groups = self.policy.groups
        numbers = self.unseen.placed(places_among(groups, who), who, groups, "groups")
        followed = numbers < 0
        return Coded(groups, numbers), followed if followed.any() else None

    def _decide_known(
        self, who: Coded, said: NDArray[np.bool_], price: NDArray[np.float64],
        known: NDArray[np.bool_] | None, *, reasons: bool,
    ) -> Answers:  # fmt: skip
        length, n = _length(self.policy), len(who)
        first = self.completed * length + self.position
        shield = self.shield
        if isinstance(shield, PeriodicShield):
            batch = shield.decide_many(who, said, price, known, reasons=reasons)
        else:
            batch = self._decide_windows(who, said, price, known, reasons=reasons)
        window, position = np.divmod(np.arange(first, first + n), length)
        return Answers(*batch[:3], window, position, batch.reasons)

    def _decide_windows(
        self, who: Coded, said: NDArray[np.bool_], price: NDArray[np.float64],
        known: NDArray[np.bool_] | None, *, reasons: bool,
    ) -> Batch:  # fmt: skip
        """The rest of the window in progress, all whole windows in one call, and the beginning."""
        shield, n = self.shield, len(who)
        assert isinstance(shield, Shield)
        policy = shield.policy
        if shield.pending is not None:
            shield.decide_many(who[:1], said[:1])  # raises
        asked = encode_requests(policy, who, said, price, known)
        accepted, i = np.empty(n, np.bool_), 0
        why: list[str | None] = []
        while i < n:
            shield = self.shield
            assert isinstance(shield, Shield)
            whole = (n - i) // policy.horizon
            if whole > 1 and not shield.decided and not reasons:
                end = i + whole * policy.horizon
                rows = asked.in_rows(slice(i, end), policy.horizon)
                accepted[i:end] = decide_windows(policy, shield.gained, rows).reshape(-1)
                self._window += whole
            else:
                end = min(n, i + shield.remaining)
                here = slice(i, end)
                batch = shield.decide_many(
                    who[here], said[here], price[here], None if known is None else known[here],
                    reasons=reasons,
                )  # fmt: skip
                accepted[here] = batch.accepted
                why += batch.reasons or ()
            i = end
        overruled = accepted != said
        paid = np.where(overruled, price, 0.0)
        return Batch(accepted, overruled, paid, tuple(why) if reasons else None)


def _length(policy: AnyPolicy) -> int:
    return policy.period if isinstance(policy, PeriodicPolicy) else policy.horizon


def _spread(
    decided: Answers, at: NDArray[np.intp], said: NDArray[np.bool_], then: tuple[int, int]
) -> Answers:
    """Answers to those that were decided, at their places among those that were followed.

    ``then`` is the window and position of whoever comes after all of them.
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
    return Answers(accepted, overruled, paid, window, position, reasons)
