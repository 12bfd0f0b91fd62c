"""Endpoints for operators: liveness, readiness, metrics, the description of the API."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.routing import Route

from fairshield._version import __version__
from fairshield.service.api.metrics import exposition
from fairshield.service.api.openapi import document
from fairshield.service.web.callers import address_of, caller_of, headers_of
from fairshield.service.web.context import RunningService
from fairshield.service.web.http import App, Receive, Reply, Scope, Send, reply
from fairshield.service.web.routing import Dispatch, service_of
from fairshield.wire.messages import Health
from fairshield.wire.problems import Refusal


async def livez(scope: Scope, receive: Receive, send: Send) -> None:
    """Whether the process answers."""
    await _health(service_of(scope), "alive")(scope, receive, send)


async def readyz(scope: Scope, receive: Receive, send: Send) -> None:
    """Whether decisions can be made."""
    service = service_of(scope)
    engine = service.engine
    if engine.status != "ready" or service.stopping.is_set():
        why = engine.fault or f"the service is {engine.status}"
        raise Refusal("unavailable", why, retry_after=1)
    await _health(service, "ready")(scope, receive, send)


def _health(service: RunningService, status: str) -> Reply:
    return reply(Health(status=status, loading=service.engine.loading, version=__version__))


async def metrics(scope: Scope, receive: Receive, send: Send) -> None:
    """All figures, for callers with the scope to read."""
    service = service_of(scope)
    caller = caller_of(headers_of(scope), service)
    caller.check("read", None)
    service.rate.check(caller.actor or address_of(scope))
    body, content_type = await exposition(service)
    await Reply(body, content_type=content_type.encode())(scope, receive, send)


async def openapi(scope: Scope, receive: Receive, send: Send) -> None:
    """The description of the API."""
    await Reply(document())(scope, receive, send)


PROBES: dict[str, App] = {
    "/livez": livez,
    "/readyz": readyz,
    "/metrics": metrics,
    "/openapi.json": openapi,
}


def probe_routes() -> Iterable[Route]:
    """Return the routes of liveness, readiness, metrics and the API's description."""
    for path, app in PROBES.items():
        yield Route(path, Dispatch(path, {"GET": app}))
