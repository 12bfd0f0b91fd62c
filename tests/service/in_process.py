"""The whole application in this process: requests go through its middleware, not over a socket."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
from engines import Artifacts

from fairshield.service.server.app import create_app
from fairshield.service.store import open_database
from fairshield.service.web.context import RunningService
from fairshield.wire.messages import StreamRequest


@contextlib.asynccontextmanager
async def application(
    path: Path, artifacts: Artifacts, *streams: StreamRequest
) -> AsyncIterator[tuple[httpx.AsyncClient, RunningService]]:
    """A client of a service over a file that holds all artefacts, with these streams in it."""
    app = create_app(open_database(str(path)))
    async with app.router.lifespan_context(app):
        service: RunningService = app.state.service
        for name, digest in artifacts.digests.items():
            content = artifacts.content(name)
            await service.engine.write(lambda c, d=digest, b=content: c.put_artifact(d, b))  # type: ignore[misc]
        for request in streams:
            await service.engine.create(request)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client, service


async def post(client: httpx.AsyncClient, path: str, body: object, key: str) -> httpx.Response:
    """The answer to a request that must be answered."""
    answer = await client.post(path, json=body, headers={"idempotency-key": key})
    assert answer.status_code == 200, answer.text
    return answer
