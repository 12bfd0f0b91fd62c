"""Endpoints that make, record, list and explain decisions."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec

from fairshield.service.api.base import MOST_ON_A_PAGE, Query
from fairshield.service.engine.commands import Command, Decide, DecideBatch, Observe, Overrule
from fairshield.service.history import views
from fairshield.service.log.answers import decision_of
from fairshield.service.log.entries import logged
from fairshield.service.web.context import Call, stream_number
from fairshield.service.web.http import Reply, reply
from fairshield.wire.messages import DecisionsMessage, Number
from fairshield.wire.problems import Refusal


class DecisionsQuery(Query, frozen=True):
    """DecisionsQuery asks for decisions before ``before``, the latest first.

    With ``overruled`` it asks for overruled ones only.
    """

    before: Number = 2**53
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ON_A_PAGE)] = 50
    overruled: bool = False


async def _submit(call: Call, command: Command) -> Reply:
    answer = await call.service.engine.submit(
        call.path["name"], command, key=call.key, actor=call.caller.actor
    )
    return Reply(answer)


async def decide(call: Call) -> Reply:
    """Decide one person."""
    begun = time.perf_counter()
    answer = await _submit(call, Decide(call.body))
    call.service.latencies.add(time.perf_counter() - begun)
    return answer


async def decide_batch(call: Call) -> Reply:
    """Decide many people."""
    return await _submit(call, DecideBatch(call.body.decisions))


async def observe(call: Call) -> Reply:
    """Record an outcome."""
    return await _submit(call, Observe(call.body))


async def override(call: Call) -> Reply:
    """Record a person's decision."""
    return await _submit(call, Overrule(call.path["n"], call.body))


async def get_decision(call: Call) -> Reply:
    """One decision, as it was answered."""
    number, n = await stream_number(call), call.path["n"]
    engine = call.service.engine
    row = await engine.read(lambda connection: connection.decision(number, n))
    if row is None:
        raise Refusal("not-found", f"stream {call.path['name']!r} has no decision {n}")
    length = await engine.query(call.path["name"], lambda live: live.length)
    return reply(decision_of(logged(row), length))


async def list_decisions(call: Call) -> Reply:
    """Decisions, the latest first."""
    number, query = await stream_number(call), call.query
    engine = call.service.engine
    rows = await engine.read(
        lambda connection: connection.latest(
            number, before=query.before, limit=query.limit, only_overruled=query.overruled
        )
    )
    length = await engine.query(call.path["name"], lambda live: live.length)
    return reply(DecisionsMessage(tuple(decision_of(logged(row), length) for row in rows)))


async def explain_decision(call: Call) -> Reply:
    """Why a decision was made."""
    number, n, policies = await stream_number(call), call.path["n"], call.service.policies
    return reply(
        await call.service.engine.readers.read_long(
            lambda connection: views.explanation(number, n, connection, policies)
        )
    )
