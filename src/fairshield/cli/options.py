"""Options that several commands share, and their values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from fairshield.base.groups import Unseen
from fairshield.cli.own import argument_option, import_option, property_named
from fairshield.periodic import PeriodicPolicy
from fairshield.records import ScoreCost
from fairshield.spec import offered_kinds

KINDS = tuple(PeriodicPolicy.kinds())

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Decorator = Callable[[Any], Any]

# Kinds of values ----------------------------------------------------------------------------


def reading(read: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that reads the text of an option; a ``ValueError`` says what is wrong with it."""

    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return read(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return callback


def pairs(text: str, convert: Callable[[str], T]) -> dict[str, T]:
    """``"a=1,b=2"`` as a mapping by group.

    >>> pairs("a=0.325,b=0.675", float)
    {'a': 0.325, 'b': 0.675}
    """
    found: dict[str, T] = {}
    for part in text.split(","):
        group, _, value = (side.strip() for side in part.rpartition("="))
        if not group:
            raise ValueError(f"cannot read {part!r}: name a group, as in a=...,b=...")
        if group in found:
            raise ValueError(f"group {group!r} appears twice: name each group once")
        try:
            found[group] = convert(value)
        except ValueError as error:
            raise ValueError(f"cannot read {part!r}: after '=', {error}") from None
    return found


def count(text: str) -> tuple[int, int]:
    """``"10:8"`` as (seen, accepted)."""
    try:
        seen, accepted = map(int, text.split(":"))
    except ValueError:
        raise ValueError(f"expected SEEN:ACCEPTED as in 10:8, got {text!r}") from None
    return seen, accepted


def share(text: str) -> float:
    """A number as text."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"expected a number as in 0.5, got {text!r}") from None


def numbers(text: str) -> tuple[int, ...]:
    """``"50,100"`` as whole numbers of at least 1."""
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = (0,)
    if min(found) < 1:
        raise ValueError(f"{text!r} is not a list of whole numbers from 1 on, as in 50,100")
    return found


def names(text: str) -> tuple[str, ...]:
    """``"a,b"`` as names."""
    return tuple(part.strip() for part in text.split(","))


def number_or(number: Callable[[str], float], *words: str) -> Callable[[str], Any]:
    """Reads a number, or one of some words."""

    def read(text: str) -> Any:
        try:
            return text if text in words else number(text)
        except ValueError:
            raise ValueError(f"{text!r} is neither a number nor {' or '.join(words)}") from None

    return read


counts_callback = reading(lambda text: pairs(text, count))
names_callback = reading(names)
numbers_callback = reading(numbers)
_shares_callback = reading(lambda text: pairs(text, share))


# Groups of options --------------------------------------------------------------------------


def combined(*decorators: Decorator) -> Callable[[F], F]:
    """A decorator that adds all of these options, in this order."""

    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


policy_path = click.argument("policy", type=click.Path(dir_okay=False, path_type=Path))
policy_argument = combined(policy_path, import_option)
json_option = click.option("--json", "as_json", is_flag=True, help="One line of JSON.")
unseen_option = click.option(
    "--unseen",
    metavar="refuse|follow|map:GROUP",
    default="refuse",
    show_default=True,
    callback=reading(Unseen.of),
    help="What to do with people of groups that the policy does not know.",
)
start_option = click.option(
    "--start",
    metavar="G=SEEN:ACC,...",
    callback=counts_callback,
    help="Counters before the first decision, as in a=10:8,b=20:14.",
)
checkpoint_option = click.option(
    "--checkpoint",
    "checkpoints",
    metavar="N",
    type=int,
    multiple=True,
    help="The property must hold after N decisions, too. Repeatable.",
)
property_options = combined(
    click.option(
        "--property",
        metavar="NAME",
        callback=reading(property_named),
        help=f"What must hold: {', '.join(offered_kinds())}.",
    ),
    click.option("--bound", metavar="NUMBER", help="Exact, as in 0.1 or 1/10."),
    click.option("--lower", metavar="NUMBER", help="Least rate (bounded-rates)."),
    click.option("--upper", metavar="NUMBER", help="Largest rate (bounded-rates)."),
    click.option(
        "--outcome",
        type=click.Choice(["0", "1"]),
        callback=reading(lambda text: text == "1"),
        help="Count only people with this outcome (bounded-rates).",
    ),
    click.option(
        "--two-sided/--one-sided",
        default=None,
        help="Either ratio of rates at least the bound, or the first group's rate at most bound "
        "times the second's; 0.8 is then not the four-fifths rule (disparate-impact).",
    ),
    click.option(
        "--min-support",
        metavar="N",
        type=int,
        help="Compare two groups only once both have N relevant people.",
    ),
    click.option(
        "--undefined",
        type=click.Choice(["bias-0", "rate-0"]),
        help="A group without relevant people: fair, or of rate 0.",
    ),
    argument_option,
    import_option,
)
horizon_option = click.option(
    "--horizon", metavar="N", type=int, help="Decisions in a window, at whose end it must hold."
)
period_option = click.option(
    "--period", metavar="N", type=int, help="Decisions in a period, at whose end it must hold."
)
bounds_option = click.option(
    "--bounds",
    metavar="L,U",
    callback=reading(lambda text: text if text in ("centred", "cheapest") else names(text)),
    help="static-bounded: two rates, centred or cheapest.  [default: centred]",
)
lookahead_option = click.option(
    "--lookahead", metavar="N", type=int, help="perpetual: periods to plan for.  [default: 2]"
)
seed_option = click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of the random numbers.",
)
periodic_options = combined(
    click.option(
        "--periodic",
        type=click.Choice(KINDS),
        help="Fair at the end of every period instead of one horizon.",
    ),
    period_option,
    click.option("--periods", metavar="N", type=int, help="exact: how many periods there are."),
    lookahead_option,
    bounds_option,
    click.option(
        "--fallback",
        type=click.Choice(["best-effort", "inactive"]),
        help="dynamic: where fairness cannot be guaranteed.  [default: best-effort]",
    ),
)
input_options = combined(
    click.option(
        "--groups",
        metavar="G=SHARE,...",
        callback=_shares_callback,
        help="Agnostic input model: only these shares are known.",
    ),
    click.option(
        "--outcomes",
        metavar="G=PROB,...",
        callback=_shares_callback,
        help="With --groups: probability of outcome 1.  [default: 0.5]",
    ),
    click.option(
        "--inputs",
        metavar="FILE",
        help="Estimate from records: columns group, proposed, cost, outcome "
        "or group, score, outcome.",
    ),
    click.option(
        "--cost",
        metavar="COST",
        callback=reading(number_or(float, *get_args(ScoreCost))),
        help="With scores: confidence or constant; with --groups: a number.",
    ),
    click.option(
        "--bins",
        metavar="N|none",
        callback=reading(number_or(int, "none")),
        help="Cost levels; none keeps every cost.  [default: 10 for scores]",
    ),
    click.option(
        "--smoothing",
        metavar="NUMBER",
        type=float,
        help="Imaginary people added to each group and proposal.  [default: 1]",
    ),
    click.option(
        "--names",
        metavar="A,B",
        callback=names_callback,
        help="The recorded groups, first one first.",
    ),
)


def examples(*lines: str) -> str:
    """The examples at the end of a help page; their lines are not wrapped."""
    title = "Example:" if len(lines) == 1 else "Examples:"
    return "\n".join(["\b", title, *(f"  {line}" for line in lines)])


def given(words: dict[str, Any]) -> dict[str, Any]:
    """The options that were used, the arguments of a property of one's own among them."""
    own = words.get("arguments") or {}
    used = {key: value for key, value in words.items() if value is not None and value != ()}
    return {key: value for key, value in used.items() if key != "arguments"} | own
