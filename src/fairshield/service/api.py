"""The HTTP API: one table of endpoints, from which routes and the OpenAPI document are made."""

from __future__ import annotations

import asyncio
import csv
import io
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

import msgspec
from starlette.responses import StreamingResponse

from fairshield.periodic import PeriodicPolicy
from fairshield.service import views
from fairshield.service.commands import (
    Close,
    Command,
    Decide,
    DecideBatch,
    Observe,
    Overrule,
    decision_of,
)
from fairshield.service.context import Call, described
from fairshield.service.engine import utc_now
from fairshield.service.entries import Row, written
from fairshield.service.events import all_events, either, stream_events
from fairshield.service.http import App, Reply, reply
from fairshield.service.messages import (
    BatchRequest,
    Cost,
    Decision,
    DecisionRequest,
    Decisions,
    Explanation,
    GuaranteeReport,
    Log,
    LogEntry,
    Number,
    Outcome,
    OutcomeRequest,
    Outlook,
    Override,
    OverrideRequest,
    Policies,
    Policy,
    Scope,
    Series,
    State,
    Stream,
    StreamRequest,
    Streams,
    Whole,
    WindowEnd,
    Windows,
)
from fairshield.service.problems import Refusal
from fairshield.service.reports import describe, report_of, state_of
from fairshield.service.store import Connection, PolicyRow

Handler = Callable[[Call], Awaitable[App]]

MOST_ON_A_PAGE = 1_000
_EXPORT_PAGE = 5_000


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of what an address may ask after its question mark."""


class NoQuery(Query, frozen=True):
    """Nothing."""


class LogQuery(Query, frozen=True):
    """Entries after ``after``; with ``wait``, as soon as there are any within so many seconds."""

    after: Annotated[int, msgspec.Meta(ge=-1, le=2**53)] = -1
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ON_A_PAGE)] = 100
    wait: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.0


class DecisionsQuery(Query, frozen=True):
    """Decisions before ``before``, the latest first; all, or only overruled ones."""

    before: Number = 2**53
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ON_A_PAGE)] = 50
    overruled: bool = False


class WindowsQuery(Query, frozen=True):
    """Windows from ``first`` on."""

    first: Whole = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ON_A_PAGE)] = 100


class OutlookQuery(Query, frozen=True):
    """The cost of overruling to reckon with."""

    cost: Cost = 1.0


class SeriesQuery(Query, frozen=True):
    """The last so many decisions, or what came after an entry."""

    last: Annotated[int, msgspec.Meta(ge=1, le=views.MOST_POINTS)] = 2_000
    after: Whole | None = None


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One method of one path: what it takes, what it answers, who may ask.

    ``problems`` are those beyond what every endpoint of its kind may answer.  ``filtered``: a key
    for one stream may ask, and is shown that stream alone.
    """

    method: str
    path: str
    handle: Handler
    summary: str
    scope: Scope | None = "read"
    body: Any = None
    query: type[Query] = NoQuery
    answers: dict[int, Any] = field(default_factory=dict)
    content_type: str = "application/json"
    problems: tuple[str, ...] = ()
    keyed: bool = False
    upload: bool = False
    filtered: bool = False

    @cached_property
    def decoder(self) -> msgspec.json.Decoder[Any]:
        """Reads the body."""
        return msgspec.json.Decoder(self.body)

    @cached_property
    def fields(self) -> tuple[bytes, ...]:
        """The names in the body, in quotes, if nothing is nested in it."""
        if not hasattr(self.body, "__struct_fields__") or self.body is BatchRequest:
            return ()
        return tuple(b'"%s"' % name.encode() for name in self.body.__struct_fields__)


# Decisions ----------------------------------------------------------------------------------


async def _submit(call: Call, command: Command) -> Reply:
    answer = await call.service.engine.submit(
        call.path["name"], command, key=call.key, actor=call.caller.actor
    )
    return Reply(answer)


async def decide(call: Call) -> Reply:
    """Decide one person."""
    begun = time.perf_counter()
    answer = await _submit(call, Decide(call.body))
    call.service.latencies.add(time.perf_counter() - begun)
    return answer


async def decide_batch(call: Call) -> Reply:
    """Decide many people."""
    return await _submit(call, DecideBatch(call.body.decisions))


async def observe(call: Call) -> Reply:
    """Record an outcome."""
    return await _submit(call, Observe(call.body))


