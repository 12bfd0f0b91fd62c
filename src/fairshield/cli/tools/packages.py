"""Package and Extra say what the library requires, and what of it is installed."""

from __future__ import annotations

import importlib.metadata as metadata
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

State = Literal["ok", "missing", "old", "broken"]
Load = Callable[[str], Any]

NAME = "fairshield"
_MODULES = {
    "cupy-cuda12x": "cupy",
    "mlflow-skinny": "mlflow",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry.exporter.otlp.proto.http",
    "opentelemetry-sdk": "opentelemetry.sdk",
    "scikit-learn": "sklearn",
}
"""Modules of distributions that have another name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """Package is one requirement, and what was found of it.

    ``needs`` are the versions that will do, as written; ``detail`` says what is wrong.
    """

    name: str
    needs: str
    state: State
    version: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """Extra is an optional part, complete if all of its packages are installed."""

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


# What is needed -----------------------------------------------------------------------------


def requirements() -> tuple[list[str], dict[str, list[str]]]:
    """Return what the library needs, and each extra, by its metadata or a checkout's sources."""
    try:
        names = metadata.metadata(NAME).get_all("Provides-Extra") or []
        return split(metadata.requires(NAME) or [], names)
    except metadata.PackageNotFoundError:
        source = Path(__file__).parents[4] / "pyproject.toml"
    try:
        project = tomllib.loads(source.read_text("utf-8"))["project"]
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return [], {}
    optional = project["optional-dependencies"]
    of_extras = [_of_extra(text, extra) for extra, texts in optional.items() for text in texts]
    return split([*project["dependencies"], *of_extras], optional)


def _of_extra(text: str, extra: str) -> str:
    """A requirement of an extra, as the metadata of a distribution writes it."""
    needed, condition = Requirement(text), f"extra == '{extra}'"
    needed.marker = Marker(
        condition if needed.marker is None else f"({needed.marker}) and {condition}"
    )
    return str(needed)


def split(texts: Iterable[str], extras: Iterable[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Requirements by extra, those that do not concern this machine left out.

    An extra that is made of others has their requirements.

    >>> texts = ["numpy>=1.26", "rich>=13; extra == 'cli'", "fairshield[cli]; extra == 'all'"]
    >>> split(texts, ["cli", "all"])
    (['numpy>=1.26'], {'cli': ['rich>=13'], 'all': ['rich>=13']})
    """
    found = [Requirement(text) for text in texts]
    core = [needed for needed in found if _concerns(needed, "")]
    by_extra = {
        name: [needed for needed in found if needed not in core and _concerns(needed, name)]
        for name in extras
    }
    return [_plain(needed) for needed in core], {
        name: _expanded(name, by_extra, ()) for name in by_extra
    }


def _concerns(needed: Requirement, extra: str) -> bool:
    return needed.marker is None or needed.marker.evaluate({"extra": extra})


def _plain(needed: Requirement) -> str:
    """A requirement without its conditions."""
    plain = Requirement(str(needed))
    plain.marker = None
    return str(plain)


def _expanded(
    name: str, extras: Mapping[str, list[Requirement]], within: tuple[str, ...]
) -> list[str]:
    found: list[str] = []
    for needed in extras.get(name, []):
        if canonicalize_name(needed.name) != NAME:
            found.append(_plain(needed))
            continue
        for other in sorted(needed.extras):
            if other not in within:
                found += _expanded(other, extras, (*within, name))
    return list(dict.fromkeys(found))


# What is installed --------------------------------------------------------------------------


def examine(requirement: str, load: Load) -> Package:
    """Find the version of a package, and whether it can be imported."""
    needed = Requirement(requirement)
    name, needs = needed.name, str(needed.specifier)
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
        # If a module that the package needs is missing, the package is broken, not missing.
        itself = error.name is not None and (module + ".").startswith(f"{error.name}.")
        if version is None and itself:
            return Package(name=name, needs=needs, state="missing")
        return _broken(name, needs, version, f"cannot be imported: {error}")
    except Exception as error:
        return _broken(name, needs, version, f"cannot be imported: {error or type(error).__name__}")
    found = version or getattr(loaded, "__version__", None)
    if found is not None and not satisfies(str(found), needed.specifier):
        detail = f"{found} is installed, {needs} is needed: {NAME} was not tried with it"
        return Package(name=name, needs=needs, state="old", version=found, detail=detail)
    return Package(name=name, needs=needs, state="ok", version=found)


def _broken(name: str, needs: str, version: str | None, detail: str) -> Package:
    return Package(name=name, needs=needs, state="broken", version=version, detail=detail)


def satisfies(version: str, needs: SpecifierSet) -> bool:
    """Whether a version is among those needed.

    >>> satisfies("2.1.0", SpecifierSet(">=1.26")), satisfies("1.9", SpecifierSet(">=1.26,<3"))
    (True, False)
    >>> satisfies("2.13.0+cpu", SpecifierSet("==2.13.0"))
    True
    """
    try:
        return needs.contains(version, prereleases=True)
    except InvalidVersion:
        return False
