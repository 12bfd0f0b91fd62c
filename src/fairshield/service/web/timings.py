"""Latencies and Commits measure times of decisions and commits, for Prometheus."""

from __future__ import annotations

from collections import deque

from prometheus_client import Histogram, disable_created_metrics

# The time at which each histogram was made is not exported: it is the start of the service.
disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
_ENTRIES = tuple(2**i for i in range(13))


def _histogram(name: str, text: str, bounds: tuple[float, ...]) -> Histogram:
    """A histogram of one service; several may run in one process."""
    return Histogram(name, text, buckets=bounds, registry=None)


class Latencies:
    """Latencies measures the time from request to answer, of all decisions and the last ones."""

    def __init__(self) -> None:
        self.histogram = _histogram(
            "fairshield_decision_seconds", "From a request to its answer", _SECONDS
        )
        self._last: deque[float] = deque(maxlen=2_000)

    def add(self, seconds: float) -> None:
        """Add one measurement."""
        self._last.append(seconds)
        self.histogram.observe(seconds)

    def quantile(self, share: float) -> float | None:
        """The time within which this share was answered."""
        ordered = sorted(self._last)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None


class Commits:
    """Commits measures the time of group commits, and the number of their entries."""

    def __init__(self) -> None:
        self.seconds = _histogram(
            "fairshield_commit_seconds", "Applying and committing a batch", _SECONDS
        )
        self.entries = _histogram(
            "fairshield_commit_entries", "Entries stored by a commit", _ENTRIES
        )

    def add(self, entries: int, seconds: float) -> None:
        """Add one measurement."""
        self.entries.observe(entries)
        self.seconds.observe(seconds)
