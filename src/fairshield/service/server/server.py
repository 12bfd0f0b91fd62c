"""``serve`` runs the service in this process: it binds, serves, and drains on stopping."""

from __future__ import annotations

import gc
import ipaddress
import logging
import resource
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import uvicorn

from fairshield.base.errors import InvalidValueError
from fairshield.service.server.app import create_app
from fairshield.service.server.connections import Patience, limited, sweep
from fairshield.service.store import Database, KeyRow, StoreError
from fairshield.service.web.context import Limits, RunningService

if TYPE_CHECKING:
    from fairshield.service.server.tracing import Tracing

_GRACE = 10
"""Seconds that requests under way have to finish when the service is stopped."""
_VANISHED = 30
"""Seconds without an acknowledgement after which a client counts as gone."""
_OTHER_FILES = 100
"""Open files reserved for other purposes than connections of clients."""


class Server(uvicorn.Server):
    """Server is uvicorn's; it tells the service to stop before it waits for requests to end."""

    def __init__(
        self,
        config: uvicorn.Config,
        patience: Patience,
        listening: Callable[[], None],
        told: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._patience, self._listening, self._told = patience, listening, told

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, and announce the address."""
        await super().startup(sockets)
        _keep_what_is_there()
        self._listening()

    async def on_tick(self, counter: int) -> bool:
        """Close overdue connections once a second."""
        if counter % 10 == 0:
            sweep(self.server_state.connections, time.monotonic(), self._patience)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin to stop: end event streams, answer requests under way, accept no others.

        A second signal stops without waiting for clients.
        """
        self.force_exit = self.should_exit
        self.should_exit = True
        self._told()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop; also without waiting for clients, the service stores or refuses its requests."""
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()


def serve(
    database: Database,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: Limits | None = None,
    patience: Patience | None = None,
    demo: bool = False,
    tracing: Tracing | None = None,
    started: Callable[[RunningService], Any] | None = None,
    announce: Callable[[str, RunningService], None] = lambda address, service: None,
) -> None:
    """Serve until stopped; ``announce`` is called with the address once it can be reached."""
    local, limits = is_local(host), limits or Limits()
    _check_host(host, port)
    keys = prepared(database)
    if not local:
        check_keys(keys, database, host)
    holder: list[RunningService] = []

    def begun(service: RunningService) -> Any:
        holder.append(service)
        return started(service) if started is not None else None

    bound = _bound(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{bound.getsockname()[1]}"
    app = create_app(
        database, limits=limits, local=local, demo=demo, tracing=tracing, started=begun
    )
    config = uvicorn.Config(
        app, lifespan="on", access_log=False, log_config=None, server_header=False,
        date_header=False, loop="auto", http=limited(_most_connections(limits)),
        timeout_graceful_shutdown=_GRACE, ws="none", backlog=2048,
    )  # fmt: skip

    def told() -> None:
        for service in holder:
            service.engine.loop.call_soon_threadsafe(service.stopping.set)

    server = Server(config, patience or Patience(), lambda: announce(address, holder[0]), told)
    with bound:
        server.run(sockets=[bound])
    if tracing is not None:
        tracing.close()
    logging.getLogger("fairshield.service").info("stopped")


def _keep_what_is_there() -> None:
    """Exclude all objects that exist now from garbage collection.

    Modules consist of many objects that stay; traversing them in each collection would delay
    answers noticeably.
    """
    gc.collect()
    gc.freeze()


def is_local(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def prepared(database: Database) -> list[KeyRow]:
    """Migrate the database to the current schema; returns its access keys."""
    try:
        connection = database.connect()
        try:
            connection.migrate(database.migrations())
            return connection.access_keys()
        finally:
            connection.close()
    except StoreError as error:
        if database.address in str(error):
            raise
        raise StoreError(f"{database.address} cannot be served: {error}") from error


def check_keys(keys: list[KeyRow], database: Database, host: str) -> None:
    """Refuse to serve other machines without keys."""
    if all(key.revoked is not None for key in keys):
        raise InvalidValueError(
            f"{host} can be reached from other machines, and there are no access keys: create one "
            f"first, with fairshield keys create --db {database.address} --name NAME --scope admin"
        )


def _check_host(host: str, port: int) -> None:
    """Refuse a host name that cannot be resolved."""
    try:
        socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise InvalidValueError(
            f"--host {host} is no address, and no name that has one: use 127.0.0.1, 0.0.0.0 or "
            "the name of this machine"
        ) from None


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _find_vanished(bound)
        bound.bind((host, port))
        # From here on connections are accepted; their requests wait until the service is ready.
        bound.listen(2048)
    except OSError as error:
        bound.close()
        raise InvalidValueError(
            f"cannot listen on {host}:{port} ({error.strerror}): choose another with --host or "
            "--port"
        ) from None
    return bound


def _find_vanished(bound: socket.socket) -> None:
    """Set TCP keep-alive on the socket, so that vanished clients are noticed."""
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _VANISHED // 2), ("TCP_KEEPINTVL", _VANISHED // 6), ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", _VANISHED * 1_000),
    ):  # fmt: skip
        option = getattr(socket, name, None)  # not every system has all of them
        if option is not None:
            bound.setsockopt(socket.IPPROTO_TCP, option, value)


def _most_connections(limits: Limits) -> int:
    """The wanted number of connections, or fewer if the limit on open files is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + _OTHER_FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(limits.connections, soft - _OTHER_FILES))
