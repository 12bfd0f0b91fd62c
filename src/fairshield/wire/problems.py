"""KINDS lists everything the service can refuse, as RFC 9457 problem details."""

from __future__ import annotations

from typing import NamedTuple

from fairshield.base.errors import (
    ArtifactError,
    FairshieldError,
    InfeasibleError,
    MemoryLimitError,
    OutcomePendingError,
    UnexpectedOutcomeError,
    UnknownGroupError,
    WindowOverError,
)


class Kind(NamedTuple):
    """Kind is a kind of problem: its HTTP status, its title, and what helps."""

    status: int
    title: str
    help: str


KINDS = {
    "invalid-request": Kind(
        422, "The request breaks a rule", "Change what the detail names and send it again."
    ),
    "malformed-request": Kind(
        400, "The request cannot be read", "Send JSON of the documented form."
    ),
    "missing-key": Kind(
        400,
        "No Idempotency-Key",
        "Send a header Idempotency-Key that is new for each request and the same for each retry.",
    ),
    "unknown-group": Kind(
        422, "Unknown group", "Use a group that was declared when the policy was made."
    ),
    "unauthorized": Kind(
        401, "No valid access key", "Send Authorization: Bearer with a key from fairshield keys."
    ),
    "forbidden": Kind(
        403,
        "This is not allowed",
        "Use a key with the scope that is named; without keys, a local name of the service.",
    ),
    "not-found": Kind(404, "Not found", "Check the address; GET /v1/streams lists all streams."),
    "method-not-allowed": Kind(
        405, "Method not allowed", "Use one of the methods in the Allow header."
    ),
    "timeout": Kind(408, "The request took too long to arrive", "Send the whole request at once."),
    "key-reused": Kind(
        409,
        "The Idempotency-Key belongs to another request",
        "Use a new key for a new request; a retry must be the same as the request it repeats.",
    ),
    "name-taken": Kind(
        409, "A stream of this name has other settings", "Choose another name for the new stream."
    ),
    "stream-closed": Kind(409, "The stream is closed", "Create another stream; the log stays."),
    "stream-finished": Kind(
        409, "All decisions of the stream are made", "Create another stream; the log stays."
    ),
    "outcome-pending": Kind(
        409,
        "An outcome is awaited",
        "POST the outcome of the decision that is named, then decide the next one.",
    ),
    "unexpected-outcome": Kind(
        409, "No outcome is awaited for this decision", "Observe each decision once, in order."
    ),
    "not-overridable": Kind(
        409,
        "The decision cannot be overridden",
        "Override each decision once, before its window ends, in a stream made with human = true.",
    ),
    "policy-not-ready": Kind(
        409, "The policy is not ready", "Wait until GET /v1/policies/{id} says ready."
    ),
    "infeasible": Kind(
        422, "Fairness cannot be guaranteed", "Loosen the bound, or change what the detail names."
    ),
    "too-costly": Kind(
        422,
        "The policy would take too long to make",
        "Shorten the horizon, or synthesise the policy elsewhere and upload it.",
    ),
    "too-large": Kind(413, "The request is too large", "Send less at once."),
    "headers-too-large": Kind(431, "The headers are too large", "Send fewer and shorter headers."),
    "unsupported-media-type": Kind(
        415, "Unsupported media type", "Send application/json, or a policy file where one is due."
    ),
    "too-many-requests": Kind(429, "Too many requests", "Wait as long as Retry-After says."),
    "log-broken": Kind(
        500,
        "The log of this stream does not replay",
        "Stop using the stream, keep the database, and run fairshield audit --db.",
    ),
    "internal": Kind(
        500, "The service made a mistake", "Report what is in the log of the service."
    ),
    "unavailable": Kind(
        503,
        "The service cannot answer now",
        "Send the same request with the same Idempotency-Key again.",
    ),
}


class Refusal(FairshieldError):
    """Refusal is the error for a request that the service does not answer: its kind, and why."""

    def __init__(self, kind: str, detail: str, *, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.retry_after = kind, detail, retry_after

    @property
    def status(self) -> int:
        """The HTTP status."""
        return KINDS[self.kind].status


_KIND_OF: tuple[tuple[type[Exception], str], ...] = (
    (UnknownGroupError, "unknown-group"),
    (OutcomePendingError, "outcome-pending"),
    (UnexpectedOutcomeError, "unexpected-outcome"),
    (WindowOverError, "stream-finished"),
    (InfeasibleError, "infeasible"),
    (ArtifactError, "invalid-request"),
    (MemoryLimitError, "too-costly"),
    (FairshieldError, "invalid-request"),
)


def refusal(error: FairshieldError) -> Refusal:
    """The refusal that corresponds to an error of the library."""
    if isinstance(error, Refusal):
        return error
    kind = next(kind for cls, kind in _KIND_OF if isinstance(error, cls))
    return Refusal(kind, str(error))
