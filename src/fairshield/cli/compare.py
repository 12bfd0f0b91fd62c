"""``fairshield compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from fairshield.adapters.specfile import (
    override,
    parse_bounds,
    parse_inputs,
    parse_period,
    parse_property,
    parse_reading,
    parse_start,
    read_spec,
)
from fairshield.base.errors import InvalidValueError
from fairshield.cli.options import (
    bounds_option,
    examples,
    given,
    input_options,
    json_option,
    lookahead_option,
    names,
    period_option,
    property_options,
    reading,
    seed_option,
    start_option,
)
from fairshield.cli.output import (
    check_target,
    number_of,
    positions,
    print_json,
    print_table,
    progress_bar,
)
from fairshield.cli.reading import reading_options
from fairshield.cli.stream import blamed_on
from fairshield.inputs import InputModel
from fairshield.periodic.compare import Mean, PeriodicComparison, Row, Share, make_policies
from fairshield.periodic.compare import compare as compare_policies
from fairshield.periodic.cumulative import compared_kinds
from fairshield.periodic.runs import Streams
from fairshield.records.reading import Reading
from fairshield.reports.plots import plot_periods, require_matplotlib, sparkline, tenths
from fairshield.spec import Property

OFFERED = compared_kinds()
VARIANTS = [name for name, one in OFFERED.items() if one.variant]
OPTIONS = {name for one in OFFERED.values() for name in one.kind.option_names()} - {
    "periods", *(name for one in OFFERED.values() for name in one.options)
}  # fmt: skip
"""Options of kinds that a specification gives all shields; variants differ in the others."""


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
    help=f"Of {', '.join(OFFERED)}.  "
    f"[default: all that the property allows, without {', '.join(VARIANTS)}]",
)
@bounds_option
@lookahead_option
@start_option
@input_options
@reading_options
@click.option(
    "--runs", metavar="N", type=click.IntRange(min=1), help="Simulated runs.  [default: 100]"
)
@seed_option
@click.option("--log", metavar="FILE", help="Recorded requests instead of simulated ones.")
@click.option(
    "--plot", metavar="PNG", type=click.Path(dir_okay=False, path_type=Path),
    help="Where to draw the comparison.",
)  # fmt: skip
@json_option
def compare(
    spec: str | None,
    shields: tuple[str, ...] | None,
    runs: int | None,
    seed: int,
    log: str | None,
    plot: Path | None,
    as_json: bool,
    **words: Any,
) -> None:
    """Run all periodic shields on the same streams.

    Simulated from the input model, or recorded in a file, which is cut into runs of --periods
    periods, each begun anew; requests left over at its end are not used.
    Shows in how many runs each was fair at the end of every period and met the condition of its
    theorem, whom it overruled and at what cost, in all and by period, what the dearest period is
    expected to cost (≥: found after histories that are adverse to it), and its worst bias.
    """
    if plot is not None:
        _check_plot(plot)
    if log is not None and runs is not None:
        raise InvalidValueError("--runs is for simulated requests: a log has as many as it has")
    said = override({} if spec is None else read_spec(spec), given(words))
    period, periods = parse_period(said), said.get("periods", 10)
    prop, reading = parse_property(said), parse_reading(said)
    inputs = parse_inputs(said, shared=None if log is None else reading)
    options = {key: said[key] for key in OPTIONS if key in said} | parse_bounds(said)
    policies = make_policies(
        prop, inputs, period=period, periods=periods, kinds=shields,
        start=parse_start(said, inputs.groups), **options,
    )  # fmt: skip
    streams = _streams(prop, inputs, period, periods, runs or 100, seed, log, reading)
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
    log: str | None, reading: Reading,
) -> Streams:  # fmt: skip
    if log is None:
        rng = np.random.default_rng(seed)
        return Streams.drawn(prop, inputs, period=period, periods=periods, runs=runs, rng=rng)
    with reading.open(log, requests=True) as found, blamed_on(log):
        records = list(found)
        streams = Streams.recorded(records, prop, inputs.groups, period * periods)
    unused = len(records) % (period * periods)
    if unused:
        click.echo(f"Note: {number_of(unused, 'request')} at the end of {log} not used.", err=True)
    return streams


def _check_plot(plot: Path) -> None:
    """Raise before the simulation if the picture could not be drawn after it."""
    if plot.suffix.lower() != ".png":
        raise InvalidValueError(f"pictures are PNG: name the file {plot.stem}.png, not {plot.name}")
    require_matplotlib()
    check_target(plot)


def print_comparison(found: PeriodicComparison, source: str) -> None:
    """Print a comparison for people."""
    click.echo(
        f"{found.prop} after every {found.length} decisions, "
        f"{number_of(found.periods, 'period')}, {number_of(found.runs, 'run')}, {source}\n"
    )
    header = [
        "",
        "fair at every end",
        "condition met",
        "overruled",
        "cost",
        "dearest period",
        "worst bias",
        "largest",
    ]
    exempt = found.exempt_runs == found.runs
    print_table(header, [_row(row, exempt=exempt) for row in found.rows])
    _print_periods(found)
    _print_positions(found)
    _print_exempt(found)
    _print_expected(found)
    click.echo("\nMeans ± standard error; shares with 95 % intervals.")
    for name, why in found.left_out.items():
        click.echo(f"{name} was left out: {why}")


def _print_exempt(found: PeriodicComparison) -> None:
    """Print how many ends bound nothing, if there are any."""
    if found.exempt:
        ends = found.runs * found.periods
        click.echo(
            f"\nOf {ends:,} ends of periods {found.exempt:,} were exempt: the property bound "
            f"nothing there. Of {number_of(found.runs, 'run')} {found.exempt_runs:,} had no other "
            "ends."
        )


def _print_expected(found: PeriodicComparison) -> None:
    """Print how probable it is that conditions are met, which no shield can change."""
    told = [
        f"{row.name} {row.condition_expected:.3g}"
        for row in found.rows
        if row.condition_expected is not None
    ]
    if told:
        click.echo(
            "\nProbability that every period of a run meets the condition, if people come as the "
            f"input model says: {', '.join(told)}."
        )


def _print_periods(found: PeriodicComparison) -> None:
    """Print the cost of a period, in at most ten parts of a run."""
    parts = tenths(found.periods)
    rows = [[row.name, *(f"{_cost(row, *part):.2f}" for part in parts)] for row in found.rows[1:]]
    if rows:
        click.echo("\nCost of a period")
        print_table(["", *(positions(*part) for part in parts)], rows)


def _print_positions(found: PeriodicComparison) -> None:
    """Print whom the interventions fall on, by place in the period."""
    parts = tenths(found.length)
    rows = []
    for row in found.rows[1:]:
        people = [sum(row.overruled_at[slice(*part)]) for part in parts]
        share = people[-1] / max(sum(people), 1)
        rows.append([row.name, sparkline(people), f"{share:.0%}"])
    if rows:
        click.echo("\nOverruled by position in the period")
        print_table(["", "first to last", f"decisions {positions(*parts[-1])}"], rows)


def _cost(row: Row, first: int, last: int) -> float:
    return float(np.mean([mean.value for mean in row.paid_by_period[first:last]]))


def _row(row: Row, *, exempt: bool) -> list[str]:
    return [
        row.name,
        "exempt" if exempt else _share(row.fair),
        "–"
        if row.promise == "no shield"
        else row.promise
        if row.condition is None
        else _share(row.condition),
        _mean(row.overruled, 2),
        _mean(row.paid, 2),
        _dearest(row),
        _mean(row.mean_largest_bias, 4),
        f"{row.largest_bias:.4g}",
    ]


def _dearest(row: Row) -> str:
    if row.dearest_period is None:
        return "–"
    return f"{'' if row.dearest_is_known else '≥ '}{row.dearest_period:.4f}"


def _share(share: Share) -> str:
    return f"{share.value:.1%} ({100 * share.low:.1f}–{100 * share.high:.1f})"


def _mean(mean: Mean, digits: int) -> str:
    error = "" if mean.error is None else f" ± {mean.error:.{digits}f}"
    return f"{mean.value:.{digits}f}{error}"
