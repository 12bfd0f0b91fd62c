"""Single values as others write them: words for yes and no, numbers, prices, scores."""

from __future__ import annotations

import math
import re
from numbers import Number
from typing import Any

from fairshield.base.errors import InvalidValueError, shown

Flag = bool | int | str
"""A yes or no, however it is written; see :func:`as_flag`."""
YES = ("1", "true", "yes", "accept", "accepted")
NO = ("0", "false", "no", "reject", "rejected")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def as_flag(value: Any) -> bool:
    """The truth value that a word or number such as ``"yes"``, ``"reject"`` or 1 stands for."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    number: Any = value if isinstance(value, Number) else None
    if word in YES or number == 1:
        return True
    if word in NO or number == 0:
        return False
    raise InvalidValueError(f"expected 1/0, true/false, yes/no or accept/reject, got {value!r}")


def read_number(value: Any) -> float:
    """``value`` as a float; not a number (``nan``) if it cannot be read as one.

    Text is read as programs write it: Python would also take the digits of ``1_000``.

    >>> read_number("1e-2"), read_number(2), read_number("1_000"), read_number("0,35")
    (0.01, 2.0, nan, nan)
    """
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def as_cost(value: Any) -> float:
    """``value`` as a cost: a finite number of at least 0."""
    cost = read_number(value)
    if not 0.0 <= cost < math.inf:
        raise InvalidValueError(f"a cost must be a finite number of at least 0, got {shown(value)}")
    return cost


def as_score(value: Any) -> float:
    """``value`` as a score: a finite number."""
    score = read_number(value)
    if not math.isfinite(score):
        raise InvalidValueError(f"expected a number, got {value!r}")
    return score


def as_threshold(value: Any) -> float:
    """``value`` as a threshold, the least score that is accepted: a finite number."""
    limit = as_number(value, "threshold")
    if not math.isfinite(limit):
        raise InvalidValueError(f"threshold must be a finite number, got {value!r}")
    return limit


def as_number(value: Any, name: str) -> float:
    """``value`` as a floating-point number."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValueError(f"{name} must be a number, got {shown(value)}") from None
