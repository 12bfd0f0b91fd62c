"""``fairshield serve``."""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import click

from fairshield.cli.options import examples
from fairshield.errors import MissingExtraError

if TYPE_CHECKING:
    from fairshield.service.context import Service

_MEGABYTE = 1 << 20
_TRACED = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@click.command(
    epilog=examples(
        "fairshield serve --db shield.db",
        "fairshield keys create --db shield.db --name ops --scope admin",
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
    show_default=True,
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
def serve(
    db: str,
    host: str,
    port: int,
    rate: float,
    max_body: int,
    max_upload: int,
    max_connections: int,
    log_level: str,
    log_format: Any,
    otel: bool,
) -> None:
    """Serve decisions over HTTP, with a dashboard.

    Every answered decision is on disk. Without access keys only this machine is served. SIGTERM
    and Ctrl+C end the service after everything that has been asked is answered.
    """
    logs, server = _service()
    from fairshield.service.context import Limits
    from fairshield.service.store import open_database

    logs.set_up(log_level, log_format)
    tracing = None
    if otel or any(os.environ.get(name) for name in _TRACED):
        from fairshield.service.tracing import Tracing

        tracing = Tracing()
    limits = Limits(
        rate=rate, body=max_body * _MEGABYTE, upload=max_upload * _MEGABYTE,
        connections=max_connections,
    )  # fmt: skip
    holder: list[Service] = []
    shown = server.without_password(db)
    server.serve(
        open_database(db, serving=True), host=host, port=port, limits=limits, tracing=tracing,
        started=holder.append, announce=lambda address: _announce(shown, address, holder[0]),
    )  # fmt: skip
    _leave()


def _service() -> Any:
    """The modules that do it; if something they need is missing, an error that says so."""
    try:
        from fairshield.service import logs, server
    except ImportError as error:
        raise MissingExtraError(
            f"fairshield serve needs {error.name}, which is not installed: "
            "pip install 'fairshield[service]'"
        ) from None
    return logs, server


def _announce(db: str, address: str, service: Service) -> None:
    click.echo(f"Serving {db} at {address}")
    click.echo(f"Dashboard: {address}/   API: {address}/openapi.json   Stop: Ctrl+C")
    if not service.access.required:
        click.echo(
            "No access keys: every program on this machine may decide and administer. Create one "
            f"with fairshield keys create --db {db} --name NAME --scope admin",
            err=True,
        )
    sys.stdout.flush()


def _leave() -> None:
    """End the process, also if a policy is still being made: the next start goes on with it."""
    if any(thread.name.startswith("fairshield-") for thread in threading.enumerate()):
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
