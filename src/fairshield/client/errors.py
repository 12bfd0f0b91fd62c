"""ServiceError and one subclass for each kind of problem that a service can report.

Where the library has an error for the same situation, the class is that error as well: ``except
fairshield.OutcomePendingError`` works for a shield in this process and for one behind a service.
"""

from __future__ import annotations

from typing import ClassVar

from fairshield.base.errors import (
    ArtifactError,
    FairshieldError,
    InfeasibleError,
    InvalidValueError,
    OutcomePendingError,
    UnexpectedOutcomeError,
    UnknownGroupError,
    WindowOverError,
)


class ServiceError(FairshieldError):
    """A request that was not answered with what it asked for.

    ``kind`` is the kind of problem (the last part of its type's address), ``status`` the HTTP
    status, ``None`` where no answer came.  ``key`` is the idempotency key of the request, if it
    had one: a call with the same arguments and this ``key=`` is a retry, counted once.
    """

    remedy: ClassVar[str] = ""
    """The method to call, where the detail of the problem names an HTTP request."""

    def __init__(
        self,
        detail: str,
        *,
        kind: str = "unknown",
        status: int | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail, self.kind, self.status, self.key = detail, kind, status, key


class UnexpectedAnswerError(ServiceError):
    """An answer that is not the service's, or not of a version that this client knows."""


# Content of the request ---------------------------------------------------------------------


class InvalidRequestError(ServiceError, InvalidValueError):
    """A value of the request breaks a rule."""


class MalformedRequestError(ServiceError):
    """The service could not read the request."""


class MissingKeyError(ServiceError):
    """The request had no idempotency key."""


class MethodNotAllowedError(ServiceError):
    """The address is not for this method."""


class TooLargeError(ServiceError):
    """The request is larger than the service allows."""


class HeadersTooLargeError(ServiceError):
    """The headers of the request are larger than the service allows."""


class UnsupportedMediaTypeError(ServiceError):
    """The service does not take a body of this type."""


class KeyReusedError(ServiceError):
    """The idempotency key belongs to another request."""


class NotFoundError(ServiceError):
    """There is no such stream, decision or policy."""


# Access -------------------------------------------------------------------------------------


class UnauthorizedError(ServiceError):
    """The service wants an access key, and the token is none of its keys."""


class ForbiddenError(ServiceError):
    """The access key, or where the request comes from, does not allow this."""


# State of the stream ------------------------------------------------------------------------


class RemoteUnknownGroupError(ServiceError, UnknownGroupError):
    """A group that was not declared when the policy was made."""


class RemoteOutcomePendingError(ServiceError, OutcomePendingError):
    """The outcome of the last decision must be observed before the next decision."""

    remedy = "stream.observe(decision, outcome=...)"


class RemoteUnexpectedOutcomeError(ServiceError, UnexpectedOutcomeError):
    """An outcome for a decision that is not waiting for one."""


class RemoteInfeasibleError(ServiceError, InfeasibleError):
    """Fairness cannot be guaranteed."""


class StreamFinishedError(ServiceError, WindowOverError):
    """The stream has not that many decisions left."""


class StreamClosedError(ServiceError):
    """The stream has been closed."""


class NotOverridableError(ServiceError):
    """The decision is not one that a person may still change."""


class InternalError(ServiceError):
    """The service has a fault; repeating the request does not help."""


class LogBrokenError(ServiceError):
    """The log of the stream does not replay; the service does not use it any more."""


# Streams and policies -----------------------------------------------------------------------


class NameTakenError(ServiceError):
    """A stream of this name has other settings."""


class TooCostlyError(ServiceError):
    """The policy would take the service too long, or too much memory, to make."""


class PolicyNotReadyError(ServiceError):
    """The policy is still being made or verified."""


class PolicyRefusedError(PolicyNotReadyError, ArtifactError):
    """The policy could not be made, or does not keep what it promises."""


# The service itself -------------------------------------------------------------------------


class UnavailableError(ServiceError, ConnectionError):
    """No answer, however often it was tried; the request may have been recorded all the same."""


class RequestTimeoutError(UnavailableError):
    """The service waited too long for the request, again and again."""


class TooManyRequestsError(UnavailableError):
    """The service asked to come back later, again and again."""


BY_KIND: dict[str, type[ServiceError]] = {
    "invalid-request": InvalidRequestError,
    "malformed-request": MalformedRequestError,
    "missing-key": MissingKeyError,
    "unknown-group": RemoteUnknownGroupError,
    "unauthorized": UnauthorizedError,
    "forbidden": ForbiddenError,
    "not-found": NotFoundError,
    "method-not-allowed": MethodNotAllowedError,
    "timeout": RequestTimeoutError,
    "key-reused": KeyReusedError,
    "name-taken": NameTakenError,
    "stream-closed": StreamClosedError,
    "stream-finished": StreamFinishedError,
    "outcome-pending": RemoteOutcomePendingError,
    "unexpected-outcome": RemoteUnexpectedOutcomeError,
    "not-overridable": NotOverridableError,
    "policy-not-ready": PolicyNotReadyError,
    "infeasible": RemoteInfeasibleError,
    "too-costly": TooCostlyError,
    "too-large": TooLargeError,
    "headers-too-large": HeadersTooLargeError,
    "unsupported-media-type": UnsupportedMediaTypeError,
    "too-many-requests": TooManyRequestsError,
    "internal": InternalError,
    "log-broken": LogBrokenError,
    "unavailable": UnavailableError,
}
"""The error of each kind of problem."""
