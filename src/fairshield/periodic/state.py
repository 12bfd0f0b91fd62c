"""RunState: the numbers from which a run can be resumed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from fairshield.base.counts import At, Counts, Group, is_whole
from fairshield.base.errors import InvalidValueError
from fairshield.base.plain import plain_counts, plain_number, with_keys
from fairshield.base.renamed import Renamed
from fairshield.periodic.policy import PeriodicPolicy
from fairshield.policy.specification import started
from fairshield.runtime.judging import VerdictCount
from fairshield.runtime.step import Decision, Why
from fairshield.spec import VERDICTS, Certificate, Verdict

_VERSION = 1
BREAKERS = ("arrivals", "person", "start", "period")
"""What can break a condition."""
_STORED = {
    "fair": "fair_ends", "exempt": "exempt_ends", "untold": "untold_ends",
    "largest_bias": "worst_bias",
}  # fmt: skip
"""What states call the fields of a history."""


@dataclass(frozen=True, kw_only=True)
class History:
    """History counts how the windows of a run have ended so far.

    Attributes
    ----------
    broken_at, broken_by
        After how many decisions the condition of the theorem was broken first, and by what:
        see :class:`~fairshield.periodic.guarantee.Guarantee`.
    fair, exempt, untold
        Windows in which the property bound and held whenever it was due; those in which it bound
        nothing; those in which it held and of which a state of an earlier version does not tell
        whether it bound.
    unfair_at
        After how many decisions the property was due and did not hold first.
    largest_bias
        The largest bias whenever the property was due.
    now
        The verdict of the checkpoints of the window in progress; ``None`` before the first.
    """

    broken_at: int | None = None
    broken_by: str | None = None
    fair: int = 0
    unfair_at: int | None = None
    largest_bias: float = 0.0
    exempt: int = 0
    untold: int = 0
    now: Verdict | None = None

    fair_ends = Renamed("fair + exempt + untold", lambda it: it.fair + it.exempt + it.untold)
    exempt_ends = Renamed("exempt")
    untold_ends = Renamed("untold")
    worst_bias = Renamed("largest_bias")


class Mended(NamedTuple):
    """Mended says where in a period a new plan was made after a person's decision.

    ``position`` decisions of the period had been made, and led to ``gained``: n_a, k_a, n_b, k_b.
    """

    position: int
    gained: At


Mended.decided = Renamed("position")  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True)
class RunState:
    """RunState holds everything that a run remembers.

    Attributes
    ----------
    completed, position
        Windows that are over, and decisions made in the one in progress.
    start, counts
        Counters at the start of the window in progress, and now.
    pending
        The decision whose outcome is awaited, if any.
    history
        The record that the guarantee report rests on.
    certificate
        The certificate held at the start of the window, if the policy works with certificates.
    mended
        Where in the window a new plan was made, if one was.
    followed
        By unseen group, how many proposals were followed and how many of them accept.
    fingerprint
        Of the policy; resuming with another one is refused.
    """

    completed: int
    position: int
    start: Counts
    counts: Counts
    pending: Decision | None = None
    history: History = field(default_factory=History)
    certificate: Certificate | None = None
    mended: Mended | None = None
    followed: Counts = field(default_factory=lambda: Counts({}))
    fingerprint: str = ""

    decided = Renamed("position")

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; :meth:`from_dict` is the inverse.

        ``position`` is called ``decided`` there, and ``followed`` is left out if nobody was: logs
        and databases keep such data, and compare it with what a replay leads to.
        """
        followed = {"followed": plain_counts(self.followed)} if self.followed else {}
        return {
            "version": _VERSION,
            "policy": self.fingerprint,
            "completed": self.completed,
            "decided": self.position,
            "start": plain_counts(self.start),
            "counts": plain_counts(self.counts),
            "pending": None if self.pending is None else _plain_decision(self.pending),
            "history": plain_past(asdict(self.history)),
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            "mended": None if self.mended is None else [self.mended.position, *self.mended.gained],
            **followed,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> RunState:
        """The state that :meth:`to_dict` described."""
        try:
            if data["version"] != _VERSION:
                raise InvalidValueError(
                    f"a state of version {data['version']!r}, this library reads {_VERSION}: "
                    "resume it with the version of fairshield that wrote it"
                )
            held = data["certificate"]
            return RunState(
                completed=_whole(data, "completed"),
                position=_whole(data, "decided"),
                start=_counts(data["start"]),
                counts=_counts(data["counts"]),
                pending=None if data["pending"] is None else _decision(data["pending"]),
                history=_history(data["history"]),
                certificate=None if held is None else Certificate.from_dict(held),
                mended=None if data["mended"] is None else _mended(data["mended"]),
                followed=_counts(data.get("followed", [])),
                fingerprint=str(data["policy"]),
            )
        except InvalidValueError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            raise InvalidValueError(
                f"not the state of a run ({error!r}): use what run.state.to_dict() returned"
            ) from None


def verdicts_of(state: RunState) -> VerdictCount:
    """The count of windows that a run goes on with."""
    past = state.history
    return VerdictCount(
        state.completed, past.fair, past.exempt, past.untold, past.unfair_at, past.largest_bias,
        past.now,
    )  # fmt: skip


def checked_counters(state: RunState, policy: PeriodicPolicy) -> tuple[Counts, Counts]:
    """The counters of a state at the start of its window and now; raises if no run leads there."""
    if state.fingerprint != policy.fingerprint:
        raise InvalidValueError(
            f"the state belongs to another policy (fingerprint {state.fingerprint!r}, this one "
            f"has {policy.fingerprint!r}): resume with the property, inputs, {policy.noun} and "
            "options that the run began with"
        )
    start, counts = (started(policy.inputs, c) for c in (state.start, state.counts))
    if not _fits(state, policy, start, counts):
        raise InvalidValueError(
            f"{state.completed} {policy.noun}s and {state.position} decisions do not lead to "
            f"{counts} in {policy.noun}s of {policy.length} decisions: use what run.state "
            "returned"
        )
    if state.certificate != policy.certificate(start):
        raise InvalidValueError(
            f"the state holds the certificate {state.certificate}, which is not that of its "
            f"counters, {policy.certificate(start)}: use what run.state returned"
        )
    return start, counts


def _fits(state: RunState, policy: PeriodicPolicy, start: Counts, counts: Counts) -> bool:
    """Whether some run of this policy can reach ``state``."""
    length, last, waiting = policy.length, policy.last, state.pending is not None
    if last is not None and state.completed >= last:
        in_time = state.completed == last and state.position == 0
    else:
        in_time = state.position < length + waiting
    begun = state.position > 0 or (start == counts and not waiting)
    counted = policy.begins_with(start, state.completed)
    past, total = state.history, state.completed * length + state.position
    told = past.fair >= 0 and verdicts_of(state).unfair >= 0
    told = told and max(past.unfair_at or 0, past.broken_at or 0) <= total
    mended = state.mended is None or (policy.mends and 0 < state.mended.position <= state.position)
    return in_time and begun and counted and told and mended


def _mended(numbers: list[Any]) -> Mended:
    if not all(is_whole(n) and n >= 0 for n in numbers):
        raise InvalidValueError(f"mended must be five whole numbers, got {numbers!r}")
    position, n_a, k_a, n_b, k_b = (int(n) for n in numbers)
    return Mended(position, (n_a, k_a, n_b, k_b))


def plain_past(data: dict[str, Any]) -> dict[str, Any]:
    """The fields of a history, or of what has them, under the names that states have for them.

    There ``fair_ends`` are all at which the property held.
    """
    held = data["fair"] + data["exempt"] + data["untold"]
    plain = {**data, "fair": held, "largest_bias": plain_number(data["largest_bias"])}
    if plain.get("now") is None:  # as earlier versions, which had none, wrote it
        plain.pop("now", None)
    return with_keys(plain, _STORED)


def _history(data: Mapping[str, Any]) -> History:
    worst = data["worst_bias"]
    for key in ("broken_at", "unfair_at"):
        if data[key] is not None:
            _whole(data, key)
    if data["broken_by"] not in (None, *BREAKERS):
        raise InvalidValueError(
            f"broken_by must be one of {', '.join(BREAKERS)}, got {data['broken_by']!r}"
        )
    if data.get("now") not in (None, *VERDICTS):
        raise InvalidValueError(
            f"now must be one of {', '.join(VERDICTS)}, got {data['now']!r}: use what "
            "run.state.to_dict() returned"
        )
    # States of earlier versions do not say which ends were exempt.
    untold = 0 if "exempt_ends" in data else data["fair_ends"]
    told = {"exempt_ends": 0, "untold_ends": untold, **data}
    held, exempt, untold = (_whole(told, f"{key}_ends") for key in ("fair", "exempt", "untold"))
    fields = with_keys(told, {stored: name for name, stored in _STORED.items()})
    largest = math.inf if worst is None else float(worst)
    return History(**{**fields, "fair": held - exempt - untold, "largest_bias": largest})


def _whole(data: Mapping[str, Any], key: str) -> int:
    value = data[key]
    if not is_whole(value) or value < 0:
        raise InvalidValueError(f"{key} must be a whole number of at least 0, got {value!r}")
    return int(value)


def _counts(rows: list[tuple[Group, int, int]]) -> Counts:
    return Counts({group: (seen, accepted) for group, seen, accepted in rows})


def _plain_decision(decision: Decision) -> dict[str, Any]:
    data = with_keys(decision._asdict(), {"window": "period"})
    return {**data, "why": decision.why.value, "seen_before": list(decision.seen_before)}


def _decision(data: Mapping[str, Any]) -> Decision:
    known = with_keys(data, {"period": "window"})
    fields = {**known, "why": Why(data["why"]), "seen_before": tuple(data["seen_before"])}
    return Decision(**fields)
