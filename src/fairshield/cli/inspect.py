"""``fairshield inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairshield.base.errors import InvalidValueError
from fairshield.cli.options import examples, json_option, policy_argument
from fairshield.cli.output import (
    human_size,
    positions,
    print_facts,
    print_json,
    print_table,
    progress_bar,
)
from fairshield.cli.synthesize import summary
from fairshield.periodic import PeriodicPolicy, kind_of, load_policy
from fairshield.policy import Policy
from fairshield.reports.plots import sparkline, tenths

_QUICK = 6_000_000
"""States up to which the exact expectations take about a second."""


@click.command(
    epilog=examples(
        "fairshield inspect loans.shield",
    )
)
@policy_argument
@click.option(
    "--interventions/--no-interventions",
    default=None,
    help="Expected interventions by position.  [default: unless it takes long]",
)
@json_option
def inspect(policy: Path, interventions: bool | None, as_json: bool) -> None:
    """Show what a policy guarantees and costs.

    Also where it comes from, and at which positions of a window it is expected to intervene.
    """
    loaded = kind_of(load_policy(policy))
    window = loaded.window_policy
    if window is None and interventions:
        raise InvalidValueError(
            f"{policy} is periodic: where it intervenes depends on the run; see simulate"
        )
    facts = summary(loaded, policy) | loaded.detail_data()
    if window is not None:
        wanted = _is_quick(window) if interventions is None else interventions
        facts["interventions"] = _by_tenth(window) if wanted else None
    if as_json:
        print_json(facts)
        return
    made = f", made by fairshield {facts['library']}" if "library" in facts else ""
    print_facts(
        [
            ("policy", facts["path"]),
            *loaded.lines(),
            ("file", human_size(facts["bytes"]) + made),
            ("sha256", facts["sha256"]),
        ]
    )
    if facts.get("interventions") is not None:
        _print_interventions(loaded, facts["interventions"])
    elif window is not None and interventions is None and window.decisions.tabled:
        click.echo("\nWhere it intervenes takes a while to compute: add --interventions")


def _is_quick(policy: Policy) -> bool:
    states = policy.decisions.n_states
    return states is not None and states <= _QUICK


def _by_tenth(policy: Policy) -> list[dict[str, Any]]:
    """Expected number of people overruled, by group, in each tenth of the window."""
    from fairshield.runtime.evaluate import evaluate

    with progress_bar("evaluating") as progress:
        overruled = evaluate(policy, progress=progress).overruled
    return [
        {"from": first + 1, "to": last, "overruled": overruled[first:last].sum(axis=0).tolist()}
        for first, last in tenths(policy.horizon)
    ]


def _print_interventions(policy: PeriodicPolicy, parts: list[dict[str, Any]]) -> None:
    totals = [sum(part["overruled"]) for part in parts]
    click.echo(f"\nExpected interventions by position   {sparkline(totals)}")
    header = ["decisions", *map(str, policy.groups), "both" if len(policy.groups) == 2 else "all"]
    print_table(
        header,
        [
            [positions(part["from"] - 1, part["to"])]
            + [f"{people:.4f}" for people in [*part["overruled"], sum(part["overruled"])]]
            for part in parts
        ],
    )
