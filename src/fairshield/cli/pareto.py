"""``fairshield pareto``."""

from __future__ import annotations

import csv
import io
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import click

from fairshield.adapters.specfile import parse_inputs, parse_property, parse_start
from fairshield.analysis.pareto import Pareto, Trade
from fairshield.analysis.pareto import pareto as trade_off
from fairshield.base.errors import InvalidValueError
from fairshield.cli.options import (
    examples,
    given,
    input_options,
    json_option,
    reading,
    start_option,
)
from fairshield.cli.output import check_target, print_json, print_table, progress_bar
from fairshield.cli.own import argument_option, import_option, property_named
from fairshield.cli.reading import reading_options
from fairshield.reports.plots import plot_pareto, require_matplotlib
from fairshield.spec import exact, offered_kinds, parameters_of

_BOUNDED = [kind for kind in offered_kinds() if "bound" in parameters_of(kind)]
_OF_PROPERTY = ("two_sided", "min_support", "undefined")
_MOST = 1000
"""Bounds of one curve."""
_SHOWN = 0.5e-4
"""The least probability that is not shown as 0."""


def bounds(text: str) -> tuple[Fraction, ...]:
    """``"0.02:0.1:0.04"`` or ``"1/50,0.1"`` as exact numbers.

    >>> bounds("0.02:0.1:0.04")
    (Fraction(1, 50), Fraction(3, 50), Fraction(1, 10))
    """
    if ":" not in text:
        return tuple(exact(part.strip(), "a bound") for part in text.split(","))
    parts = [exact(part.strip(), "a bound") for part in text.split(":")]
    if len(parts) != 3 or parts[0] > parts[1] or not parts[2]:
        raise ValueError(f"expected FIRST:LAST:STEP as in 0.02:0.3:0.02, got {text!r}")
    first, last, step = parts
    n = (last - first) // step + 1
    if n > _MOST:
        raise ValueError(f"{text!r} are {n:,} bounds, at most {_MOST:,}: take a larger step")
    return tuple(first + i * step for i in range(n))


@click.command(
    epilog=examples(
        "fairshield pareto --property demographic-parity --bounds 0.02:0.3:0.02 \\",
        "    --horizon 50 --horizon 100 --groups a=0.325,b=0.675 -o pareto.png",
        "fairshield pareto --property equal-opportunity --horizon 40 --inputs recorded.csv --csv",
    )
)
@click.option(
    "--property",
    metavar="NAME",
    callback=reading(partial(property_named, taking="bound")),
    default="demographic-parity",
    show_default=True,
    help=f"What must hold: {', '.join(_BOUNDED)}.",
)
@click.option(
    "--bounds",
    metavar="FIRST:LAST:STEP",
    default="0.02:0.3:0.02",
    show_default=True,
    callback=reading(bounds),
    help="The bounds, exact; or a list, as in 0.05,0.1,1/3.",
)
@click.option(
    "--horizon",
    "horizons",
    metavar="N",
    type=click.IntRange(min=1),
    multiple=True,
    required=True,
    help="Decisions in a window. Repeatable.",
)
@click.option(
    "--two-sided/--one-sided", default=None, help="Either ratio, or first group to second."
)
@click.option(
    "--min-support", metavar="N", type=int, help="Bind only once both groups have so many people."
)
@click.option("--undefined", type=click.Choice(["bias-0", "rate-0"]), help="A group unseen.")
@argument_option
@import_option
@start_option
@input_options
@reading_options
@click.option(
    "--interventions", is_flag=True, help="Count people overruled also where that takes long."
)
@click.option(
    "-o",
    "--output",
    metavar="FILE.png",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw a picture.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values.")
@json_option
def pareto(
    property: str,
    bounds: tuple[Fraction, ...],
    horizons: tuple[int, ...],
    interventions: bool,
    output: Path | None,
    as_csv: bool,
    as_json: bool,
    **words: Any,
) -> None:
    """Show what each bound costs.

    The least expected cost of a window for a range of bounds, and how many windows would end
    unfair without a shield: a picture for those who have to choose.
    """
    if as_csv and as_json:
        raise InvalidValueError("--csv and --json are two ways to write the same: choose one")
    chosen = given(words)
    own = words["arguments"]
    said = {key: chosen.pop(key) for key in (*_OF_PROPERTY, *own) if key in chosen}
    if output is not None:
        require_matplotlib()
        check_target(output)
    inputs = parse_inputs(chosen)
    with progress_bar("pricing") as progress:
        found = trade_off(
            lambda bound: parse_property({"property": property, "bound": str(bound)} | said),
            inputs,
            bounds=bounds,
            horizons=horizons,
            start=parse_start(chosen, inputs.groups),
            interventions=interventions,
            progress=progress,
        )
    if output is not None:
        plot_pareto(found, output)
    if as_json:
        print_json(found.to_dict())
    elif as_csv:
        click.echo(_csv(found), nl=False)
    else:
        _print(found)
    if output is not None and not (as_json or as_csv):
        click.echo(f"\nPicture: {output}")


def _print(found: Pareto) -> None:
    exempt = any(row.exempt is not None and row.exempt >= _SHOWN for row in found.rows)
    balanced = any(row.balanced is not None for row in found.rows)
    header = ["bound", "decisions", "expected cost", "overruled", "unfair without shield"]
    knees = {horizon: found.knee(horizon) for horizon in found.horizons}
    rows = [
        _row(row, row is knees[row.horizon], exempt=exempt, balanced=balanced) for row in found.rows
    ]
    columns = [*(["exempt"] if exempt else []), *(["enough for Static-BW"] if balanced else [])]
    print_table([*header, *columns, ""], rows)
    if exempt:
        click.echo("\nexempt: so few people come that the bound binds nobody, shield or not.")
    if balanced:
        click.echo(
            "\nenough for Static-BW: how probable it is that both groups have 1/bound people, "
            "rounded up, who\ncount, without which a Static-BW shield promises nothing of a period."
        )


def _row(row: Trade, knee: bool, *, exempt: bool, balanced: bool) -> list[str]:
    about = "" if row.exact else "about "
    return [
        str(row.bound) if row.bound.denominator == 1 else f"{float(row.bound):.4g}",
        f"{row.horizon:,}",
        f"{about}{row.expected_cost:.5g}" if row.expected_cost < float("inf") else "infeasible",
        "" if row.overruled is None else f"{row.overruled:.4g}",
        _chance(row.unfair_unshielded),
        *([_chance(row.exempt)] if exempt else []),
        *([_chance(row.balanced)] if balanced else []),
        "knee" if knee else _note(row),
    ]


def _chance(probability: float | None) -> str:
    return "" if probability is None else f"{probability:.2%}"


def _note(row: Trade) -> str:
    if row.exempt is not None and row.exempt >= 1 - _SHOWN:
        return "binds nobody"
    return "nothing to do" if row.free else ""


def _csv(found: Pareto) -> str:
    text = io.StringIO()
    rows = [row.to_dict() for row in found.rows]
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
