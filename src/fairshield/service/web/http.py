"""Functions that read requests within limits, and write answers and problems.

This is plain ASGI: it cancels no work that has begun, and runs nothing after the answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from fairshield.base.errors import FairshieldError
from fairshield.service.web.rules import rule_of
from fairshield.wire.messages import ProblemMessage
from fairshield.wire.problems import KINDS, Refusal, refusal

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
T = TypeVar("T")

JSON, PROBLEM = b"application/json", b"application/problem+json"
SAFE_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; "
        b"form-action 'self'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply is an HTTP answer, and the ASGI application that sends it."""

    body: bytes
    status: int = 200
    content_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()
    cache: bytes = b"no-store"
    kind: str | None = None
    """The kind of a problem, which is written to the scope for traces."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        if self.kind is not None:
            scope["problem"] = self.kind
        headers = [
            (b"content-type", self.content_type),
            (b"content-length", b"%d" % len(self.body)),
            (b"cache-control", self.cache),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def reply(message: msgspec.Struct, status: int = 200) -> Reply:
    """A message as an answer."""
    return Reply(msgspec.json.encode(message), status)


def problem(why: Refusal, instance: str | None = None, *headers: tuple[bytes, bytes]) -> Reply:
    """A refusal as an answer."""
    kind = KINDS[why.kind]
    body = msgspec.json.encode(
        ProblemMessage(
            type=f"/problems/{why.kind}",
            title=kind.title,
            status=kind.status,
            detail=why.detail,
            instance=instance,
        )
    )
    if why.retry_after is not None:
        headers = (*headers, (b"retry-after", b"%d" % why.retry_after))
    if kind.status == 401:
        headers = (*headers, (b"www-authenticate", b'Bearer realm="fairshield"'))
    if why.kind == "timeout":
        # Close the connection: what arrives later is the rest of this request.
        headers = (*headers, (b"connection", b"close"))
    return Reply(body, kind.status, PROBLEM, headers, kind=why.kind)


def problem_of(error: FairshieldError, instance: str | None = None) -> Reply:
    """An error of the library as an answer."""
    return problem(refusal(error), instance)


# Reading ------------------------------------------------------------------------------------


async def read_body(receive: Receive, *, limit: int, seconds: float) -> bytes:
    """The body of a request; refuses one that is too long or arrives too slowly."""
    try:
        async with asyncio.timeout(seconds):
            message = await receive()
            body: bytes = message.get("body", b"")
            if message["type"] == "http.request" and not message.get("more_body"):
                if len(body) > limit:
                    raise _too_large(limit)
                return body
            parts, size = [body], len(body)
            while message.get("more_body"):
                message = await receive()
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limit:
                    raise _too_large(limit)
    except TimeoutError:
        raise Refusal("timeout", f"the body did not arrive within {seconds:g} seconds") from None
    if message["type"] == "http.disconnect":
        raise Refusal("timeout", "the client went away before its request was complete")
    return b"".join(parts)


def check_length(headers: dict[bytes, bytes], limit: int) -> None:
    """Refuse a body whose declared length is too large, before it is read."""
    length = headers.get(b"content-length")
    if length is not None and (not length.isdigit() or int(length) > limit):
        raise _too_large(limit)


def _too_large(limit: int) -> Refusal:
    return Refusal("too-large", f"the body is longer than {limit:,} bytes")


def media_type(headers: dict[bytes, bytes]) -> bytes:
    """The media type of the body, without parameters."""
    return headers.get(b"content-type", b"").split(b";", 1)[0].strip().lower()


def parse_json(decoder: msgspec.json.Decoder[T], body: bytes, fields: tuple[bytes, ...]) -> T:
    """A message of the documented form; ``fields`` are its names, in quotes, if it is flat."""
    if not body:
        raise Refusal("malformed-request", "the body is empty")
    try:
        message = decoder.decode(body)
        if not fields or b"\\" in body or any(body.count(field) > 1 for field in fields):
            json.loads(body, object_pairs_hook=_check_names)
        return message
    except msgspec.ValidationError as error:
        raise Refusal("invalid-request", rule_of(error)) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Refusal("malformed-request", f"not JSON: {error}") from None


def _check_names(pairs: list[tuple[str, Any]]) -> None:
    """Refuse JSON objects with repeated names: parsers differ in which value they take."""
    if len({name for name, _ in pairs}) < len(pairs):
        raise Refusal("invalid-request", "a field is given twice in one object")


def parse_query(kind: type[T], query: bytes) -> T:
    """The parameters of an address; unknown and repeated ones are refused."""
    try:
        pairs = [] if not query else parse_qsl(
            query.decode("ascii"), keep_blank_values=True, strict_parsing=True,
            max_num_fields=20, errors="strict",
        )  # fmt: skip
    except ValueError as error:
        raise Refusal("malformed-request", f"the query cannot be read: {error}") from None
    values = dict(pairs)
    if len(values) < len(pairs):
        raise Refusal("invalid-request", "a query parameter is given twice")
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal("invalid-request", rule_of(error, "parameter")) from None
