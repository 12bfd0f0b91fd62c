"""Streams between two windows: digests of their logs, from which a replay may begin."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from fairshield.service.tallies import Tally
from fairshield.spec import Verdict


class Snapshot(msgspec.Struct, frozen=True):
    """A stream between two windows: where a replay may begin instead of at entry 0.

    ``shield`` is the state of a periodic shield; a window begins with nothing.
    """

    seq: int
    hash: str
    n: int
    window: int
    tally: Tally
    shield: dict[str, Any] | None = None


class WindowRow(NamedTuple):
    """The end of a window or period; a digest of the log, made again with it.

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


class MonitorRow(NamedTuple):
    """Where the monitor of a stream stands after entry ``seq``; a digest of the log, too."""

    stream: int
    seq: int
    hash: str
    state: bytes
