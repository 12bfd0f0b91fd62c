"""``fairshield compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from fairshield.cli.options import (
    bounds_option,
    examples,
    format_option,
    given,
    input_options,
    json_option,
    lookahead_option,
    names,
    period_option,
    property_options,
    reading,
    seed_option,
)
from fairshield.cli.output import print_json, print_table, progress_bar
from fairshield.cli.stream import blamed_on
from fairshield.errors import InvalidValueError
from fairshield.inputs import InputModel
from fairshield.plots import plot_periods, require_matplotlib
from fairshield.records import Format, format_of, open_lines, read_records
from fairshield.spec import Property
from fairshield.specfile import override, parse_inputs, parse_property, read_spec


@click.command(
    epilog=examples(
        "fairshield compare --property demographic-parity --bound 0.1 --period 50 --periods 10 \\",
        "    --groups a=0.325,b=0.675 --runs 200 --plot compare.png",
        "fairshield compare loans.toml --log requests.csv --shields dynamic,perpetual --json",
    )
)
@click.argument("spec", metavar="[SPEC.toml]", required=False)
@property_options
@period_option
@click.option(
    "--periods",
    metavar="N",
    type=click.IntRange(min=1),
    help="Periods in a run.  [default: 10]",
)
@click.option(
    "--shields",
    metavar="KIND,...",
    callback=reading(names),
    help="Of static-fair, static-bounded, dynamic, inactive, exact, perpetual.  "
    "[default: all that the property allows, without inactive]",
)
@bounds_option
@lookahead_option
@input_options
@click.option(
    "--runs", metavar="N", type=click.IntRange(min=1), default=100, show_default=True,
    help="Simulated runs.",
)  # fmt: skip
@seed_option
@click.option("--log", metavar="FILE", help="Recorded requests instead of simulated ones.")
@format_option
@click.option(
    "--plot", metavar="PNG", type=click.Path(dir_okay=False, path_type=Path),
    help="Where to draw the comparison.",
)  # fmt: skip
@json_option
def compare(
    spec: str | None,
    shields: tuple[str, ...] | None,
    runs: int,
    seed: int,
    log: str | None,
    format: Format | None,
    plot: Path | None,
    as_json: bool,
    **words: Any,
) -> None:
    """Run all periodic shields on the same streams.

    Simulated from the input model, or recorded in a file and cut into runs of --periods periods.
    Shows in how many runs each was fair at the end of every period and met the condition of its
    theorem, whom it overruled and at what cost, in all and by period, and its worst bias.
    """
    from fairshield.periodic.compare import compare as compare_policies
    from fairshield.periodic.compare import make_policies

    if plot is not None:
        require_matplotlib()
    said = override({} if spec is None else read_spec(spec), given(words))
    if "period" not in said:
        raise InvalidValueError("no period: say how long periods are, as in --period 50")
    prop, inputs = parse_property(said), parse_inputs(said)
    period, periods = said["period"], said.get("periods", 10)
    options = {key: said[key] for key in ("lookahead", "bounds") if key in said}
    policies = make_policies(prop, inputs, period=period, periods=periods, kinds=shields, **options)
    streams = _streams(prop, inputs, period, periods, runs, seed, log, format)
    with progress_bar("comparing") as progress:
        found = compare_policies(policies, streams, progress=progress)
    if as_json:
        print_json(found.to_dict() | {"seed": None if log else seed, "log": log})
    else:
        print_comparison(found, f"recorded in {log}" if log else f"seed {seed}")
    if plot is not None:
        plot_periods(found, plot)


def _streams(
    prop: Property, inputs: InputModel, period: int, periods: int, runs: int, seed: int,
    log: str | None, format: Format | None,
) -> Any:  # fmt: skip
    from fairshield.periodic.runs import Streams

    if log is None:
        rng = np.random.default_rng(seed)
        return Streams.drawn(prop, inputs, period=period, periods=periods, runs=runs, rng=rng)
    with open_lines(log) as lines, blamed_on(log):
        records = read_records(lines, format or format_of(log))
        return Streams.recorded(records, prop, inputs.groups, period * periods)


def print_comparison(found: Any, source: str) -> None:
    """A comparison for people."""
    click.echo(
        f"{found.prop} after every {found.period} decisions, {found.periods} periods, "
        f"{found.runs:,} runs, {source}\n"
    )
    header = [
        "",
        "fair at every end",
        "condition met",
        "overruled",
        "cost",
        "worst bias",
        "largest",
    ]
    print_table(header, [_row(row) for row in found.rows])
    click.echo("\nCost by period")
    by_period = [
        [row.name, *(f"{mean.value:.2f}" for mean in row.cost_by_period)] for row in found.rows[1:]
    ]
    print_table(["", *map(str, range(1, found.periods + 1))], by_period)
    click.echo("\nMeans ± standard error; shares with 95 % intervals.")
    for name, why in found.left_out.items():
        click.echo(f"{name} was left out: {why}")


def _row(row: Any) -> list[str]:
    return [
        row.name,
        _share(row.fair),
        row.promise if row.condition is None else _share(row.condition),
        _mean(row.overruled, 2),
        _mean(row.cost, 2),
        _mean(row.worst_bias, 4),
        f"{row.largest_bias:.4g}",
    ]


def _share(share: Any) -> str:
    return f"{share.value:.1%} ({100 * share.low:.1f}–{100 * share.high:.1f})"


def _mean(mean: Any, digits: int) -> str:
    error = "" if mean.error is None else f" ± {mean.error:.{digits}f}"
    return f"{mean.value:.{digits}f}{error}"
