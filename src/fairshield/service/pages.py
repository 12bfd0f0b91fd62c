"""The dashboard: pages that are functions of their address, rendered here.

A small script keeps a page up to date by asking for the same address again whenever a stream of
events says that something has changed; without it the pages say the same, once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from urllib.parse import parse_qs, parse_qsl, quote, urlencode

import jinja2
import msgspec

from fairshield._version import __version__
from fairshield.service import show, views
from fairshield.service.assets import address, compressed
from fairshield.service.commands import decision_of
from fairshield.service.context import Call, described
from fairshield.service.entries import Overridden, entry_of
from fairshield.service.events import service_state
from fairshield.service.http import App, Reply
from fairshield.service.live import AnyPolicy, LiveStream
from fairshield.service.messages import (
    Cost,
    Decision,
    Explanation,
    GuaranteeReport,
    Outlook,
    Rates,
    Scope,
    Stream,
)
from fairshield.service.problems import KINDS, Refusal
from fairshield.service.reports import describe, report_of
from fairshield.service.snapshots import WindowRow
from fairshield.service.store import Connection, PolicyRow

COOKIE = "fairshield_key"
_HTML = b"text/html; charset=utf-8"
_PATIENCE = 0.4
"""Seconds that a page waits for what is to be expected, before it does without."""
_POINTS, _WINDOWS, _SCANNED = 25, 20, 20_000
_T = TypeVar("_T", bound=msgspec.Struct)


@dataclass(frozen=True)
class Page:
    """A page: its path, who may see it (``None``: anybody), how it is made."""

    path: str
    handle: Callable[[Call], Awaitable[App]]
    scope: Scope | None = "read"
    method: str = "GET"


@dataclass(frozen=True)
class About:
    """A stream as its pages show it, all at one time."""

    stream: Stream
    report: GuaranteeReport
    promise: str
    overridable: dict[int, bool]
    here: views.Here
    finding: str
    usual_cost: float

    @classmethod
    def of(cls, live: LiveStream) -> About:
        """What is to be shown of a stream."""
        return cls(
            stream=describe(live),
            report=report_of(live),
            promise=show.promise(live),
            overridable=live.overridable,
            here=views.here(live),
            finding=str(live.policy.prop.finding(live.shield.counts)),
            usual_cost=views.usual_cost(live.policy),
        )

    @property
    def rates(self) -> list[tuple[str, tuple[Rates, ...], bool]]:
        """Acceptance rates by scope: its name, groups, and whether proposals are too far apart.

        In periods what is judged is the whole stream, unless it began with other people.
        """
        stream, state = self.stream, self.stream.state
        now, whole = state.in_progress, state.whole_stream
        unfair = not show.within(now.bias_unshielded, stream.limit)
        everybody = ("Since the first decision", whole.groups, False)
        if stream.kind == "window":
            return [("In this window", now.groups, unfair), everybody]
        if now.groups == whole.groups:
            return [("Since the first decision", now.groups, unfair)]
        return [("With those it started from", now.groups, unfair), everybody]

    @property
    def over(self) -> bool:
        """Whether nothing more will be decided."""
        return self.here.policy is None


# Streams ------------------------------------------------------------------------------------


async def overview(call: Call) -> Reply:
    """All streams, those that need attention first."""
    if call.caller.stream is not None:
        return _see_other(f"/streams/{call.caller.stream}")
    engine = call.service.engine
    names = [name for _, name in await engine.read(Connection.streams)]
    found = await engine.survey(names, _card)
    cards = [card for card in found.values() if not isinstance(card, Refusal)]
    broken = [name for name, card in found.items() if isinstance(card, Refusal)]
    cards.sort(key=lambda card: (show.STATUSES[card.stream.status].rank, card.stream.name))
    tally = {status: sum(c.stream.status == status for c in cards) for status in show.STATUSES}
    return _render(
        call, "overview.html.j2", cards=cards, broken=sorted(broken), tally=tally,
        ends=await engine.read(_last_ends), policies=await engine.read(_unfinished),
        events="/v1/events",
    )  # fmt: skip


class Card(NamedTuple):
    """A stream among the others."""

    stream: Stream
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
    """What is shown on the page of a stream: which decisions, and the cost to reckon with."""

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
    query = _query(call, StreamQuery)
    about = await engine.query(name, About.of)
    cost = about.usual_cost if query.cost is None else query.cost
    outlook = asyncio.create_task(_outlook(call, about, cost))
    tables = await engine.read(lambda connection: _tables(connection, call, about, query))
    return _render(
        call, "stream.html.j2", about=about, stream=about.stream, state=about.stream.state,
        report=about.report, query=query, cost=cost, service=service_state(call.service),
        outlook=await outlook, events=f"/v1/streams/{name}/events", **tables,
    )  # fmt: skip


def _tables(connection: Connection, call: Call, about: About, query: StreamQuery) -> dict[str, Any]:
    """What the page reads from the log."""
    stream = about.stream
    number = _number(connection, stream.name)
    decisions = _decisions(connection, number, stream, query)
    first = max(0, stream.state.windows_completed - _WINDOWS)
    series = views.series(number, connection, call.service.shelf, last=_POINTS)
    points = list(zip(series.n, series.measured_bias, series.measured_bias_unshielded, strict=True))
    return {
        "decisions": decisions[: query.rows],
        "more": query.more() if len(decisions) > query.rows and query.rows < 1000 else None,
        "overrides": _overrides(connection, number, decisions) if stream.human else {},
        "windows": connection.windows(number, first=first)[::-1],
        "points": points[: -_POINTS - 1 : -1],
    }


def _decisions(
    connection: Connection, number: int, stream: Stream, query: StreamQuery
) -> list[Decision]:
    """The latest decisions that are asked for, and one more if there is one."""
    found: list[Decision] = []
    before, scanned = 1 << 53, 0
    while len(found) <= query.rows and scanned < _SCANNED:
        rows = connection.latest(
            number, before=before, limit=500, only_overruled=query.show == "overruled"
        )
        made = [decision_of(row, stream.length) for row in rows]
        found += [decision for decision in made if _wanted(decision, stream, query)]
        if len(rows) < 500:
            break
        before, scanned = made[-1].n, scanned + 500
    return found[: query.rows + 1]


def _wanted(decision: Decision, stream: Stream, query: StreamQuery) -> bool:
    words = show.reason(decision, stream, decision.remaining)
    return (
        query.group in ("", str(decision.group))
        and query.reason.lower() in f"{words} {decision.reason}".lower()
        and decision.cost >= query.least
    )


def _overrides(
    connection: Connection, number: int, decisions: list[Decision]
) -> dict[int, Overridden]:
    """What people decided since the first of these decisions."""
    if not decisions:
        return {}
    rows = connection.entries(number, after=decisions[-1].seq, limit=_SCANNED)
    entries = (entry_of(row.line) for row in rows if row.n is None)
    return {entry.n: entry for entry in entries if isinstance(entry, Overridden)}


async def _outlook(call: Call, about: About, cost: float) -> Outlook | None:
    """What is to be expected; ``None`` while that takes long."""
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
        return await call.service.engine.think(lambda _: views.outlook(about.here, cost, groups))
    except Refusal:  # too many ask, or the service stops
        return None


async def explanation(call: Call) -> Reply:
    """Why a decision was made."""
    name, n = call.path["name"], call.path["n"]
    engine, shelf = call.service.engine, call.service.shelf
    stream = await engine.query(name, describe)

    def look(connection: Connection) -> tuple[Explanation, dict[int, Overridden]]:
        number = _number(connection, name)
        found = views.explanation(number, n, connection, shelf)
        return found, _overrides(connection, number, [found.decision])

    found, overrides = await engine.think(look)
    return _render(
        call, "decision.html.j2", stream=stream, explanation=found, decision=found.decision,
        override=overrides.get(n),
    )  # fmt: skip


def _number(connection: Connection, name: str) -> int:
    number = connection.stream(name)
    assert number is not None  # streams stay
    return number


# Policies -----------------------------------------------------------------------------------


async def policy_page(call: Call) -> Reply:
    """One policy: what it promises, what was found of it, and which streams it decides."""
    engine, shelf, which = call.service.engine, call.service.shelf, call.path["policy"]

    def look(connection: Connection) -> tuple[PolicyRow | None, AnyPolicy | None]:
        row = connection.policy(which)
        ready = row is not None and row.status == "ready" and row.digest is not None
        return row, shelf.policy(str(row.digest), connection) if row and ready else None

    row, policy = await engine.read(look)
    if row is None:
        raise Refusal("not-found", f"there is no policy {which!r}")
    names = [name for _, name in await engine.read(Connection.streams)]
    streams = [one for one in await described(call.service, names) if one.policy == row.digest]
    return _render(
        call, "policy.html.j2", policy=row, streams=streams,
        can_bind=None if policy is None else policy.can_bind,
    )  # fmt: skip


# Problems -----------------------------------------------------------------------------------


async def problems(call: Call) -> Reply:
    """Everything that the service refuses."""
    return _render(call, "problems.html.j2", kinds=KINDS)


async def problem_kind(call: Call) -> Reply:
    """One kind of problem."""
    kind = call.path["kind"]
    if kind not in KINDS:
        raise Refusal("not-found", f"there is no problem {kind!r}")
    return _render(call, "problem.html.j2", name=kind, kind=KINDS[kind], detail=None)


def failed(call: Call, why: Refusal) -> Reply:
    """A page that could not be made."""
    page = _render(
        call, "problem.html.j2", name=why.kind, kind=KINDS[why.kind], detail=why.detail
    )  # fmt: skip
    return replace(page, status=why.status)


async def icon(call: Call) -> Reply:
    """The icon, for those who look for it where icons used to be."""
    return _see_other(address("shield.svg"))


# Keys ---------------------------------------------------------------------------------------


def ask_for_key(call: Call) -> Reply:
    """The way to the page that asks for a key."""
    return _see_other("/login?" + urlencode({"next": call.scope["path"]}, quote_via=quote))


async def login(call: Call) -> Reply:
    """Ask for a key."""
    if not call.service.access.required:
        return _see_other("/")
    asked = parse_qs(call.scope["query_string"].decode("latin-1")).get("next", ["/"])[0]
    return _render(call, "login.html.j2", next=_local(asked), refused=False)


async def take_key(call: Call) -> Reply:
    """Take the key that was typed in, if it is in force."""
    form = dict(parse_qsl(call.body.decode("latin-1")))
    token, then = form.get("key", "").strip(), _local(form.get("next", "/"))
    try:
        call.service.access.caller(token)
    except Refusal:
        page = _render(call, "login.html.j2", next=then, refused=True)
        return replace(page, status=401)
    return _see_other(then, _cookie(call, token))


async def logout(call: Call) -> Reply:
    """Forget the key."""
    return _see_other("/login", _cookie(call, "", "; Max-Age=0"))


def _cookie(call: Call, value: str, more: str = "") -> tuple[bytes, bytes]:
    secure = "; Secure" if call.scope.get("scheme") == "https" else ""
    text = f"{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{more}"
    return b"set-cookie", text.encode("latin-1")


def _local(path: str) -> str:
    """A path of this service; whatever else was asked for is its first page."""
    plain = path.startswith("/") and path[1:2] not in ("/", "\\") and path.isprintable()
    return path if plain else "/"


# Rendering ----------------------------------------------------------------------------------

_templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters |= show.FILTERS
_templates.tests |= show.TESTS
_templates.globals |= {"asset": address, "statuses": show.STATUSES, "version": __version__}


def _render(call: Call, template: str, **values: Any) -> Reply:
    scopes = call.caller.scopes
    text = _templates.get_template(template).render(
        demo=call.service.demo,
        here=_here(call),
        keyed=call.service.access.required and bool(scopes),
        may_decide=bool({"decide", "admin"} & scopes),
        **values,
    )
    return compressed(call.scope, text.encode(), _HTML)


def _here(call: Call) -> str:
    host = call.headers.get(b"host", b"127.0.0.1:8000").decode("latin-1")
    return f"{call.scope.get('scheme', 'http')}://{host}"


def _see_other(path: str, *headers: tuple[bytes, bytes]) -> Reply:
    return Reply(b"", 303, _HTML, ((b"location", quote(path, safe="/?=&%").encode()), *headers))


def _query(call: Call, kind: type[_T]) -> _T:
    """What a form asks for: fields left empty, and unknown ones, say nothing."""
    pairs = parse_qsl(call.scope["query_string"].decode("latin-1"))
    values = {name: value for name, value in pairs if name in kind.__struct_fields__}
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal("invalid-request", f"query: {error}") from None


PAGES = (
    Page("/", overview),
    Page("/streams/{name}", stream_page),
    Page("/streams/{name}/decisions/{n}", explanation),
    Page("/policies/{policy}", policy_page),
    Page("/problems", problems, scope=None),
    Page("/problems/{kind}", problem_kind, scope=None),
    Page("/favicon.ico", icon, scope=None),
    Page("/login", login, scope=None),
    Page("/login", take_key, scope=None, method="POST"),
    Page("/logout", logout, scope=None, method="POST"),
)
