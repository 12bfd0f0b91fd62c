"""Pages of streams: all of them, one of them, one of its decisions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode

import msgspec

from fairshield.service.api.events import service_state
from fairshield.service.dashboard import show
from fairshield.service.dashboard.base import query_of, render, see_other
from fairshield.service.history import views
from fairshield.service.log.answers import decision_of
from fairshield.service.log.entries import Overridden, entry_of, logged
from fairshield.service.log.live import LiveStream
from fairshield.service.log.reports import describe, report_of
from fairshield.service.log.snapshots import WindowRow
from fairshield.service.store import Connection, PolicyRow
from fairshield.service.web.context import Call
from fairshield.service.web.http import Reply
from fairshield.wire.messages import (
    Cost,
    DecisionMessage,
    ExplanationMessage,
    GuaranteeReport,
    Outlook,
    Rates,
    StreamMessage,
)
from fairshield.wire.problems import Refusal

_PATIENCE = 0.4
"""Seconds that a page waits for the outlook before it is rendered without one."""
_POINTS, _WINDOWS, _SCANNED = 25, 20, 20_000


@dataclass(frozen=True)
class About:
    """About holds all that the pages show of a stream."""

    stream: StreamMessage
    report: GuaranteeReport
    promise: str
    overridable: dict[int, bool]
    here: views.Here
    finding: str
    usual_cost: float

    @classmethod
    def of(cls, live: LiveStream) -> About:
        """Gather what the pages of a stream show."""
        return cls(
            stream=describe(live),
            report=report_of(live),
            promise=show.promise(live),
            overridable=live.overridable,
            here=views.here(live),
            finding=str(live.policy.prop.finding(live.counts)),
            usual_cost=views.usual_cost(live.policy),
        )

    @property
    def rates(self) -> list[tuple[str, tuple[Rates, ...], bool]]:
        """Acceptance rates by scope: its name, groups, and whether proposals are too far apart.

        Periods judge all decisions since the first, and count in what the policy starts from.
        """
        stream, state = self.stream, self.stream.state
        now, whole = state.in_progress, state.whole_stream
        unfair = not show.within(now.bias_unshielded, stream.limit)
        everybody = ("Since the first decision", whole.groups, False)
        if show.unit(stream) == "window":
            return [("In this window", now.groups, unfair), everybody]
        if now.groups == whole.groups:
            return [("Since the first decision", now.groups, unfair)]
        return [("With those it started from", now.groups, unfair), everybody]

    @property
    def over(self) -> bool:
        """Whether nothing more will be decided."""
        return self.here.policy is None


async def overview(call: Call) -> Reply:
    """All streams, those that need attention first."""
    if call.caller.stream is not None:
        return see_other(f"/streams/{call.caller.stream}")
    engine = call.service.engine
    names = [name for _, name in await engine.read(Connection.streams)]
    found = await engine.survey(names, _card)
    cards = [card for card in found.values() if not isinstance(card, Refusal)]
    broken = [name for name, card in found.items() if isinstance(card, Refusal)]
    cards.sort(key=lambda card: (show.STATUSES[card.stream.status].rank, card.stream.name))
    tally = {status: sum(c.stream.status == status for c in cards) for status in show.STATUSES}
    return render(
        call, "overview.html.j2", cards=cards, broken=sorted(broken), tally=tally,
        ends=await engine.read(_last_ends), policies=await engine.read(_unfinished),
        events="/v1/events",
    )  # fmt: skip


class Card(NamedTuple):
    """Card holds a stream and its promise, for the list of streams."""

    stream: StreamMessage
    promise: str


def _card(live: LiveStream) -> Card:
    return Card(describe(live), show.promise(live))


def _last_ends(connection: Connection) -> dict[str, WindowRow]:
    """The last window or period that is over, of every stream that has one."""
    ends = ((name, connection.last_window(number)) for number, name in connection.streams())
    return {name: end for name, end in ends if end is not None}


def _unfinished(connection: Connection) -> list[PolicyRow]:
    return [row for row in connection.policies() if row.status != "ready"]


class StreamQuery(msgspec.Struct, frozen=True):
    """StreamQuery says which decisions the page of a stream shows, and the cost it assumes."""

    show: Literal["overruled", "all"] = "overruled"
    group: str = ""
    reason: str = ""
    least: Cost = 0.0
    rows: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 12
    cost: Cost | None = None
    """``None``: one that the input model knows."""

    def more(self) -> str:
        """The address that shows more rows."""
        wanted = msgspec.structs.asdict(self) | {"rows": min(2 * self.rows, 1000)}
        default = msgspec.structs.asdict(StreamQuery())
        return "?" + urlencode({k: v for k, v in wanted.items() if v != default[k]})


async def stream_page(call: Call) -> Reply:
    """One stream."""
    name, engine = call.path["name"], call.service.engine
    query = query_of(call, StreamQuery)
    about = await engine.query(name, About.of)
    cost = about.usual_cost if query.cost is None else query.cost
    outlook = asyncio.create_task(_outlook(call, about, cost))
    tables = await engine.read(lambda connection: _tables(connection, call, about, query))
    return render(
        call, "stream.html.j2", about=about, stream=about.stream, state=about.stream.state,
        report=about.report, query=query, cost=cost, service=service_state(call.service),
        outlook=await outlook, events=f"/v1/streams/{name}/events", **tables,
    )  # fmt: skip


def _tables(connection: Connection, call: Call, about: About, query: StreamQuery) -> dict[str, Any]:
    """Return what the page of a stream reads from the log."""
    stream = about.stream
    number = _number(connection, stream.name)
    decisions = _decisions(connection, number, stream, query)
    first = max(0, stream.state.windows_completed - _WINDOWS)
    series = views.series(number, connection, call.service.policies, last=_POINTS)
    points = list(zip(series.n, series.measured_bias, series.measured_bias_unshielded, strict=True))
    return {
        "decisions": decisions[: query.rows],
        "more": query.more() if len(decisions) > query.rows and query.rows < 1000 else None,
        "overrides": _overrides(connection, number, decisions) if stream.human else {},
        "windows": connection.windows(number, first=first)[::-1],
        "points": points[: -_POINTS - 1 : -1],
    }


def _decisions(
    connection: Connection, number: int, stream: StreamMessage, query: StreamQuery
) -> list[DecisionMessage]:
    """The latest decisions that are asked for, and one more if there is one."""
    found: list[DecisionMessage] = []
    before, scanned = 1 << 53, 0
    while len(found) <= query.rows and scanned < _SCANNED:
        rows = connection.latest(
            number, before=before, limit=500, only_overruled=query.show == "overruled"
        )
        made = [decision_of(logged(row), stream.length) for row in rows]
        found += [decision for decision in made if _wanted(decision, stream, query)]
        if len(rows) < 500:
            break
        before, scanned = made[-1].n, scanned + 500
    return found[: query.rows + 1]


def _wanted(decision: DecisionMessage, stream: StreamMessage, query: StreamQuery) -> bool:
    words = show.reason(decision, stream, decision.remaining)
    return (
        query.group in ("", str(decision.group))
        and query.reason.lower() in f"{words} {decision.reason}".lower()
        and decision.cost >= query.least
    )


def _overrides(
    connection: Connection, number: int, decisions: list[DecisionMessage]
) -> dict[int, Overridden]:
    """Return what people decided since the first of these decisions."""
    if not decisions:
        return {}
    rows = connection.entries(number, after=decisions[-1].seq, limit=_SCANNED)
    entries = (entry_of(row.line) for row in rows if row.n is None)
    return {entry.n: entry for entry in entries if isinstance(entry, Overridden)}


async def _outlook(call: Call, about: About, cost: float) -> Outlook | None:
    """The outlook of the window in progress; ``None`` if it takes longer than ``_PATIENCE``."""
    under_way, key = call.service.outlooks, (about.stream.name, cost)
    if key not in under_way:
        under_way[key] = asyncio.ensure_future(_expected(call, about, cost))
        under_way[key].add_done_callback(lambda _: under_way.pop(key))
    task = under_way[key]
    done, _ = await asyncio.wait([task], timeout=_PATIENCE)
    return task.result() if done else None


async def _expected(call: Call, about: About, cost: float) -> Outlook | None:
    groups = about.stream.groups
    try:
        return await call.service.engine.readers.read_long(
            lambda _: views.outlook(about.here, cost, groups)
        )
    except Refusal:  # too many requests, or the service is stopping
        return None


async def explanation(call: Call) -> Reply:
    """Why a decision was made."""
    name, n = call.path["name"], call.path["n"]
    engine, policies = call.service.engine, call.service.policies
    stream = await engine.query(name, describe)

    def look(connection: Connection) -> tuple[ExplanationMessage, dict[int, Overridden]]:
        number = _number(connection, name)
        found = views.explanation(number, n, connection, policies)
        return found, _overrides(connection, number, [found.decision])

    found, overrides = await engine.readers.read_long(look)
    return render(
        call, "decision.html.j2", stream=stream, explanation=found, decision=found.decision,
        override=overrides.get(n),
    )  # fmt: skip


def _number(connection: Connection, name: str) -> int:
    number = connection.stream(name)
    assert number is not None  # streams are never deleted
    return number
