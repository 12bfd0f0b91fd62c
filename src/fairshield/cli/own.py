"""``import_property`` imports properties that ``--import`` names, never those of a file.

A policy file names its property.  The code of that property runs only if ``--import`` names it,
because a file may come from anywhere.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from typing import Any

import click

from fairshield.adapters.specfile import known_keys
from fairshield.spec import KINDS, Property, offered_kinds, parameters_of

_IMPORTS = "fairshield.imports"


def imports_of(ctx: click.Context) -> tuple[str, ...]:
    """The values of ``--import`` of the current command."""
    return tuple(ctx.meta.get(_IMPORTS, ()))


def _imported(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> None:
    ctx.meta[_IMPORTS] = names
    for name in names:
        try:
            import_property(name)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None


def import_property(name: str) -> type[Property]:
    """The property class that ``"module:Class"`` names; the current folder is searched, too."""
    where, _, what = name.partition(":")
    if not where or not what:
        raise ValueError(f"cannot read {name!r}: expected MODULE:CLASS, as in rules:Quota")
    found = getattr(_module(where), what, None)
    if not (isinstance(found, type) and issubclass(found, Property)):
        is_there = "is not a property" if found is not None else "is not there"
        known = _properties_of(sys.modules[where])
        has = f"it has {', '.join(known)}" if known else "it has no properties"
        raise ValueError(f"{what} of the module {where} {is_there}: {has}")
    if found not in KINDS.values():
        raise ValueError(
            f"{name} has no name for files: give it one, as in class {what}(Property, kind='quota')"
        )
    return found


def _module(name: str) -> Any:
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except Exception as error:  # a user's module may raise anything
        if isinstance(error, ModuleNotFoundError) and error.name in _ancestors(name):
            raise ValueError(
                f"no module {name!r}: it must be in the current folder, or installed"
            ) from None
        raise ValueError(
            f"the module {name!r} cannot be imported: {type(error).__name__}: {error}"
        ) from None


def _ancestors(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[:n]) for n in range(1, len(parts) + 1)}


def _properties_of(module: Any) -> list[str]:
    return sorted(
        name
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, Property)
        and value.__module__ == module.__name__
    )


def property_named(text: str, *, taking: str = "") -> str:
    """``text`` if it names a property that has the argument ``taking``; else raises."""
    known = [kind for kind in offered_kinds() if not taking or taking in parameters_of(kind)]
    if text in known:
        return text
    raise ValueError(
        f"{text!r} is not one of {', '.join(map(repr, known))}; a property of your own is "
        "brought along with --import MODULE:CLASS"
    )


def own_arguments(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> dict[str, Any]:
    """Arguments such as ``most=2`` by name; whole numbers and truth values are converted."""
    found: dict[str, Any] = {}
    for text in given:
        name, sign, value = (side.strip() for side in text.partition("="))
        if not sign or not name.isidentifier() or name in found:
            why = "it is given twice" if name in found else "expected NAME=VALUE, as in most=2"
            raise click.BadParameter(f"cannot read {text!r}: {why}", ctx, param)
        if name in {p.name for p in ctx.command.params}:
            flag = name.replace("_", "-")
            raise click.BadParameter(f"{name} has an option of its own, --{flag}", ctx, param)
        if name not in known_keys():
            raise click.BadParameter(f"no property that was imported takes {name}", ctx, param)
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text  # bounds are exact: "0.1" is not a floating-point number


import_option = click.option(
    "--import",
    "import",
    metavar="MODULE:CLASS",
    multiple=True,
    is_eager=True,
    expose_value=False,
    callback=_imported,
    help="A property of your own; the current folder is looked in, too. Repeatable.",
)
argument_option = click.option(
    "--argument",
    "arguments",
    metavar="NAME=VALUE",
    multiple=True,
    callback=own_arguments,
    help="What a property of your own takes. Repeatable.",
)
