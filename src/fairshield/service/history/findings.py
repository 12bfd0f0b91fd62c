"""DatabaseAudit and StreamAudit hold what an audit of a database found."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from fairshield.spec import Verdict, verdict_of, worst


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAudit:
    """StreamAudit holds what an audit found in one stream.

    ``findings`` are sentences; ``finished`` is false if the audit was stopped before the end.
    ``windows`` have ended: ``fair`` ones, ``unfair`` ones in which the property did not hold when
    it was due, and ``exempt`` ones in which it bound nothing.  ``unfinished`` is the verdict of the
    checkpoints that a window in progress has reached; ``None``: of none.  ``receipts`` that were
    kept are in the log.  ``doubt`` says why the outcomes cannot tell how people were treated.
    """

    stream: str
    entries: int
    decisions: int
    windows: int
    fair: int
    unfair: int
    exempt: int
    receipt: str | None
    findings: tuple[str, ...]
    finished: bool = True
    receipts: int = 0
    doubt: str | None = None
    unfinished: Verdict | None = None

    @property
    def holds(self) -> bool:
        """Whether the log replays, and no window of it is unfair."""
        return not self.findings

    @property
    def verdict(self) -> Verdict:
        """Of all moments at which the property was due: ``"exempt"`` if it bound at none."""
        return verdict_of(
            unfair=self.unfair + (self.unfinished == "unfair"),
            fair=self.fair + (self.unfinished == "fair"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        return data | {
            "findings": list(self.findings), "holds": self.holds, "verdict": self.verdict
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseAudit:
    """DatabaseAudit holds the audits of all streams, and findings that belong to no stream."""

    streams: tuple[StreamAudit, ...]
    findings: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether all logs replay, and no window is unfair."""
        return not self.findings and all(stream.holds for stream in self.streams)

    @property
    def verdict(self) -> Verdict:
        """Of all streams: ``"exempt"`` if nothing bound any of them."""
        return worst([stream.verdict for stream in self.streams]) or "exempt"

    @property
    def all_findings(self) -> tuple[str, ...]:
        """All findings, stream by stream."""
        return (*self.findings, *(found for stream in self.streams for found in stream.findings))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "holds": self.holds,
            "verdict": self.verdict,
            "findings": list(self.findings),
            "streams": [stream.to_dict() for stream in self.streams],
        }
