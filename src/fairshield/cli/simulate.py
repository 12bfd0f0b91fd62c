"""``fairshield simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from fairshield.adapters.specfile import parse_inputs
from fairshield.base.errors import InvalidValueError
from fairshield.cli.compare import print_comparison
from fairshield.cli.options import (
    examples,
    given,
    input_options,
    json_option,
    policy_argument,
    seed_option,
)
from fairshield.cli.output import positions, print_json, print_table, progress_bar
from fairshield.cli.reading import reading_options
from fairshield.inputs import InputModel
from fairshield.periodic import PeriodicPolicy, kind_of, load_policy
from fairshield.periodic.compare import compare
from fairshield.periodic.runs import Streams
from fairshield.policy import Policy
from fairshield.reports.plots import sparkline, tenths
from fairshield.spec import Finding

if TYPE_CHECKING:
    from fairshield.analysis.simulate import Simulation

_DECISIONS = 2_000_000
"""Decisions that are simulated by default where windows are long."""


@click.command(
    epilog=examples(
        "fairshield simulate loans.shield --windows 10000",
        "fairshield simulate loans.shield --groups a=0.1,b=0.9 --json",
    )
)
@policy_argument
@click.option(
    "--windows",
    metavar="N",
    type=click.IntRange(min=1),
    help="How many.  [default: 10000, or as many long ones as take seconds]",
)
@click.option(
    "--runs",
    metavar="N",
    type=click.IntRange(min=1),
    help="Of a periodic policy, how many runs.  [default: 100, or fewer long ones]",
)
@click.option(
    "--periods",
    metavar="N",
    type=click.IntRange(min=1),
    help="Of a periodic policy, how many in a run.  [default: 10, or all of an exact one]",
)
@seed_option
@input_options
@reading_options
@json_option
def simulate(
    policy: Path,
    windows: int | None,
    runs: int | None,
    periods: int | None,
    seed: int,
    as_json: bool,
    **words: Any,
) -> None:
    """Decide random windows, or runs, with and without the shield.

    Requests follow the policy's own input model, or another one given by options: the decisions
    stay fair all the same, only the cost changes.
    """
    loaded = kind_of(load_policy(policy))
    chosen = given(words)
    inputs = parse_inputs(chosen, loaded.groups) if chosen else None
    rng = np.random.default_rng(seed)
    window = loaded.window_policy
    if window is None:
        if windows is not None:
            raise InvalidValueError(
                f"{policy} is periodic: say how many runs (--runs) of how many periods (--periods)"
            )
        usual = _affordable(loaded.length * (periods or 10), 100)
        _simulate_periods(loaded, runs or usual, periods, inputs, rng, as_json, seed)
        return
    if periods is not None or runs is not None:
        raise InvalidValueError(
            f"{policy} is a policy for one window, without periods: leave out --periods and --runs"
        )
    from fairshield.analysis.simulate import simulate as simulate_windows

    usual = 10_000 if window.decisions.tabled else _affordable(window.horizon, 1000)
    found = simulate_windows(window, n_windows=windows or usual, rng=rng, inputs=inputs)
    facts = report(window, found, own_inputs=inputs is None) | {"seed": seed}
    if as_json:
        print_json(facts)
    else:
        _print_report(window, found, facts)


def _affordable(decisions: int, most: int) -> int:
    """The number of windows, or runs, of so many decisions that takes a few seconds."""
    return max(min(_DECISIONS // decisions, most), 4)


def _simulate_periods(
    policy: PeriodicPolicy, runs: int, periods: int | None, inputs: InputModel | None,
    rng: np.random.Generator, as_json: bool, seed: int,
) -> None:  # fmt: skip
    if inputs is not None and inputs.groups != policy.groups:
        raise InvalidValueError(
            f"the inputs have groups {inputs.groups}, not {policy.groups}: name them as the "
            "policy does"
        )
    streams = Streams.drawn(
        policy.prop, policy.inputs if inputs is None else inputs, period=policy.length,
        periods=periods or policy.last or 10, runs=runs, rng=rng,
    )  # fmt: skip
    with progress_bar("simulating") as progress:
        found = compare({policy.kind: policy}, streams, progress=progress)
    if as_json:
        print_json(found.to_dict() | {"seed": seed})
    else:
        print_comparison(found, f"seed {seed}")


def report(policy: Policy, found: Simulation, *, own_inputs: bool) -> dict[str, Any]:
    """The figures of a simulation, as JSON-able data."""
    people = found.overruled_at
    return {
        "guarantee": kind_of(policy).summary_data()["guarantee"],
        "windows": found.n_windows,
        "unfair_windows_unshielded": found.n_unfair_unshielded,
        "unfair_windows": found.n_unfair,
        "exempt_windows": found.n_exempt,
        "largest_bias_unshielded": float(found.bias_unshielded.max()),
        "largest_bias": float(found.bias.max()),
        "widest_unshielded": found.widest_unshielded.to_dict(),
        "widest": found.widest.to_dict(),
        "overruled_share": found.overruled_share,
        "mean_cost": found.mean_paid,
        "cost_error": found.paid_error,
        "expected_cost": policy.expected_cost if own_inputs else None,
        "interventions": [
            {"from": first + 1, "to": last, "overruled": people[first:last].sum(axis=0).tolist()}
            for first, last in tenths(policy.horizon)
        ],
    }


def _print_report(policy: Policy, found: Simulation, facts: dict[str, Any]) -> None:
    n, expected = facts["windows"], facts["expected_cost"]
    click.echo(f"{facts['guarantee']}, {n:,} windows, seed {facts['seed']}\n")
    print_table(
        ["", "proposals", "shielded"],
        [
            ["unfair windows", *(_share(facts[key], n) for key in _UNFAIR)],
            *_exempt(facts["exempt_windows"], n),
            *_widest(found.widest_unshielded, found.widest),
            ["decisions overruled", "0.00%", f"{facts['overruled_share']:.2%}"],
            ["mean cost", "0", f"{facts['mean_cost']:.4f} ± {facts['cost_error']:.4f}"],
            *([["expected cost", "0", f"{expected:.4f}"]] if expected is not None else []),
        ],
    )
    if facts["exempt_windows"] == n:
        click.echo("All windows are exempt: the property bound nothing, and nothing was promised.")
    _print_interventions(policy, facts["interventions"])


def _exempt(exempt: int, n: int) -> list[list[str]]:
    """The line about windows that nothing bound, which are the same with and without a shield."""
    return [["exempt windows", *[_share(exempt, n)] * 2]] if exempt else []


def _widest(*sides: Finding) -> list[list[str]]:
    """Return the widest pair's measure without the shield and with it, and who that pair is."""
    shown = [f.shown if f.bound else f"{f.shown} (exempt)" for f in sides]
    name = f"widest {sides[0].measure} ({sides[0].asked})"
    return [[name, *shown], ["", *(finding.who for finding in sides)]]


_UNFAIR = ("unfair_windows_unshielded", "unfair_windows")


def _share(count: int, n: int) -> str:
    return f"{count:,} ({count / n:.1%})"


def _print_interventions(policy: Policy, parts: list[dict[str, Any]]) -> None:
    totals = [sum(part["overruled"]) for part in parts]
    click.echo(f"\nOverruled by position   {sparkline(totals)}")
    print_table(
        ["decisions", *map(str, policy.groups), "share"],
        [
            [
                positions(part["from"] - 1, part["to"]),
                *(f"{n:,}" for n in part["overruled"]),
                f"{total / max(sum(totals), 1):.1%}",
            ]
            for part, total in zip(parts, totals, strict=True)
        ],
    )
