"""Access decides who may do what: bearer keys, their scopes, and rate limits.

A token is ``fsk_<id>_<secret>``.  The store has the id and the SHA-256 of the secret, which is 256
random bits, so a slow hash is not needed against guessing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, get_args

from fairshield.base.errors import InvalidValueError
from fairshield.service.store import KeyRow
from fairshield.wire.messages import Scope
from fairshield.wire.problems import Refusal

SCOPES: tuple[Scope, ...] = get_args(Scope)
_TOKEN = re.compile(r"fsk_([0-9a-f]{12})_([A-Za-z0-9_-]{43})\Z")


class Caller(NamedTuple):
    """Caller is who sends a request: a key, its scopes, and the one stream it is limited to."""

    actor: str | None
    scopes: frozenset[str]
    stream: str | None = None

    def check(self, scope: Scope | None, stream: str | None) -> None:
        """Refuse what the key does not allow; ``stream`` is the one that is asked about."""
        if scope is None:
            return
        # The scope admin includes all others.
        if scope not in self.scopes and "admin" not in self.scopes:
            has = ", ".join(sorted(self.scopes))
            raise Refusal("forbidden", f"this needs the scope {scope!r}, the key has {has}")
        if self.stream is not None and self.stream != stream:
            raise Refusal("forbidden", f"the key is for stream {self.stream!r} only")


ANYBODY = Caller(None, frozenset(SCOPES))
"""The caller of a service without keys, which answers this machine only."""
NOBODY = Caller(None, frozenset())
"""A caller without a key."""


class Access:
    """Access holds the keys that are valid now."""

    def __init__(self, keys: Iterable[KeyRow] = (), *, required: bool = False) -> None:
        self._required = required
        self._keys: dict[str, tuple[bytes, Caller]] = {}
        self.refresh(keys)

    def refresh(self, keys: Iterable[KeyRow]) -> None:
        """Replace the valid keys by these."""
        rows = list(keys)
        # Once a key was created, keys are required, even if all were revoked.
        self._required = self._required or bool(rows)
        self._keys = {
            row.id: (row.hash, Caller(row.id, frozenset(json.loads(row.scopes)), row.stream))
            for row in rows
            if row.revoked is None
        }

    @property
    def required(self) -> bool:
        """Whether a key must be shown."""
        return self._required

    def in_force(self, caller: Caller) -> bool:
        """Whether a caller's key is still valid; without one, whether no key is required."""
        if caller.actor is None:
            return not self._required
        return caller.actor in self._keys

    def caller(self, token: str | None) -> Caller:
        """The caller who has this token."""
        if not self._required:
            return ANYBODY
        if token is None:
            raise Refusal("unauthorized", "this service wants a key: Authorization: Bearer fsk_…")
        found = _TOKEN.match(token)
        known = self._keys.get(found[1]) if found else None
        # Hash and compare for an unknown id as well: its timing must be that of a wrong secret.
        expected, caller = known or (bytes(32), ANYBODY)
        given = hashlib.sha256((found[2] if found else "").encode()).digest()
        if not hmac.compare_digest(given, expected) or known is None:
            raise Refusal("unauthorized", "the key is unknown or has been revoked")
        return caller


def new_key(
    name: str, scopes: Sequence[str], stream: str | None, created: str
) -> tuple[str, KeyRow]:
    """A new token, and what is stored of it."""
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        raise InvalidValueError(
            f"scopes must be some of {', '.join(SCOPES)}, got {', '.join(unknown) or 'none'}"
        )
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    hashed = hashlib.sha256(secret.encode()).digest()
    row = KeyRow(id, name, hashed, json.dumps(sorted(set(scopes))), stream, created, None)
    return f"fsk_{id}_{secret}", row


class RateLimit:
    """RateLimit limits the requests per second of each caller; 0: no limit."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._most = max(rate, 1.0)
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, who: str) -> None:
        """Count a request of ``who``, or refuse it."""
        if not self._rate:
            return
        now = self._clock()
        left, since = self._left.get(who, (self._most, now))
        left = min(self._most, left + (now - since) * self._rate)
        if left < 1.0:
            raise Refusal(
                "too-many-requests",
                f"more than {self._rate:g} requests a second",
                retry_after=math.ceil((1.0 - left) / self._rate),
            )
        if len(self._left) > 10_000:  # callers that are dropped have their full rate
            full = self._most / self._rate
            self._left = {w: at for w, at in self._left.items() if now - at[1] < full}
        self._left[who] = left - 1.0, now
