"""``fairshield verify``."""

from __future__ import annotations

from pathlib import Path

import click

from fairshield.cli.options import examples, json_option, policy_argument
from fairshield.cli.output import print_json, progress_bar
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
@json_option
@click.pass_context
def verify(ctx: click.Context, /, policy: Path, counterexample: Path | None, as_json: bool) -> None:
    """Prove a policy's guarantee, or refute it.

    Looks at every state the policy can reach, in integers, for every group, proposal, cost and
    outcome, independently of the synthesis; exit 1 if one breaks the guarantee. A violation
    comes with a shortest log that leads to it, as JSON lines, which audit reproduces.
    """
    loaded = Policy.load(policy)
    with progress_bar("verifying") as progress:
        found = verify_policy(loaded, progress=progress)
    if as_json:
        print_json({"path": str(policy), **found.to_dict()})
    else:
        # The log has standard output to itself if it goes there.
        alone = found.holds or counterexample is not None
        click.echo(
            f"{policy}  {loaded.prop} over {loaded.horizon} decisions  {found}", err=not alone
        )
    _write_counterexample(found, counterexample, silent=as_json)
    ctx.exit(0 if found.holds else 1)


def _write_counterexample(found: Verification, target: Path | None, *, silent: bool) -> None:
    if found.counterexample is None:
        return
    text = found.counterexample.to_jsonl()
    if target is not None:
        target.write_text(text, encoding="utf-8")
    elif not silent:
        click.echo(text, nl=False)
