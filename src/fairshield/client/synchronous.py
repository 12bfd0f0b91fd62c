"""Client talks to a service and waits for each answer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx

from fairshield._version import __version__
from fairshield.base.counts import Group
from fairshield.client import calls
from fairshield.client.calls import AnyPolicy, Calls, Page, Progress, prepared, replacing
from fairshield.client.exchange import (
    ClientPatience,
    Flow,
    HttpAnswer,
    Lost,
    Send,
    Step,
    base_address,
    headers_for,
    headers_of,
    restart,
)
from fairshield.records import Flag
from fairshield.wire import messages

T = TypeVar("T")
TOKEN = "FAIRSHIELD_TOKEN"
"""The environment variable that has the key, where none is given."""


class Client:
    """Client is a connection to a shield service, over HTTP.

    Requests that get no answer, or one that says *not now* (408, 429, 502, 503, 504), are sent
    again with the same idempotency key, so that a decision is counted once, however often the
    request was sent.  Several threads may share a client.  It is a context manager; :meth:`close`
    ends its connections.

    Parameters
    ----------
    url
        Where the service is, such as ``"http://127.0.0.1:8000"``.
    token
        An access key; default: what the environment variable ``FAIRSHIELD_TOKEN`` says.
    timeout
        Seconds to wait for each part of one attempt: connecting, sending, the next bytes.
    retries
        Attempts after the first one.
    patience
        Seconds after which no other attempt is begun.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 30.0,
        retries: int = 9,
        patience: float = 60.0,
    ) -> None:
        self.url = base_address(url)
        self.terms = ClientPatience(timeout=timeout, attempts=retries + 1, patience=patience)
        token = os.environ.get(TOKEN) if token is None else token
        self._http = httpx.Client(headers=headers_for(token, __version__))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; streams at the service stay open."""
        self._http.close()

    # Streams and policies ---------------------------------------------------------------------

    def create_stream(
        self,
        name: str,
        policy: AnyPolicy,
        *,
        windows: int | None = None,
        human: bool = False,
        progress: Progress | None = None,
    ) -> Stream:
        """Create a stream; returns the existing one if it has the same settings.

        Parameters
        ----------
        name
            Letters, digits, dots, dashes and underscores, at most 64.
        policy
            The path of a policy file, a policy, the digest of one that the service has, or a
            specification as a dictionary.  It is uploaded or made, and used once it is verified.
        windows
            How many windows a policy for one window decides, one after the other; default: no end.
        human
            Whether a person may override decisions.
        progress
            Called with the service's :class:`~fairshield.wire.messages.PolicyMessage` while it is
            being made and verified, and once more when it is ready.
        """
        how = prepared(policy)
        self.run(
            calls.create_stream(
                name, how, windows=windows, human=human, progress=progress, terms=self.terms
            )
        )
        return self.stream(name)

    def stream(self, name: str) -> Stream:
        """The stream of this name; sends no request."""
        return Stream(self, name)

    def streams(self) -> tuple[messages.StreamMessage, ...]:
        """All streams: what they promise, and where they stand."""
        return self.run(calls.streams(self.terms))

    def add_policy(
        self, policy: AnyPolicy, *, progress: Progress | None = None
    ) -> messages.PolicyMessage:
        """Bring a policy to the service, and wait until it is verified."""
        return self.run(calls.add_policy(prepared(policy), progress, self.terms))

    def policy(self, which: str) -> messages.PolicyMessage:
        """A policy by its id or digest, in whichever state it is."""
        return self.run(calls.policy(which, self.terms))

    def policies(self) -> tuple[messages.PolicyMessage, ...]:
        """All policies that the service has or is making."""
        return self.run(calls.policies(self.terms))

    # Running flows ----------------------------------------------------------------------------

    def run(self, flow: Flow[T]) -> T:
        """Carry out the steps that a flow yields; returns the result of the flow."""
        result: HttpAnswer | Lost | None = None
        try:
            while True:
                result = self._do(flow.send(result))
        except StopIteration as done:
            value: T = done.value
            return value

    def items(self, turn: Callable[[int], Flow[Page[T]]], first: int | None) -> Iterator[T]:
        """Iterate over the items of all pages."""
        while first is not None:
            found, first = self.run(turn(first))
            yield from found

    def _do(self, step: Step) -> HttpAnswer | Lost | None:
        if not isinstance(step, Send):
            time.sleep(step.seconds)
            return None
        asked = step.request
        request = self._http.build_request(
            asked.method,
            self.url + asked.path,
            params=asked.query or None,
            content=asked.body,
            headers=headers_of(asked),
            timeout=step.seconds,
        )
        try:
            response = self._http.send(request, stream=True)
            try:
                if asked.sink is not None and response.is_success:
                    restart(asked.sink)
                    for part in response.iter_bytes():
                        asked.sink.write(part)
                    return HttpAnswer(response.status_code, response.headers, b"")
                return HttpAnswer(response.status_code, response.headers, response.read())
            finally:
                response.close()
        except (httpx.TransportError, httpx.DecodingError) as error:
            return Lost(f"{self.url}: {error or type(error).__name__}")


class Stream:
    """Stream is a stream of decisions at a service, used like :class:`fairshield.Shield`.

    Methods that add to the log take a ``key``: a call with a key that was used before gets the
    answer it got then.  Without one, every call is a new request.
    """

    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name = client, name
        self._calls = Calls(name, client.terms)

    def __repr__(self) -> str:
        return f"{self.client!r}.stream({self.name!r})"

    def decide(
        self, group: Group, *, proposed: Flag, cost: float = 1.0, key: str | None = None
    ) -> messages.DecisionMessage:
        """The final decision on one person, on disk when it is returned."""
        return self.client.run(self._calls.decide(group, proposed, cost, key))

    def decide_many(
        self,
        groups: Sequence[Group] | Any,
        proposed: Sequence[Flag] | Any,
        costs: Sequence[float] | float | Any = 1.0,
        outcomes: Sequence[Flag] | Any = None,
        *,
        key: str | None = None,
    ) -> tuple[messages.DecisionMessage, ...]:
        """Decide people in order of arrival; all of them or, on an error, none.

        More than :data:`~fairshield.wire.messages.MOST_IN_BATCH` are sent in several requests,
        each of which is decided as a whole; after an error the same call with the same ``key``
        goes on where it stopped.  Properties that count by outcome need ``outcomes``.
        """
        return self.client.run(self._calls.decide_many(groups, proposed, costs, outcomes, key))

    def observe(
        self, decision: messages.DecisionMessage | int, *, outcome: Flag, key: str | None = None
    ) -> messages.OutcomeMessage:
        """Reveal the outcome of the last decision (properties that count by outcome)."""
        return self.client.run(self._calls.observe(decision, outcome, key))

    def override(
        self,
        decision: messages.DecisionMessage | int,
        *,
        accepted: Flag,
        note: str = "",
        key: str | None = None,
    ) -> messages.Override:
        """Replace a decision of the window in progress by that of a person."""
        return self.client.run(self._calls.override(decision, accepted, note, key))

    def describe(self) -> messages.StreamMessage:
        """Return what the stream promises, and where it stands."""
        return self.client.run(self._calls.describe())

    def state(self) -> messages.StateMessage:
        """Return counters, bias, remaining decisions and costs."""
        return self.client.run(self._calls.state())

    def guarantee(self) -> messages.GuaranteeReport:
        """Return what is guaranteed right now."""
        return self.client.run(self._calls.guarantee())

    def outlook(self, *, cost: float = 1.0) -> messages.Outlook:
        """Return the expected cost of what is left, and what would be decided now at this cost."""
        return self.client.run(self._calls.outlook(cost))

    def series(self, *, last: int = 2_000) -> messages.Series:
        """Return bias and rates after each of the last decisions."""
        return self.client.run(self._calls.series(last))

    def decision(self, n: int) -> messages.DecisionMessage:
        """Decision ``n``, as it was answered."""
        return self.client.run(self._calls.decision(n))

    def explain(self, decision: messages.DecisionMessage | int) -> messages.ExplanationMessage:
        """Why a decision was made, with the cost to go of either choice."""
        return self.client.run(self._calls.explain(decision))

    def decisions(
        self, *, before: int = 2**53, overruled: bool = False
    ) -> Iterator[messages.DecisionMessage]:
        """Decisions, the latest first; all, or only those that were overruled."""
        return self.client.items(partial(self._calls.decisions, overruled=overruled), before)

    def windows(self, *, first: int = 0) -> Iterator[messages.WindowEnd]:
        """Windows or periods that are over, oldest first."""
        return self.client.items(self._calls.windows, first)

    def log(self, *, after: int = -1) -> Iterator[messages.LogEntry]:
        """Entries of the log in order, up to the last one there is."""
        return self.client.items(self._calls.log, after)

    def tail(self, *, after: int | None = None) -> Iterator[messages.LogEntry]:
        """Entries of the log as they are written, until the stream is closed.

        Begins after entry ``after``, by default with what is written from now on.  While the
        service is away it waits, without end; no entry is left out or given twice.
        """
        start = self.client.run(self._calls.tail_from(after))
        return self.client.items(self._calls.tail, start)

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write the log to a file: ``.jsonl``, the lines that are hashed, or ``.csv``, a table."""
        target = Path(path)
        with replacing(target) as sink:
            return self.client.run(self._calls.export(target, sink))

    def close(self) -> messages.StreamMessage:
        """End the stream for good; its log stays."""
        return self.client.run(self._calls.close())
