"""Types of fields with their bounds, and the two base classes of messages."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$(?!\n)")]
"""The name of a stream, which is part of addresses."""
Named = (
    Annotated[str, msgspec.Meta(max_length=200)]
    | Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
)
"""A group, as JSON."""
Cost = Annotated[float, msgspec.Meta(ge=0.0, le=1e300)]
Number = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Whole = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Status = Literal["guaranteed", "at-risk", "violated", "finished", "vacuous"]
AlarmKind = Literal["bias", "model"]
Scope = Literal["decide", "read", "admin"]
MOST_IN_BATCH = 10_000


def message_name(of_class: str) -> str:
    """Return the name of a message in the API, where no class of the library shares it.

    >>> message_name("DecisionMessage"), message_name("Outlook")
    ('Decision', 'Outlook')
    """
    return of_class.removesuffix("Message")


class RequestMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """RequestMessage is the base of what a client sends."""


class Message(msgspec.Struct, frozen=True):
    """Message is the base of what the service answers."""


Plain = float | None
"""A number; ``null`` where it is infinite, which JSON lacks."""
