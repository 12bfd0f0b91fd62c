"""The errors and warnings of fairshield, one class per situation.

Each error is also the builtin a caller would expect, so ``except ValueError`` keeps working.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import UnionType
from typing import Any

Spelling = Callable[[str, Any], str]
"""How an argument and its value, ``None`` for none in particular, are written."""


def _in_python(name: str, value: Any) -> str:
    return f"{name}=" if value is None else f"{name}={value!r}"


_SPELLING: ContextVar[Spelling] = ContextVar("spelling", default=_in_python)


def argument(name: str, value: Any = None) -> str:
    """How a message spells the argument ``name`` when it tells the reader to pass it.

    In Python that is a keyword argument.  :func:`spelling` replaces it, as by a command's option.

    >>> argument("unseen"), argument("method", "long")
    ('unseen=', "method='long'")
    """
    return _SPELLING.get()(name, value)


def called(name: str) -> str:
    """The argument as :func:`argument` spells it, without the ``=``.

    >>> called("min_support")
    'min_support'
    """
    return argument(name).removesuffix("=")


@contextlib.contextmanager
def spelling(spell: Spelling) -> Iterator[None]:
    """Messages that are made within this context spell arguments as ``spell`` does."""
    token = _SPELLING.set(spell)
    try:
        yield
    finally:
        _SPELLING.reset(token)


class FairshieldError(Exception):
    """Base of all errors that fairshield raises on purpose."""


class InvalidValueError(FairshieldError, ValueError):
    """A value breaks a rule; the message names the value, the rule and the remedy."""


class InfeasibleError(FairshieldError, ValueError):
    """No shield can guarantee the property from these counters over this horizon."""


class UnknownGroupError(FairshieldError, KeyError):
    """A group that was not declared when the policy was made."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which would put the sentence in quotes.
        return str(self.args[0])


class WindowOverError(FairshieldError, RuntimeError):
    """All decisions of the window have been made."""


class OutcomePendingError(FairshieldError, RuntimeError):
    """The outcome of the last decision must be observed before the next decision."""


class UnexpectedOutcomeError(FairshieldError, RuntimeError):
    """An outcome for a decision that is not waiting for one."""


class ArtifactError(FairshieldError, ValueError):
    """A file is not a policy of this library, or not all of it."""


class MemoryLimitError(FairshieldError, MemoryError):
    """The tables would not fit into memory; raised before anything is allocated."""


class MissingExtraError(FairshieldError, ImportError):
    """An optional dependency is not installed; the message names the command that adds it."""


class OutcomesWarning(UserWarning):
    """Outcomes look as if those of rejected people were not known, and had been filled in."""


class VacuousWarning(UserWarning):
    """A guarantee promises nothing: its property can never bind."""


def check_kind(value: object, kind: type | UnionType, rule: str) -> None:
    """Refuse a value of another type; ``rule`` says what it must be and how to come by one."""
    if not isinstance(value, kind):
        raise InvalidValueError(f"{rule}, got {shown(value)}")


def shown(value: object) -> str:
    """A value as a part of a message: its ``repr``, shortened, and its type.

    >>> shown("dp"), shown(None)
    ("'dp' (str)", 'None')
    """
    text = " ".join(repr(value).split())
    cut = text if len(text) <= 60 else text[:59] + "…"
    return cut if value is None else f"{cut} ({type(value).__name__})"
