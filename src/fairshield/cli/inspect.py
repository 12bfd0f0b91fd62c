"""``fairshield inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

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
from fairshield.counts import in_words
from fairshield.errors import InvalidValueError
from fairshield.long import LongPolicy
from fairshield.many import ManyPolicy
from fairshield.periodic import PeriodicPolicy, load_policy
from fairshield.periodic.policy import TOO_SHORT
from fairshield.plots import sparkline, tenths
from fairshield.policy import Policy

_VACUOUS = "vacuous: the property can never bind, so nothing is promised"
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
    loaded = load_policy(policy)
    if isinstance(loaded, PeriodicPolicy):
        if interventions:
            raise InvalidValueError(
                f"{policy} is periodic: where it intervenes depends on the run; see simulate"
            )
        _inspect_periodic(loaded, policy, as_json)
        return
    wanted = _is_quick(loaded) if interventions is None else interventions
    facts = describe(loaded, policy, interventions=wanted)
    if as_json:
        print_json(facts)
        return
    print_facts(_for_people(loaded, facts))
    if facts["interventions"] is not None:
        _print_interventions(loaded, facts["interventions"])
    elif interventions is None and loaded.method == Policy.method:
        click.echo("\nWhere it intervenes takes a while to compute: add --interventions")


def _is_quick(policy: Policy) -> bool:
    return policy.method == Policy.method and policy.layout.n_states <= _QUICK


def _inspect_periodic(policy: PeriodicPolicy, path: Path, as_json: bool) -> None:
    facts = summary(policy, path) | {
        "groups": list(policy.groups),
        "inputs": policy.inputs.to_dict(),
        "start": [[group, *count] for group, count in policy.start.items()],
        "outcomes_needed": policy.labelled,
        "unconditional": policy.unconditional,
        "condition": None if policy.condition is None else policy.condition.words,
        "fingerprint": policy.fingerprint,
    }
    if as_json:
        print_json(facts)
        return
    cost, periods = policy.outlook()
    print_facts(
        [
            ("policy", facts["path"]),
            ("property", f"{policy.prop} after every {policy.period} decisions"),
            *_caveat(policy),
            ("shield", ", ".join([policy.kind, *_options(policy)])),
            ("condition", _condition(policy)),
            ("groups", in_words(policy.groups)),
            ("needs", _needs(policy)),
            ("expected cost", f"{cost:.6g} in {_first(periods)}"),
            ("plans", facts["method"] + (f": {facts['reason']}" if facts["reason"] else "")),
            *_risk(facts["risk"]),
            ("input model", str(policy.inputs)),
            ("start", _start(policy)),
            ("file", human_size(facts["bytes"])),
            ("sha256", facts["sha256"]),
        ]
    )


def _caveat(policy: PeriodicPolicy) -> list[tuple[str, str]]:
    if not policy.can_bind:
        return [("guarantee", _VACUOUS)]
    return [] if policy.enforces else [("enforces", f"nothing: {TOO_SHORT}")]


def _first(periods: int) -> str:
    return "the first period" if periods == 1 else f"the first {periods} periods"


def _risk(risk: float) -> list[tuple[str, str]]:
    return [("risk", f"the first period ends unfair with probability {risk:.3g}")] if risk else []


def _options(policy: PeriodicPolicy) -> list[str]:
    return [
        f"{key} {value if not isinstance(value, list) else ' to '.join(value)}"
        for key, value in policy.options().items()
    ]


def _condition(policy: PeriodicPolicy) -> str:
    if policy.unconditional:
        return "none: fair on every sequence of requests"
    if policy.condition is None:
        return "no theorem speaks of this property"
    words = f"fair if in every period {policy.condition.words}"
    impossible = f", which {policy.period} decisions do not allow: nothing is promised"
    return words if policy.attainable else words + impossible


def _needs(policy: Policy | PeriodicPolicy) -> str:
    return "group, proposed, cost" + (", outcome" if policy.labelled else "")


def _start(policy: Policy | PeriodicPolicy) -> str:
    if not any(count.seen for count in policy.start.values()):
        return "nobody seen"
    return ", ".join(f"{g} {c.accepted} of {c.seen} accepted" for g, c in policy.start.items())


def describe(policy: Policy, path: Path, *, interventions: bool) -> dict[str, Any]:
    """Everything about a policy file, as JSON-able data."""
    rows = policy.rows
    return summary(policy, path) | {
        "groups": list(policy.groups),
        "inputs": policy.inputs.to_dict(),
        "start": [[group, *count] for group, count in policy.start.items()],
        "checkpoints": list(policy.checkpoints),
        "terminal": None if policy.terminal is None else policy.terminal.to_dict(),
        "further": policy.further,
        "spread": policy.spread,
        "outcomes_needed": policy.labelled,
        "rows": len(rows.cuts),
        "dense_rows": rows.n_dense,
        "library": policy.version,
        "interventions": _by_tenth(policy) if interventions else None,
    }


def _by_tenth(policy: Policy) -> list[dict[str, Any]]:
    """Expected number of people overruled, by group, in each tenth of the window."""
    from fairshield.evaluate import evaluate

    with progress_bar("evaluating") as progress:
        overruled = evaluate(policy, progress=progress).overruled
    return [
        {"from": first + 1, "to": last, "overruled": overruled[first:last].sum(axis=0).tolist()}
        for first, last in tenths(policy.horizon)
    ]


def _for_people(policy: Policy, facts: dict[str, Any]) -> list[tuple[str, str]]:
    points = policy.due
    when = " and ".join(filter(None, [", ".join(map(str, points[:-1])), str(points[-1])]))
    cost = f"{policy.expected_cost:.6g} per window"
    if policy.least_cost < policy.expected_cost:
        cost += f", of which {policy.expected_cost - policy.least_cost:.3g} for spreading"
    return [
        ("policy", facts["path"]),
        _promise(policy, f"{policy.prop} after {when} decisions"),
        ("groups", in_words(policy.groups)),
        ("needs", _needs(policy)),
        ("expected cost", cost),
        ("input model", str(policy.inputs)),
        ("start", _start(policy)),
        ("spread", f"{policy.spread:g}" if policy.spread > 1 else "none"),
        ("method", policy.method + (f": {policy.reason}" if policy.reason else "")),
        ("tables", _tables(policy, facts)),
        ("file", f"{human_size(facts['bytes'])}, made by fairshield {policy.version}"),
        ("sha256", facts["sha256"]),
    ]


def _tables(policy: Policy, facts: dict[str, Any]) -> str:
    if isinstance(policy, LongPolicy):
        prices = f"prices of {human_size(policy.nbytes)}"
        return f"{prices}; the last {policy.endgame} decisions are solved when they come"
    if isinstance(policy, ManyPolicy):
        return f"{policy.layout.n_states:,} states, {len(policy.groups)} groups"
    return f"{facts['rows']:,} rows, {facts['dense_rows']:,} of them dense"


def _promise(policy: Policy, what: str) -> tuple[str, str]:
    if policy.required(policy.horizon)[1:]:
        what += f", and {policy.terminal} at the end"
    if not policy.can_bind:
        return "property", f"{what}; {_VACUOUS}"
    if not policy.risk:
        return "guarantee", f"{what}, whatever arrives"
    return "best effort", f"{what}, violated with probability {policy.risk:.3g}"


def _print_interventions(policy: Policy, parts: list[dict[str, Any]]) -> None:
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
