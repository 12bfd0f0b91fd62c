"""``checkup`` finds what is installed, what works, and what is missing.

It imports and uses each package by itself, so that one broken package does not hide the others.
"""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any

from fairshield._version import __version__
from fairshield.analysis.verify import verify
from fairshield.base.extras import can_compile
from fairshield.cli.tools.packages import NAME, Extra, Load, Package, examine, requirements
from fairshield.inputs import InputModel
from fairshield.runtime.shield import Shield
from fairshield.spec import DemographicParity
from fairshield.synthesis import processors, synthesize
from fairshield.synthesis.cuda.device import missing

FOR_DEVELOPERS = frozenset({"dev", "docs"})
"""Extras for developers of the library, which are not reported to others."""
DATA = "FAIRSHIELD_DATA"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Cache says where compiled code is kept; ``older`` are folders of earlier versions."""

    folder: str
    bytes: int
    writable: bool
    older: int
    older_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Data says where the raw data sets of the experiments are looked for, and which exist."""

    variable: str | None
    folder: str | None
    present: tuple[str, ...]
    absent: tuple[str, ...]
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfCheck:
    """SelfCheck is the result of making, using and verifying a policy.

    ``detail`` says what went wrong.  If nothing can be compiled, ``compiled`` is false, and the
    reference makes the policy, which is then not verified.
    """

    works: bool
    seconds: float
    detail: str = ""
    compiled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """Checkup holds everything that was found."""

    version: str
    python: str
    platform: str
    core: tuple[Package, ...]
    extras: tuple[Extra, ...]
    processors: int
    cuda: str
    cache: Cache | None
    data: Data
    check: SelfCheck

    @property
    def faults(self) -> tuple[str, ...]:
        """What is installed and does not work, in sentences."""
        found = {
            package.name: f"{package.name}: {package.detail}"
            for package in (*self.core, *(p for extra in self.extras for p in extra.packages))
            if package.state in ("old", "broken")
        }
        found |= {
            package.name: f"{package.name} is missing, which {NAME} needs"
            for package in self.core
            if package.state == "missing"
        }
        if not self.check.works:
            found["self-check"] = f"the self-check failed: {self.check.detail}"
        return tuple(found.values())

    @property
    def works(self) -> bool:
        """Whether the core works and nothing that is installed is broken."""
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        return {**_plain(self), "faults": list(self.faults), "works": self.works}


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def checkup(
    load: Load = importlib.import_module, *, compiles: Callable[[], None] = lambda: None
) -> Checkup:
    """Look at everything; ``load`` imports a module by its name.

    ``compiles`` is called before the self-check where nothing is compiled yet, as it then takes
    half a minute.
    """
    core, extras = requirements()
    cache = _cache()
    return Checkup(
        version=__version__,
        python=f"{platform.python_version()} ({platform.python_implementation()})",
        platform=platform.platform(),
        core=tuple(examine(text, load) for text in core),
        extras=tuple(
            Extra(name=name, packages=tuple(examine(text, load) for text in texts))
            for name, texts in extras.items()
            if name not in FOR_DEVELOPERS
        ),
        processors=processors(),
        cuda=_cuda(),
        cache=cache,
        data=_data(load),
        check=self_check(compiles if cache is not None and not cache.bytes else None),
    )


# Devices, caches and data -------------------------------------------------------------------


def _cuda() -> str:
    """The CUDA device, or why there is none."""
    try:
        reason = missing()
        if reason is not None:
            return f"none: {reason}"
        cupy = importlib.import_module("cupy")
        name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"]
        return name.decode() if isinstance(name, bytes) else str(name)
    except Exception as error:
        return f"none: CuPy fails ({error})"


def _cache() -> Cache | None:
    """The cache of compiled code; ``None`` if the compiler cannot be imported."""
    try:
        from fairshield.base import compiler
    except ImportError:
        return None
    folder = compiler.FOLDER
    older = [path for path in folder.parent.glob(f"{NAME}-*") if path != folder and path.is_dir()]
    return Cache(
        folder=str(folder),
        bytes=_size(folder),
        writable=os.access(folder, os.W_OK),
        older=len(older),
        older_bytes=sum(map(_size, older)),
    )


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _data(load: Load) -> Data:
    variable = os.environ.get(DATA)
    try:
        # Imported by name, because the library does not depend on the experiments.
        sources = load("fairshield_experiments.data.sources")
    except ImportError as error:
        detail = f"unknown, as {error.name} is missing: pip install '{NAME}[experiments]'"
        return Data(variable=variable, folder=variable, present=(), absent=(), detail=detail)
    folder = Path(variable).expanduser() if variable else sources.cache_directory()
    here: dict[str, bool] = {}
    for file in sources.FILES:
        path = folder / file.path
        there = path.is_file() and path.stat().st_size == file.size
        name = file.path.partition("/")[0]
        here[name] = here.get(name, True) and there
    return Data(
        variable=variable,
        folder=str(folder),
        present=tuple(name for name, there in here.items() if there),
        absent=tuple(name for name, there in here.items() if not there),
    )


# Self-check ---------------------------------------------------------------------------------


def self_check(compiles: Callable[[], None] | None = None) -> SelfCheck:
    """Make a small policy, decide a window that needs it, and verify its guarantee."""
    begun = perf_counter()
    if compiles is not None:
        compiles()
    try:
        detail = _use()
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
    seconds = perf_counter() - begun
    return SelfCheck(works=not detail, seconds=seconds, detail=detail, compiled=can_compile())


def _use() -> str:
    """Return what went wrong, in words; empty if nothing did."""
    prop, inputs = DemographicParity("0.2"), InputModel.agnostic({"a": 0.5, "b": 0.5})
    compiled = can_compile()
    policy = synthesize(prop, inputs, horizon=10, backend="auto" if compiled else "reference")
    shield = Shield(policy)
    for i in range(policy.horizon):
        # All of one group are proposed, and none of the other.
        shield.decide("ab"[i % 2], proposed=i % 2 == 0)
    if not prop.holds(shield.counts):
        return f"{prop} does not hold at the end of a window: {shield.counts}"
    if compiled and not verify(policy):
        return "the guarantee of a policy just made does not hold"
    return ""
