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
    """ServiceError says that the service did not do what a request asked for.

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
    """UnexpectedAnswerError says that an answer is not one of a service that this client knows.

    It comes from something else, or from another version.
    """


# Content of the request ---------------------------------------------------------------------


class InvalidRequestError(ServiceError, InvalidValueError):
    """InvalidRequestError says that a value of the request breaks a rule."""


class MalformedRequestError(ServiceError):
    """MalformedRequestError says that the service could not read the request."""


class MissingKeyError(ServiceError):
    """MissingKeyError says that the request had no idempotency key."""


class MethodNotAllowedError(ServiceError):
    """MethodNotAllowedError says that the address does not take this method."""


class TooLargeError(ServiceError):
    """TooLargeError says that the request is larger than the service allows."""


class HeadersTooLargeError(ServiceError):
    """HeadersTooLargeError says that the request's headers are larger than allowed."""


class UnsupportedMediaTypeError(ServiceError):
    """UnsupportedMediaTypeError says that the service does not take a body of this type."""


class KeyReusedError(ServiceError):
    """KeyReusedError says that the idempotency key belongs to another request."""


class NotFoundError(ServiceError):
    """NotFoundError says that there is no such stream, decision or policy."""


# Access -------------------------------------------------------------------------------------


class UnauthorizedError(ServiceError):
    """UnauthorizedError says that the token is none of the service's access keys."""


class ForbiddenError(ServiceError):
    """ForbiddenError says that the access key, or the request's origin, does not allow this."""


# State of the stream ------------------------------------------------------------------------


class RemoteUnknownGroupError(ServiceError, UnknownGroupError):
    """RemoteUnknownGroupError says that the policy was made without declaring this group."""


class RemoteOutcomePendingError(ServiceError, OutcomePendingError):
    """RemoteOutcomePendingError says that the last decision's outcome must be observed first."""

    remedy = "stream.observe(decision, outcome=...)"


class RemoteUnexpectedOutcomeError(ServiceError, UnexpectedOutcomeError):
    """RemoteUnexpectedOutcomeError says that the decision is not waiting for an outcome."""


class RemoteInfeasibleError(ServiceError, InfeasibleError):
    """RemoteInfeasibleError says that fairness cannot be guaranteed."""


class StreamFinishedError(ServiceError, WindowOverError):
    """StreamFinishedError says that the stream has fewer decisions left than were asked for."""


class StreamClosedError(ServiceError):
    """StreamClosedError says that the stream has been closed."""


class NotOverridableError(ServiceError):
    """NotOverridableError says that a person may no longer change the decision."""


class InternalError(ServiceError):
    """InternalError says that the service has a fault; repeating the request does not help."""


class LogBrokenError(ServiceError):
    """LogBrokenError says that the stream's log does not replay, and is not used any more."""


# Streams and policies -----------------------------------------------------------------------


class NameTakenError(ServiceError):
    """NameTakenError says that a stream of this name has other settings."""


class TooCostlyError(ServiceError):
    """TooCostlyError says that making the policy would take too much time or memory."""


class PolicyNotReadyError(ServiceError):
    """PolicyNotReadyError says that the policy is still being made or verified."""


class PolicyRefusedError(PolicyNotReadyError, ArtifactError):
    """PolicyRefusedError says that the policy was not made, or does not keep its promise."""


# The service itself -------------------------------------------------------------------------


class UnavailableError(ServiceError, ConnectionError):
    """UnavailableError says that no attempt got an answer.

    The request may have been recorded all the same.
    """


class RequestTimeoutError(UnavailableError):
    """RequestTimeoutError says that the service waited too long for every attempt."""


class TooManyRequestsError(UnavailableError):
    """TooManyRequestsError says that the service asked at every attempt to come back later."""


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
