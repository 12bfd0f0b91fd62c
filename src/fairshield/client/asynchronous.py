"""AsyncClient talks to a service from an event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
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
from fairshield.client.synchronous import TOKEN
from fairshield.records import Flag
from fairshield.wire import messages

T = TypeVar("T")


class AsyncClient:
    """AsyncClient is :class:`~fairshield.Client` with coroutines.

    It belongs to one event loop, in which any number of tasks may share it.
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
        self._http = httpx.AsyncClient(headers=headers_for(token, __version__))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; streams at the service stay open."""
        await self._http.aclose()

    # Streams and policies ---------------------------------------------------------------------

    async def create_stream(
        self,
        name: str,
        policy: AnyPolicy,
        *,
        windows: int | None = None,
        human: bool = False,
        progress: Progress | None = None,
    ) -> AsyncStream:
        """Create a stream; returns the existing one if it has the same settings."""
        how = await asyncio.to_thread(prepared, policy)
        await self.run(
            calls.create_stream(
                name, how, windows=windows, human=human, progress=progress, terms=self.terms
            )
        )
        return self.stream(name)

    def stream(self, name: str) -> AsyncStream:
        """The stream of this name; sends no request."""
        return AsyncStream(self, name)

    async def streams(self) -> tuple[messages.StreamMessage, ...]:
        """All streams: what they promise, and where they stand."""
        return await self.run(calls.streams(self.terms))

    async def add_policy(
        self, policy: AnyPolicy, *, progress: Progress | None = None
    ) -> messages.PolicyMessage:
        """Bring a policy to the service, and wait until it is verified."""
        how = await asyncio.to_thread(prepared, policy)
        return await self.run(calls.add_policy(how, progress, self.terms))

    async def policy(self, which: str) -> messages.PolicyMessage:
        """A policy by its id or digest, in whichever state it is."""
        return await self.run(calls.policy(which, self.terms))

    async def policies(self) -> tuple[messages.PolicyMessage, ...]:
        """All policies that the service has or is making."""
        return await self.run(calls.policies(self.terms))

    # Running flows ----------------------------------------------------------------------------

    async def run(self, flow: Flow[T]) -> T:
        """Carry out the steps that a flow yields; returns the result of the flow."""
        result: HttpAnswer | Lost | None = None
        try:
            while True:
                result = await self._do(flow.send(result))
        except StopIteration as done:
            value: T = done.value
            return value

    async def items(
        self, turn: Callable[[int], Flow[Page[T]]], first: int | None
    ) -> AsyncIterator[T]:
        """Iterate over the items of all pages."""
        while first is not None:
            found, first = await self.run(turn(first))
            for item in found:
                yield item

    async def _do(self, step: Step) -> HttpAnswer | Lost | None:
        if not isinstance(step, Send):
            await asyncio.sleep(step.seconds)
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
            response = await self._http.send(request, stream=True)
            try:
                if asked.sink is not None and response.is_success:
                    restart(asked.sink)
                    async for part in response.aiter_bytes():
                        asked.sink.write(part)
                    return HttpAnswer(response.status_code, response.headers, b"")
                return HttpAnswer(response.status_code, response.headers, await response.aread())
            finally:
                await response.aclose()
        except (httpx.TransportError, httpx.DecodingError) as error:
            return Lost(f"{self.url}: {error or type(error).__name__}")


class AsyncStream:
    """AsyncStream is :class:`~fairshield.client.Stream` with coroutines."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.client, self.name = client, name
        self._calls = Calls(name, client.terms)

    def __repr__(self) -> str:
        return f"{self.client!r}.stream({self.name!r})"

    async def decide(
        self, group: Group, *, proposed: Flag, cost: float = 1.0, key: str | None = None
    ) -> messages.DecisionMessage:
        """The final decision on one person, on disk when it is returned."""
        return await self.client.run(self._calls.decide(group, proposed, cost, key))

    async def decide_many(
        self,
        groups: Sequence[Group] | Any,
        proposed: Sequence[Flag] | Any,
        costs: Sequence[float] | float | Any = 1.0,
        outcomes: Sequence[Flag] | Any = None,
        *,
        key: str | None = None,
    ) -> tuple[messages.DecisionMessage, ...]:
        """Decide people in order of arrival; all of them or, on an error, none."""
        flow = self._calls.decide_many(groups, proposed, costs, outcomes, key)
        return await self.client.run(flow)

    async def observe(
        self, decision: messages.DecisionMessage | int, *, outcome: Flag, key: str | None = None
    ) -> messages.OutcomeMessage:
        """Reveal the outcome of the last decision (properties that count by outcome)."""
        return await self.client.run(self._calls.observe(decision, outcome, key))

    async def override(
        self,
        decision: messages.DecisionMessage | int,
        *,
        accepted: Flag,
        note: str = "",
        key: str | None = None,
    ) -> messages.Override:
        """Replace a decision of the window in progress by that of a person."""
        return await self.client.run(self._calls.override(decision, accepted, note, key))

    async def describe(self) -> messages.StreamMessage:
        """Return what the stream promises, and where it stands."""
        return await self.client.run(self._calls.describe())

    async def state(self) -> messages.StateMessage:
        """Return counters, bias, remaining decisions and costs."""
        return await self.client.run(self._calls.state())

    async def guarantee(self) -> messages.GuaranteeReport:
        """Return what is guaranteed right now."""
        return await self.client.run(self._calls.guarantee())

    async def outlook(self, *, cost: float = 1.0) -> messages.Outlook:
        """Return the expected cost of what is left, and what would be decided now at this cost."""
        return await self.client.run(self._calls.outlook(cost))

    async def series(self, *, last: int = 2_000) -> messages.Series:
        """Return bias and rates after each of the last decisions."""
        return await self.client.run(self._calls.series(last))

    async def decision(self, n: int) -> messages.DecisionMessage:
        """Decision ``n``, as it was answered."""
        return await self.client.run(self._calls.decision(n))

    async def explain(
        self, decision: messages.DecisionMessage | int
    ) -> messages.ExplanationMessage:
        """Why a decision was made, with the cost to go of either choice."""
        return await self.client.run(self._calls.explain(decision))

    def decisions(
        self, *, before: int = 2**53, overruled: bool = False
    ) -> AsyncIterator[messages.DecisionMessage]:
        """Decisions, the latest first; all, or only those that were overruled."""
        return self.client.items(partial(self._calls.decisions, overruled=overruled), before)

    def windows(self, *, first: int = 0) -> AsyncIterator[messages.WindowEnd]:
        """Windows or periods that are over, oldest first."""
        return self.client.items(self._calls.windows, first)

    def log(self, *, after: int = -1) -> AsyncIterator[messages.LogEntry]:
        """Entries of the log in order, up to the last one there is."""
        return self.client.items(self._calls.log, after)

    async def tail(self, *, after: int | None = None) -> AsyncIterator[messages.LogEntry]:
        """Entries of the log as they are written, until the stream is closed."""
        start = await self.client.run(self._calls.tail_from(after))
        async for entry in self.client.items(self._calls.tail, start):
            yield entry

    async def export(self, path: str | os.PathLike[str]) -> Path:
        """Write the log to a file: ``.jsonl``, the lines that are hashed, or ``.csv``, a table."""
        target = Path(path)
        with replacing(target) as sink:
            return await self.client.run(self._calls.export(target, sink))

    async def close(self) -> messages.StreamMessage:
        """End the stream for good; its log stays."""
        return await self.client.run(self._calls.close())
