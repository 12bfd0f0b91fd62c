"""``fairshield bench``."""

from __future__ import annotations

from dataclasses import asdict

import click

from fairshield.cli.options import examples, json_option, numbers_callback
from fairshield.cli.output import human_size, print_json, print_table
from fairshield.cli.tools.bench import BenchRow
from fairshield.cli.tools.bench import bench as run_bench


@click.command(
    epilog=examples(
        "fairshield bench --horizon 50,100,200 --threads 1,2",
    )
)
@click.option(
    "--horizon",
    metavar="N,...",
    callback=numbers_callback,
    default="50,100,200",
    show_default=True,
    help="Decisions in a window.",
)
@click.option(
    "--threads",
    metavar="N,...",
    callback=numbers_callback,
    default="1,2",
    show_default=True,
    help="To use.",
)
@json_option
def bench(horizon: tuple[int, ...], threads: tuple[int, ...], as_json: bool) -> None:
    """Measure how fast this machine is.

    Synthesis of demographic parity within 0.1, policy included; its file; and one decision.
    """
    rows = run_bench(horizon, threads)
    if as_json:
        for row in rows:
            print_json(asdict(row) | {"ns_per_state": row.ns_per_state})
        return
    header = ["horizon", "threads", "synthesis", "per state", "file", "decide"]
    print_table(header, [_cells(row) for row in rows])


def _cells(row: BenchRow) -> list[str]:
    return [
        str(row.horizon),
        str(row.threads),
        f"{row.seconds * 1e3:.1f} ms",
        f"{row.ns_per_state:.2f} ns",
        human_size(row.artifact_bytes),
        f"{row.decide_us:.2f} µs",
    ]
