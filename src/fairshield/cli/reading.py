"""Options that say how records are written, for every command that reads records."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from fairshield.adapters.specfile import READING_KEYS, parse_reading
from fairshield.base.counts import Group
from fairshield.cli.options import combined, given, reading
from fairshield.periodic import PeriodicPolicy
from fairshield.policy import Policy
from fairshield.records import as_threshold, declared, read_number
from fairshield.records.lines import check_encoding
from fairshield.records.reading import FIELDS, FLAGS, THOUSANDS, Reading
from fairshield.records.tables import separator_of

Names = dict[str, tuple[str, ...]]


def columns(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> Names | None:
    """``group=sex,race`` and the like: the columns of each field, by field."""
    found: Names = {}
    for text in given:
        field, _, theirs = (side.strip() for side in text.partition("="))
        parts = tuple(part.strip() for part in theirs.split(","))
        if field not in FIELDS or not all(parts):
            raise click.BadParameter(
                f"cannot read {text!r}: expected FIELD=COLUMN, where FIELD is one of "
                f"{', '.join(FIELDS)}",
                ctx,
                param,
            )
        if field in found or (len(parts) > 1 and field != "group"):
            why = "is given twice" if field in found else "takes one column, only group takes more"
            raise click.BadParameter(f"{field} {why}: {text!r}", ctx, param)
        found[field] = parts
    return found or None


def words(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> Names | None:
    """``approved,granted`` (all fields) or ``outcome=repaid`` (one field): words by field."""
    found: Names = {}
    for text in given:
        field, _, theirs = (side.strip() for side in text.rpartition("="))
        parts = tuple(part.strip() for part in theirs.split(","))
        if field not in ("", *FLAGS) or not all(parts):
            raise click.BadParameter(
                f"cannot read {text!r}: expected WORD,... or FIELD=WORD,..., where FIELD is one "
                f"of {', '.join(FLAGS)}",
                ctx,
                param,
            )
        found[field] = (*found.get(field, ()), *parts)
    return found or None


def threshold(text: str) -> float:
    """A number, with a decimal point or comma.

    >>> threshold("640,5"), threshold("0.35")
    (640.5, 0.35)
    """
    number = read_number(text)
    if number != number and not THOUSANDS.fullmatch(text):
        number = read_number(text.replace(",", "."))
    if number != number:
        raise ValueError(f"expected a number as in 640 or 640.5, got {text!r}")
    return as_threshold(number)


def given_reading(reading: Reading) -> dict[str, list[str]]:
    """The options of a reading that were used, by name, with their values as typed."""
    found: dict[str, list[str]] = {}
    for name, option in (("columns", "column"), ("yes_words", "yes-word"), ("no_words", "no-word")):
        for field, parts in getattr(reading, name).items():
            named = f"{field}=" if field else ""
            found.setdefault(option, []).append(f"{named}{','.join(parts)}")
    for name in ("format", "separator", "decimal", "encoding", "threshold"):
        value = getattr(reading, name)
        if value is not None:
            found[name] = ["tab" if value == "\t" else str(value)]
    return found


def groups_known(
    names: tuple[str, ...] | None,
    policy: Policy | PeriodicPolicy | None,
    start: dict[str, Any] | None,
) -> tuple[Group, ...] | None:
    """The groups in order, as far as known before the log is read."""
    if names is not None:
        return tuple(declared(name, policy.groups if policy else ()) for name in names)
    if policy is not None:
        return policy.groups
    return None if start is None else tuple(start)


reading_options = combined(
    click.option(
        "--column",
        "columns",
        metavar="FIELD=COLUMN",
        multiple=True,
        callback=columns,
        help="Read a field from a column of another name; group=sex,race from several. Repeatable.",
    ),
    click.option(
        "--format",
        type=click.Choice(["jsonl", "csv"]),
        help="Default: csv for files named .csv or .tsv, else jsonl.",
    ),
    click.option(
        "--separator",
        metavar="SIGN",
        callback=reading(separator_of),
        help="Of the columns of a CSV: a sign, or tab.  [default: the one in the header]",
    ),
    click.option(
        "--decimal",
        metavar=".|,",
        type=click.Choice([".", ","]),
        help="What stands before decimals.  [default: a point, or as can be seen]",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        callback=reading(check_encoding),
        help="Of the bytes, as in cp1252.  [default: utf-8]",
    ),
    click.option(
        "--yes-word",
        "yes_words",
        metavar="[FIELD=]WORD,...",
        multiple=True,
        callback=words,
        help="What means yes in proposed, accepted and outcome, or in one FIELD. Repeatable.",
    ),
    click.option(
        "--no-word",
        "no_words",
        metavar="[FIELD=]WORD,...",
        multiple=True,
        callback=words,
        help="What means no. Repeatable.",
    ),
    click.option(
        "--threshold",
        metavar="NUMBER",
        callback=reading(threshold),
        help="Of a score instead of proposed: accept from here on.  [default: 0.5, if all lie "
        "within 0 and 1]",
    ),
)


def reading_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: the command has the options above, and gets them as argument ``reading``."""

    @functools.wraps(function)
    def collected(*arguments: Any, **options: Any) -> Any:
        said = {key: options.pop(key) for key in READING_KEYS}
        return function(*arguments, reading=parse_reading(given(said)), **options)

    return reading_options(collected)
