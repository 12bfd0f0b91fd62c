"""Endpoints that upload, specify and list policies."""

from __future__ import annotations

from typing import Any

from fairshield.base.words import written
from fairshield.service.engine.engine import utc_now
from fairshield.service.store import Connection, PolicyRow
from fairshield.service.web.context import Call
from fairshield.service.web.http import Reply, reply
from fairshield.wire.messages import Policies, PolicyMessage
from fairshield.wire.problems import Refusal


async def create_policy(call: Call) -> Reply:
    """Take in a policy file, or have a policy made."""
    policy_jobs, now = call.service.policy_jobs, written(utc_now())
    if isinstance(call.body, bytes):
        row, new = await policy_jobs.upload(call.body, now)
    else:
        row, new = await policy_jobs.specify(call.body, now)
    return reply(_policy(row), 202 if new else 200)


async def list_policies(call: Call) -> Reply:
    """All policies."""
    rows = await call.service.engine.read(Connection.policies)
    return reply(Policies(tuple(_policy(row) for row in rows)))


async def get_policy(call: Call) -> Reply:
    """One policy, by its id or digest."""
    which: str = call.path["policy"]
    row = await call.service.engine.read(lambda connection: connection.policy(which))
    if row is None:
        raise Refusal("not-found", f"there is no policy {which!r}")
    return reply(_policy(row))


def _policy(row: PolicyRow) -> PolicyMessage:
    fields: dict[str, Any] = {name: getattr(row, name) for name in PolicyMessage.__struct_fields__}
    return PolicyMessage(**fields)
