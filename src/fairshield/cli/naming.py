"""Arguments as the command line calls them, for the remedies in the library's messages."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import click

_OTHERWISE = {"groups": "names", "names": "groups", "shadow": "policy", "policy": "shadow"}
"""What an argument is called by commands that have no option of its name."""


def option_of(name: str, value: Any) -> str:
    """The option of the current command that stands for an argument, and a value of it.

    Where the command has none, the argument is named as in a specification.
    """
    option = _option(name)
    if option is None:
        return name if value is None else f"{name} = {_text(value)}"
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
    return found if isinstance(found, click.Option) else None


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_text(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return str(value)
