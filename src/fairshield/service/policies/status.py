"""JobStatus is what the process that makes a policy prints for the service."""

from __future__ import annotations

import msgspec


class JobStatus(msgspec.Struct, omit_defaults=True):
    """JobStatus reports a job: its progress, the policy made, and finally what was found."""

    progress: float | None = None
    digest: str | None = None
    words: str | None = None
    verification: str | None = None
    error: str | None = None
