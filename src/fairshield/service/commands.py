"""What a client can ask of a stream: how it is applied, answered, and recognised when repeated.

The answer is a function of the entries that were stored, so that a retry gets the same answer,
whichever process gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import msgspec

from fairshield.records import declared
from fairshield.runtime.step import Decision as Made
from fairshield.runtime.step import Why
from fairshield.service.entries import AnyEntry, Decided, Observed, Overridden, Row, entry_of
from fairshield.service.live import Author, LiveStream
from fairshield.service.messages import (
    BatchItem,
    Decision,
    DecisionRequest,
    Decisions,
    Outcome,
    OutcomeRequest,
    Override,
    OverrideRequest,
    Receipt,
)


class Command(Protocol):
    """A request to one stream that adds to its log."""

    @property
    def decisions(self) -> int:
        """How many decisions it asks for."""

    def apply(self, stream: LiveStream, by: Author) -> list[Row]:
        """Change the stream; the entries that it led to."""

    def answer(self, stream: LiveStream, rows: Sequence[Row]) -> msgspec.Struct:
        """The answer, from the entries."""

    def repeats(self, stream: LiveStream, entries: Sequence[AnyEntry]) -> bool:
        """Whether these entries are what this very request led to before."""


@dataclass(frozen=True, slots=True)
class Decide:
    """Decide one person."""

    request: DecisionRequest
    decisions: ClassVar[int] = 1

    def apply(self, stream: LiveStream, by: Author) -> list[Row]:
        return stream.decide((self.request,), by)

    def answer(self, stream: LiveStream, rows: Sequence[Row]) -> Decision:
        return decision_of(rows[0], stream.length)

    def repeats(self, stream: LiveStream, entries: Sequence[AnyEntry]) -> bool:
        return len(entries) == 1 and _asked(stream, self.request, entries[0])


@dataclass(frozen=True, slots=True)
class DecideBatch:
    """Decide many people in order."""

    items: tuple[BatchItem, ...]

    @property
    def decisions(self) -> int:
        return len(self.items)

    def apply(self, stream: LiveStream, by: Author) -> list[Row]:
        return stream.decide(self.items, by)

    def answer(self, stream: LiveStream, rows: Sequence[Row]) -> Decisions:
        decided = (row for row in rows if row.n is not None)
        return Decisions(tuple(decision_of(row, stream.length) for row in decided))

    def repeats(self, stream: LiveStream, entries: Sequence[AnyEntry]) -> bool:
        logged = iter(entries)
        for item in self.items:
            if not _asked(stream, item, next(logged, None)):
                return False
            if item.outcome is not None:
                observed = next(logged, None)
                if not isinstance(observed, Observed) or observed.outcome is not item.outcome:
                    return False
        return next(logged, None) is None


@dataclass(frozen=True, slots=True)
class Observe:
    """Record an outcome."""

    request: OutcomeRequest
    decisions: ClassVar[int] = 0

    def apply(self, stream: LiveStream, by: Author) -> list[Row]:
        return stream.observe(self.request, by)

    def answer(self, stream: LiveStream, rows: Sequence[Row]) -> Outcome:
        entry = entry_of(rows[0].line)
        assert isinstance(entry, Observed)
        return Outcome(
            decision=entry.n, outcome=entry.outcome, seq=entry.seq, at=entry.at,
            receipt=rows[0].hash.hex(),
        )  # fmt: skip

    def repeats(self, stream: LiveStream, entries: Sequence[AnyEntry]) -> bool:
        match entries:
            case [Observed(n=n, outcome=outcome)]:
                return (n, outcome) == (self.request.decision, self.request.outcome)
        return False


@dataclass(frozen=True, slots=True)
class Overrule:
    """Record a person's decision."""

    n: int
    request: OverrideRequest
    decisions: ClassVar[int] = 0

    def apply(self, stream: LiveStream, by: Author) -> list[Row]:
        return stream.override(self.n, self.request, by)

    def answer(self, stream: LiveStream, rows: Sequence[Row]) -> Override:
        entry = entry_of(rows[0].line)
        assert isinstance(entry, Overridden)
        return Override(
            decision=entry.n, accepted=entry.accepted, note=entry.note,
            guaranteed=entry.guaranteed, seq=entry.seq, at=entry.at, receipt=rows[0].hash.hex(),
        )  # fmt: skip

    def repeats(self, stream: LiveStream, entries: Sequence[AnyEntry]) -> bool:
        match entries:
            case [Overridden(n=n, accepted=accepted, note=note)]:
                return (n, accepted, note) == (self.n, self.request.accepted, self.request.note)
        return False


@dataclass(frozen=True, slots=True)
class Close:
    """End the stream; a second time does nothing."""

    decisions: ClassVar[int] = 0

    def apply(self, stream: LiveStream, by: Author) -> list[Row]:
        return stream.close(by)

    def answer(self, stream: LiveStream, rows: Sequence[Row]) -> Receipt:
        return Receipt(seq=stream.seq, receipt=stream.hash.hex())

    def repeats(self, stream: LiveStream, entries: Sequence[AnyEntry]) -> bool:
        return False


def decision_of(row: Row, length: int) -> Decision:
    """The answer that an entry records, in a stream with windows or periods of this length."""
    e = entry_of(row.line)
    assert isinstance(e, Decided)
    made = Made(
        e.position, e.group, e.proposed, e.cost, e.accepted, Why(e.why), (0, 0, 0, 0),
        e.guaranteed, e.window,
    )  # fmt: skip
    return Decision(
        n=e.n, seq=e.seq, at=e.at, window=e.window, position=e.position, group=e.group,
        proposed=e.proposed, cost=e.cost, accepted=e.accepted, overruled=made.overruled,
        paid=made.paid, why=e.why, reason=made.reason, guaranteed=e.guaranteed,
        remaining=length - e.position - 1, receipt=row.hash.hex(),
    )  # fmt: skip


def _asked(stream: LiveStream, request: DecisionRequest, entry: AnyEntry | None) -> bool:
    """Whether an entry answers this request."""
    if not isinstance(entry, Decided):
        return False
    group = declared(request.group, stream.policy.groups)
    asked = (group, request.proposed, request.cost)
    return asked == (entry.group, entry.proposed, entry.cost)
