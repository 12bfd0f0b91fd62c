"""``fairshield synthesize``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

from fairshield.adapters.specfile import override, policy_of, read_spec
from fairshield.cli.options import (
    checkpoint_option,
    examples,
    given,
    horizon_option,
    input_options,
    json_option,
    periodic_options,
    property_options,
    start_option,
)
from fairshield.cli.output import check_target, human_size, print_json, progress_bar
from fairshield.cli.reading import reading_options
from fairshield.periodic import PeriodicPolicy
from fairshield.policy.artifact import digest_of
from fairshield.synthesis import Backend


@click.command(
    epilog=examples(
        "fairshield synthesize loans.toml -o loans.shield",
        "fairshield synthesize --property demographic-parity --bound 0.1 --horizon 100 \\",
        "    --groups a=0.325,b=0.675 -o loans.shield",
        "fairshield synthesize --property demographic-parity --bound 0.1 \\",
        "    --periodic perpetual --period 50 --groups a=0.325,b=0.675",
    )
)
@click.argument("spec", metavar="[SPEC.toml]", required=False)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the policy.  [default: the spec's name, or policy, with .shield]",
)
@property_options
@horizon_option
@periodic_options
@start_option
@checkpoint_option
@click.option(
    "--spread",
    metavar="NUMBER",
    type=float,
    help="Above 1, spread interventions over the window.  [default: 1]",
)
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "long"]),
    help="A table of all decisions, or worked out as they come.  [default: auto]",
)
@click.option(
    "--endgame",
    metavar="N",
    type=click.IntRange(min=0),
    help="Decisions at the end of a long window that are solved exactly.",
)
@click.option(
    "--trust-support/--no-trust-support",
    default=None,
    help="Take requests of probability 0 in the input model for impossible: cheaper, and fair on "
    "no other sequences.  [default: no]",
)
@input_options
@reading_options
@click.option("--threads", metavar="N", type=click.IntRange(min=1), help="Default: all processors.")
@click.option(
    "--backend",
    type=click.Choice(get_args(Backend)),
    default="auto",
    show_default=True,
    help="What computes the policy of a window: auto takes a CUDA device where one pays.",
)
@json_option
def synthesize(
    spec: str | None,
    output: Path | None,
    threads: int | None,
    backend: Backend,
    as_json: bool,
    **words: Any,
) -> None:
    """Make the cheapest policy for a spec.

    The specification is a TOML file, or options, or both: an option replaces what the file says.
    The same words are keys there (checkpoints is a list, start and groups are tables).

    With --periodic the property must hold at the end of every period, of all decisions since the
    beginning.
    """
    said = override({} if spec is None else read_spec(spec), given(words))
    name = "policy" if spec in (None, "-") else Path(str(spec)).stem
    target = output or Path(f"{name}.shield")
    check_target(target)
    with progress_bar("synthesising") as progress:
        policy = policy_of(said, progress, threads=threads, backend=backend)
    policy.save(target)
    if not policy.attainable:
        assert policy.condition is not None
        click.echo(
            f"Note: {policy.title} shields are fair if in every period {policy.condition.words}; "
            f"{policy.length} decisions do not allow that, so nothing is promised.",
            err=True,
        )
    facts = summary(policy, target)
    if as_json:
        print_json(facts)
    else:
        size, digest = human_size(facts["bytes"]), f"sha256:{facts['sha256'][:8]}…"
        click.echo("  ".join([facts["path"], facts["guarantee"], policy.cost_line(), size, digest]))
        if facts["method"] == "long":
            click.echo(f"Method: long, because {facts['reason']}.", err=True)


def summary(policy: PeriodicPolicy, path: Path) -> dict[str, Any]:
    """Return the facts about a policy file that are printed of it."""
    file = {"bytes": path.stat().st_size, "sha256": digest_of(path)}
    return {"path": str(path), **policy.summary_data(), **file}
