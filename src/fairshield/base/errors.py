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
    """FairshieldError is the base of all errors that fairshield raises on purpose."""


class InvalidValueError(FairshieldError, ValueError):
    """InvalidValueError says that a value breaks a rule.

    The message names the value, the rule and the remedy.
    """


class InfeasibleError(FairshieldError, ValueError):
    """InfeasibleError says that no shield can guarantee the property.

    It cannot be guaranteed from these counters over this horizon.
    """


class UnknownGroupError(FairshieldError, KeyError):
    """UnknownGroupError says that a group was not declared when the policy was made."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which would put the sentence in quotes.
        return str(self.args[0])


class WindowOverError(FairshieldError, RuntimeError):
    """WindowOverError says that all decisions of the window have been made."""


class OutcomePendingError(FairshieldError, RuntimeError):
    """OutcomePendingError says that the outcome of the last decision must be observed first."""


class UnexpectedOutcomeError(FairshieldError, RuntimeError):
    """UnexpectedOutcomeError says that the decision is not waiting for an outcome."""


class ArtifactError(FairshieldError, ValueError):
    """ArtifactError says that a file is not a policy of this library, or not all of it."""


class MemoryLimitError(FairshieldError, MemoryError):
    """MemoryLimitError says that the tables would not fit into memory.

    It is raised before anything is allocated.
    """


class MissingExtraError(FairshieldError, ImportError):
    """MissingExtraError says that an optional dependency is not installed.

    The message names the command that installs it.
    """


class OutcomesWarning(UserWarning):
    """OutcomesWarning says that outcomes of rejected people seem to have been filled in."""


class VacuousWarning(UserWarning):
    """VacuousWarning says that a guarantee promises nothing: its property can never bind."""


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
