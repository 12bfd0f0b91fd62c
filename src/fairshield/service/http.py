"""HTTP as the service speaks it: requests read with limits, answers and problems written.

Plain ASGI: nothing here cancels work that has begun, and nothing runs after the answer.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from fairshield.errors import FairshieldError
from fairshield.service.messages import Problem
from fairshield.service.problems import KINDS, Refusal, refusal

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
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
    """An answer."""

    body: bytes
    status: int = 200
    content_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()
    cache: bytes = b"no-store"
    kind: str | None = None
    """Of a problem; noted in the scope, for whoever watches."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
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
        Problem(
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
        # What arrives later is the rest of this request, not another one.
        headers = (*headers, (b"connection", b"close"))
    return Reply(body, kind.status, PROBLEM, headers, kind=why.kind)


def problem_of(error: FairshieldError, instance: str | None = None) -> Reply:
    """An error of the library as an answer."""
    return problem(refusal(error), instance)


# Reading ------------------------------------------------------------------------------------


async def read_body(receive: Receive, *, limit: int, seconds: float) -> bytes:
    """The body of a request, if it is not too long and does not take too long."""
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
    """Refuse a body that says it is too long, before it is read."""
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
    """Refuse an object that says something twice: readers differ in which of the two counts."""
    if len({name for name, _ in pairs}) < len(pairs):
        raise Refusal("invalid-request", "a field is given twice in one object")


def parse_query(kind: type[T], query: bytes) -> T:
    """The parameters of an address; unknown and repeated ones are refused."""
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, strict_parsing=bool(query),
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


# Rules ---------------------------------------------------------------------------------------

_RULES = {
    "name": "1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit",
    "policy": "a digest, 64 hexadecimal digits: GET /v1/policies/{id} shows it once the policy is "
    "ready",
    "group": "a string of at most 200 characters or a whole number, at most 2^53 in size",
    "cost": "a number from 0 to 1e300",
}
"""Of fields of which a type or one bound says too little."""
_TYPES = {
    "bool": ("true", "false"),
    "int": ("a whole number",),
    "float": ("a number",),
    "str": ("a string",),
    "array": ("an array",),
    "object": ("an object",),
    "null": ("null",),
}
_PLACE = re.compile(r"(.*?)(?: - at `\$\.?([^`]*)`)?", re.S)
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.S)
_BOUND = re.compile(r"Expected `(\w+)`( of length)? (<=|>=) (\S+)")
_TYPE = re.compile(r"Expected `([^`]+)`(?:, got `.*`)?", re.S)


def rule_of(error: msgspec.ValidationError, noun: str = "field") -> str:
    """The rule that a message breaks, as a sentence.

    >>> rule_of(msgspec.ValidationError("Expected `bool`, got `int` - at `$.proposed`"))
    'proposed must be true or false'
    >>> rule_of(msgspec.ValidationError("Expected `int` <= 1000 - at `$.limit`"))
    'limit must be at most 1000'
    """
    placed = _PLACE.fullmatch(str(error))
    assert placed is not None
    text, where = placed[1], placed[2] or ""
    if found := _FIELD.fullmatch(text):
        inside = f" in {where}" if where else ""
        if found[1] == "missing required":
            return f"{found[2]} is missing{inside}"
        return f"{found[2]!r} is no {noun} of this request{inside}: leave it out or correct it"
    rule = _RULES.get(where.rpartition(".")[2]) or _rule(text)
    subject = where or "the body"
    return f"{subject}: {text}" if rule is None else f"{subject} must {_verb(rule)}{rule}"


def _verb(rule: str) -> str:
    return "" if rule.startswith("have ") else "be "


def _rule(text: str) -> str | None:
    """What must be, if it is a bound or a type."""
    if found := _BOUND.fullmatch(text):
        kind, length, sign, bound = found.groups()
        limit = f"{'at most' if sign == '<=' else 'at least'} {bound.removesuffix('.0')}"
        if not length:
            return limit
        return f"have {limit} {'character' if kind == 'str' else 'item'}{'s' * (bound != '1')}"
    if found := _TYPE.fullmatch(text):
        *most, last = [word for kind in found[1].split(" | ") for word in _TYPES.get(kind, (kind,))]
        return f"{', '.join(most)} or {last}" if most else last
    return None


def with_headers(app: App) -> App:
    """The same app; every answer carries :data:`SAFE_HEADERS`."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *SAFE_HEADERS]
            await send(message)

        await app(scope, receive, send_guarded)

    return guarded
