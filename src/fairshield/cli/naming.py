"""``option_of`` names arguments of the library as options, in remedies of its messages."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

_OTHERWISE = {"groups": "names", "names": "groups", "shadow": "policy", "policy": "shadow"}
"""Other names of arguments, for commands that have no option of the first name."""


def option_of(name: str, value: Any) -> str:
    """The option of the current command that stands for an argument, and a value of it.

    Where the command has no such option, or reads a spec file, the result is a key of that file.
    """
    option = _option(name)
    if option is None:
        return name if value is None else f"{name} = {_toml(value)}"
    flag = max(option.opts, key=len)
    if value is None:
        return flag
    if option.is_flag:
        return flag if value or not option.secondary_opts else option.secondary_opts[0]
    return f"{flag} {shlex.quote(_text(value))}"


def _option(name: str) -> click.Option | None:
    context = click.get_current_context(silent=True)
    known = {} if context is None else {p.name: p for p in context.command.params}
    found = known.get(name, known.get(_OTHERWISE.get(name, name)))
    if context is None or not isinstance(found, click.Option):
        return None
    typed = context.get_parameter_source(str(found.name)) is ParameterSource.COMMANDLINE
    return None if context.params.get("spec") is not None and not typed else found


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_text(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return str(value)
