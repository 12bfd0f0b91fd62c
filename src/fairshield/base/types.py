"""Types that functions of several folders take."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float], None]
"""Called with the share of work done, between 0 and 1."""
