"""``fairshield verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairshield.adapters.specfile import parse_property, parse_start
from fairshield.analysis.terms import agreed, check_agreed
from fairshield.analysis.verify import Verification
from fairshield.base.counts import Counts
from fairshield.base.errors import ArtifactError, InvalidValueError
from fairshield.base.types import Progress
from fairshield.cli.options import (
    checkpoint_option,
    examples,
    given,
    horizon_option,
    json_option,
    period_option,
    policy_path,
    property_options,
    start_option,
)
from fairshield.cli.output import INCONCLUSIVE, print_json, printable, progress_bar
from fairshield.periodic import Guarantee, PeriodicPolicy, Run, kind_of, load_policy
from fairshield.periodic.verify import verify as verify_policy
from fairshield.spec import Property

_WINDOW_WORDS = {"horizon", "period", "start", "checkpoints"}
_STATUS = {"kept": 0, "violated": 1, "vacuous": INCONCLUSIVE, "inconclusive": INCONCLUSIVE}


@click.command(
    epilog=examples(
        "fairshield verify loans.shield",
        "fairshield verify theirs.shield --property demographic-parity --bound 0.1 --horizon 100",
        "fairshield verify loans.shield --counterexample broken.jsonl || "
        "fairshield audit broken.jsonl --policy loans.shield",
    )
)
@policy_path
@property_options
@horizon_option
@period_option
@start_option
@checkpoint_option
@click.option(
    "--counterexample",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where a violating log goes.  [default: standard output]",
)
@click.option(
    "--periods",
    metavar="N",
    type=click.IntRange(min=1),
    help="Of a periodic policy, how many to explore.  [default: 2; perpetual: its first plan]",
)
@json_option
@click.pass_context
def verify(
    ctx: click.Context,
    /,
    policy: Path,
    counterexample: Path | None,
    periods: int | None,
    as_json: bool,
    **words: Any,
) -> None:
    """Prove a policy's guarantee, or refute it.

    Looks at every state the policy can reach, in integers, for every group, proposal, cost and
    outcome, independently of the synthesis; exit 1 if one breaks the guarantee. A violation
    comes with a shortest log that leads to it, as JSON lines, which audit reproduces.

    A file can name any property, window and start: what it names is printed, and options say what
    it must be. A property given so must hold besides the policy's own, from nobody seen unless
    --start says otherwise.

    A long policy has too many states. Windows made to be hard are tried, and that all others end
    fair is a theorem. A periodic policy is explored period by period: exact ones to their end;
    perpetual ones over their first plan, whose certificates cover the rest by theorem, and over
    --periods periods if that is given; static and dynamic ones over --periods periods, and
    nothing is shown about later ones. What a run really did is checked by audit.

    Exit 3 if nothing is shown: the property can never bind, or neither states nor a theorem tell,
    as of static and dynamic policies unless --periods says which periods you ask about.
    """
    loaded, asked = kind_of(load_policy(policy)), given(words)
    _check_window(loaded, asked)
    if periods is not None and not loaded.goes_on:
        raise InvalidValueError(
            f"{policy} is a policy for one window, without periods: leave out --periods"
        )
    prop = parse_property(asked) if set(asked) - _WINDOW_WORDS else None
    with progress_bar("verifying") as progress:
        found = _verified(policy, loaded, prop, periods, progress)
    grounds = _grounds(loaded, found)
    if as_json:
        facts = {"path": str(policy), "result": str(found), **found.to_dict()}
        print_json(facts | ({} if grounds is None else {"guarantee": grounds.to_dict()}))
    else:
        # If the log is printed, nothing else goes to standard output.
        alone = found.counterexample is None or counterexample is not None
        click.echo(printable(f"{policy}  {found.claim}  {found.result}"), err=not alone)
        if grounds is not None:
            click.echo(str(grounds), err=not alone)
    _write_counterexample(found, counterexample, silent=as_json)
    ctx.exit(_STATUS[found.verdict])


def _check_window(policy: PeriodicPolicy, asked: dict[str, Any]) -> None:
    """Refuse a policy for another window than was asked for."""
    start = parse_start(asked, policy.groups)
    if start is None and asked:
        # Large counters at the start can outweigh all decisions, so --start must allow them.
        start = Counts.zero(policy.groups)
    instead = "ask for another policy"
    said = {key: asked[key] for key in ("horizon", "period", "checkpoints") if key in asked}
    check_agreed(policy.window_rule, **said, instead=instead)
    agreed("start", start, policy.start, instead=instead)


def _verified(
    path: Path,
    policy: PeriodicPolicy,
    prop: Property | None,
    periods: int | None,
    progress: Progress,
) -> Verification:
    try:
        return verify_policy(policy, prop=prop, periods=periods, progress=progress)
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}") from None


def _grounds(policy: PeriodicPolicy, found: Verification) -> Guarantee | None:
    """The guarantee, with its condition, after the decisions of the counterexample."""
    if found.counterexample is None or not policy.goes_on:
        return None
    run = Run(policy)
    for decision in found.counterexample.decisions:
        made = run.decide(decision.group, proposed=decision.proposed, cost=decision.cost)
        if decision.outcome is not None:
            run.observe(made, outcome=decision.outcome)
    return run.guarantee


def _write_counterexample(found: Verification, target: Path | None, *, silent: bool) -> None:
    if found.counterexample is None:
        return
    text = found.counterexample.to_jsonl()
    if target is not None:
        target.write_text(text, encoding="utf-8")
    elif not silent:
        click.echo(text, nl=False)
