"""``fairshield serve``."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import tempfile
from pathlib import Path

import click

from fairshield.cli.extras import needed_by
from fairshield.cli.options import examples


@click.command(
    epilog=examples(
        "fairshield serve --db shield.db",
        "fairshield serve --demo",
        "fairshield serve --db postgresql://user@host/shields --host 0.0.0.0",
    )
)
@click.option(
    "--db",
    metavar="FILE|URL",
    help="Where logs are kept: a file, or postgresql://...  [default: shield.db; with --demo: a "
    "temporary file]",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port; 0 takes a free one.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0),
    default=10_000.0,
    show_default=True,
    help="Requests per second of one caller; 0: no limit.",
)
@click.option("--demo", is_flag=True, help="Feed three streams from a simulated classifier.")
def serve(db: str | None, host: str, port: int, rate: float, demo: bool) -> None:
    """Serve decisions over HTTP, with a dashboard."""
    with needed_by("serve", extra="service"):
        from fairshield.service.context import Limits
        from fairshield.service.demo import feeder
        from fairshield.service.server import serve as serve_database
        from fairshield.service.store import open_database

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    # Once requests are answered, the server passes the signal on: then end, but tidily.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    with contextlib.ExitStack() as stack:
        if db is None and demo:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fairshield-demo-"))
            db = str(Path(folder) / "shield.db")
        address = db or "shield.db"
        what = "a demonstration" if demo else address
        serve_database(
            open_database(address, serving=True),
            host=host,
            port=port,
            limits=Limits(rate=rate),
            demo=demo,
            started=feeder() if demo else None,
            announce=lambda url: click.echo(f"Serving {what} at {url}"),
        )
