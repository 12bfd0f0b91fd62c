"""A policy decides a stream of records, and can resume from its own output.

The answer to a request depends on the requests before it and on nothing else, so a run is resumed
by deciding the old requests again, comparing them with what was written, and going on from there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import click

from fairshield.analysis.explain import Explanation
from fairshield.base.errors import FairshieldError, InvalidValueError, argument
from fairshield.base.groups import Unseen
from fairshield.inputs.recorded import request_of
from fairshield.periodic import PeriodicPolicy, Run
from fairshield.policy import Policy
from fairshield.records import Record, Request
from fairshield.records.reading import Reading
from fairshield.runtime.step import Decision
from fairshield.spec.outcomes import OutcomeTally

ANSWER_FIELDS = ("window", "position", "accepted", "overruled", "reason")
"""What a decision adds to the fields of its request."""


class Answer(NamedTuple):
    """Answer holds a decision, its window and the record that asked for it."""

    record: Record
    window: int
    decision: Decision

    def fields(self) -> dict[str, Any]:
        """The record's own fields, and the decision's."""
        d = self.decision
        values = (self.window, d.position, d.accepted, d.overruled, d.reason)
        return self.record.fields | dict(zip(ANSWER_FIELDS, values, strict=True))


class RecordRun:
    """RecordRun decides records by a run, window after window."""

    def __init__(self, policy: Policy | PeriodicPolicy, *, unseen: Unseen | str = "refuse") -> None:
        self.run = Run(policy, unseen=unseen)
        self.policy = self.run.policy
        self._outcomes = OutcomeTally()

    def decide(self, record: Record) -> Answer:
        """The policy's answer to a request."""
        return self._answer(
            record, lambda r: self.run.decide(r.group, proposed=r.proposed, cost=r.cost)
        )

    def replay(self, record: Record) -> Answer:
        """The logged answer to a request, also if it differs from the policy's."""
        accepted = record.flag("accepted")

        def recorded(request: Request) -> Decision:
            group, proposed, cost, _ = request
            advice = self.run.advise(group, proposed=proposed, cost=cost)
            return self.run.record(advice, final=accepted)

        return self._answer(record, recorded)

    def explain(self, answer: Answer) -> Explanation:
        """Why the last answer was given."""
        return self.run.explain(answer.decision)

    def warn_of_outcomes(self) -> None:
        """Warn if the outcomes of the records look filled in."""
        counting = self.policy.prop.counting
        if counting.awaits(False):
            told = self._outcomes.coverage(relevant=bool(counting.outcome))
            told.warn("by what was proposed")

    def request(self, record: Record) -> Request:
        """The request of a record; group names are compared as text, which is all a CSV has."""
        empty = self.run.unseen.empty
        return request_of(record, self.policy.groups, self.policy.prop, empty=empty)

    def _answer(self, record: Record, decide: Callable[[Request], Decision]) -> Answer:
        request = self.request(record)
        try:
            decision = decide(request)
        except FairshieldError as error:
            raise InvalidValueError(f"line {record.line}: {error}") from None
        if request.outcome is not None:
            self.run.observe(decision, outcome=request.outcome)
            self._outcomes.know(request.group, bool(request.proposed), bool(request.outcome))
        return Answer(record, decision.window, decision)


def keeping_fields(requests: Iterable[Record], added: Iterable[str]) -> Iterator[Record]:
    """Yield the requests; raise if a decision would replace one of their fields.

    A record with all fields of a decision is an earlier decision, which may be decided again.
    """
    for record in requests:
        own = [field for field in added if field in record.fields]
        if own and not record.fields.keys() >= set(ANSWER_FIELDS):
            raise InvalidValueError(
                f"line {record.line}: the request has a field {own[0]!r}, which its decision would "
                "overwrite: rename it"
            )
        yield record


def telling_price(
    requests: Iterable[Record], policy: PeriodicPolicy, source: str
) -> Iterator[Record]:
    """Yield the requests; warn once if one has no cost and the policy expects others than 1."""
    levels = policy.inputs.table(1).levels
    silent = len(levels) == 1 and levels[0] == 1.0
    for record in requests:
        if not silent and record.missing("cost"):
            silent = True
            file = "standard input" if source == "-" else source
            planned = f"costs between {levels[0]:g} and {levels[-1]:g}"
            click.echo(
                f"Warning: no 'cost' in {file}: 1 is taken, while the policy plans with "
                f"{planned if len(levels) > 1 else f'a cost of {levels[0]:g}'}; say which column "
                f"it is with {argument('columns', {'cost': 'COLUMN'})}",
                err=True,
            )
        yield record


def decide_stream(
    windows: RecordRun, requests: Iterable[Record], log: Iterable[Record] = (), source: str = "-"
) -> Iterator[Answer]:
    """Answers to ``requests`` in order, without those that ``log`` already holds.

    Errors name the ``source`` of the requests, if it is not standard input.

    Raises
    ------
    InvalidValueError
        If a record cannot be decided, or ``log`` does not begin like this run.
    """
    answers = _answers(windows, requests, source)
    for n, earlier in enumerate(log):
        answer = next(answers, None)
        if answer is None:
            raise InvalidValueError(
                f"the input ends after {n} requests, the earlier output goes on: resuming needs "
                "the whole stream again, from its beginning"
            )
        _check_same(windows, answer, earlier)
    yield from answers


def _answers(windows: RecordRun, requests: Iterable[Record], source: str) -> Iterator[Answer]:
    pending = iter(requests)
    while True:
        # The yield is outside: an error of the consumer is not an error in the requests.
        with contextlib.nullcontext() if source == "-" else blamed_on(source):
            record = next(pending, None)
            answer = None if record is None else windows.decide(record)
        if answer is None:
            return
        yield answer


def _check_same(windows: RecordRun, answer: Answer, earlier: Record) -> None:
    """Whether ``earlier`` is the line that this answer would have been written as."""
    with blamed_on("the earlier output"):
        theirs, accepted = windows.request(earlier), earlier.flag("accepted")
    ours = windows.request(answer.record)
    at = f"line {earlier.line} of the earlier output"
    if ours != theirs:
        raise InvalidValueError(
            f"{at} answers {_words(theirs)}, but line {answer.record.line} of the input asks "
            f"{_words(ours)}: resuming needs the same stream again, from its beginning"
        )
    if accepted != answer.decision.accepted:
        raise InvalidValueError(
            f"{at} says accepted={earlier.fields['accepted']}, which is not this policy's "
            "decision: it was written with another policy, or changed since"
        )


def _words(request: Request) -> str:
    said = "accept" if request.proposed else "reject"
    known = "" if request.outcome is None else f", outcome {int(request.outcome)}"
    return f"group {request.group}, proposed {said}, cost {request.cost:g}{known}"


# Lines --------------------------------------------------------------------------------------


class Lines:
    """Lines yields lines, and knows whether the last one came without its end."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.cut = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.cut = not line.endswith("\n")
        return line


def read_stream(lines: Lines, reading: Reading) -> Iterator[Record]:
    """Records as they arrive; an input that ends in the middle of a line is reported as such."""
    try:
        yield from reading.read(lines, keep=True, requests=True)
    except InvalidValueError as error:
        if not lines.cut:
            raise
        raise InvalidValueError(f"{error}: the input ends in the middle of this line") from None


@contextlib.contextmanager
def blamed_on(source: object) -> Iterator[None]:
    """Prefix errors with the source of the line that they name."""
    try:
        yield
    except FairshieldError as error:
        raise InvalidValueError(f"{source}: {error}") from None