async def override(call: Call) -> Reply:
    """Record a person's decision."""
    return await _submit(call, Overrule(call.path["n"], call.body))


# Streams ------------------------------------------------------------------------------------


async def create_stream(call: Call) -> Reply:
    """Create a stream, of a policy that is ready."""
    request: StreamRequest = call.body
    engine = call.service.engine
    row = await engine.read(lambda connection: connection.policy(request.policy))
    if row is None:
        raise Refusal(
            "not-found", f"there is no policy {request.policy}: POST it to /v1/policies first"
        )
    if row.status != "ready":
        raise Refusal(
            "policy-not-ready",
            f"policy {request.policy} is {row.status}" + (f": {row.error}" if row.error else ""),
            retry_after=1,
        )
    shelf = call.service.shelf
    policy = await engine.read(lambda connection: shelf.policy(request.policy, connection))
    if isinstance(policy, PeriodicPolicy) and request.windows is not None:
        raise Refusal(
            "invalid-request", "a periodic policy says itself how many periods it has: leave "
            "windows out",
        )  # fmt: skip
    new = await engine.create(request, actor=call.caller.actor)
    return reply(await engine.query(request.name, describe), 201 if new else 200)


async def list_streams(call: Call) -> Reply:
    """All streams; one that cannot be shown is left out, and says why when asked for."""
    engine, only = call.service.engine, call.caller.stream
    names = [name for _, name in await engine.read(Connection.streams) if only in (None, name)]
    return reply(Streams(await described(call.service, names)))


async def get_stream(call: Call) -> Reply:
    """One stream."""
    return reply(await call.service.engine.query(call.path["name"], describe))


async def close_stream(call: Call) -> Reply:
    """End a stream."""
    engine, name = call.service.engine, call.path["name"]
    await engine.submit(name, Close(), actor=call.caller.actor)
    return reply(await engine.query(name, describe))


async def get_state(call: Call) -> Reply:
    """Where a stream stands."""
    return reply(await call.service.engine.query(call.path["name"], state_of))


async def get_guarantee(call: Call) -> Reply:
    """What is guaranteed."""
    return reply(await call.service.engine.query(call.path["name"], report_of))


async def get_outlook(call: Call) -> Reply:
    """What is to be expected, and what would be decided now."""
    engine, query = call.service.engine, call.query
    at, groups = await engine.query(
        call.path["name"], lambda live: (views.here(live), live.policy.groups)
    )
    return reply(await engine.think(lambda _: views.outlook(at, query.cost, groups)))


# The log ------------------------------------------------------------------------------------


async def stream_number(call: Call) -> int:
    """The number of the stream that is asked about."""
    name: str = call.path["name"]
    number = await call.service.engine.read(lambda connection: connection.stream(name))
    if number is None:
        raise Refusal("not-found", f"there is no stream {name!r}")
    return number


async def get_decision(call: Call) -> Reply:
    """One decision, as it was answered."""
    number, n = await stream_number(call), call.path["n"]
    engine = call.service.engine
    row = await engine.read(lambda connection: connection.decision(number, n))
    if row is None:
        raise Refusal("not-found", f"stream {call.path['name']!r} has no decision {n}")
    length = await engine.query(call.path["name"], lambda live: live.length)
    return reply(decision_of(row, length))


async def list_decisions(call: Call) -> Reply:
    """Decisions, the latest first."""
    number, query = await stream_number(call), call.query
    engine = call.service.engine
    rows = await engine.read(
        lambda connection: connection.latest(
            number, before=query.before, limit=query.limit, only_overruled=query.overruled
        )
    )
    length = await engine.query(call.path["name"], lambda live: live.length)
    return reply(Decisions(tuple(decision_of(row, length) for row in rows)))


async def explain_decision(call: Call) -> Reply:
    """Why a decision was made."""
    number, n, shelf = await stream_number(call), call.path["n"], call.service.shelf
    return reply(
        await call.service.engine.think(
            lambda connection: views.explanation(number, n, connection, shelf)
        )
    )


async def get_log(call: Call) -> Reply:
    """A page of the log; with ``wait``, when there is something on it."""
    number, query, engine = await stream_number(call), call.query, call.service.engine

    async def page() -> list[Row]:
        return await engine.read(
            lambda connection: connection.entries(number, after=query.after, limit=query.limit)
        )

    changed = asyncio.Event()
    unwatch = engine.watch(call.path["name"], changed)
    try:
        rows = await page()
        if not rows and query.wait:
            await either(changed, call.service.stopping, seconds=query.wait)
            rows = await page()
    finally:
        unwatch()
    entries = tuple(LogEntry(msgspec.json.decode(row.line), row.hash.hex()) for row in rows)
    return reply(Log(entries, next=rows[-1].seq if len(rows) == query.limit else None))


