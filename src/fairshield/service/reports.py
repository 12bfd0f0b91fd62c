"""What is said of a stream: its state, its settings, its guarantee in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from fairshield.counts import Group
from fairshield.periodic import PeriodicPolicy, PeriodicShield
from fairshield.runtime.report import plain_number
from fairshield.runtime.shield import Shield
from fairshield.service.live import LiveStream
from fairshield.service.messages import (
    GroupState,
    GuaranteeReport,
    InProgress,
    Rates,
    State,
    Stream,
    WholeStream,
)
from fairshield.spec import Verdict


def state_of(live: LiveStream) -> State:
    """Where the stream stands; makes the plan of a new period."""
    now, whole = _in_progress(live), _whole_stream(live)
    return State(
        seq=live.seq,
        decisions=whole.decisions,
        window=now.window,
        position=now.position,
        remaining=now.remaining,
        groups=tuple(_group_states(live, now)),
        bias=now.bias,
        bias_unshielded=now.bias_unshielded,
        holds=now.verdict != "unfair",
        guaranteed=now.guaranteed,
        pending=live.pending,
        overruled=whole.overruled,
        overridden=whole.overridden,
        cost_paid=whole.cost_paid,
        windows_completed=whole.windows,
        windows_fair=whole.fair,
        windows_unfair=whole.unfair,
        windows_exempt=whole.exempt,
        windows_unshielded_fair=whole.unshielded_fair,
        worst_bias=whole.worst_bias,
        receipt=live.hash.hex(),
        in_progress=now,
        whole_stream=whole,
    )


def _in_progress(live: LiveStream) -> InProgress:
    tally, shield, prop = live.tally, live.shield, live.policy.prop
    counts, unshielded = shield.counts, live.unshielded
    periodic = isinstance(shield, PeriodicShield)
    return InProgress(
        window=shield.completed if isinstance(shield, PeriodicShield) else live.window,
        position=shield.decided % live.length if periodic else shield.decided,
        remaining=shield.remaining,
        groups=tuple(
            _rates(group, *counts[group], unshielded[group].accepted) for group in live.index
        ),
        bias=plain_number(prop.bias_of(counts)),
        bias_unshielded=plain_number(prop.bias_of(unshielded)),
        measured_bias=plain_number(prop.measured_bias_of(counts)),
        measured_bias_unshielded=plain_number(prop.measured_bias_of(unshielded)),
        verdict=prop.verdict(counts),
        guaranteed=live.guaranteed,
        overruled=tally.window_overruled,
        cost_paid=tally.window_cost,
    )


def _whole_stream(live: LiveStream) -> WholeStream:
    tally = live.tally
    return WholeStream(
        decisions=live.n,
        groups=tuple(_rates(group, *people) for group, people in live.everybody.items()),
        overruled=tally.overruled,
        overridden=tally.overridden,
        cost_paid=tally.cost_paid,
        windows=tally.completed,
        fair=tally.fair,
        unfair=tally.unfair,
        exempt=tally.exempt,
        unshielded_fair=tally.unshielded_fair,
        worst_bias=tally.worst_bias,
    )


def _rates(group: Group, seen: int, accepted: int, proposed: int) -> Rates:
    return Rates(
        group=group,
        seen=seen,
        accepted=accepted,
        rate=accepted / seen if seen else None,
        proposed=proposed,
        proposed_rate=proposed / seen if seen else None,
    )


def _group_states(live: LiveStream, now: InProgress) -> Iterable[GroupState]:
    for rates, overruled in zip(now.groups, live.tally.overruled_by_group, strict=True):
        yield GroupState(**msgspec.structs.asdict(rates), overruled=overruled)


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
        checkpoints=() if isinstance(policy, PeriodicPolicy) else policy.due[:-1],
        human=created.human,
        created=created.at,
        closed=live.closed,
        can_bind=live.can_bind,
        alarms=() if live.watcher is None else live.watcher.alarms,
        unwatched=None if live.watcher is None else live.watcher.unwatched,
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
        words, data = _period_words(live, shield), shield.guarantee.to_dict()
    else:
        words = _window_words(live, shield)
        data |= {"window": live.window, "decided": shield.decided}
    return GuaranteeReport(
        stream=live.name,
        status=live.status,
        words=words,
        guaranteed=live.guaranteed,
        unconditional=policy.unconditional if isinstance(policy, PeriodicPolicy) else True,
        can_bind=live.can_bind,
        windows_completed=tally.completed,
        windows_fair=tally.fair,
        windows_unfair=tally.unfair,
        windows_exempt=tally.exempt,
        report=data,
    )


_NEVER = "It can never bind, whoever comes, and so this promises nothing."


def _window_words(live: LiveStream, shield: Shield) -> str:
    prop, left = live.policy.prop, shield.remaining
    if not left and shield.pending is None:
        promise = f"{prop} {_VERBS[prop.verdict(shield.counts)]} at the end of window "
        promise += f"{live.window + 1}."
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
    return " ".join([promise, *([] if live.can_bind else [_NEVER]), _past(live)])


def _period_words(live: LiveStream, shield: PeriodicShield) -> str:
    return f"{shield.guarantee.now()} {_past(live)}"


_VERBS: dict[Verdict, str] = {
    "fair": "holds", "unfair": "does not hold", "exempt": "bound nothing"
}  # fmt: skip


def _closed_words(live: LiveStream) -> str:
    """What is left of a guarantee when the stream is closed: of an unfinished window nothing."""
    prop, now = live.policy.prop, _in_progress(live)
    noun = "period" if live.periodic else "window"
    if not now.remaining or not now.position:
        return f"The stream is closed. {_past(live)}"
    verb = {**_VERBS, "exempt": "binds nothing"}[now.verdict]
    return (
        f"The stream was closed after {now.position} of {live.length} decisions of a {noun}: "
        f"nothing is promised of it, and {prop} {verb} of the counters as they are. {_past(live)}"
    )


def _past(live: LiveStream) -> str:
    tally, prop = live.tally, live.policy.prop
    noun = "period" if live.periodic else "window"
    if not tally.completed:
        return f"No {noun} has ended yet."
    bound = tally.completed - tally.exempt
    exempt = f"{tally.exempt} of {tally.completed} {noun}s were exempt: the property bound nothing."
    if not bound:
        return exempt
    said = (
        f"{tally.fair} of {bound} {noun}s{' that it bound' if tally.exempt else ''} ended fair; "
        f"largest bias {tally.largest_bias:.4g}, {prop.limit:.4g} is allowed. Without the shield, "
        f"{tally.unshielded_fair} would have."
    )
    return f"{said} {exempt}" if tally.exempt else said
