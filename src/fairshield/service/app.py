"""The ASGI application: routes, and what every request to the API goes through.

``create_app`` opens nothing; the service begins with the application's lifespan and ends with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route, Router

from fairshield._version import __version__
from fairshield.errors import FairshieldError
from fairshield.service.access import NOBODY, Access, Caller, RateLimit
from fairshield.service.api import ENDPOINTS, Endpoint
from fairshield.service.assets import serve_asset
from fairshield.service.audit import audit_stream
from fairshield.service.context import Call, Limits, Service
from fairshield.service.engine import Engine
from fairshield.service.http import (
    App,
    Receive,
    Reply,
    Scope,
    Send,
    check_length,
    media_type,
    parse_json,
    parse_query,
    problem,
    problem_of,
    read_body,
    reply,
    with_headers,
)
from fairshield.service.messages import Health
from fairshield.service.metrics import exposition
from fairshield.service.openapi import document
from fairshield.service.pages import COOKIE, PAGES, Page, ask_for_key, failed
from fairshield.service.policies import Workshop
from fairshield.service.problems import Refusal, refusal
from fairshield.service.shelf import Shelf
from fairshield.service.store import Connection, Database

if TYPE_CHECKING:
    from fairshield.service.tracing import Tracing

logger = logging.getLogger("fairshield.service")
_KEYS_EVERY = 1.0
"""Seconds after which a key that was created or revoked is seen to be."""
_NAMED = re.compile(r"[A-Za-z0-9._-]{1,80}\Z")
"""What streams and policies may be called."""
_ONCE = frozenset(
    {b"host", b"authorization", b"idempotency-key", b"content-type", b"origin", b"last-event-id"}
)
"""Headers that mean nothing when they are given twice."""


def create_app(
    database: Database,
    *,
    limits: Limits | None = None,
    local: bool = True,
    demo: bool = False,
    tracing: Tracing | None = None,
    started: Callable[[Service], Any] | None = None,
) -> App:
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
    holder: dict[str, Service] = {}
    limits = limits or Limits()

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        shelf = Shelf()
        engine = Engine(database, shelf)
        await engine.start()
        service = Service(
            engine=engine, shelf=shelf, workshop=Workshop(engine, shelf), limits=limits,
            access=Access(await engine.read(Connection.access_keys), required=not local),
            rate=RateLimit(limits.rate), demo=demo,
        )  # fmt: skip
        engine.committed = _noting(service, tracing)
        await service.workshop.start()
        holder["service"] = app.state.service = service
        watching = asyncio.create_task(_watch_keys(service))
        auditing = threading.Thread(target=_audit, args=(service,), name="fairshield-audit")
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
            service.workshop.stop()
            await engine.stop()

    def service() -> Service:
        return holder["service"]

    app = Starlette(routes=routes_of(service), lifespan=lifespan)
    app.router.default = _nothing_here
    app.router.redirect_slashes = False
    serve = with_headers(_bare(app))
    return serve if tracing is None else tracing.traced(serve)


def _noting(service: Service, tracing: Tracing | None) -> Callable[[int, int, float], None]:
    """What is done after every commit."""

    def noting(entries: int, requests: int, seconds: float) -> None:
        service.commits.add(entries, seconds)
        if tracing is not None:
            tracing.committed(entries, requests, seconds)

    return noting


def _bare(app: Starlette) -> App:
    """The router without the framework's middleware; a mistake of ours is an answer, too."""
    router: Router = app.router

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and b"%2f" in scope.get("raw_path", b"").lower():
            # An address that others along the way may read as another one.
            await _nothing_here(scope, receive, send)
            return
        scope["app"] = app
        begun = False

        async def noting(message: Any) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await router(scope, receive, noting)
        except (Exception, asyncio.CancelledError) as error:
            if scope["type"] != "http" or begun:
                raise
            if isinstance(error, asyncio.CancelledError):
                why = Refusal("unavailable", "the service is stopping", retry_after=1)
            else:
                logger.exception("a request failed")
                why = Refusal("internal", "the service made a mistake, which is in its log")
            await problem(why, scope["path"])(scope, receive, send)

    return serve


async def _watch_keys(service: Service) -> None:
    while True:
        await asyncio.sleep(_KEYS_EVERY)
        with contextlib.suppress(Refusal):
            service.access.refresh(await service.engine.read(Connection.access_keys))


def _audit(service: Service) -> None:
    """Replay every log from its beginning, in a thread beside the others, and say what is wrong."""
    try:
        connection = service.engine.database.connect()
        try:
            for _, name in connection.streams():
                found = audit_stream(connection, service.shelf, name, service.ended)
                if service.ended.is_set():
                    return
                service.findings[name] = len(found.findings)
                if found.findings:
                    # Not what they say, which quotes entries.
                    logger.error(
                        "stream %s: the audit has %d finding%s (fairshield audit --db)",
                        name, len(found.findings), "s" * (len(found.findings) > 1),
                    )  # fmt: skip
        finally:
            connection.close()
    except FairshieldError as error:
        logger.warning("the audit was given up (%s)", type(error).__name__)