async def export_jsonl(call: Call) -> App:
    """The log as stored: the lines that are hashed, one after the other."""
    pages = _pages(call, await stream_number(call))

    async def lines() -> AsyncIterator[bytes]:
        async for rows in pages:
            yield b"".join(row.line + b"\n" for row in rows)

    return _download(call, lines(), "jsonl", "application/x-ndjson")


_COLUMNS = (
    "seq", "kind", "at", "n", "group", "proposed", "cost", "accepted", "why", "guaranteed",
    "window", "position", "outcome", "note", "key", "actor", "receipt",
)  # fmt: skip


_FORMULA = frozenset("=+-@\t\r")


async def export_csv(call: Call) -> App:
    """The log as a table, with the receipt of every entry."""
    pages = _pages(call, await stream_number(call))

    async def lines() -> AsyncIterator[bytes]:
        yield (",".join(_COLUMNS) + "\r\n").encode()
        async for rows in pages:
            yield _as_csv(rows)

    return _download(call, lines(), "csv", "text/csv; charset=utf-8")


def _as_csv(rows: list[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    for row in rows:
        fields = msgspec.json.decode(row.line) | {"receipt": row.hash.hex()}
        if fields["kind"] in ("decision", "override"):
            fields.setdefault("guaranteed", True)
        writer.writerow([_cell(fields.get(column)) for column in _COLUMNS])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """A value as a spreadsheet is to show it: text that looks like a formula is not to be one."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and value[:1] in _FORMULA else value


async def _pages(call: Call, number: int) -> AsyncIterator[list[Row]]:
    after = -1

    def page(connection: Connection) -> list[Row]:
        return connection.entries(number, after=after, limit=_EXPORT_PAGE)

    while rows := await call.service.engine.read(page):
        yield rows
        after = rows[-1].seq


def _download(call: Call, lines: AsyncIterator[bytes], kind: str, content_type: str) -> App:
    name = f'attachment; filename="{call.path["name"]}.{kind}"'
    headers = {"content-disposition": name, "cache-control": "no-store"}
    return StreamingResponse(lines, media_type=content_type, headers=headers)


async def list_windows(call: Call) -> Reply:
    """Windows or periods that are over."""
    number, query = await stream_number(call), call.query
    rows = await call.service.engine.read(
        lambda connection: connection.windows(number, first=query.first, limit=query.limit)
    )
    ends = tuple(
        WindowEnd(**{name: getattr(row, name) for name in WindowEnd.__struct_fields__})
        for row in rows
    )
    full = len(rows) == query.limit
    return reply(Windows(ends, next=rows[-1].window + 1 if full else None))


async def get_series(call: Call) -> Reply:
    """Bias over time."""
    number, query, shelf = await stream_number(call), call.query, call.service.shelf
    return reply(
        await call.service.engine.read(
            lambda connection: views.series(
                number, connection, shelf, after=query.after, last=query.last
            )
        )
    )


# Policies -----------------------------------------------------------------------------------


async def create_policy(call: Call) -> Reply:
    """Take in a policy file, or have a policy made."""
    workshop, now = call.service.workshop, written(utc_now())
    if isinstance(call.body, bytes):
        row, new = await workshop.upload(call.body, now)
    else:
        row, new = await workshop.specify(call.body, now)
    return reply(_policy(row), 202 if new else 200)


async def list_policies(call: Call) -> Reply:
    """All policies."""
    rows = await call.service.engine.read(Connection.policies)
    return reply(Policies(tuple(_policy(row) for row in rows)))


async def get_policy(call: Call) -> Reply:
    """One policy, by its id or digest."""
    which: str = call.path["policy"]
    row = await call.service.engine.read(lambda connection: connection.policy(which))
    if row is None:
        raise Refusal("not-found", f"there is no policy {which!r}")
    return reply(_policy(row))


def _policy(row: PolicyRow) -> Policy:
    fields: dict[str, Any] = {name: getattr(row, name) for name in Policy.__struct_fields__}
    return Policy(**fields)


# The table ----------------------------------------------------------------------------------

_STREAM = "/v1/streams/{name}"
_OF_STREAM = ("not-found", "log-broken")
_OF_LOG = (*_OF_STREAM, "stream-closed")

ENDPOINTS = (
    Endpoint(
        method="POST", path=f"{_STREAM}/decisions", handle=decide, scope="decide", keyed=True,
        summary="Decide one person", body=DecisionRequest, answers={200: Decision},
        problems=(*_OF_LOG, "unknown-group", "stream-finished", "outcome-pending", "infeasible"),
    ),
    Endpoint(
        method="POST", path=f"{_STREAM}/decisions:batch", handle=decide_batch, scope="decide",
        summary="Decide many people, all or none", body=BatchRequest, answers={200: Decisions},
        problems=(*_OF_LOG, "unknown-group", "stream-finished", "outcome-pending", "infeasible"),
        keyed=True,
    ),
    Endpoint(
        method="POST", path=f"{_STREAM}/outcomes", handle=observe, scope="decide", keyed=True,
        summary="Record the outcome of a decision", body=OutcomeRequest, answers={200: Outcome},
        problems=(*_OF_LOG, "unexpected-outcome"),
    ),
    Endpoint(
        method="POST", path=f"{_STREAM}/decisions/{{n}}/override", handle=override,
        summary="Record a person's decision in the place of the shield's", scope="decide",
        body=OverrideRequest, answers={200: Override}, problems=(*_OF_LOG, "not-overridable"),
        keyed=True,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/decisions", handle=list_decisions, query=DecisionsQuery,
        summary="Decisions, the latest first", answers={200: Decisions}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/decisions/{{n}}", handle=get_decision,
        summary="One decision, as it was answered", answers={200: Decision}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/decisions/{{n}}/explanation", handle=explain_decision,
        summary="Why a decision was made", answers={200: Explanation}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path="/v1/streams", handle=list_streams, summary="All streams",
        answers={200: Streams}, filtered=True,
    ),
    Endpoint(
        method="POST", path="/v1/streams", handle=create_stream, scope="admin",
        summary="Create a stream", body=StreamRequest, answers={200: Stream, 201: Stream},
        problems=("not-found", "name-taken", "policy-not-ready", "log-broken", "infeasible"),
    ),
    Endpoint(
        method="GET", path=_STREAM, handle=get_stream, summary="One stream",
        answers={200: Stream}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="POST", path=f"{_STREAM}/close", handle=close_stream, scope="admin",
        summary="End a stream; its log stays", answers={200: Stream}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/state", handle=get_state, summary="Where a stream stands",
        answers={200: State}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/guarantee", handle=get_guarantee,
        summary="What is guaranteed right now", answers={200: GuaranteeReport},
        problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/outlook", handle=get_outlook, query=OutlookQuery,
        summary="Expected cost, and what would be decided now", answers={200: Outlook},
        problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/windows", handle=list_windows, query=WindowsQuery,
        summary="Windows or periods that are over", answers={200: Windows}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/series", handle=get_series, query=SeriesQuery,
        summary="Bias over time", answers={200: Series}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/log", handle=get_log, query=LogQuery,
        summary="A page of the log", answers={200: Log}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/log.jsonl", handle=export_jsonl,
        summary="The log: the lines that are hashed", answers={200: str}, problems=_OF_STREAM,
        content_type="application/x-ndjson",
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/log.csv", handle=export_csv, summary="The log as a table",
        answers={200: str}, problems=_OF_STREAM, content_type="text/csv",
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/events", handle=stream_events,
        summary="Changes of a stream, as server-sent events", answers={200: str},
        problems=_OF_STREAM, content_type="text/event-stream",
    ),
    Endpoint(
        method="GET", path="/v1/events", handle=all_events,
        summary="Changes of all streams, as server-sent events", answers={200: str},
        content_type="text/event-stream", filtered=True,
    ),
    Endpoint(
        method="POST", path="/v1/policies", handle=create_policy, scope="admin", upload=True,
        summary="Upload a policy file, or have the policy of a specification made",
        body=dict[str, Any], answers={200: Policy, 202: Policy},
        problems=("infeasible", "too-costly"),
    ),
    Endpoint(
        method="GET", path="/v1/policies", handle=list_policies, summary="All policies",
        answers={200: Policies},
    ),
    Endpoint(
        method="GET", path="/v1/policies/{policy}", handle=get_policy,
        summary="One policy, by id or digest", answers={200: Policy}, problems=("not-found",),
    ),
)  # fmt: skip
