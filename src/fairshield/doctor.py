"""What is installed, what works, and what is missing: looked at, not assumed.

Everything is tried by itself, so that one broken package does not hide the others.
"""

from __future__ import annotations

import importlib
import importlib.metadata as metadata
import importlib.util
import os
import platform
import re
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from fairshield._version import __version__
from fairshield.extras import can_compile

State = Literal["ok", "missing", "old", "broken"]
Load = Callable[[str], Any]

NAME = "fairshield"
FOR_DEVELOPERS = frozenset({"dev", "docs"})
"""Extras for those who change the library; others can do without looking at them."""
DATA = "FAIRSHIELD_DATA"
_MODULES = {
    "cupy-cuda12x": "cupy",
    "mlflow-skinny": "mlflow",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry.exporter.otlp.proto.http",
    "opentelemetry-sdk": "opentelemetry.sdk",
    "scikit-learn": "sklearn",
}
"""What distributions are imported as, where that is not their name."""
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([\w,\s-]+)\])?\s*\(?([^;)]*)\)?\s*(?:;\s*(.*))?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One requirement and what was found of it.

    ``needs`` are the versions that will do, as written; ``detail`` says what is wrong.
    """

    name: str
    needs: str
    state: State
    version: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """An optional part: complete if all of its packages are there."""

    name: str
    packages: tuple[Package, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of packages that are not installed."""
        return tuple(package.name for package in self.packages if package.state == "missing")

    @property
    def remedy(self) -> str:
        """The command that completes it."""
        return f"pip install '{NAME}[{self.name}]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Where compiled code is kept; ``older`` are folders of earlier versions beside it."""

    folder: str
    bytes: int
    writable: bool
    older: int
    older_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """The raw data sets of the experiments: where they are looked for, and which are there."""

    variable: str | None
    folder: str | None
    present: tuple[str, ...]
    absent: tuple[str, ...]
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfCheck:
    """A policy made, used and verified; ``detail`` says what went wrong.

    Where nothing can be compiled, it is made by the reference and used; ``compiled`` is false.
    """

    works: bool
    seconds: float
    detail: str = ""
    compiled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """Everything that was found."""

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
        processors=_processors(),
        cuda=_cuda(),
        cache=cache,
        data=_data(load),
        check=self_check(compiles if cache is not None and not cache.bytes else None),
    )


# Packages -----------------------------------------------------------------------------------


def requirements() -> tuple[list[str], dict[str, list[str]]]:
    """What the library needs, and each extra; from its metadata, or in a checkout its sources."""
    try:
        return split(metadata.requires(NAME) or [])
    except metadata.PackageNotFoundError:
        source = Path(__file__).parents[2] / "pyproject.toml"
    try:
        project = tomllib.loads(source.read_text("utf-8"))["project"]
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return [], {}
    return split(
        [
            *project["dependencies"],
            *(
                f"{text}{' and' if ';' in text else ';'} extra == '{extra}'"
                for extra, texts in project["optional-dependencies"].items()
                for text in texts
            ),
        ]
    )


