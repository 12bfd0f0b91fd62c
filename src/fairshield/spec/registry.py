"""The registry of property classes, by the name that they have in files and options.

A class with a ``kind`` is registered when it is defined, so no other module has to name it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairshield.base.errors import InvalidValueError, called

if TYPE_CHECKING:
    from fairshield.spec.base import Property

KINDS: dict[str, type[Property]] = {}
"""Every property that was defined, in the order of definition."""


def register(cls: type[Property], kind: str) -> None:
    """Register a class under its kind; refuse a kind that another class has."""
    taken = KINDS.get(kind, cls)
    # A class of the same name may be defined anew, as when a notebook cell is run again.
    if (taken.__module__, taken.__qualname__) != (cls.__module__, cls.__qualname__):
        raise InvalidValueError(
            f"the kind {kind!r} is taken by {taken.__qualname__}: choose another"
        )
    KINDS[kind] = cls


def offered_kinds() -> list[str]:
    """The names that a person may ask for."""
    return [kind for kind, cls in KINDS.items() if cls.offered]


def parameters_of(kind: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of the property of this name."""
    return dict(inspect.signature(KINDS[kind]).parameters)


def property_from_dict(data: Mapping[str, Any]) -> Property:
    """The property that :meth:`Property.to_dict` described."""
    arguments = dict(data)
    kind = arguments.pop("kind", None)
    try:
        cls = KINDS[str(kind)]
    except KeyError:
        known = ", ".join(sorted(KINDS))
        raise InvalidValueError(
            f"unknown property {kind!r}: known are {known}; a property of your own must be "
            f"imported before a policy for it is loaded, with {called('import')}"
        ) from None
    try:
        return cls(**arguments)
    except TypeError as error:
        raise InvalidValueError(f"property {kind!r}: {error}") from None
