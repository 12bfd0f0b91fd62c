"""A task is one computation: the arguments of a function, and a key that identifies them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

import fairshield as fs

Frames: TypeAlias = Mapping[str, pd.DataFrame]
"""What a task leaves: tidy frames by name.  Their index is not kept."""

Function: TypeAlias = Callable[..., Frames]
"""Called with a task's arguments by name.  Other processes must be able to import it."""

_DIGESTED_KINDS = "biufcSUmM"


@dataclass(frozen=True)
class Task:
    """Task is one call of a function.  Tasks with the same key are the same task.

    Attributes
    ----------
    key
        Digest of all that the result depends on, see :func:`digest`.
    title
        Names the task in progress and failures.
    arguments
        By name; they are pickled for other processes.
    weight
        Expected duration relative to the other tasks.
    """

    key: str
    title: str = field(compare=False)
    arguments: Mapping[str, Any] = field(compare=False, repr=False)
    weight: float = field(compare=False, default=1.0)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise fs.InvalidValueError(
                f"the weight of task {self.title!r} must be positive and finite, got {self.weight}"
            )


def digest(*parts: Any) -> str:
    """SHA-256 of values that JSON can hold and of arrays, the same in every process and platform.

    Lists and tuples are alike, the order of a mapping's keys does not matter; ``1``, ``1.0``,
    ``True`` and ``"1"`` differ, as do arrays that differ in dtype or shape.

    >>> digest("adult", {"bound": 0.1, "runs": 30})[:16]
    '583140ba3481db26'
    """
    return hashlib.sha256(json.dumps([_tagged(part) for part in parts]).encode()).hexdigest()


def _tagged(part: Any) -> list[Any]:
    """Nested lists that start with the kind of the value, so that no two kinds look alike."""
    match part:
        case np.ndarray():
            return ["array", *_array(part)]
        case np.generic():
            return _tagged(part.item())
        case None | bool() | int() | float() | str():
            return ["value", part]
        case list() | tuple():
            return ["list", *map(_tagged, part)]
        case Mapping() if all(isinstance(key, str) for key in part):
            return ["mapping", *([key, _tagged(part[key])] for key in sorted(part))]
    raise fs.InvalidValueError(
        f"a digest is taken of what JSON can hold and of arrays, got {type(part).__name__}. "
        "Turn it into text, numbers, lists and mappings with text as keys."
    )


def _array(part: np.ndarray[Any, Any]) -> tuple[str, list[int], str]:
    dtype = part.dtype.newbyteorder("<")
    # Extended precision has bytes without meaning, and its size depends on the platform.
    extended = dtype.kind in "fc" and dtype.itemsize > 8 * (1 + (dtype.kind == "c"))
    masked = isinstance(part, np.ma.MaskedArray)
    if dtype.kind not in _DIGESTED_KINDS or extended or masked:
        raise fs.InvalidValueError(
            f"an array of {part.dtype} has no digest of its own. Turn it into numbers or text."
        )
    content = np.asarray(part, dtype=dtype).tobytes()
    return dtype.str, list(part.shape), hashlib.sha256(content).hexdigest()
