"""Options: how a policy is made; what it has to keep is its ``Specification``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from fairshield.base.counts import is_whole
from fairshield.base.errors import InvalidValueError
from fairshield.base.types import Progress
from fairshield.policy import Policy
from fairshield.synthesis.method import Method, check_method

Backend = Literal["auto", "reference", "cpu", "cuda"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options says how a policy is made, as the arguments of :func:`fairshield.synthesize`."""

    best_effort: bool = False
    method: Method = "auto"
    endgame: int | None = None
    backend: Backend = "auto"
    threads: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        check_method(self.method)
        if self.backend not in ("auto", "reference", "cpu", "cuda"):
            raise InvalidValueError(
                f"backend must be 'auto', 'cpu', 'cuda' or 'reference', got {self.backend!r}"
            )
        if self.threads is not None and (not is_whole(self.threads) or self.threads < 1):
            raise InvalidValueError(
                f"threads must be a whole number of at least 1, or None for all processors, got "
                f"{self.threads!r}"
            )

    @classmethod
    def that_made(cls, policy: Policy) -> Options:
        """The options by which ``policy``, or one like it for other inputs, is made again."""
        return cls(
            best_effort=policy.risk > 0 and not policy.fair_in_support,
            method=policy.method,
            endgame=policy.decisions.endgame,
        )

    @property
    def n_threads(self) -> int:
        """How many threads to use."""
        return processors() if self.threads is None else self.threads


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # systems that do not limit the processors of a process