def split(texts: Iterable[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Requirements by extra, those that do not concern this machine left out.

    An extra that is made of others has their requirements.

    >>> split(["numpy>=1.26", "rich>=13; extra == 'cli'", "fairshield[cli]; extra == 'all'"])
    (['numpy>=1.26'], {'cli': ['rich>=13'], 'all': ['rich>=13']})
    """
    core: list[str] = []
    extras: dict[str, list[str]] = {}
    for text in texts:
        plain, _, marker = text.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
        if extra is not None:
            extras.setdefault(extra[1], [])
        if _concerns_us(marker):
            (core if extra is None else extras[extra[1]]).append(plain.strip())
    return core, {name: _expanded(name, extras, ()) for name in extras}


def _expanded(name: str, extras: Mapping[str, list[str]], within: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for text in extras.get(name, []):
        matched = _REQUIREMENT.match(text)
        assert matched is not None
        if matched[1].lower() != NAME:
            found.append(text)
            continue
        for other in (matched[2] or "").split(","):
            if other.strip() not in within:
                found += _expanded(other.strip(), extras, (*within, name))
    return list(dict.fromkeys(found))


def _concerns_us(marker: str) -> bool:
    """Whether the conditions on the machine, all of which must hold, hold here."""
    here = {"sys_platform": sys.platform, "platform_machine": platform.machine()}
    for name, sign, value in re.findall(r"(\w+)\s*(==|!=)\s*['\"]([^'\"]+)['\"]", marker):
        if name in here and (here[name] == value) != (sign == "=="):
            return False
    return True


def examine(requirement: str, load: Load) -> Package:
    """Look for a package, at its version, and whether it can be imported."""
    matched = _REQUIREMENT.match(requirement)
    assert matched is not None
    name, needs = matched[1], matched[3].strip()
    module = _MODULES.get(name, name.replace("-", "_"))
    try:
        version: str | None = metadata.version(name)
    except metadata.PackageNotFoundError:
        version = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = load(module)
    except ModuleNotFoundError as error:
        # Not itself, but something it needs, is a fault of what is installed.
        itself = error.name is not None and (module + ".").startswith(f"{error.name}.")
        if version is None and itself:
            return Package(name=name, needs=needs, state="missing")
        return _broken(name, needs, version, f"cannot be imported: {error}")
    except Exception as error:
        return _broken(name, needs, version, f"cannot be imported: {error or type(error).__name__}")
    found = version or getattr(loaded, "__version__", None)
    if found is not None and not satisfies(str(found), needs):
        detail = f"{found} is installed, {needs} is needed: {NAME} was not tried with it"
        return Package(name=name, needs=needs, state="old", version=found, detail=detail)
    return Package(name=name, needs=needs, state="ok", version=found)


def _broken(name: str, needs: str, version: str | None, detail: str) -> Package:
    return Package(name=name, needs=needs, state="broken", version=version, detail=detail)


def satisfies(version: str, needs: str) -> bool:
    """Whether a version is among those needed.

    >>> satisfies("2.1.0", ">=1.26"), satisfies("1.9", ">=1.26,<3")
    (True, False)
    >>> satisfies("2.13.0+cpu", "==2.13.0")
    True
    """
    found = _release(version)
    for sign, wanted in re.findall(r"(>=|<=|==|!=|<|>|~=)\s*([\w.*+!-]+)", needs):
        other = _release(wanted)
        width = max(len(found), len(other))
        ours, theirs = ((*r, *[0] * (width - len(r))) for r in (found, other))
        fits = {
            ">=": ours >= theirs,
            "<=": ours <= theirs,
            "==": ours == theirs,
            "!=": ours != theirs,
            "<": ours < theirs,
            ">": ours > theirs,
            "~=": ours >= theirs and ours[: len(other) - 1] == theirs[: len(other) - 1],
        }
        if not fits[sign]:
            return False
    return True


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a release, without what follows them."""
    matched = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in matched[0].split(".")) if matched else ()


# Surroundings -------------------------------------------------------------------------------


def _processors() -> int:
    from fairshield.synthesis import processors

    return processors()


def _cuda() -> str:
    """The device, or why there is none."""
    from fairshield.synthesis import cuda

    try:
        reason = cuda.missing()
        if reason is not None:
            return f"none: {reason}"
        cupy = importlib.import_module("cupy")
        name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"]
        return name.decode() if isinstance(name, bytes) else str(name)
    except Exception as error:
        return f"none: CuPy fails ({error})"


def _cache() -> Cache | None:
    """``None`` if the compiler cannot be loaded, of which the packages tell."""
    try:
        from fairshield import compiler
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
        # By name: the library does without the experiments.
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


# Whether it works ---------------------------------------------------------------------------


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
    """What went wrong; nothing if nothing did."""
    from fairshield.inputs import InputModel
    from fairshield.runtime.shield import Shield
    from fairshield.spec import DemographicParity
    from fairshield.synthesis import synthesize
    from fairshield.verify import verify

    prop, inputs = DemographicParity("0.2"), InputModel.agnostic({"a": 0.5, "b": 0.5})
    compiled = can_compile()
    policy = synthesize(prop, inputs, horizon=10, backend="auto" if compiled else "reference")
    shield = Shield(policy)
    for i in range(policy.horizon):
        # All of one group are to be accepted and none of the other.
        shield.decide("ab"[i % 2], proposed=i % 2 == 0)
    if not prop.holds(shield.counts):
        return f"{prop} does not hold at the end of a window: {shield.counts}"
    if compiled and not verify(policy):
        return "the guarantee of a policy just made does not hold"
    return ""
