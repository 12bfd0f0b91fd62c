"""Endpoints that create, list, describe and close streams."""

from __future__ import annotations

from typing import Annotated

import msgspec

from fairshield.service.api.base import MOST_ON_A_PAGE, Query
from fairshield.service.engine.commands import Close
from fairshield.service.history import views
from fairshield.service.log.reports import describe, report_of, state_of
from fairshield.service.store import Connection
from fairshield.service.web.context import Call, described, stream_number
from fairshield.service.web.http import Reply, reply
from fairshield.wire.messages import Cost, StreamRequest, StreamsMessage, Whole, WindowEnd, Windows
from fairshield.wire.problems import Refusal


class WindowsQuery(Query, frozen=True):
    """WindowsQuery asks for windows from ``first`` on."""

    first: Whole = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ON_A_PAGE)] = 100


class OutlookQuery(Query, frozen=True):
    """OutlookQuery says which cost of overruling the outlook assumes."""

    cost: Cost = 1.0


class SeriesQuery(Query, frozen=True):
    """SeriesQuery asks for the last so many decisions, or for those after an entry."""

    last: Annotated[int, msgspec.Meta(ge=1, le=views.MOST_POINTS)] = 2_000
    after: Whole | None = None


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
    policies = call.service.policies
    policy = await engine.read(lambda connection: policies.policy(request.policy, connection))
    if request.windows is not None and policy.goes_on:
        raise Refusal(
            "invalid-request", "a periodic policy says itself how many periods it has: leave "
            "windows out",
        )  # fmt: skip
    new = await engine.create(request, actor=call.caller.actor)
    return reply(await engine.query(request.name, describe), 201 if new else 200)


async def list_streams(call: Call) -> Reply:
    """All streams but those that cannot be loaded; asking for one of these says why."""
    engine, only = call.service.engine, call.caller.stream
    names = [name for _, name in await engine.read(Connection.streams) if only in (None, name)]
    return reply(StreamsMessage(await described(call.service, names)))


async def get_stream(call: Call) -> Reply:
    """One stream."""
    return reply(await call.service.engine.query(call.path["name"], describe))


async def close_stream(call: Call) -> Reply:
    """End a stream."""
    engine, name = call.service.engine, call.path["name"]
    await engine.submit(name, Close(), actor=call.caller.actor)
    return reply(await engine.query(name, describe))


async def get_state(call: Call) -> Reply:
    """Return where the stream stands."""
    return reply(await call.service.engine.query(call.path["name"], state_of))


async def get_guarantee(call: Call) -> Reply:
    """Return the guarantee of the stream."""
    return reply(await call.service.engine.query(call.path["name"], report_of))


async def get_outlook(call: Call) -> Reply:
    """Return the outlook of the stream."""
    engine, query = call.service.engine, call.query
    at, groups = await engine.query(
        call.path["name"], lambda live: (views.here(live), live.policy.groups)
    )
    return reply(await engine.readers.read_long(lambda _: views.outlook(at, query.cost, groups)))


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
    """Return the bias of the stream over time."""
    number, query, policies = await stream_number(call), call.query, call.service.policies
    return reply(
        await call.service.engine.read(
            lambda connection: views.series(
                number, connection, policies, after=query.after, last=query.last
            )
        )
    )
