"""One struct for each message of the HTTP API, strict when read.

The OpenAPI document is made of the same structs, and the client returns them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairshield.base.renamed import warn_renamed
from fairshield.wire.messages.decisions import BatchItem as BatchItem
from fairshield.wire.messages.decisions import BatchRequest as BatchRequest
from fairshield.wire.messages.decisions import DecisionMessage as DecisionMessage
from fairshield.wire.messages.decisions import DecisionRequest as DecisionRequest
from fairshield.wire.messages.decisions import DecisionsMessage as DecisionsMessage
from fairshield.wire.messages.decisions import ExplanationMessage as ExplanationMessage
from fairshield.wire.messages.decisions import OutcomeMessage as OutcomeMessage
from fairshield.wire.messages.decisions import OutcomeRequest as OutcomeRequest
from fairshield.wire.messages.decisions import Override as Override
from fairshield.wire.messages.decisions import OverrideRequest as OverrideRequest
from fairshield.wire.messages.decisions import Receipt as Receipt
from fairshield.wire.messages.decisions import WhatIf as WhatIf
from fairshield.wire.messages.fields import MOST_IN_BATCH as MOST_IN_BATCH
from fairshield.wire.messages.fields import AlarmKind as AlarmKind
from fairshield.wire.messages.fields import Cost as Cost
from fairshield.wire.messages.fields import Message as Message
from fairshield.wire.messages.fields import Name as Name
from fairshield.wire.messages.fields import Named as Named
from fairshield.wire.messages.fields import Number as Number
from fairshield.wire.messages.fields import Plain as Plain
from fairshield.wire.messages.fields import RequestMessage as RequestMessage
from fairshield.wire.messages.fields import Scope as Scope
from fairshield.wire.messages.fields import Status as Status
from fairshield.wire.messages.fields import Whole as Whole
from fairshield.wire.messages.fields import message_name as message_name
from fairshield.wire.messages.service import Health as Health
from fairshield.wire.messages.service import Log as Log
from fairshield.wire.messages.service import LogEntry as LogEntry
from fairshield.wire.messages.service import Policies as Policies
from fairshield.wire.messages.service import PolicyMessage as PolicyMessage
from fairshield.wire.messages.service import ProblemMessage as ProblemMessage
from fairshield.wire.messages.service import Service as Service
from fairshield.wire.messages.service import Update as Update
from fairshield.wire.messages.streams import AlarmMessage as AlarmMessage
from fairshield.wire.messages.streams import GroupState as GroupState
from fairshield.wire.messages.streams import GuaranteeReport as GuaranteeReport
from fairshield.wire.messages.streams import InProgress as InProgress
from fairshield.wire.messages.streams import Outlook as Outlook
from fairshield.wire.messages.streams import Rates as Rates
from fairshield.wire.messages.streams import Series as Series
from fairshield.wire.messages.streams import StateMessage as StateMessage
from fairshield.wire.messages.streams import StreamMessage as StreamMessage
from fairshield.wire.messages.streams import StreamRequest as StreamRequest
from fairshield.wire.messages.streams import StreamsMessage as StreamsMessage
from fairshield.wire.messages.streams import WholeStream as WholeStream
from fairshield.wire.messages.streams import WindowEnd as WindowEnd
from fairshield.wire.messages.streams import Windows as Windows

RENAMED = (
    "Alarm", "Decision", "Decisions", "Explanation", "Outcome", "Policy", "Problem", "Request",
    "State", "Stream", "Streams",
)  # fmt: skip
"""Names that messages had in common with classes of the library; now they end with ``Message``."""

if not TYPE_CHECKING:  # Hidden from type checkers, which would accept any name

    def __getattr__(name: str) -> object:
        if name not in RENAMED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        new = f"{name}Message"
        warn_renamed(f"{__name__}.{name}", new)
        return globals()[new]
