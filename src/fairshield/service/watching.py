"""A monitor beside every stream: whether the classifier, and the input model, are what they were.

It is told the entries of the log and steers nothing.  Like all else it can be made again from the
log; that a replay need not begin at the first entry, where it stands is stored now and then.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from fairshield.counts import Counts
from fairshield.errors import InvalidValueError
from fairshield.inputs import InputSchedule
from fairshield.monitor import Alarm as Alarmed
from fairshield.monitor import Monitor
from fairshield.policy import Policy
from fairshield.service.entries import AnyEntry, Decided, Observed
from fairshield.service.messages import Alarm
from fairshield.service.snapshots import MonitorRow
from fairshield.stream import AnyPolicy

logger = logging.getLogger("fairshield.service")

_EVERY = 512
"""Decisions after which it is stored where the monitor stands."""


class _Stored(msgspec.Struct, frozen=True):
    monitor: dict[str, Any]
    alarms: list[Alarm]


class Watcher:
    """Watches the proposals of a stream's classifier, entry by entry.

    Parameters
    ----------
    number
        The stream's number in the store.
    policy
        Its policy, whose property and input model are watched.
    stored
        Where to go on; default: right after entry 0.

    Raises
    ------
    InvalidValueError
        If ``stored`` is not what a watcher of this policy has stored.
    """

    def __init__(self, number: int, policy: AnyPolicy, *, stored: MonitorRow | None = None) -> None:
        self.number, self.policy = number, policy
        self.alarms: list[Alarm] = []
        self.seq, self._hash = 0, b""
        self._pending: Decided | None = None
        self._failed = False
        inputs = policy.inputs
        length = policy.horizon if isinstance(policy, Policy) else policy.period
        state = None
        if stored is not None:
            try:
                found = msgspec.json.decode(stored.state, type=_Stored)
            except msgspec.DecodeError as error:
                raise InvalidValueError(f"the stored monitor cannot be read: {error}") from None
            state, self.alarms, self.seq = found.monitor, found.alarms, stored.seq
        self.monitor = Monitor(
            policy.prop,
            # Only a schedule begins again with every window; without one there is one endless.
            horizon=length if isinstance(inputs, InputSchedule) else None,
            groups=policy.groups,
            inputs=inputs,
            keep=1,
            state=state,
        )
        self._stored_at = self.monitor.decided

    def add(self, entry: AnyEntry, hash: bytes) -> None:
        """Take an entry into account, unless that has been done; never raises."""
        if entry.seq <= self.seq or self._failed:
            return
        self.seq, self._hash = entry.seq, hash
        try:
            if isinstance(entry, Decided):
                if self.policy.labelled:
                    self._pending = entry
                else:
                    self._observe(entry, entry, None)
            elif isinstance(entry, Observed) and self._pending is not None:
                made, self._pending = self._pending, None
                self._observe(made, entry, entry.outcome)
        except Exception:  # decisions do not depend on it
            logger.exception(
                "the monitor of stream %s failed, and is not used any more", self.number
            )
            self._failed = True

    def _observe(self, made: Decided, entry: Decided | Observed, outcome: bool | None) -> None:
        seen = self.monitor.observe(
            made.group, accepted=made.proposed, cost=made.cost, outcome=outcome
        )
        for alarm in seen.alarms:
            if alarm.kind != "violation":  # ends of windows are counted beside the shield
                self.alarms.append(
                    Alarm(
                        kind=alarm.kind,
                        n=made.n,
                        seq=entry.seq,
                        at=entry.at,
                        words=self._words(alarm),
                    )
                )

    def _words(self, alarm: Alarmed) -> str:
        if alarm.kind == "model":
            return (
                "People do not come as the policy expects: "
                f"{self.monitor.diagnosis}. Decisions stay fair, but may cost more than they need; "
                "make a policy from recent records."
            )
        prop, report = self.policy.prop, self.monitor.report()
        bias = next(pair.bias for pair in report.pairs if set(pair.groups) == set(alarm.groups))
        least = "" if bias is None else f", at least {bias.lower:.3g} with 95 % confidence"
        counts = Counts({g.group: (g.seen, g.accepted) for g in report.groups})
        return (
            f"The classifier's proposals are unfair beyond chance: {_rates(counts)}. Their bias is "
            f"{prop.bias_of(counts):.3g}{least}, and {prop.limit:.3g} is allowed. The shield keeps "
            "the decisions fair; a better classifier would need it less."
        )

    def to_store(self) -> MonitorRow | None:
        """Where it stands, if it is time to store that."""
        due = self.monitor.decided >= self._stored_at + _EVERY
        if not due or self._pending is not None or self._failed:
            return None
        self._stored_at = self.monitor.decided
        state = msgspec.json.encode(_Stored(self.monitor.state, self.alarms))
        return MonitorRow(self.number, self.seq, self._hash.hex(), state)


def _rates(counts: Counts) -> str:
    return " and ".join(f"{_rate(n, k)} of “{group}”" for group, (n, k) in counts.items())


def _rate(seen: int, accepted: int) -> str:
    return f"{100 * accepted / max(seen, 1):.1f} %"
