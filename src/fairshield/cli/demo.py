"""``fairshield demo``."""

from __future__ import annotations

from pathlib import Path

import click

from fairshield.cli.options import examples, json_option, seed_option
from fairshield.cli.output import print_json, print_table, progress_bar


@click.command(epilog=examples("fairshield demo --out demo-output --windows 1000"))
@click.option(
    "--out",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    default="demo-output",
    show_default=True,
    help="For policies, picture and numbers.",
)
@click.option("--windows", metavar="N", default=1000, show_default=True, help="To run.")
@seed_option
@json_option
def demo(out: Path, windows: int, seed: int, as_json: bool) -> None:
    """Show shields at work: before and after.

    Makes shields for a lending stream and a bilingual team, runs the same windows with and
    without them, prints what changed and draws a picture.
    """
    from fairshield.cli.tools.demo import run_demo

    with progress_bar("starting") as bar:
        report = run_demo(out, windows, seed, lambda doing, share: bar(share, doing))
    if as_json:
        print_json(report.to_dict())
        return
    for scenario in report.scenarios:
        click.echo(f"{scenario.name}: {scenario.guarantee}\n  {scenario.setting}")
    click.echo("")
    print_table(report.columns(), report.rows())
    ready = f"compiled code ready in {report.compile_seconds:.1f} s"
    click.echo(f"\nPolicies and numbers: {out}   ({ready})\nPicture: {report.picture}")