# Routes -------------------------------------------------------------------------------------


def routes_of(service: Callable[[], Service]) -> list[BaseRoute]:
    """The API, what is said about it, and the dashboard."""
    files = Route("/static/{path:path}", _Dispatch("/static/{path}", {"GET": serve_asset}))
    return [*_api_routes(service), *_plain_routes(service), *_page_routes(service), files]


class _Dispatch:
    """The methods of one path."""

    def __init__(self, path: str, by_method: dict[str, App], *, endless: bool = False) -> None:
        self.path = path
        self._by_method = dict(by_method)
        if "GET" in by_method and not endless:
            self._by_method["HEAD"] = by_method["GET"]
        self._allow = ", ".join(sorted(self._by_method)).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._by_method.get(scope["method"])
        if app is None:
            why = Refusal("method-not-allowed", f"{scope['method']} is not for {scope['path']}")
            app = problem(why, scope["path"], (b"allow", self._allow))
        await app(scope, receive, send)


def _api_routes(service: Callable[[], Service]) -> Iterable[Route]:
    by_path: dict[str, dict[str, App]] = {}
    endless = {e.path for e in ENDPOINTS if e.content_type == "text/event-stream"}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = _Api(endpoint, service)
    for path, methods in by_path.items():
        yield Route(path, _Dispatch(path, methods, endless=path in endless))


def _page_routes(service: Callable[[], Service]) -> Iterable[Route]:
    by_path: dict[str, dict[str, App]] = {}
    for page in PAGES:
        by_path.setdefault(page.path, {})[page.method] = _Page(page, service)
    for path, methods in by_path.items():
        yield Route(path, _Dispatch(path, methods))


