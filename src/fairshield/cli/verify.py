"""``fairshield verify``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from fairshield.cli.options import examples, json_option, policy_argument
from fairshield.cli.output import number_of, print_json, progress_bar
from fairshield.errors import ArtifactError, InvalidValueError
from fairshield.periodic import Guarantee, PeriodicPolicy, PeriodicShield, load_policy
from fairshield.policy import Policy
from fairshield.verify import Verification
from fairshield.verify import verify as verify_policy


@click.command(
    epilog=examples(
        "fairshield verify loans.shield",
        "fairshield verify loans.shield --counterexample broken.jsonl || "
        "fairshield audit broken.jsonl --policy loans.shield",
    )
)
@policy_argument
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
) -> None:
    """Prove a policy's guarantee, or refute it.

    Looks at every state the policy can reach, in integers, for every group, proposal, cost and
    outcome, independently of the synthesis; exit 1 if one breaks the guarantee. A violation
    comes with a shortest log that leads to it, as JSON lines, which audit reproduces.

    A periodic policy is explored period by period: exact ones to their end; perpetual ones over
    their first plan, whose certificates cover the rest by theorem, and over --periods periods if
    that is given; static and dynamic ones over --periods periods, and nothing is shown about
    later ones. What a run really did is checked by audit.
    """
    loaded = load_policy(policy)
    with progress_bar("verifying") as progress:
        if isinstance(loaded, PeriodicPolicy):
            found = _verify_periods(policy, loaded, periods, progress)
            words = f"{loaded.prop} after every {loaded.period} decisions, {loaded.kind}"
            result = _result(loaded, found, periods)
        elif periods is not None:
            raise InvalidValueError(
                f"{policy} is a policy for one window, without periods: leave out --periods"
            )
        else:
            found = verify_policy(loaded, progress=progress)
            words, result = f"{loaded.prop} over {loaded.horizon} decisions", str(found)
    grounds = _grounds(loaded, found)
    if as_json:
        facts = {"path": str(policy), "result": f"{words}: {result}", **found.to_dict()}
        print_json(facts | ({} if grounds is None else {"guarantee": grounds.to_dict()}))
    else:
        # The log has standard output to itself if it goes there.
        alone = found.holds or counterexample is not None
        click.echo(f"{policy}  {words}  {result}", err=not alone)
        if grounds is not None:
            click.echo(str(grounds), err=not alone)
    _write_counterexample(found, counterexample, silent=as_json)
    ctx.exit(0 if found.holds else 1)


def _verify_periods(
    path: Path, policy: PeriodicPolicy, periods: int | None, progress: Callable[[float], None]
) -> Verification:
    from fairshield.periodic.verify import verify_periodic

    try:
        return verify_periodic(policy, periods=periods, progress=progress)
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}") from None


def _result(policy: PeriodicPolicy, found: Verification, periods: int | None) -> str:
    """What has been shown, and of which periods."""
    if found.windows is not None and found.counterexample is None:
        return f"the first plan: {found}"
    looked = f"({found.states:,} states, {found.transitions:,} transitions)"
    if found.counterexample is not None:
        return f"unfair: {found.counterexample} {looked}"
    if policy.last is not None:
        return f"guarantee holds in all {number_of(policy.last, 'period')} {looked}"
    explored = f"no unfair period end in {number_of(periods or 2, 'period')}"
    if not policy.unconditional:
        return f"{explored}; nothing is shown about later ones {looked}"
    plan = explored if periods else "the first plan keeps it and ends with certificates"
    return f"{plan}; later periods are covered by theorem {looked}"


def _grounds(policy: Policy | PeriodicPolicy, found: Verification) -> Guarantee | None:
    """What the theorem says about a counterexample."""
    if found.counterexample is None or not isinstance(policy, PeriodicPolicy):
        return None
    shield = PeriodicShield(policy)
    for decision in found.counterexample.decisions:
        made = shield.decide(decision.group, proposed=decision.proposed, cost=decision.cost)
        if decision.outcome is not None:
            shield.observe(made, outcome=decision.outcome)
    return shield.guarantee


def _write_counterexample(found: Verification, target: Path | None, *, silent: bool) -> None:
    if found.counterexample is None:
        return
    text = found.counterexample.to_jsonl()
    if target is not None:
        target.write_text(text, encoding="utf-8")
    elif not silent:
        click.echo(text, nl=False)
