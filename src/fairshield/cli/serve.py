"""``fairshield serve``."""

from __future__ import annotations

import logging

import click

from fairshield.cli.extras import needed_by
from fairshield.cli.options import examples


@click.command(
    epilog=examples(
        "fairshield serve --db shield.db",
        "fairshield serve --db postgresql://user@host/shields --host 0.0.0.0",
    )
)
@click.option(
    "--db",
    metavar="FILE|URL",
    default="shield.db",
    show_default=True,
    help="Where logs are kept: a file, or postgresql://...",
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
def serve(db: str, host: str, port: int, rate: float) -> None:
    """Serve decisions over HTTP, with a dashboard."""
    with needed_by("serve", extra="service"):
        from fairshield.service.context import Limits
        from fairshield.service.server import serve as serve_database
        from fairshield.service.store import open_database

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    database = open_database(db, serving=True)
    serve_database(
        database, host=host, port=port, limits=Limits(rate=rate),
        announce=lambda address: click.echo(f"Serving {db} at {address}"),
    )  # fmt: skip
