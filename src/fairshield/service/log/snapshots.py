"""Rows that are stored between two windows, from which a replay may begin."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from fairshield.base.errors import InvalidValueError
from fairshield.periodic import PeriodicPolicy, RunState
from fairshield.service.log.entries import Created
from fairshield.service.log.tallies import StreamTally
from fairshield.spec import Verdict


class Snapshot(msgspec.Struct, frozen=True):
    """Snapshot is a stream between two windows, where a replay may begin instead of at entry 0.

    ``shield`` is the state of a run whose counters go on, or whose policy trusts the support of its
    input model; it is ``None`` where every window begins anew.  Without ``tally`` the stream has no
    decisions yet.
    """

    seq: int
    hash: str
    n: int
    window: int
    tally: StreamTally | None = None
    shield: dict[str, Any] | None = None


# Made at import, by one thread: msgspec may crash if two threads make a decoder at once.
_decode = msgspec.json.Decoder(Snapshot).decode


def read_snapshot(content: bytes) -> Snapshot | None:
    """The snapshot that was stored, its state as this version writes it; ``None`` if it is none."""
    try:
        snapshot = _decode(content)
        if snapshot.shield is None:
            return snapshot
        state = msgspec.json.encode(RunState.from_dict(snapshot.shield).to_dict())
    except (msgspec.DecodeError, InvalidValueError, RecursionError):
        return None
    return msgspec.structs.replace(snapshot, shield=msgspec.json.decode(state))


def same_snapshot(
    stored: bytes, replayed: bytes, *, judged_once: bool = False, noted_later: bool = False
) -> bool:
    """Whether two snapshots say the same, as far as the stored one says anything.

    Earlier versions did not store the cells of the ledger, and wrote states in their own way.  With
    ``judged_once`` verdicts may differ: see :func:`lacks_counters`.  With ``noted_later`` the
    stored one may lack that the period to come does not meet the condition: earlier versions noted
    it with the plan of that period, and a run that goes on from the snapshot notes it again.
    """
    if stored == replayed:
        return True
    ours, theirs = read_snapshot(stored), read_snapshot(replayed)
    if ours is None or theirs is None:
        return False
    if ours.tally is not None and theirs.tally is not None and ours.tally.cells is None:
        theirs.tally.cells = None
        if judged_once:
            _forget_verdicts(ours.tally)
            _forget_verdicts(theirs.tally)
    return ours == theirs or (noted_later and ours == _before_the_plan(theirs))


def _before_the_plan(snapshot: Snapshot) -> Snapshot:
    """The snapshot without a note that the period about to begin does not meet the condition."""
    state = snapshot.shield or {}
    history = state.get("history", {})
    if (history.get("broken_at"), history.get("broken_by")) != (snapshot.n, "arrivals"):
        return snapshot
    unbroken = {**history, "broken_at": None, "broken_by": None}
    return msgspec.structs.replace(snapshot, shield={**state, "history": unbroken})


def _forget_verdicts(tally: StreamTally) -> None:
    tally.fair, tally.unshielded_fair, tally.worst_bias = 0, 0, None
    tally.window_verdict = tally.window_unshielded = "exempt"
    if tally.whole is not None:
        tally.whole.exempt = 0


class WindowRow(NamedTuple):
    """WindowRow is the end of a window or period, derived from the log and made again with it.

    ``fair`` says that the ``verdict`` is that; ``bias`` is 0 without support, ``measured_bias`` is
    not.  ``verdict`` is ``None`` in rows of an earlier version, until their stream is replayed.
    """

    stream: int
    window: int
    seq: int
    n: int
    at: str
    fair: bool
    bias: float | None
    bias_unshielded: float | None
    overruled: int
    cost_paid: float
    verdict: Verdict | None
    measured_bias: float | None
    measured_bias_unshielded: float | None
    snapshot: bytes


def lacks_counters(row: WindowRow, created: Created, policy: PeriodicPolicy) -> bool:
    """Whether an earlier version stored an end that has to be derived again from the log."""
    return lacks_verdict(row) or judged_once(row, created, policy)


def lacks_verdict(row: WindowRow) -> bool:
    """Whether the first version stored an end: it had no verdict, nor people of other windows."""
    tally = _tally(row) if row.verdict is None else None
    return row.verdict is None and (tally is None or tally.whole is None)


def judged_once(row: WindowRow, created: Created, policy: PeriodicPolicy) -> bool:
    """Whether checkpoints that had passed were not judged again when a person overrode a decision.

    So did the version that stored verdicts and no cells.
    """
    if not created.human or len(policy.due) == 1:
        return False
    tally = _tally(row)
    return tally is not None and tally.cells is None


def overridden_by(row: WindowRow) -> int:
    """How many decisions people had overridden by the end of a window."""
    tally = _tally(row)
    return 0 if tally is None else tally.overridden


def _tally(row: WindowRow) -> StreamTally | None:
    snapshot = read_snapshot(row.snapshot)
    return None if snapshot is None else snapshot.tally


class MonitorRow(NamedTuple):
    """MonitorRow is the state of a stream's monitor after entry ``seq``, derived from the log."""

    stream: int
    seq: int
    hash: str
    state: bytes
