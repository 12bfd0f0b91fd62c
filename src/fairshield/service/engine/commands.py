"""Commands are what a client can ask of a stream: how each is applied, answered, repeated.

The answer is a function of the entries that were stored, so that a retry gets the same answer,
whichever process gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import msgspec

from fairshield.records import declared
from fairshield.service.log.answers import decision_of
from fairshield.service.log.entries import AnyEntry, Decided, Logged, Observed, Overridden
from fairshield.service.log.live import Author, LiveStream
from fairshield.wire.messages import (
    BatchItem,
    DecisionMessage,
    DecisionRequest,
    DecisionsMessage,
    OutcomeMessage,
    OutcomeRequest,
    Override,
    OverrideRequest,
    Receipt,
)


class Command(Protocol):
    """Command is a request to one stream that adds to its log."""

    @property
    def decisions(self) -> int:
        """How many decisions it asks for."""

    def apply(self, stream: LiveStream, by: Author) -> list[Logged]:
        """Change the stream; returns the entries of this command."""

    def answer(self, stream: LiveStream, logged: Sequence[Logged]) -> msgspec.Struct:
        """The answer, from the entries."""

    def repeats(self, stream: LiveStream, entries: Sequence[AnyEntry]) -> bool:
        """Whether an earlier request with the same content led to these entries."""


@dataclass(frozen=True, slots=True)
class Decide:
    """Decide is the command to decide one person."""

    request: DecisionRequest
    decisions: ClassVar[int] = 1

    def apply(self, stream: LiveStream, by: Author) -> list[Logged]:
        return stream.decide((self.request,), by)

    def answer(self, stream: LiveStream, logged: Sequence[Logged]) -> DecisionMessage:
        return decision_of(logged[0], stream.length)

    def repeats(self, stream: LiveStream, entries: Sequence[AnyEntry]) -> bool:
        return len(entries) == 1 and _asked(stream, self.request, entries[0])


@dataclass(frozen=True, slots=True)
class DecideBatch:
    """DecideBatch is the command to decide many people in order."""

    items: tuple[BatchItem, ...]

    @property
    def decisions(self) -> int:
        return len(self.items)

    def apply(self, stream: LiveStream, by: Author) -> list[Logged]:
        return stream.decide(self.items, by)

    def answer(self, stream: LiveStream, logged: Sequence[Logged]) -> DecisionsMessage:
        decided = (made for made in logged if isinstance(made.entry, Decided))
        return DecisionsMessage(tuple(decision_of(made, stream.length) for made in decided))

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
    """Observe is the command to record an outcome."""

    request: OutcomeRequest
    decisions: ClassVar[int] = 0

    def apply(self, stream: LiveStream, by: Author) -> list[Logged]:
        return stream.observe(self.request, by)

    def answer(self, stream: LiveStream, logged: Sequence[Logged]) -> OutcomeMessage:
        entry, row = logged[0]
        assert isinstance(entry, Observed)
        return OutcomeMessage(
            decision=entry.n, outcome=entry.outcome, seq=entry.seq, at=entry.at,
            receipt=row.hash.hex(),
        )  # fmt: skip

    def repeats(self, stream: LiveStream, entries: Sequence[AnyEntry]) -> bool:
        match entries:
            case [Observed(n=n, outcome=outcome)]:
                return (n, outcome) == (self.request.decision, self.request.outcome)
        return False


@dataclass(frozen=True, slots=True)
class Overrule:
    """Overrule is the command to record a person's decision."""

    n: int
    request: OverrideRequest
    decisions: ClassVar[int] = 0

    def apply(self, stream: LiveStream, by: Author) -> list[Logged]:
        return stream.override(self.n, self.request, by)

    def answer(self, stream: LiveStream, logged: Sequence[Logged]) -> Override:
        entry, row = logged[0]
        assert isinstance(entry, Overridden)
        return Override(
            decision=entry.n, accepted=entry.accepted, note=entry.note,
            guaranteed=entry.guaranteed, seq=entry.seq, at=entry.at, receipt=row.hash.hex(),
        )  # fmt: skip

    def repeats(self, stream: LiveStream, entries: Sequence[AnyEntry]) -> bool:
        match entries:
            case [Overridden(n=n, accepted=accepted, note=note)]:
                return (n, accepted, note) == (self.n, self.request.accepted, self.request.note)
        return False


@dataclass(frozen=True, slots=True)
class Close:
    """Close is the command to end the stream; it does nothing if the stream has ended."""

    decisions: ClassVar[int] = 0

    def apply(self, stream: LiveStream, by: Author) -> list[Logged]:
        return stream.close(by)

    def answer(self, stream: LiveStream, logged: Sequence[Logged]) -> Receipt:
        return Receipt(seq=stream.seq, receipt=stream.hash.hex())

    def repeats(self, stream: LiveStream, entries: Sequence[AnyEntry]) -> bool:
        return False


def _asked(stream: LiveStream, request: DecisionRequest, entry: AnyEntry | None) -> bool:
    """Whether an entry records this request."""
    if not isinstance(entry, Decided):
        return False
    group = declared(request.group, stream.policy.groups)
    asked = (group, request.proposed, request.cost)
    return asked == (entry.group, entry.proposed, entry.cost)
