"""PageApp answers requests for pages: it checks access, renders, and shows errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

import jinja2
import msgspec

from fairshield._version import __version__
from fairshield.base.errors import FairshieldError
from fairshield.service.dashboard import show
from fairshield.service.dashboard.assets import address, compressed
from fairshield.service.web.access import NOBODY, Caller
from fairshield.service.web.callers import address_of, caller_of, check_origin, headers_of
from fairshield.service.web.context import Call, RunningService
from fairshield.service.web.http import App, Receive, Reply, Scope, Send, read_body
from fairshield.service.web.routing import path_of, service_of
from fairshield.wire.messages import Scope as AccessScope
from fairshield.wire.problems import KINDS, Refusal, refusal

_HTML = b"text/html; charset=utf-8"
_T = TypeVar("_T", bound=msgspec.Struct)


@dataclass(frozen=True)
class Page:
    """Page is a page: its path, who may see it (``None``: anybody), how it is made."""

    path: str
    handle: Callable[[Call], Awaitable[App]]
    scope: AccessScope | None = "read"
    method: str = "GET"


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


def render(call: Call, template: str, **values: Any) -> Reply:
    """A page, from its template."""
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


def see_other(path: str, *headers: tuple[bytes, bytes]) -> Reply:
    """A redirection to another page."""
    return Reply(b"", 303, _HTML, ((b"location", quote(path, safe="/?=&%").encode()), *headers))


def query_of(call: Call, kind: type[_T]) -> _T:
    """The parameters of a form; empty and unknown fields are ignored."""
    pairs = parse_qsl(call.scope["query_string"].decode("latin-1"))
    values = {name: value for name, value in pairs if name in kind.__struct_fields__}
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal("invalid-request", f"query: {error}") from None


def failed(call: Call, why: Refusal) -> Reply:
    """The error page for a page that could not be made."""
    page = render(
        call, "problem.html.j2", name=why.kind, kind=KINDS[why.kind], detail=why.detail
    )  # fmt: skip
    return replace(page, status=why.status)


def ask_for_key(call: Call) -> Reply:
    """A redirection to the page that asks for a key."""
    return see_other("/login?" + urlencode({"next": call.scope["path"]}, quote_via=quote))


class PageApp:
    """PageApp serves a page to callers who may read, and asks others for a key."""

    def __init__(self, page: Page) -> None:
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        service = service_of(scope)
        call = scope["call"] = Call(service, scope, {}, NOBODY, dict(scope["path_params"]))
        call.headers = headers_of(scope)
        service.rate.check(address_of(scope))
        call.caller = self._caller(scope, call.headers, service)
        call.path = path_of(scope)
        if scope["method"] == "POST":
            call.body = await read_body(receive, limit=4096, seconds=service.limits.seconds)
        answer = await self._page.handle(call)
        await answer(scope, receive, send)

    def _caller(self, scope: Scope, headers: dict[bytes, bytes], service: RunningService) -> Caller:
        if self._page.scope is None and service.access.required:
            check_origin(headers)
            return NOBODY
        caller = caller_of(headers, service)
        caller.check(self._page.scope, scope["path_params"].get("name", caller.stream))
        return caller


def refused(scope: Scope, error: FairshieldError) -> Reply:
    """The error page of an error; without a valid key, a redirection to the login page."""
    why = refusal(error)
    call = scope.get("call") or Call(service_of(scope), scope, dict(scope["headers"]), NOBODY, {})
    return ask_for_key(call) if why.kind == "unauthorized" else failed(call, why)
