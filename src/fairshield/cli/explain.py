"""``fairshield explain``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from fairshield.adapters.specfile import parse_counts
from fairshield.analysis.explain import Explanation
from fairshield.analysis.explain import explain as explain_decision
from fairshield.base.errors import InvalidValueError
from fairshield.base.groups import Unseen
from fairshield.cli.options import (
    counts_callback,
    examples,
    json_option,
    policy_argument,
    unseen_option,
)
from fairshield.cli.output import print_json, printable, reading_bar
from fairshield.cli.reading import reading_argument
from fairshield.cli.stream import RecordRun, blamed_on
from fairshield.periodic import PeriodicPolicy, kind_of, load_policy
from fairshield.policy import Policy
from fairshield.records import declared
from fairshield.records.reading import Reading
from fairshield.runtime.shield import Shield
from fairshield.runtime.step import Decision, Why

Found = tuple[dict[str, Any], Decision, Explanation]
"""Where a decision was made, the decision, and its explanation."""


@click.command(
    epilog=examples(
        "fairshield explain loans.shield decisions.jsonl --line 97",
        "fairshield explain loans.shield --group a --proposed accept --counts a=10:8,b=20:14",
    )
)
@policy_argument
@click.argument("log", required=False)
@click.option(
    "--line", "lines", metavar="N", type=int, multiple=True, help="This line. Repeatable."
)
@click.option(
    "--all-overruled/--all",
    "only_overruled",
    default=True,
    help="Lines that overrule a proposal, or every line.  [default: all-overruled]",
)
@click.option("--group", metavar="G", help="A request instead of a log: its group,")
@click.option("--proposed", type=click.Choice(["accept", "reject"]), help="what is proposed,")
@click.option("--cost", type=float, default=1.0, show_default=True, help="its cost, and")
@click.option(
    "--counts",
    metavar="G=SEEN:ACC,...",
    callback=counts_callback,
    help="the counters before it.  [default: the start]",
)
@click.option(
    "--decided", metavar="N", type=int, help="Decisions made before it, if outcomes matter."
)
@unseen_option
@reading_argument
@json_option
def explain(
    policy: Path,
    log: str | None,
    lines: tuple[int, ...],
    only_overruled: bool,
    group: str | None,
    proposed: str | None,
    cost: float,
    counts: dict[str, tuple[int, int]] | None,
    decided: int | None,
    unseen: Unseen,
    reading: Reading,
    as_json: bool,
) -> None:
    """Say why a decision was made.

    In one sentence, with what either decision was expected to cost. Explains lines of a log that
    run has written, or one request given by options.
    """
    loaded = kind_of(load_policy(policy))
    if log is not None and group is not None:
        raise InvalidValueError(f"explain either the log {log} or a request (--group), not both")
    if log is not None:
        found = _from_log(loaded, log, reading, unseen, set(lines), only_overruled)
    elif group is not None and loaded.window_policy is not None:
        found = iter([_one(loaded.window_policy, group, proposed, cost, counts, decided)])
    elif group is not None:
        raise InvalidValueError(
            f"{policy} is periodic: what it decides depends on the whole run, so explain a log "
            "that run has written"
        )
    else:
        raise InvalidValueError(
            "say what to explain: a log that run has written, or a request (--group, --proposed)"
        )
    _print_explanations(found, as_json)


def _from_log(
    policy: PeriodicPolicy,
    log: str,
    reading: Reading,
    unseen: Unseen,
    lines: set[int],
    only_overruled: bool,
) -> Iterator[Found]:
    windows, missing = RecordRun(policy, unseen=unseen), set(lines)
    with reading_bar("explaining", log, reading, printing=True) as source, blamed_on(log):
        for record in reading.read(source, log, exported=True, requests=True):
            answer = windows.replay(record)
            missing.discard(record.line)
            wanted = record.line in lines if lines else answer.decision.overruled
            asked = wanted or not (lines or only_overruled)
            if asked and (lines or answer.decision.why is not Why.UNSEEN):
                where = {"line": record.line, "window": answer.window}
                yield where, answer.decision, windows.explain(answer)
        if missing:
            raise InvalidValueError(f"no decision on line {min(missing)}")


def _one(
    policy: Policy,
    group: str,
    proposed: str | None,
    cost: float,
    counts: dict[str, tuple[int, int]] | None,
    decided: int | None,
) -> Found:
    if proposed is None:
        raise InvalidValueError("say what was proposed: --proposed accept or --proposed reject")
    now = None if counts is None else parse_counts(counts, policy.groups, "counts")
    shield = Shield(policy, counts=now, decided=decided)
    name, said = declared(group, policy.groups), proposed == "accept"
    decision = shield.advise(name, proposed=said, cost=cost)
    return {}, decision, explain_decision(policy, decision)


def _print_explanations(found: Iterator[Found], as_json: bool) -> None:
    for where, decision, explanation in found:
        if as_json:
            print_json(where | _plain(decision) | _costs(explanation))
        else:
            place = f"line {where['line']}: " if where else ""
            click.echo(f"{place}{printable(explanation)}")


def _plain(decision: Decision) -> dict[str, Any]:
    names = ("position", "group", "proposed", "cost", "accepted", "overruled", "guaranteed")
    return {name: getattr(decision, name) for name in names} | {"why": decision.why.value}


def _costs(explanation: Explanation) -> dict[str, Any]:
    return {
        "cost_if_accepted": explanation.if_accepted,
        "cost_if_rejected": explanation.if_rejected,
        "explanation": str(explanation),
    }
