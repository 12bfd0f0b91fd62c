"""Messages about a stream: its state, its settings, its guarantee in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from fairshield.base.counts import Group
from fairshield.base.plain import plain_number
from fairshield.service.log.live import LiveStream
from fairshield.spec import AT_LAST
from fairshield.wire.messages import (
    GroupState,
    GuaranteeReport,
    InProgress,
    Rates,
    StateMessage,
    StreamMessage,
    WholeStream,
)


def state_of(live: LiveStream) -> StateMessage:
    """Where the stream stands; makes the plan of a new period."""
    now, whole = _in_progress(live), _whole_stream(live)
    return StateMessage(
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
    ledger, prop = live.ledger, live.policy.prop
    counts, unshielded = ledger.counts, ledger.counts_unshielded
    return InProgress(
        window=live.window,
        position=live.position,
        remaining=live.remaining,
        groups=tuple(
            _rates(group, *counts[group], unshielded[group].accepted) for group in live.index
        ),
        bias=plain_number(prop.bias_of(counts)),
        bias_unshielded=plain_number(prop.bias_of(unshielded)),
        measured_bias=plain_number(prop.measured_bias_of(counts)),
        measured_bias_unshielded=plain_number(prop.measured_bias_of(unshielded)),
        verdict=prop.verdict(counts),
        guaranteed=live.guaranteed,
        overruled=ledger.window_overruled,
        cost_paid=ledger.window_paid,
    )


def _whole_stream(live: LiveStream) -> WholeStream:
    ledger = live.ledger
    return WholeStream(
        decisions=live.n,
        groups=tuple(_rates(group, *ledger.people(i)[:3]) for group, i in live.index.items()),
        overruled=ledger.overruled,
        overridden=ledger.overridden,
        cost_paid=ledger.paid,
        windows=ledger.windows,
        fair=ledger.shielded.fair,
        unfair=ledger.shielded.unfair,
        exempt=ledger.shielded.exempt,
        unshielded_fair=ledger.unshielded.fair,
        worst_bias=plain_number(ledger.shielded.largest_bias),
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
    for i, rates in enumerate(now.groups):
        yield GroupState(**msgspec.structs.asdict(rates), overruled=live.ledger.people(i).overruled)


def describe(live: LiveStream) -> StreamMessage:
    """The stream, its settings and its state."""
    if live.described is None or live.described.state.seq != live.seq:
        live.described = _describe(live)
    return live.described


def _describe(live: LiveStream) -> StreamMessage:
    policy, created = live.policy, live.created
    return StreamMessage(
        name=live.name,
        status=live.status,
        policy=created.policy,
        kind=policy.kind,
        property=str(policy.prop),
        limit=plain_number(policy.prop.limit),
        length=live.length,
        windows=created.windows if policy.last is None else policy.last,
        groups=policy.groups,
        labelled=policy.labelled,
        checkpoints=policy.due[:-1],
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
    policy, whole = live.policy, _whole_stream(live)
    data: dict[str, Any] = {
        "property": str(policy.prop), "length": live.length, "worst_bias": whole.worst_bias
    }  # fmt: skip
    if live.closed:
        promise = _closed_words(live)
    elif policy.goes_on:
        guarantee = live.run.guarantee
        promise, data = guarantee.now(), guarantee.to_dict()
    else:
        promise = _window_words(live)
        data |= {"window": live.window, "decided": live.position}
    return GuaranteeReport(
        stream=live.name,
        status=live.status,
        words=f"{promise} {_past(live)}",
        guaranteed=live.guaranteed,
        unconditional=policy.unconditional,
        can_bind=live.can_bind,
        windows_completed=whole.windows,
        windows_fair=whole.fair,
        windows_unfair=whole.unfair,
        windows_exempt=whole.exempt,
        report=data,
    )


def _window_words(live: LiveStream) -> str:
    prop, left = live.policy.prop, live.remaining
    if live.shows_end:
        held = AT_LAST[prop.verdict(live.counts)]
        promise = f"{prop} {held} at the end of window {live.window + 1}."
        if live.policy.support is not None:
            promise += f" {live.run.guarantee.now()}"
    elif live.guaranteed:
        promise = (
            f"{prop} is certain to hold at the end of this window of {live.length} decisions, "
            f"whoever the {left} still to come are."
        )
    elif live.policy.support is not None:
        promise = live.run.guarantee.now()
    else:
        promise = (
            f"{prop} can no longer be guaranteed for the end of this window, "
            f"{left} decisions from now."
        )
    if live.failed and (not live.shows_end or prop.holds(live.counts)):
        promise += " It did not hold at a checkpoint of this window."
    if not live.can_bind:
        promise += " It can never bind, whoever comes, and so this promises nothing."
    return promise


def _closed_words(live: LiveStream) -> str:
    """Say what a closed stream still guarantees: nothing of an unfinished window."""
    prop, verdict = live.policy.prop, live.policy.prop.verdict(live.counts)
    if not live.remaining or not live.position:
        return "The stream is closed."
    held = "binds nothing" if verdict == "exempt" else AT_LAST[verdict]
    return (
        f"The stream was closed after {live.position} of {live.length} decisions of a "
        f"{live.policy.noun}: nothing is promised of it, and {prop} {held} of the counters as "
        "they are."
    )


def _past(live: LiveStream) -> str:
    ended, noun, limit = live.ledger.shielded, live.policy.noun, live.policy.prop.limit
    windows = live.ledger.windows
    if not windows:
        return f"No {noun} has ended yet."
    bound = windows - ended.exempt
    exempt = f"{ended.exempt} of {windows} {noun}s were exempt: the property bound nothing."
    if not bound:
        return exempt
    said = (
        f"{ended.fair} of {bound} {noun}s{' that it bound' if ended.exempt else ''} ended fair; "
        f"largest bias {ended.largest_bias:.4g}, {limit:.4g} is allowed. "
        f"Without the shield, {live.ledger.unshielded.fair} would have."
    )
    return f"{said} {exempt}" if ended.exempt else said
