"""Names of earlier versions: they still work, and warn until version 0.3.

:class:`OldModules` finds modules under the paths they had, :func:`old_names` what they exported.
:class:`Renamed` is an attribute under the name it had.  docs/renamed.md lists all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from operator import attrgetter
from types import ModuleType
from typing import Any


def warn_renamed(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Warn that ``old`` is called ``new`` now."""
    warnings.warn(
        f"{old} is called {new} since version 0.2: the old name goes with 0.3",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


class Renamed:
    """Renamed is an attribute under its old name: it reads the new one, and warns.

    Parameters
    ----------
    new
        What to write instead: a name, one below another as ``decisions.rows``, or an expression.
    read
        How to read it, where it is an expression.

    Examples
    --------
    >>> class Report:
    ...     paid = 0.3
    ...     cost_paid = Renamed("paid")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     Report().cost_paid, str(caught[0].message)[:44]
    (0.3, 'Report.cost_paid is called paid since versio')
    """

    def __init__(self, new: str, read: Callable[[Any], Any] | None = None) -> None:
        self.new, self._read = new, attrgetter(new) if read is None else read
        # The documentation of a class leaves out what is private.
        self.__doc__ = f"Earlier name of ``{new}``.\n\n:meta private:"

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        # Looked for, because before Python 3.12 a NamedTuple does not call __set_name__.
        attributes = (item for cls in owner.__mro__ for item in vars(cls).items())
        name = next(name for name, value in attributes if value is self)
        warn_renamed(f"{owner.__name__}.{name}", self.new)
        return self._read(instance)


def old_names(
    module: str, moved: Mapping[str, tuple[str, str]], *, stacklevel: int = 3
) -> Callable[[str], object]:
    """The ``__getattr__`` of a module that had other names.

    Parameters
    ----------
    module
        Its path.
    moved
        Where each old name, as ``periodic.PeriodicShield``, is found now: the path of a module and
        the name there.
    stacklevel
        Of the warning: 3 if the result is ``__getattr__`` itself, 4 if that calls it.
    """
    package, _, inside = module.partition(".")
    below = f"{inside}." if inside else ""

    def find(name: str) -> object:
        if below + name not in moved:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        path, new = moved[below + name]
        warn_renamed(f"{package}.{below}{name}", f"{path}.{new}", stacklevel=stacklevel)
        return getattr(import_module(path), new)

    return find


class OldModules(MetaPathFinder, Loader):
    """OldModules imports a module under the path it had in an earlier version.

    Parameters
    ----------
    moved
        New paths by old ones.  A module below an old path is looked for below the new one.
    """

    def __init__(self, moved: Mapping[str, str]) -> None:
        self.moved = moved
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The import specification of a module that has moved; ``None`` if this one has not."""
        new = self.new_path(fullname)
        return None if new is None else ModuleSpec(fullname, self, is_package=True)

    def new_path(self, old: str) -> str | None:
        """Where a module is now; ``None`` if it never was at ``old``."""
        if old in self.moved:
            return self.moved[old]
        parent, _, name = old.rpartition(".")
        above = self.new_path(parent) if parent else None
        return None if above is None else f"{above}.{name}"

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself, not a copy: a class is the same under both paths."""
        new = self.new_path(spec.name)
        assert new is not None
        warnings.warn(
            f"the module {spec.name} is {new} since version 0.2: the old path goes with 0.3",
            DeprecationWarning,
            stacklevel=2,  # warnings skip the frames of the import system
        )
        module = import_module(new)
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Execute nothing, as the module has been; restore what the import system changed in it."""
        assert module.__spec__ is not None
        module.__spec__ = self._specs.pop(module.__spec__.name)