def _plain_routes(service: Callable[[], Service]) -> Iterable[Route]:
    async def livez(scope: Scope, receive: Receive, send: Send) -> None:
        await _health(service(), "alive")(scope, receive, send)

    async def readyz(scope: Scope, receive: Receive, send: Send) -> None:
        engine = service().engine
        ready = engine.status == "ready" and not service().stopping.is_set()
        if ready:
            answer = _health(service(), "ready")
        else:
            why = engine.fault or f"the service is {engine.status}"
            answer = problem(Refusal("unavailable", why, retry_after=1), scope["path"])
        await answer(scope, receive, send)

    async def metrics(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            caller = caller_of(scope, headers_of(scope), service())
            caller.check("read", None)
            service().rate.check(caller.actor or _address(scope))
            body, content_type = await exposition(service())
            answer = Reply(body, content_type=content_type.encode())
        except FairshieldError as error:
            answer = problem_of(error, scope["path"])
        await answer(scope, receive, send)

    async def openapi(scope: Scope, receive: Receive, send: Send) -> None:
        await Reply(document())(scope, receive, send)

    for path, app in (
        ("/livez", livez), ("/readyz", readyz), ("/metrics", metrics), ("/openapi.json", openapi)
    ):  # fmt: skip
        yield Route(path, _Dispatch(path, {"GET": app}))


def _health(service: Service, status: str) -> Reply:
    return reply(Health(status=status, loading=service.engine.loading, version=__version__))


async def _nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    why = Refusal("not-found", f"there is nothing at {scope['path']}")
    headers, app = dict(scope["headers"]), scope.get("app")
    if app is not None and b"text/html" in headers.get(b"accept", b""):
        answer = failed(Call(app.state.service, scope, headers, NOBODY, {}), why)
    else:
        answer = problem(why, scope["path"])
    await answer(scope, receive, send)


# One request --------------------------------------------------------------------------------


class _Api:
    """An endpoint: who asks, how often, what; then the handler; then the answer."""

    def __init__(self, endpoint: Endpoint, service: Callable[[], Service]) -> None:
        self.endpoint, self._service = endpoint, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self.endpoint.handle(await self._call(scope, receive))
        except FairshieldError as error:
            answer = problem_of(error, scope["path"])
        await answer(scope, receive, send)

    async def _call(self, scope: Scope, receive: Receive) -> Call:
        endpoint, service = self.endpoint, self._service()
        headers = headers_of(scope)
        try:
            caller = caller_of(scope, headers, service)
        except Refusal:
            service.rate.check(f"unknown, from {_address(scope)}")
            raise
        path = _path(scope["path_params"])
        caller.check(endpoint.scope, caller.stream if endpoint.filtered else path.get("name"))
        service.rate.check(caller.actor or _address(scope))
        call = Call(service, scope, headers, caller, path)
        call.query = parse_query(endpoint.query, scope["query_string"])
        if endpoint.keyed:
            call.key = _idempotency_key(headers)
        if endpoint.body is not None:
            call.body = await self._body(headers, receive, service.limits)
        return call

    async def _body(self, headers: dict[bytes, bytes], receive: Receive, limits: Limits) -> Any:
        kind, file = media_type(headers), b"application/octet-stream"
        uploaded = self.endpoint.upload and kind == file
        if not uploaded and kind != b"application/json":
            wanted = (
                "application/json" + (" or a policy as " + file.decode()) * self.endpoint.upload
            )
            got = kind.decode("latin-1") or "nothing"
            raise Refusal("unsupported-media-type", f"the body must be {wanted}, got {got}")
        limit = limits.upload if uploaded else limits.body
        check_length(headers, limit)
        seconds = limits.upload_seconds if uploaded else limits.seconds
        body = await read_body(receive, limit=limit, seconds=seconds)
        return body if uploaded else parse_json(self.endpoint.decoder, body, self.endpoint.fields)


def _address(scope: Scope) -> str:
    """Where a request comes from."""
    return (scope["client"] or ("",))[0]


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """Headers by name; of repeated ones the last, unless that could be meant to deceive."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    if len(headers) < len(scope["headers"]):
        names = [name for name, _ in scope["headers"] if name in _ONCE]
        if len(set(names)) < len(names):
            raise Refusal("malformed-request", "a header that must be given once is given twice")
    return headers


def caller_of(scope: Scope, headers: dict[bytes, bytes], service: Service) -> Caller:
    """Who asks: by a bearer key, or by the cookie of the dashboard."""
    access = service.access
    if not access.required:
        _check_local(headers)
        return access.caller(None)
    given = headers.get(b"authorization", b"").decode("latin-1")
    scheme, _, token = given.partition(" ")
    if scheme.lower() == "bearer":
        return access.caller(token.strip())
    caller = access.caller(_cookie(headers))
    _check_origin(headers)
    return caller


def _check_local(headers: dict[bytes, bytes]) -> None:
    """Without keys only those who mean this machine are answered, and no page from elsewhere."""
    host = headers.get(b"host", b"")
    if not _is_local_name(host):
        raise Refusal(
            "forbidden",
            "without keys this service answers to local names only, not to "
            f"{host.decode('latin-1')!r}: create a key with fairshield keys create",
        )
    _check_origin(headers)


@lru_cache(100)
def _is_local_name(host: bytes) -> bool:
    """Whether a Host header names this machine: no name that somebody else could point here."""
    name = re.sub(r":\d*\Z", "", host.decode("latin-1").lower())
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def _check_origin(headers: dict[bytes, bytes]) -> None:
    origin = headers.get(b"origin")
    if origin is not None and origin.split(b"//", 1)[-1] != headers.get(b"host"):
        raise Refusal(
            "forbidden",
            f"requests of pages from {origin.decode('latin-1')!r} are not answered: use the "
            "service's own pages, or a key in a header Authorization",
        )


def _cookie(headers: dict[bytes, bytes]) -> str | None:
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return None


def _path(parameters: dict[str, str]) -> dict[str, Any]:
    path: dict[str, Any] = dict(parameters)
    for name in ("name", "policy"):
        if not _NAMED.match(path.get(name, "-")):
            raise Refusal("not-found", f"there is nothing called {path[name]!r}")
    if "n" in path:
        text = path["n"]
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise Refusal("not-found", f"{text!r} is not the number of a decision")
        path["n"] = int(text)
    return path


def _idempotency_key(headers: dict[bytes, bytes]) -> str:
    key = headers.get(b"idempotency-key")
    if key is None:
        raise Refusal("missing-key", "this request needs a header Idempotency-Key")
    if not 1 <= len(key) <= 200 or not all(32 < byte < 127 for byte in key):
        raise Refusal(
            "invalid-request", "an Idempotency-Key has 1 to 200 visible ASCII characters, no spaces"
        )
    return key.decode("ascii")


class _Page:
    """A page of the dashboard, for whoever may read; others are asked for a key."""

    def __init__(self, page: Page, service: Callable[[], Service]) -> None:
        self._page, self._service = page, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = self._service()
        call = Call(service, scope, {}, NOBODY, dict(scope["path_params"]))
        try:
            call.headers = headers = headers_of(scope)
            service.rate.check((scope["client"] or ("",))[0])
            call.caller = self._caller(scope, headers, service)
            call.path = _path(scope["path_params"])
            if scope["method"] == "POST":
                call.body = await read_body(receive, limit=4096, seconds=service.limits.seconds)
            answer = await self._page.handle(call)
        except FairshieldError as error:
            why = refusal(error)
            answer = ask_for_key(call) if why.kind == "unauthorized" else failed(call, why)
        await answer(scope, receive, send)

    def _caller(self, scope: Scope, headers: dict[bytes, bytes], service: Service) -> Caller:
        if self._page.scope is None and service.access.required:
            _check_origin(headers)
            return NOBODY
        caller = caller_of(scope, headers, service)
        caller.check(self._page.scope, scope["path_params"].get("name", caller.stream))
        return caller
