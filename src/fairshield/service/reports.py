"""What is said of a stream: its state, its settings, its guarantee in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fairshield.counts import Counts
from fairshield.periodic import PeriodicPolicy, PeriodicShield
from fairshield.runtime.report import plain_number
from fairshield.runtime.shield import Shield
from fairshield.service.live import LiveStream
from fairshield.service.messages import GroupState, GuaranteeReport, State, Stream


def state_of(live: LiveStream) -> State:
    """Where the stream stands; makes the plan of a new period."""
    tally, shield, prop = live.tally, live.shield, live.policy.prop
    counts, unshielded = shield.counts, live.unshielded
    periodic = isinstance(shield, PeriodicShield)
    return State(
        seq=live.seq,
        decisions=live.n,
        window=shield.completed if isinstance(shield, PeriodicShield) else live.window,
        position=shield.decided % live.length if periodic else shield.decided,
        remaining=shield.remaining,
        groups=tuple(_group_states(live, counts, unshielded)),
        bias=plain_number(prop.bias_of(counts)),
        bias_unshielded=plain_number(prop.bias_of(unshielded)),
        holds=prop.holds(counts),
        guaranteed=live.guaranteed,
        pending=live.pending,
        overruled=tally.overruled,
        overridden=tally.overridden,
        cost_paid=tally.cost_paid,
        windows_completed=tally.completed,
        windows_fair=tally.fair,
        windows_unshielded_fair=tally.unshielded_fair,
        worst_bias=tally.worst_bias,
        receipt=live.hash.hex(),
    )


def _group_states(live: LiveStream, counts: Counts, unshielded: Counts) -> Iterable[GroupState]:
    for group, i in live.index.items():
        (seen, accepted), proposed = counts[group], unshielded[group].accepted
        yield GroupState(
            group=group,
            seen=seen,
            accepted=accepted,
            rate=accepted / seen if seen else None,
            proposed=proposed,
            proposed_rate=proposed / seen if seen else None,
            overruled=live.tally.overruled_by_group[i],
        )


def describe(live: LiveStream) -> Stream:
    """The stream, its settings and its state."""
    if live.described is None or live.described.state.seq != live.seq:
        live.described = _describe(live)
    return live.described


def _describe(live: LiveStream) -> Stream:
    policy, created = live.policy, live.created
    return Stream(
        name=live.name,
        status=live.status,
        policy=created.policy,
        kind=policy.kind if isinstance(policy, PeriodicPolicy) else "window",
        property=str(policy.prop),
        limit=plain_number(policy.prop.limit),
        length=live.length,
        windows=policy.last if isinstance(policy, PeriodicPolicy) else created.windows,
        groups=policy.groups,
        labelled=policy.labelled,
        human=created.human,
        created=created.at,
        closed=live.closed,
        state=state_of(live),
    )


def report_of(live: LiveStream) -> GuaranteeReport:
    """The guarantee in words."""
    shield, tally, policy = live.shield, live.tally, live.policy
    data: dict[str, Any] = {
        "property": str(policy.prop), "length": live.length, "worst_bias": tally.worst_bias
    }  # fmt: skip
    if live.closed:
        words = _closed_words(live)
    elif isinstance(shield, PeriodicShield):
        words, data = str(shield.guarantee), shield.guarantee.to_dict()
    else:
        words = _window_words(live, shield)
        data |= {"window": live.window, "decided": shield.decided}
    return GuaranteeReport(
        stream=live.name,
        status=live.status,
        words=words,
        guaranteed=live.guaranteed,
        unconditional=policy.unconditional if isinstance(policy, PeriodicPolicy) else True,
        windows_completed=tally.completed,
        windows_fair=tally.fair,
        report=data,
    )


def _window_words(live: LiveStream, shield: Shield) -> str:
    prop, left = live.policy.prop, shield.remaining
    if not left and shield.pending is None:
        verb = "holds" if prop.holds(shield.counts) else "does not hold"
        promise = f"{prop} {verb} at the end of window {live.window + 1}."
    elif shield.guaranteed:
        promise = (
            f"{prop} is certain to hold at the end of this window of {live.length} decisions, "
            f"whoever the {left} still to come are."
        )
    else:
        promise = (
            f"{prop} can no longer be guaranteed for the end of this window, "
            f"{left} decisions from now."
        )
    return f"{promise} {_past(live)}"


def _closed_words(live: LiveStream) -> str:
    """What is left of a guarantee when the stream is closed: of an unfinished window nothing."""
    prop, state = live.policy.prop, state_of(live)
    noun = "period" if live.periodic else "window"
    if not state.remaining or not state.position:
        return f"The stream is closed. {_past(live)}"
    verb = "holds" if state.holds else "does not hold"
    return (
        f"The stream was closed after {state.position} of {live.length} decisions of a {noun}: "
        f"nothing is promised of it, and {prop} {verb} of the counters as they are. {_past(live)}"
    )


def _past(live: LiveStream) -> str:
    tally, prop = live.tally, live.policy.prop
    noun = "period" if live.periodic else "window"
    if not tally.completed:
        return f"No {noun} has ended yet."
    return (
        f"{tally.fair} of {tally.completed} {noun}s ended fair; largest bias "
        f"{tally.largest_bias:.4g}, {prop.limit:.4g} is allowed. Without the shield, "
        f"{tally.unshielded_fair} would have."
    )
