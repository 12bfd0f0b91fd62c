"""What a process that makes a policy tells the one that started it."""

from __future__ import annotations

import msgspec


class News(msgspec.Struct, omit_defaults=True):
    """How a job goes: its progress, the policy it has made, and in the end what was found."""

    progress: float | None = None
    digest: str | None = None
    words: str | None = None
    verification: str | None = None
    error: str | None = None
