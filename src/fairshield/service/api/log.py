"""Endpoints that return the log in pages and as files."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from starlette.responses import StreamingResponse

from fairshield.service.api.base import MOST_ON_A_PAGE, Query
from fairshield.service.api.events import either
from fairshield.service.log.entries import EntryRow
from fairshield.service.store import Connection
from fairshield.service.web.context import Call, stream_number
from fairshield.service.web.http import App, Reply, reply
from fairshield.wire.messages import Log, LogEntry

_EXPORT_PAGE = 5_000


class LogQuery(Query, frozen=True):
    """LogQuery asks for entries after ``after``.

    With ``wait`` the answer comes as soon as there are any, within so many seconds.
    """

    after: Annotated[int, msgspec.Meta(ge=-1, le=2**53)] = -1
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ON_A_PAGE)] = 100
    wait: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.0


async def get_log(call: Call) -> Reply:
    """A page of the log; with ``wait``, as soon as there is an entry on it."""
    number, query, engine = await stream_number(call), call.query, call.service.engine

    async def page() -> list[EntryRow]:
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


def _as_csv(rows: list[EntryRow]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    for row in rows:
        fields = msgspec.json.decode(row.line) | {"receipt": row.hash.hex()}
        if fields["kind"] in ("decision", "override"):
            fields.setdefault("guaranteed", True)
        writer.writerow([_cell(fields.get(column)) for column in _COLUMNS])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """A value for a CSV; text that a spreadsheet would take for a formula is quoted."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and value[:1] in _FORMULA else value


async def _pages(call: Call, number: int) -> AsyncIterator[list[EntryRow]]:
    after = -1

    def page(connection: Connection) -> list[EntryRow]:
        return connection.entries(number, after=after, limit=_EXPORT_PAGE)

    while rows := await call.service.engine.read(page):
        yield rows
        after = rows[-1].seq


def _download(call: Call, lines: AsyncIterator[bytes], kind: str, content_type: str) -> App:
    name = f'attachment; filename="{call.path["name"]}.{kind}"'
    headers = {"content-disposition": name, "cache-control": "no-store"}
    return StreamingResponse(lines, media_type=content_type, headers=headers)
