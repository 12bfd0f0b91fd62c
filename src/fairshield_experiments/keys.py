"""``key_of`` digests what a result depends on: results with the same key are the same."""

from __future__ import annotations

import hashlib
import pickle
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import fairshield as fs
import fairshield_experiments
from fairshield_experiments.people import People, Scored
from fairshield_experiments.sweep.task import digest

_PACKAGES = ("numpy", "scipy", "numba", "pandas", "scikit-learn", "fairlearn", "torch")
_AROUND = ("cli", "plots.py", "demo.py", "bench.py", "results", "sweep", "reproduce.py")
"""Files and folders that no result depends on: they start work or present results."""


def key_of(*parts: Any) -> str:
    """Digest of these parts, of the program and of the versions of its packages."""
    return digest(versions(), _program(), *parts)


def identity(learner: Any) -> list[str]:
    """Class, content and source file of a learner, as digests."""
    kind = type(getattr(learner, "estimator", learner))  # the estimator that an adapter wraps
    source = Path(getattr(sys.modules.get(kind.__module__), "__file__", None) or "")
    code = source.read_bytes() if source.is_file() else b""
    return [
        f"{kind.__module__}.{kind.__qualname__}",
        *(hashlib.sha256(part).hexdigest() for part in (pickle.dumps(learner), code)),
    ]


def people_digest(scored: Scored) -> str:
    """Digest of the group, outcome and score of all people."""

    def columns(people: People) -> list[Any]:
        return [people.group, people.target.astype(np.int8), people.score]

    return digest(scored.environment, *columns(scored.training), *columns(scored.held_out))


@cache
def versions() -> str:
    """Versions of the packages that results depend on."""
    packages = (f"{name} {_version(name)}" for name in _PACKAGES)
    return ", ".join(
        (f"fairshield {fs.__version__}", f"Python {platform.python_version()}", *packages)
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # torch, for one, which not all learners need
        return "(none)"


@cache
def _program() -> str:
    """Digest of all source files but those of :data:`_AROUND`."""
    found = hashlib.sha256()
    for package in (fs, fairshield_experiments):
        assert package.__file__ is not None
        folder = Path(package.__file__).parent
        for file in sorted(folder.rglob("*.py")):
            if file.relative_to(folder).parts[0] not in _AROUND:
                found.update(file.read_bytes())
    return found.hexdigest()
