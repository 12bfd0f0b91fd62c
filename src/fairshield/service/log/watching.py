"""Watcher runs a monitor beside a stream: its classifier's proposals, and its input model.

It reads the entries of the log, and no decision depends on it.  It can be made again from the log.
Its state is stored now and then, so that a replay need not begin at the first entry.
"""

from __future__ import annotations

import logging
import traceback
from typing import Any

import msgspec
import numpy as np

from fairshield.base.counts import Counts
from fairshield.base.errors import InvalidValueError
from fairshield.base.groups import Coded
from fairshield.monitor import Alarm, Monitor
from fairshield.periodic import PeriodicPolicy
from fairshield.service.log.entries import AnyEntry, Decided, Observed
from fairshield.service.log.snapshots import MonitorRow
from fairshield.wire.messages import AlarmMessage

logger = logging.getLogger("fairshield.service")

_EVERY = 1024
"""Decisions after which the monitor observes them all at once, and its state is stored."""


class _Stored(msgspec.Struct, frozen=True):
    """_Stored holds a watcher's state as the database keeps it."""

    monitor: dict[str, Any]
    alarms: list[AlarmMessage]


# Made at import, by one thread: msgspec may crash if two threads make a decoder at once.
_decode = msgspec.json.Decoder(_Stored).decode
_Seen = tuple[Decided, Decided | Observed]
"""A decision, and the entry since which it can be observed: its own, or that of its outcome."""


class Watcher:
    """Watcher watches the proposals of a stream's classifier, entry by entry.

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

    def __init__(
        self, number: int, policy: PeriodicPolicy, *, stored: MonitorRow | None = None
    ) -> None:
        self.number, self.policy = number, policy
        self._labelled = policy.labelled
        self._index = {group: i for i, group in enumerate(policy.groups)}
        self._alarms: list[AlarmMessage] = []
        self.seq, self._hash = 0, b""
        self._pending: Decided | None = None
        self._waiting: list[_Seen] = []
        self._failure: str | None = None
        state = None
        if stored is not None:
            try:
                found = _decode(stored.state)
            except msgspec.DecodeError as error:
                raise InvalidValueError(f"the stored monitor cannot be read: {error}") from None
            state, self._alarms, self.seq = found.monitor, found.alarms, stored.seq
        self._monitor = self._made(state)
        self._stored_at = self._monitor.decided

    def _made(self, state: dict[str, Any] | None) -> Monitor:
        policy = self.policy
        return Monitor(
            policy.prop,
            # A schedule begins again with every window; other input models need no windows.
            horizon=None if policy.inputs.steady else policy.length,
            groups=policy.groups,
            inputs=policy.inputs,
            keep=1,
            state=state,
        )

    def add(self, entry: AnyEntry, hash: bytes) -> None:
        """Take an entry into account, unless that has been done; never raises."""
        if entry.seq <= self.seq:
            return
        self.seq, self._hash = entry.seq, hash
        if isinstance(entry, Decided):
            if self._labelled:
                self._pending = entry
                return
            self._waiting.append((entry, entry))
        elif isinstance(entry, Observed) and self._pending is not None:
            self._waiting.append((self._pending, entry))
            self._pending = None
        else:
            return
        if len(self._waiting) >= _EVERY:
            self._look()

    @property
    def alarms(self) -> tuple[AlarmMessage, ...]:
        """What was found so far, in order."""
        self._look()
        return tuple(self._alarms)

    @property
    def unwatched(self) -> str | None:
        """Why the monitor has stopped; ``None`` while it works."""
        self._look()
        return self._failure

    def _look(self) -> None:
        """Observe all decisions that are due, at once: that is far cheaper than one by one."""
        waiting, self._waiting = self._waiting, []
        if not waiting or self._failure is not None:
            return
        try:
            self._observe(waiting)
        except Exception as error:  # decisions do not depend on it
            logger.exception(
                "the monitor of stream number %s failed: it is used no more", self.number
            )
            said = "".join(traceback.format_exception_only(error)).strip()
            self._failure = f"the monitor failed at entry {self.seq}: {said}"

    def _observe(self, seen: list[_Seen]) -> None:
        before, state = self._monitor.decided, self._monitor.state
        raised = self._told(self._monitor, seen)
        for alarm in raised:
            if alarm.kind == "violation":  # the ledger of the stream judges the ends of windows
                continue
            until = alarm.at - before
            then = self._made(state)
            self._told(then, seen[:until])
            _, entry = seen[until - 1]
            words = self._words(alarm, then)
            self._alarms.append(AlarmMessage(alarm.kind, alarm.at, entry.seq, entry.at, words))

    def _told(self, monitor: Monitor, seen: list[_Seen]) -> tuple[Alarm, ...]:
        """Tell a monitor in columns; returns the alarms."""
        index = self._index
        groups = Coded(self.policy.groups, np.array([index[made.group] for made, _ in seen]))
        proposed = np.array([made.proposed for made, _ in seen])
        costs = np.array([made.cost for made, _ in seen])
        outcomes = [entry.outcome for _, entry in seen if isinstance(entry, Observed)]
        return monitor.observe_many(
            groups, proposed, costs=costs, outcomes=np.array(outcomes) if outcomes else None
        )

    def _words(self, alarm: Alarm, monitor: Monitor) -> str:
        """The alarm's text, from the monitor's state when it was raised."""
        if alarm.kind == "model":
            return (
                f"People do not come as the policy expects: {monitor.diagnosis}. Decisions stay "
                "fair, but may cost more than they need; make a policy from recent records."
            )
        prop, report = self.policy.prop, monitor.report()
        bias = next(pair.bias for pair in report.pairs if set(pair.groups) == set(alarm.groups))
        least = (
            "" if bias is None else f" (a bias of at least {bias.lower:.3g}, with 95 % confidence)"
        )
        finding = prop.finding(Counts({g.group: (g.seen, g.accepted) for g in report.groups}))
        return (
            f"The classifier's proposals are unfair beyond chance: {finding}{least}. The shield "
            "keeps the decisions fair; a better classifier would need it less."
        )

    def to_store(self) -> MonitorRow | None:
        """The state of the monitor, if it is time to store it; else ``None``."""
        due = self._monitor.decided + len(self._waiting) >= self._stored_at + _EVERY
        if not due or self._pending is not None or self._failure is not None:
            return None
        self._look()
        self._stored_at = self._monitor.decided
        state = msgspec.json.encode(_Stored(self._monitor.state, self._alarms))
        return MonitorRow(self.number, self.seq, self._hash.hex(), state)
