"""``caller_of`` finds out from the headers of a request who sends it."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

from fairshield.service.web.access import Caller
from fairshield.service.web.context import RunningService
from fairshield.service.web.http import Scope
from fairshield.wire.problems import Refusal

COOKIE = "fairshield_key"
"""The cookie in which the dashboard keeps a key."""
_ONCE = frozenset(
    {b"host", b"authorization", b"idempotency-key", b"content-type", b"origin", b"last-event-id"}
)
"""Headers that mean nothing when they are given twice."""


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """Headers by name, the last if repeated; refuses a repeated header of ``_ONCE``."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    if len(headers) < len(scope["headers"]):
        names = [name for name, _ in scope["headers"] if name in _ONCE]
        if len(set(names)) < len(names):
            raise Refusal("malformed-request", "a header that must be given once is given twice")
    return headers


def caller_of(headers: dict[bytes, bytes], service: RunningService) -> Caller:
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
    check_origin(headers)
    return caller


def _check_local(headers: dict[bytes, bytes]) -> None:
    """Refuse requests to other names than local ones, and those of pages of other sites."""
    host = headers.get(b"host", b"")
    if not _is_local_name(host):
        raise Refusal(
            "forbidden",
            "without keys this service answers to local names only, not to "
            f"{host.decode('latin-1')!r}: create a key with fairshield keys create",
        )
    check_origin(headers)


@lru_cache(100)
def _is_local_name(host: bytes) -> bool:
    """Whether a Host header names this machine; false for names that a foreign DNS could define."""
    name = re.sub(r":\d*\Z", "", host.decode("latin-1").lower())
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def check_origin(headers: dict[bytes, bytes]) -> None:
    """Refuse requests that a page of another site sends."""
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


def address_of(scope: Scope) -> str:
    """The network address of the client."""
    return (scope["client"] or ("",))[0]
