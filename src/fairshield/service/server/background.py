"""Background tasks of a service: reading its keys again, and auditing its logs."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from fairshield.base.errors import FairshieldError
from fairshield.service.history.audit import audit_stream
from fairshield.service.store import Connection
from fairshield.service.web.context import RunningService
from fairshield.wire.problems import Refusal

logger = logging.getLogger("fairshield.service")
_KEYS_EVERY = 1.0
"""Seconds between two readings of the access keys."""


async def watch_keys(service: RunningService) -> None:
    """Read the keys again and again, because other processes create and revoke them."""
    while True:
        await asyncio.sleep(_KEYS_EVERY)
        with contextlib.suppress(Refusal):
            service.access.refresh(await service.engine.read(Connection.access_keys))


def audit(service: RunningService) -> None:
    """Replay every log from its beginning, in a thread beside the others, and say what is wrong."""
    try:
        connection = service.engine.database.connect()
        try:
            for _, name in connection.streams():
                found = _findings(service, connection, name)
                if service.ended.is_set():
                    return
                service.findings[name] = found
                if found:
                    # Only their number: findings quote entries.
                    logger.error(
                        "stream %s: the audit has %d finding%s (fairshield audit --db)",
                        name, found, "s" * (found > 1),
                    )  # fmt: skip
        finally:
            connection.close()
    except FairshieldError as error:
        logger.warning("the audit was given up (%s)", type(error).__name__)


def _findings(service: RunningService, connection: Connection, name: str) -> int:
    """How many findings the audit of a stream has; that it fails is one."""
    try:
        return len(audit_stream(connection, service.policies, name, service.ended).findings)
    except FairshieldError:
        raise
    except Exception as error:  # what is stored of one stream must not hide the others
        logger.error("stream %s: its audit has failed (%s)", name, type(error).__name__)
        return 1
