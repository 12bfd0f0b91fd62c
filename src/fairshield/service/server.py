"""The process: binds, serves, drains."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from fairshield.errors import InvalidValueError
from fairshield.service.app import create_app
from fairshield.service.context import Limits, Service
from fairshield.service.store import Database

_GRACE = 20
"""Seconds that requests under way have to finish when the service is stopped."""


class Server(uvicorn.Server):
    """Uvicorn, which tells the service that it is stopping before it waits for requests to end."""

    def __init__(self, config: uvicorn.Config, told: Callable[[], None]) -> None:
        super().__init__(config)
        self._told = told

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop: streams of events end, requests under way are answered, no others are taken."""
        super().handle_exit(sig, frame)
        self._told()


def serve(
    database: Database,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: Limits | None = None,
    demo: bool = False,
    started: Callable[[Service], Any] | None = None,
    announce: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until told to stop; ``announce`` is told the address once requests are answered."""
    local = is_local(host)
    check_keys(database, host, local)
    holder: list[Service] = []

    def begun(service: Service) -> Any:
        holder.append(service)
        shown = f"[{host}]" if ":" in host else host
        announce(f"http://{shown}:{bound.getsockname()[1]}")
        return started(service) if started is not None else None

    bound = _bound(host, port)
    app = create_app(database, limits=limits, local=local, demo=demo, started=begun)
    config = uvicorn.Config(
        app, lifespan="on", access_log=False, log_config=None, server_header=False,
        date_header=False, loop="auto", http="httptools", timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE, limit_concurrency=None, ws="none", backlog=2048,
        h11_max_incomplete_event_size=None,
    )  # fmt: skip

    def told() -> None:
        for service in holder:
            service.engine.loop.call_soon_threadsafe(service.stopping.set)

    server = Server(config, told)
    with bound:
        server.run(sockets=[bound])
    logging.getLogger("fairshield.service").info("stopped")


def is_local(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_keys(database: Database, host: str, local: bool) -> None:
    """Refuse to serve other machines without keys."""
    if local:
        return
    connection = database.connect()
    try:
        connection.migrate(database.migrations())
        keys = connection.access_keys()
    finally:
        connection.close()
    if all(key.revoked is not None for key in keys):
        raise InvalidValueError(
            f"{host} can be reached from other machines, and there are no access keys: create one "
            f"first, with fairshield keys create --db {database.address} --name NAME --scope admin"
        )


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        # From here on nobody is refused: who comes before the first answer waits for it.
        bound.listen(2048)
    except OSError as error:
        bound.close()
        raise InvalidValueError(
            f"cannot listen on {host}:{port} ({error.strerror}): choose another with --host or "
            "--port"
        ) from None
    return bound
