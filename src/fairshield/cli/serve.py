"""``fairshield serve``."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairshield.cli.extras import needed_by
from fairshield.cli.options import examples

if TYPE_CHECKING:
    from fairshield.service.web.context import RunningService

_MEGABYTE = 1 << 20
_TRACED = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@click.command(
    epilog=examples(
        "fairshield serve --db shield.db",
        "fairshield serve --demo",
        "fairshield keys create --db shield.db --name ops --scope admin",
        "fairshield serve --db postgresql://user@host/shields --host 0.0.0.0",
    )
)
@click.option(
    "--db",
    metavar="FILE|URL",
    help="Where logs are kept: a file, or postgresql://...  [default: shield.db; with --demo: a "
    "temporary file]",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; one that other machines reach needs access keys.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port; 0 takes a free one.",
)
@click.option(
    "--rate",
    metavar="N",
    type=click.FloatRange(min=0),
    default=10_000.0,
    show_default="10,000",
    help="Requests per second of one key, or of one address without keys; 0: no limit.",
)
@click.option(
    "--max-body",
    metavar="MB",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Largest request.",
)
@click.option(
    "--max-upload",
    metavar="MB",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    help="Largest policy file.",
)
@click.option(
    "--max-connections",
    metavar="N",
    type=click.IntRange(min=1),
    default=2_000,
    show_default=True,
    help="Connections open at once.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="What is worth a line on standard error; groups and keys never are.",
)
@click.option(
    "--log-format",
    type=click.Choice(["plain", "json"]),
    default="plain",
    show_default=True,
    help="How such a line looks.",
)
@click.option(
    "--otel",
    is_flag=True,
    help=f"Send OpenTelemetry traces, as OTEL_... variables say; also if {_TRACED[0]} is set.",
)
@click.option("--demo", is_flag=True, help="Feed three streams from a simulated classifier.")
def serve(
    db: str | None,
    host: str,
    port: int,
    rate: float,
    max_body: int,
    max_upload: int,
    max_connections: int,
    log_level: str,
    log_format: Any,
    otel: bool,
    demo: bool,
) -> None:
    """Serve decisions over HTTP, with a dashboard.

    Every answered decision is on disk. Without access keys only this machine is served. SIGTERM
    and Ctrl+C end the service after everything that has been asked is answered.
    """
    with needed_by("serve", extra="service"):
        from fairshield.service.server import logs, server
        from fairshield.service.server.demo import check_own, feed
        from fairshield.service.store import open_database
        from fairshield.service.web.context import Limits

    logs.set_up(log_level, log_format)
    tracing = None
    if otel or any(os.environ.get(name) for name in _TRACED):
        from fairshield.service.server.tracing import Tracing

        tracing = Tracing()
    limits = Limits(
        rate=rate, body=max_body * _MEGABYTE, upload=max_upload * _MEGABYTE,
        connections=max_connections,
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        if db is None and demo:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fairshield-demo-"))
            db = str(Path(folder) / "shield.db")
        elif db is not None and demo:
            check_own(db)
        database = open_database(db or "shield.db", serving=True)
        server.serve(
            database, host=host, port=port, limits=limits, demo=demo, tracing=tracing,
            started=feed if demo else None,
            announce=partial(_announce, database.address),
        )  # fmt: skip


def _announce(db: str, address: str, service: RunningService) -> None:
    what = "a demonstration" if service.demo else db
    click.echo(f"Serving {what} at {address}")
    click.echo(f"Dashboard: {address}/   API: {address}/openapi.json   Stop: Ctrl+C")
    if not service.access.required and not service.demo:
        click.echo(
            "No access keys: every program on this machine may decide and administer. Create one "
            f"with fairshield keys create --db {db} --name NAME --scope admin",
            err=True,
        )
    sys.stdout.flush()
