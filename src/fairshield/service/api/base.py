"""Endpoint describes an endpoint of the HTTP API; EndpointApp reads requests to it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from fairshield.service.web.callers import address_of, caller_of, headers_of
from fairshield.service.web.context import Call, Limits
from fairshield.service.web.http import (
    App,
    Receive,
    Scope,
    Send,
    check_length,
    media_type,
    parse_json,
    parse_query,
    read_body,
)
from fairshield.service.web.routing import path_of, service_of
from fairshield.wire.messages import BatchRequest
from fairshield.wire.messages import Scope as AccessScope
from fairshield.wire.problems import Refusal

_KEY = re.compile(rb"[!-~]{1,200}")
"""Pattern of idempotency keys."""

Handler = Callable[[Call], Awaitable[App]]
MOST_ON_A_PAGE = 1_000


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query is the base of what an address may ask after its question mark."""


class NoQuery(Query, frozen=True):
    """NoQuery is the query of endpoints that take no parameters."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Endpoint is one method of one path: what it takes, what it answers, who may ask.

    ``problems`` are those beyond what every endpoint of its kind may answer.  ``filtered``: a key
    for one stream may ask, and is shown that stream alone.
    """

    method: str
    path: str
    handle: Handler
    summary: str
    scope: AccessScope | None = "read"
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


class EndpointApp:
    """EndpointApp checks key, rate and content of a request, and sends the handler's answer."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        answer = await self.endpoint.handle(await self._call(scope, receive))
        await answer(scope, receive, send)

    async def _call(self, scope: Scope, receive: Receive) -> Call:
        endpoint, service = self.endpoint, service_of(scope)
        headers = headers_of(scope)
        try:
            caller = caller_of(headers, service)
        except Refusal:
            service.rate.check(f"unknown, from {address_of(scope)}")
            raise
        path = path_of(scope)
        caller.check(endpoint.scope, caller.stream if endpoint.filtered else path.get("name"))
        service.rate.check(caller.actor or address_of(scope))
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


def _idempotency_key(headers: dict[bytes, bytes]) -> str:
    key = headers.get(b"idempotency-key")
    if key is None:
        raise Refusal("missing-key", "this request needs a header Idempotency-Key")
    if not _KEY.fullmatch(key):
        raise Refusal(
            "invalid-request", "an Idempotency-Key has 1 to 200 visible ASCII characters, no spaces"
        )
    return key.decode("ascii")
