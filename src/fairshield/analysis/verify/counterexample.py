"""Counterexample is a sequence of requests after which a policy is unfair, as a log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from fairshield.base.counts import At, Counts, Group, in_words
from fairshield.base.plain import plain_counts, plain_number
from fairshield.spec import Property
from fairshield.spec.counting import Gain

if TYPE_CHECKING:
    from fairshield.analysis.verify.reach import ReachedStates


class LoggedDecision(NamedTuple):
    """LoggedDecision is one request and its answer, as a log has them.

    ``outcome`` is ``None`` where the property needs none.
    """

    group: Group
    proposed: bool
    cost: float
    outcome: bool | None
    accepted: bool

    @property
    def overruled(self) -> bool:
        """Whether the final decision differs from the proposal."""
        return self.accepted != self.proposed

    def to_dict(self) -> dict[str, Any]:
        """The fields of a line of a decision log."""
        fields = {**self._asdict(), "overruled": self.overruled}
        if self.outcome is None:
            del fields["outcome"]
        return fields


@dataclass(frozen=True)
class Counterexample:
    """Counterexample holds decisions of a policy that lead to a violation of the property.

    Attributes
    ----------
    decisions
        In order; no shorter sequence violates what is required at a checkpoint or the horizon.
    counts
        Counters after them, including the policy's start.
    bias, limit
        How unfair the counters are, and how unfair they may be.
    violated
        The property that they violate, in words: that of the policy, what must hold at the end
        as well, or what the caller asked for.
    """

    decisions: tuple[LoggedDecision, ...]
    counts: Counts
    bias: float
    limit: float
    violated: str

    @staticmethod
    def of(decisions: Iterable[LoggedDecision], counts: Counts, prop: Property) -> Counterexample:
        """The decisions that led to counters which violate ``prop``."""
        return Counterexample(tuple(decisions), counts, prop.bias_of(counts), prop.limit, str(prop))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        return {
            "violated": self.violated,
            "decisions": [decision.to_dict() for decision in self.decisions],
            "counts": plain_counts(self.counts),
            "bias": plain_number(self.bias),
            "limit": self.limit,
        }

    def to_jsonl(self) -> str:
        """The decisions as a log: one JSON object per line, as :func:`fairshield.audit` reads."""
        return "".join(
            json.dumps(decision.to_dict(), ensure_ascii=False) + "\n" for decision in self.decisions
        )

    def __str__(self) -> str:
        rates = in_words(
            f"{count.accepted} of {count.seen} in {group}" for group, count in self.counts.items()
        )
        lead = f"{len(self.decisions)} decisions lead to {rates} accepted, "
        if self.bias <= self.limit:
            # Counters without a certificate may satisfy the property all the same.
            return f"{lead}which is not {self.violated}"
        return f"{lead}bias {self.bias:.4g} where {self.limit:.4g} is allowed"


def find_counterexample(reach: ReachedStates, violation: At, prop: Property) -> Counterexample:
    """How the policy gets to ``violation``, which it reaches after ``reach.t`` decisions."""
    return Counterexample.of(decisions_to(reach, violation), reach.counts(violation), prop)


def decisions_to(reach: ReachedStates, at: At) -> list[LoggedDecision]:
    """How the policy gets to a state that it reaches after ``reach.t`` decisions."""
    decisions: list[LoggedDecision] = []
    for t in range(reach.t - 1, -1, -1):
        at, decision = next(_ways_to(reach, t, at))
        decisions.append(decision)
    return decisions[::-1]


def _ways_to(reach: ReachedStates, t: int, at: At) -> Iterator[tuple[At, LoggedDecision]]:
    """Reachable states after ``t`` decisions that lead to ``at``, with the request that does."""
    policy = reach.policy
    counting = policy.prop.counting
    if not counting.of_people:
        yield from _ways_of_decisions(reach, t, at)
        return
    relevant = counting.outcome
    counted, uncounted = reach.possible(t)
    for group, accepted in product(range(len(policy.groups)), (False, True)):
        before = _before(at, group, (1, accepted))
        if reach.reached(t, before):
            for proposed, level in product((accepted, not accepted), reach.costs):
                if not counted[group, int(proposed), level]:
                    continue
                if reach.accepts(t, before, group, proposed, level) == accepted:
                    cost = reach.costs[level]
                    yield (
                        before,
                        LoggedDecision(policy.groups[group], proposed, cost, relevant, accepted),
                    )
    if relevant is not None and reach.reached(t, at):
        # The outcome shows that the person does not count: any possible request leads here.
        everybody = product(range(len(policy.groups)), (False, True), reach.costs)
        for group, proposed, level in everybody:
            if uncounted[group, int(proposed), level]:
                accepted, cost = reach.accepts(t, at, group, proposed, level), reach.costs[level]
                name = policy.groups[group]
                yield at, LoggedDecision(name, proposed, cost, not relevant, accepted)


def _ways_of_decisions(reach: ReachedStates, t: int, at: At) -> Iterator[tuple[At, LoggedDecision]]:
    """:func:`_ways_to` where decisions are counted, by what was decided and the outcome."""
    policy = reach.policy
    counting = policy.prop.counting
    outcomes = (True, False) if counting.labelled else (None,)
    for group, accepted, outcome in product(range(len(policy.groups)), (False, True), outcomes):
        before = _before(at, group, counting.gain(accepted, outcome))
        if reach.reached(t, before):
            for proposed, level in product((accepted, not accepted), reach.costs):
                if reach.accepts(t, before, group, proposed, level) == accepted:
                    name, cost = policy.groups[group], reach.costs[level]
                    yield before, LoggedDecision(name, proposed, cost, outcome, accepted)


def _before(at: At, group: int, gain: Gain) -> At:
    seen, accepted = gain
    i = 2 * group
    return (*at[:i], at[i] - seen, at[i + 1] - accepted, *at[i + 2 :])
