"""Shield: one window of decisions, one request at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairshield.base.counts import At, Counts, Group, after, is_whole, unknown_group
from fairshield.base.errors import (
    InvalidValueError,
    OutcomePendingError,
    UnexpectedOutcomeError,
    WindowOverError,
    argument,
    check_kind,
)
from fairshield.base.words import summary
from fairshield.policy import Policy
from fairshield.records import Flag, as_flag
from fairshield.runtime.batches import decide_batch
from fairshield.runtime.requests import Requests, encode_requests
from fairshield.runtime.step import LOST, Decision, Why, check_request, reason_of, verdict
from fairshield.spec import Verdict
from fairshield.spec.counting import after_gain

_made = tuple.__new__
"""Makes a named tuple of all its fields, which its constructor does more slowly."""


class Batch(NamedTuple):
    """Batch holds the answers to many requests, as arrays.

    ``window`` counts the windows of a run from 0, ``position`` the decisions of a window; somebody
    of an unseen group whose proposal was followed has the position of the next who is counted.
    """

    accepted: NDArray[np.bool_]
    overruled: NDArray[np.bool_]
    paid: NDArray[np.float64]
    window: NDArray[np.int64]
    position: NDArray[np.int64]
    reasons: tuple[str | None, ...] | None = None
    """Why, of each that was overruled or is of an unseen group, if it was asked for."""


class Shield:
    """Shield decides one window by a policy and counts every decision that it makes.

    Parameters
    ----------
    policy
        What to do in each state.
    counts, decided
        Resume a window: the counters so far (including the policy's start) and how many decisions
        have been made.  ``decided`` follows from the counters unless outcomes matter.
    pending
        Resume while the outcome of this decision, the last one made, is awaited.
    window
        The number of the window in a run, which its decisions bear.

    Examples
    --------
    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> shield = fs.Shield(fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=4))
    >>> [shield.decide(g, proposed=g == "a").accepted for g in "aabb"]
    [True, True, True, True]
    """

    __slots__ = (
        "_at", "_counting", "_horizon", "_index", "_labelled", "_pending", "_plain", "_t",
        "_window", "policy",
    )  # fmt: skip

    def __init__(
        self,
        policy: Policy,
        *,
        counts: Counts | None = None,
        decided: int | None = None,
        pending: Decision | None = None,
        window: int = 0,
    ) -> None:
        if not isinstance(policy, Policy):
            raise InvalidValueError(
                f"a shield needs a policy for one window, got {type(policy).__name__}: make one "
                "with synthesize, load it with load_policy, or use Run for a periodic policy"
            )
        self.policy = policy
        self._counting = counting = policy.prop.counting
        self._labelled = counting.labelled
        self._plain = counting.of_people and not counting.labelled
        self._horizon, self._window = policy.horizon, window
        self._index = {group: i for i, group in enumerate(policy.groups)}
        self._t, self._at = 0, (0, 0) * len(policy.groups)
        if counts is not None or decided is not None:
            self._resume(policy.start if counts is None else counts, decided)
        self._pending = pending
        if pending is not None and not (policy.labelled and pending.position == self._t - 1):
            raise InvalidValueError(
                f"decision {pending.position} cannot be pending after {self._t} decisions of a "
                f"policy for {policy.prop}"
            )

    def _resume(self, counts: Counts, decided: int | None) -> None:
        if decided is not None and not is_whole(decided):
            raise InvalidValueError(f"decided must be a whole number, got {decided!r}")
        seen = sum(self.policy.since_start(counts)[::2])
        if decided is None:
            if seen and not self._counting.steady:
                raise InvalidValueError(
                    f"{self.policy.prop} does not count everybody once: to resume, say also how "
                    f"many decisions have been made ({argument('decided')})"
                )
            decided = seen
        self._at, self._t = self.policy.position(counts, decided), decided

    # Where the window stands ----------------------------------------------------------------

    @property
    def counts(self) -> Counts:
        """Counters so far, including the policy's start."""
        return self.policy.start.plus(self._at)

    @property
    def gained(self) -> At:
        """``n_a, k_a, n_b, k_b, …`` since the policy's start."""
        return self._at

    @property
    def decided(self) -> int:
        """Decisions made."""
        return self._t

    @property
    def position(self) -> int:
        """Decisions made in the window; a shield has one window, so it equals :attr:`decided`."""
        return self._t

    @property
    def remaining(self) -> int:
        """Decisions left in the window."""
        return self.policy.horizon - self._t

    @property
    def planned(self) -> int:
        """How many decisions can be made before a plan has to be computed.

        The decision after them first computes the end of a long window, which takes milliseconds.
        Reading :attr:`guaranteed` computes it beforehand.
        """
        return self.policy.planned(self._t, self._at)

    @property
    def pending(self) -> Decision | None:
        """The decision whose outcome must be observed next, if any."""
        return self._pending

    @property
    def guaranteed(self) -> bool:
        """Whether the property is certain to hold at the horizon, whatever comes."""
        if self._pending is None:
            return self.policy.feasible(self._t, self._at)
        pending = self._pending
        gains = self._counting.possible(pending.accepted)
        counted = (after_gain(self._at, self._index[pending.group], gain) for gain in gains)
        return all(self.policy.feasible(self._t, at) for at in counted)

    def holds(self) -> bool:
        """Whether the property holds of the counters now; it must at the horizon."""
        return self.policy.prop.holds(self.counts)

    def verdict(self) -> Verdict:
        """The verdict on the counters now: ``"fair"``, ``"unfair"``, or ``"exempt"``.

        Counters are exempt if the property does not bind them, for example because of too few
        people: then it holds for any decisions.
        """
        return self.policy.prop.verdict(self.counts)

    __repr__ = summary

    def __str__(self) -> str:
        text = f"{self.policy.prop}, {self._t} of {self._horizon} decisions, {self.counts}"
        if self._pending is not None:
            return f"{text}, waiting for the outcome of decision {self._pending.position}"
        return text if self.remaining else f"{text}, {self.verdict()}"

    # Deciding -------------------------------------------------------------------------------

    def decide(self, group: Group, *, proposed: Flag, cost: float = 1.0) -> Decision:
        """The final decision on one person; it is counted at once."""
        t, at = self._t, self._at
        plain = type(cost) is float and 0.0 <= cost < math.inf
        if not plain or t >= self._horizon or self._pending is not None:
            cost = self._checked(group, cost)
        try:
            g = self._index[group]
        except (KeyError, TypeError):
            raise unknown_group(group, self.policy.groups) from None
        if proposed is not True and proposed is not False:
            proposed = as_flag(proposed)
        accepted, why = verdict(self.policy, t, at, g, proposed, cost)
        decision = _made(
            Decision, (t, group, proposed, cost, accepted, why, at, why is not LOST, self._window)
        )
        self._count(decision, g)
        return decision

    def observe(self, decision: Decision, *, outcome: Flag) -> None:
        """Reveal the outcome of the last decision (properties that count by outcome)."""
        check_kind(decision, Decision, "an outcome is observed of a Decision, as decide returned")
        if self._pending is None or decision.position != self._pending.position:
            raise UnexpectedOutcomeError(
                f"decision {decision.position} is not waiting for its outcome: "
                + (
                    f"decision {self._pending.position} is"
                    if self._pending is not None
                    else f"{self.policy.prop} does not need outcomes"
                    if not self.policy.labelled
                    else "none is; decide first, observe once"
                )
            )
        counting, pending = self._counting, self._pending
        gain = counting.gains[2 * pending.accepted + (as_flag(outcome) == counting.outcome)]
        self._at = after_gain(self._at, self._index[pending.group], gain)
        self._pending = None

    def decide_many(
        self,
        groups: Sequence[Group] | ArrayLike,
        proposed: ArrayLike,
        costs: ArrayLike | float = 1.0,
        outcomes: ArrayLike | None = None,
        *,
        reasons: bool = False,
    ) -> Batch:
        """Decide requests in order of arrival; all of them or, on an error, none.

        The same decisions as :meth:`decide`, compiled where the extra ``synthesis`` is installed.
        Properties that count by outcome need ``outcomes``, one per request.  With ``reasons`` the
        answer says why each overruled decision was made, which takes some microseconds for each.
        """
        self._check_open()
        requests = encode_requests(self.policy, groups, proposed, costs, outcomes)
        if len(requests.groups) > self.remaining:
            raise WindowOverError(
                f"{len(requests.groups)} requests, but only {self.remaining} of the window's "
                f"{self.policy.horizon} decisions are left: decide the rest with a new Shield"
            )
        accepted, at = decide_batch(self.policy, self._t, self._at, requests)
        overruled = accepted != requests.proposed
        why = self._reasons(requests, accepted, overruled) if reasons else None
        first, self._at, self._t = self._t, at, self._t + len(accepted)
        window, position = np.full(len(accepted), self._window), np.arange(first, self._t)
        paid = np.where(overruled, requests.costs, 0.0)
        return Batch(accepted, overruled, paid, window, position, why)

    def _reasons(
        self, requests: Requests, accepted: NDArray[np.bool_], overruled: NDArray[np.bool_]
    ) -> tuple[str | None, ...]:
        """Why each of the next requests was overruled."""
        why: list[str | None] = [None] * len(accepted)
        n_groups = len(self.policy.groups)
        before = requests.gained(accepted, self._counting, n_groups) + np.array(self._at)
        for i in np.flatnonzero(overruled).tolist():
            g, proposed, cost = int(requests.groups[i]), bool(requests.proposed[i]), requests.costs
            at = tuple(before[i].tolist())
            _, reason = verdict(self.policy, self._t + i, at, g, proposed, float(cost[i]))
            group = self.policy.groups[g]
            why[i] = reason_of(
                reason, group, proposed=proposed, accepted=not proposed, cost=float(cost[i]),
                guaranteed=reason is not LOST,
            )  # fmt: skip
        return tuple(why)

    # A human in the loop --------------------------------------------------------------------

    def advise(self, group: Group, *, proposed: Flag, cost: float = 1.0) -> Decision:
        """Return what the shield would decide; nothing is counted until :meth:`record`."""
        cost, said = self._checked(group, cost), as_flag(proposed)
        accepted, why = verdict(self.policy, self._t, self._at, self._index[group], said, cost)
        return Decision(
            self._t, group, said, cost, accepted, why, self._at, why is not LOST, self._window
        )

    def record(self, advice: Decision, *, final: Flag) -> Decision:
        """Count a person's decision on the request that ``advice`` was for.

        The returned decision says whether fairness is still guaranteed; the next decision plans
        from the counters as they are.
        """
        check_kind(advice, Decision, "what is recorded is a Decision, as advise returned")
        self._check_open()
        if advice.position != self._t or advice.seen_before != self._at:
            raise InvalidValueError(
                f"the advice is for decision {advice.position}, the next decision is {self._t}: "
                "ask this shield for advice again"
            )
        check_request(self.policy, self._t, advice.group, advice.cost)
        decision, accepted = advice, as_flag(final)
        if accepted != advice.accepted:
            decision = advice._replace(accepted=accepted, why=Why.HUMAN)
        self._count(decision, self._index[decision.group])
        decision = decision._replace(guaranteed=self.guaranteed)
        if self.policy.labelled:
            self._pending = decision
        return decision

    # Counting -------------------------------------------------------------------------------

    def _count(self, decision: Decision, g: int) -> None:
        self._t += 1
        if self._plain:
            self._at = after(self._at, g, decision.accepted)
        elif self._labelled:
            self._pending = decision
        else:
            self._at = after_gain(self._at, g, self._counting.gain(decision.accepted, None))

    def _checked(self, group: Group, cost: Any) -> float:
        """The cost of a request that can be answered now."""
        self._check_open()
        return check_request(self.policy, self._t, group, cost)

    def _check_open(self) -> None:
        if self._pending is not None:
            raise OutcomePendingError(
                f"observe the outcome of decision {self._pending.position} before the next decision"
                ", with observe(decision, outcome=True or False)"
            )
