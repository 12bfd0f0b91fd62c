"""Where a periodic shield stands: a handful of numbers, from which it can go on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from fairshield.counts import At, Counts, Group, is_whole
from fairshield.errors import InvalidValueError
from fairshield.runtime.report import plain_counts, plain_number
from fairshield.runtime.step import Decision, Why
from fairshield.spec import Certificate, Verdict

_VERSION = 1
BREAKERS = ("arrivals", "person", "start", "period")
"""What can break a condition."""


@dataclass(frozen=True, kw_only=True)
class History:
    """What a run has been like so far, in a few numbers.

    Attributes
    ----------
    broken_at, broken_by
        After how many decisions the condition of the theorem was broken first, and by what:
        see :class:`~fairshield.periodic.guarantee.Guarantee`.
    fair_ends, exempt_ends, untold_ends
        Periods at whose end the property held; those of them at which it bound nothing; those of
        which a state of an earlier version does not tell whether it did.
    unfair_at
        After how many decisions a period ended unfair first.
    worst_bias
        The largest bias at the end of a period.
    """

    broken_at: int | None = None
    broken_by: str | None = None
    fair_ends: int = 0
    unfair_at: int | None = None
    worst_bias: float = 0.0
    exempt_ends: int = 0
    untold_ends: int = 0

    def broken(self, decided: int, by: str) -> History:
        """The same, with a condition that does not hold any more."""
        if self.broken_at is not None:
            return self
        return replace(self, broken_at=decided, broken_by=by)

    def ended(self, decided: int, bias: float, verdict: Verdict) -> History:
        """The same after the end of a period."""
        unfair = verdict == "unfair"
        return replace(
            self,
            fair_ends=self.fair_ends + (not unfair),
            exempt_ends=self.exempt_ends + (verdict == "exempt"),
            unfair_at=decided if unfair and self.unfair_at is None else self.unfair_at,
            worst_bias=max(self.worst_bias, bias),
        )


class Mended(NamedTuple):
    """Where in a period a new plan was made, because a person had decided against the old one.

    ``decided`` decisions of the period had been made, and led to ``gained``: n_a, k_a, n_b, k_b.
    """

    decided: int
    gained: At


@dataclass(frozen=True, kw_only=True)
class PeriodicState:
    """Everything a periodic shield remembers.

    Attributes
    ----------
    completed, decided
        Periods completed, and decisions made in the one in progress.
    start, counts
        Counters at the start of the period, and now; both from the beginning of the run.
    pending
        The decision whose outcome is awaited, if any.
    history
        The record that the guarantee report rests on.
    certificate
        The certificate held at the start of the period, if the shield works with certificates.
    mended
        Where in the period a new plan was made, if one was.
    fingerprint
        Of the periodic policy; resuming with another one is refused.
    """

    completed: int
    decided: int
    start: Counts
    counts: Counts
    pending: Decision | None = None
    history: History = field(default_factory=History)
    certificate: Certificate | None = None
    mended: Mended | None = None
    fingerprint: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; :meth:`from_dict` is the inverse."""
        return {
            "version": _VERSION,
            "policy": self.fingerprint,
            "completed": self.completed,
            "decided": self.decided,
            "start": plain_counts(self.start),
            "counts": plain_counts(self.counts),
            "pending": None if self.pending is None else _plain_decision(self.pending),
            "history": _plain_history(self.history),
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            "mended": None if self.mended is None else [self.mended.decided, *self.mended.gained],
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> PeriodicState:
        """The state that :meth:`to_dict` described."""
        try:
            if data["version"] != _VERSION:
                raise InvalidValueError(
                    f"a state of version {data['version']!r}, this library reads {_VERSION}: "
                    "resume it with the version of fairshield that wrote it"
                )
            held = data["certificate"]
            return PeriodicState(
                completed=_whole(data, "completed"),
                decided=_whole(data, "decided"),
                start=_counts(data["start"]),
                counts=_counts(data["counts"]),
                pending=None if data["pending"] is None else _decision(data["pending"]),
                history=_history(data["history"]),
                certificate=None if held is None else Certificate.from_dict(held),
                mended=None if data["mended"] is None else _mended(data["mended"]),
                fingerprint=str(data["policy"]),
            )
        except InvalidValueError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            raise InvalidValueError(
                f"not the state of a periodic shield ({error!r}): use what shield.state.to_dict() "
                "returned"
            ) from None


def _mended(numbers: list[Any]) -> Mended:
    if not all(is_whole(n) and n >= 0 for n in numbers):
        raise InvalidValueError(f"mended must be five whole numbers, got {numbers!r}")
    decided, n_a, k_a, n_b, k_b = (int(n) for n in numbers)
    return Mended(decided, (n_a, k_a, n_b, k_b))


def _plain_history(history: History) -> dict[str, Any]:
    return {**asdict(history), "worst_bias": plain_number(history.worst_bias)}


def _history(data: Mapping[str, Any]) -> History:
    worst = data["worst_bias"]
    for key in ("broken_at", "unfair_at"):
        if data[key] is not None:
            _whole(data, key)
    if data["broken_by"] not in (None, *BREAKERS):
        raise InvalidValueError(
            f"broken_by must be one of {', '.join(BREAKERS)}, got {data['broken_by']!r}"
        )
    # Earlier states do not tell which ends were exempt.
    untold = 0 if "exempt_ends" in data else data["fair_ends"]
    told = {"exempt_ends": 0, "untold_ends": untold, **data}
    for key in ("fair_ends", "exempt_ends", "untold_ends"):
        _whole(told, key)
    return History(**{**told, "worst_bias": math.inf if worst is None else float(worst)})


def _whole(data: Mapping[str, Any], key: str) -> int:
    value = data[key]
    if not is_whole(value) or value < 0:
        raise InvalidValueError(f"{key} must be a whole number of at least 0, got {value!r}")
    return int(value)


def _counts(rows: list[tuple[Group, int, int]]) -> Counts:
    return Counts({group: (seen, accepted) for group, seen, accepted in rows})


def _plain_decision(decision: Decision) -> dict[str, Any]:
    data = decision._asdict()
    return {**data, "why": decision.why.value, "seen_before": list(decision.seen_before)}


def _decision(data: Mapping[str, Any]) -> Decision:
    n_a, k_a, n_b, k_b = data["seen_before"]
    fields = {**data, "why": Why(data["why"]), "seen_before": (n_a, k_a, n_b, k_b)}
    return Decision(**fields)
