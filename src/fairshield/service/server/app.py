"""``create_app`` makes the ASGI application: its routes, middleware and lifespan.

It opens nothing.  The service starts with the application's lifespan and stops with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import BaseRoute

from fairshield.base.errors import FairshieldError
from fairshield.service.api.endpoints import api_routes
from fairshield.service.api.probes import probe_routes
from fairshield.service.dashboard import base as dashboard
from fairshield.service.dashboard.pages import page_routes
from fairshield.service.engine.engine import Engine
from fairshield.service.policies.jobs import PolicyJobs
from fairshield.service.server.background import audit, watch_keys
from fairshield.service.server.middleware import AnswerMistakes, RefuseHiddenSlashes, SafeHeaders
from fairshield.service.store import Connection, Database
from fairshield.service.store.policies import LoadedPolicies
from fairshield.service.web.access import Access, RateLimit
from fairshield.service.web.context import Limits, RunningService
from fairshield.service.web.routing import problem_at
from fairshield.wire.problems import Refusal

if TYPE_CHECKING:
    from fairshield.service.server.tracing import Tracing

Started = Callable[[RunningService], Any]


def create_app(
    database: Database,
    *,
    limits: Limits | None = None,
    local: bool = True,
    demo: bool = False,
    tracing: Tracing | None = None,
    started: Started | None = None,
) -> Starlette:
    """The service over a database, as an ASGI application.

    Parameters
    ----------
    limits
        On requests.
    local
        Whether it is reached from this machine only: then, as long as there are no keys, it
        answers without, but only to those who call it by a local name.
    demo
        Whether its streams are fed by a simulation.
    tracing
        Where spans go, if they are wanted.
    started
        Called with the running service; what it returns, if anything, is awaited at the end.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service = await _opened(database, limits or Limits(), local, demo)
        service.engine.committed = _noting(service, tracing)
        async with _running(service, started):
            app.state.service = service
            yield

    traced = [] if tracing is None else [Middleware(tracing.traced)]
    app = Starlette(
        routes=routes(),
        middleware=[
            *traced,
            Middleware(SafeHeaders),
            Middleware(AnswerMistakes),
            Middleware(RefuseHiddenSlashes),
        ],
        exception_handlers={FairshieldError: _refused, 404: _nothing_here},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # no second address for the same page
    return app


def routes() -> list[BaseRoute]:
    """Routes of the API, of the probes and of the dashboard."""
    return [*api_routes(), *probe_routes(), *page_routes()]


async def _refused(request: Request, error: Exception) -> Any:
    """The answer to an error of the library, in the form of the route that raised it."""
    return request.scope["endpoint"].refused(request.scope, error)


async def _nothing_here(request: Request, error: Exception) -> Any:
    """The answer for an unknown address: a page for browsers, a problem for programs."""
    scope = request.scope
    why = Refusal("not-found", f"there is nothing at {scope['path']}")
    html = b"text/html" in dict(scope["headers"]).get(b"accept", b"")
    return (dashboard.refused if html else problem_at)(scope, why)


# Lifespan ------------------------------------------------------------------------------------


async def _opened(database: Database, limits: Limits, local: bool, demo: bool) -> RunningService:
    """A service whose streams are being loaded."""
    policies = LoadedPolicies()
    engine = Engine(database, policies)
    await engine.start()
    service = RunningService(
        engine=engine, policies=policies, policy_jobs=PolicyJobs(engine, policies),
        access=Access(await engine.read(Connection.access_keys), required=not local),
        limits=limits, rate=RateLimit(limits.rate), demo=demo,
    )  # fmt: skip
    await service.policy_jobs.start()
    return service


@contextlib.asynccontextmanager
async def _running(service: RunningService, started: Started | None) -> AsyncIterator[None]:
    """Start the key watcher and the audit thread, and stop both at the end."""
    watching = asyncio.create_task(watch_keys(service))
    auditing = threading.Thread(target=audit, args=(service,), name="fairshield-audit")
    auditing.start()
    ending = started(service) if started is not None else None
    try:
        yield
    finally:
        service.stopping.set()
        service.ended.set()
        watching.cancel()
        await asyncio.to_thread(auditing.join)
        if ending is not None:
            await ending()
        service.policy_jobs.stop()
        await service.engine.stop()


def _noting(service: RunningService, tracing: Tracing | None) -> Callable[[int, int, float], None]:
    """Return the callback that records each commit."""

    def noting(entries: int, requests: int, seconds: float) -> None:
        service.commits.add(entries, seconds)
        if tracing is not None:
            tracing.committed(entries, requests, seconds)

    return noting
