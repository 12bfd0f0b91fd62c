"""The dashboard's routes, and its pages about policies and problems.

A page depends on its address and the state of the service alone.  A small script keeps it up to
date: it loads the same address again whenever an event says that something has changed.  Without
the script a page is complete, and stays as it was loaded.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.routing import Route

from fairshield.periodic import PeriodicPolicy
from fairshield.service.dashboard import keys, streams
from fairshield.service.dashboard.assets import address, serve_asset
from fairshield.service.dashboard.base import Page, PageApp, refused, render, see_other
from fairshield.service.store import Connection, PolicyRow
from fairshield.service.web.context import Call, described
from fairshield.service.web.http import App, Reply
from fairshield.service.web.routing import Dispatch
from fairshield.wire.problems import KINDS, Refusal


async def policy_page(call: Call) -> Reply:
    """One policy: what it promises, what was found of it, and which streams it decides."""
    engine, policies, which = call.service.engine, call.service.policies, call.path["policy"]

    def look(connection: Connection) -> tuple[PolicyRow | None, PeriodicPolicy | None]:
        row = connection.policy(which)
        ready = row is not None and row.status == "ready" and row.digest is not None
        return row, policies.policy(str(row.digest), connection) if row and ready else None

    row, policy = await engine.read(look)
    if row is None:
        raise Refusal("not-found", f"there is no policy {which!r}")
    names = [name for _, name in await engine.read(Connection.streams)]
    decided = [one for one in await described(call.service, names) if one.policy == row.digest]
    return render(
        call, "policy.html.j2", policy=row, streams=decided,
        can_bind=None if policy is None else policy.can_bind,
    )  # fmt: skip


async def problems(call: Call) -> Reply:
    """Everything that the service refuses."""
    return render(call, "problems.html.j2", kinds=KINDS)


async def problem_kind(call: Call) -> Reply:
    """One kind of problem."""
    kind = call.path["kind"]
    if kind not in KINDS:
        raise Refusal("not-found", f"there is no problem {kind!r}")
    return render(call, "problem.html.j2", name=kind, kind=KINDS[kind], detail=None)


async def icon(call: Call) -> Reply:
    """The icon at ``/favicon.ico``, where browsers look for it by default."""
    return see_other(address("shield.svg"))


PAGES = (
    Page("/", streams.overview),
    Page("/streams/{name}", streams.stream_page),
    Page("/streams/{name}/decisions/{n}", streams.explanation),
    Page("/policies/{policy}", policy_page),
    Page("/problems", problems, scope=None),
    Page("/problems/{kind}", problem_kind, scope=None),
    Page("/favicon.ico", icon, scope=None),
    Page("/login", keys.login, scope=None),
    Page("/login", keys.take_key, scope=None, method="POST"),
    Page("/logout", keys.logout, scope=None, method="POST"),
)


def page_routes() -> Iterable[Route]:
    """A route for every path of the table, and one for the files that pages need."""
    by_path: dict[str, dict[str, App]] = {}
    for page in PAGES:
        by_path.setdefault(page.path, {})[page.method] = PageApp(page)
    for path, methods in by_path.items():
        yield Route(path, Dispatch(path, methods, refused=refused))
    yield Route("/static/{path:path}", Dispatch("/static/{path}", {"GET": serve_asset}))
