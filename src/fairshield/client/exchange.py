r"""Requests, answers and retries as generators, which do no input or output themselves.

What a client does is a generator, a :data:`Flow`: it yields steps (:class:`Send`,
:class:`Pause`), receives the outcome of each, and returns the result.  The two clients
(:mod:`fairshield.client.synchronous`, :mod:`fairshield.client.asynchronous`) carry the steps out.

Every request of the service may be repeated: those that add to a log carry an idempotency key,
which stays the same, and the others change nothing the second time.  Before attempt i + 1 comes a
pause of the seconds that ``Retry-After`` asks for, plus a number drawn from
[0, min(longest, first · 2^(i-1), left / 2)], where ``left`` are the seconds left for the call.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from fairshield.base.errors import InvalidValueError
from fairshield.client.errors import (
    BY_KIND,
    ServiceError,
    UnavailableError,
    UnexpectedAnswerError,
)
from fairshield.wire.messages import ProblemMessage, message_name

T = TypeVar("T")
RETRIED = frozenset({408, 429, 502, 503, 504})
"""HTTP statuses after which a request is sent again."""
_LONGEST = 60.0
"""Longest pause, in seconds, of a flow that is retried without end."""
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}
_MAKING = threading.Lock()


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """HttpRequest is one request; ``wait`` are the seconds that a long poll adds to its time-out.

    ``call_key`` is what a caller has to give as the key to repeat the call, if that is not ``key``.
    The body of a successful answer is written to ``sink``, if there is one.
    """

    method: str
    path: str
    query: dict[str, str] = {}
    body: bytes | None = None
    content_type: str = "application/json"
    key: str | None = None
    call_key: str | None = None
    wait: float = 0.0
    sink: Any = None

    @property
    def again(self) -> str | None:
        """The key with which the call can be repeated."""
        return self.call_key or self.key


class HttpAnswer(NamedTuple):
    """HttpAnswer is the status, headers and body that came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Lost(NamedTuple):
    """Lost says why no answer came back, or not all of one."""

    why: str


class Send(NamedTuple):
    """Send asks the client to send a request, and to wait so many seconds for each part."""

    request: HttpRequest
    seconds: float


class Pause(NamedTuple):
    """Pause asks the client to wait so many seconds."""

    seconds: float


Step = Send | Pause
Flow = Generator[Step, Any, T]
"""Yields steps; gets ``HttpAnswer | Lost`` for a :class:`Send`, ``None`` for a :class:`Pause`."""


@dataclass(frozen=True, kw_only=True)
class ClientPatience:
    """ClientPatience says how long a client waits for one attempt and for all of them.

    ``timeout`` limits one attempt, ``patience`` all of them, both in seconds.  ``away`` is called
    when a flow that is retried without end gets no answer for the second time.
    """

    timeout: float = 30.0
    attempts: int = 10
    patience: float = 60.0
    first: float = 0.1
    longest: float = 5.0
    away: Callable[[], None] = field(default=lambda: None, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    chance: Callable[[], float] = field(default=random.random, repr=False)

    def __post_init__(self) -> None:
        for name in ("timeout", "patience"):
            if not getattr(self, name) > 0:
                raise InvalidValueError(
                    f"{name} must be a number of seconds above 0, got {getattr(self, name)!r}"
                )
        if self.attempts < 1:
            raise InvalidValueError(f"retries must be at least 0, got {self.attempts - 1}")

    def pause(self, attempt: int, left: float) -> float:
        """Seconds before the next attempt, ``attempt`` being over, of those that are left."""
        longest = min(self.longest, self.first * 2.0 ** min(attempt - 1, 60), left / 2)
        return self.chance() * longest


def exchange(
    request: HttpRequest, terms: ClientPatience, *, for_ever: bool = False
) -> Flow[HttpAnswer]:
    """The answer to a request, good or bad, unless there is none within ``terms``."""
    begun, attempt = terms.clock(), 0
    while True:
        left = terms.timeout if for_ever else terms.patience - (terms.clock() - begun)
        result = yield Send(request, request.wait + max(min(terms.timeout, left), 0.001))
        attempt += 1
        if isinstance(result, HttpAnswer) and result.status not in RETRIED:
            return result
        asked = _asked_to_wait(result)
        if for_ever:
            if attempt == 2:  # a single lost connection is not reported
                terms.away()
            yield Pause(min(asked + terms.pause(attempt, math.inf), _LONGEST))
            continue
        elapsed = terms.clock() - begun
        left = terms.patience - elapsed - asked
        if attempt >= terms.attempts or left <= 0:
            raise _given_up(request, result, attempt, elapsed)
        yield Pause(asked + terms.pause(attempt, left))


def ask(
    request: HttpRequest, kind: type[T], terms: ClientPatience, *, for_ever: bool = False
) -> Flow[T]:
    """The message that answers a request.

    Raises
    ------
    ServiceError
        The class that belongs to the problem, if the answer is one.
    """
    answer = yield from exchange(request, terms, for_ever=for_ever)
    check(request, answer)
    try:
        return decoder_of(kind).decode(answer.body)
    except msgspec.DecodeError as error:
        raise UnexpectedAnswerError(
            f"{request.method} {request.path} was answered with something else than "
            f"{message_name(kind.__name__)} ({error}): check the address of the service, and its "
            "version",
            kind="unexpected-answer",
            status=answer.status,
            key=request.again,
        ) from None


def decoder_of(kind: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of a message; a lock, as msgspec may crash if two threads make one."""
    with _MAKING:
        if kind not in _DECODERS:
            _DECODERS[kind] = msgspec.json.Decoder(kind)
        return _DECODERS[kind]


def check(request: HttpRequest, answer: HttpAnswer) -> None:
    """Raise the error that an answer reports, if it reports one."""
    if not 200 <= answer.status < 300:
        raise _error(request, answer)


# Errors -------------------------------------------------------------------------------------


def _error(request: HttpRequest, answer: HttpAnswer) -> ServiceError:
    problem = _problem(answer)
    if problem is None:
        return UnexpectedAnswerError(
            f"{request.method} {request.path} was answered with status {answer.status} by "
            "something that is not the service: check its address",
            kind="unexpected-answer",
            status=answer.status,
            key=request.again,
        )
    kind = problem.type.rpartition("/")[2]
    cls = BY_KIND.get(kind, ServiceError)
    detail = f"{problem.detail} ({cls.remedy})" if cls.remedy else problem.detail
    return cls(detail, kind=kind, status=answer.status, key=request.again)


def _problem(answer: HttpAnswer) -> ProblemMessage | None:
    if not answer.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    try:
        return decoder_of(ProblemMessage).decode(answer.body)
    except msgspec.DecodeError:
        return None


def _given_up(
    request: HttpRequest, result: HttpAnswer | Lost, attempts: int, elapsed: float
) -> ServiceError:
    cls, kind, status = UnavailableError, "unavailable", None
    if isinstance(result, HttpAnswer):
        problem, status = _problem(result), result.status
        why = f"status {status}"
        if problem is not None:
            why, kind = problem.detail, problem.type.rpartition("/")[2]
            found = BY_KIND.get(kind, UnavailableError)
            cls = found if issubclass(found, UnavailableError) else UnavailableError
    else:
        why = f"{result.why}; is the service running (fairshield serve), and at this address?"
    tried = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    detail = f"no answer after {tried} in {elapsed:.1f} s: {why}"
    if request.again is not None:
        detail += f"; it may have been recorded: call again with key={request.again!r} to find out"
    return cls(detail, kind=kind, status=status, key=request.again)


def _asked_to_wait(result: HttpAnswer | Lost) -> float:
    """Seconds that ``Retry-After`` names, as a number or as a date."""
    if isinstance(result, Lost):
        return 0.0
    text = result.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max((at - datetime.now(UTC)).total_seconds(), 0.0)


# Addresses and headers ----------------------------------------------------------------------


def base_address(url: str) -> str:
    """The address of a service, without a slash at the end."""
    wrong = InvalidValueError(f"the address of a service is like http://127.0.0.1:8000: {url!r}")
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, TypeError, AttributeError):
        raise wrong from None
    if not isinstance(url, str) or not whole:
        raise wrong
    if parts.query or parts.fragment or parts.username is not None:
        raise InvalidValueError(
            f"the address of a service has no user, query or fragment, got {parts.hostname!r} with "
            "one of them: give the key as token="
        )
    return url.rstrip("/")


def headers_for(token: str | None, version: str) -> dict[str, str]:
    """The headers that every request of a client carries."""
    headers = {"user-agent": f"fairshield/{version}"}
    if token:
        if not _visible(token):
            raise InvalidValueError("the token has characters that no key has: copy it once more")
        headers["authorization"] = f"Bearer {token}"
    return headers


def headers_of(request: HttpRequest) -> dict[str, str]:
    """The further headers of this request."""
    headers = {} if request.body is None else {"content-type": request.content_type}
    return headers if request.key is None else headers | {"idempotency-key": request.key}


def checked_key(key: str) -> str:
    """The idempotency key; raises if it does not fit into a header."""
    if not isinstance(key, str) or not 1 <= len(key) <= 200 or not _visible(key):
        raise InvalidValueError(
            f"a key has 1 to 200 visible ASCII characters, no spaces; got {key!r}"
        )
    return key


def _visible(text: str) -> bool:
    return all(32 < ord(character) < 127 for character in text)


def restart(sink: BinaryIO) -> None:
    """Erase what an earlier attempt has written."""
    sink.seek(0)
    sink.truncate()
