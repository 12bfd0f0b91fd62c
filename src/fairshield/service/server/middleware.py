"""Middleware that every request passes through, as plain ASGI."""

from __future__ import annotations

import asyncio
import logging

from fairshield.service.web.http import SAFE_HEADERS, App, Message, Receive, Scope, Send, problem
from fairshield.wire.problems import Refusal

logger = logging.getLogger("fairshield.service")


class SafeHeaders:
    """SafeHeaders adds :data:`~fairshield.service.web.http.SAFE_HEADERS` to every answer."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add to its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *SAFE_HEADERS]
            await send(message)

        await self._app(scope, receive, send_guarded)


class AnswerMistakes:
    """AnswerMistakes answers requests whose handler fails or is cancelled."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and answer it if that fails before there is an answer."""
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except (Exception, asyncio.CancelledError) as error:
            if scope["type"] != "http" or begun:
                raise
            await problem(_why(error), scope["path"])(scope, receive, send)


def _why(error: BaseException) -> Refusal:
    if isinstance(error, asyncio.CancelledError):
        return Refusal("unavailable", "the service is stopping", retry_after=1)
    logger.error("a request failed", exc_info=error)
    return Refusal("internal", "the service made a mistake, which is in its log")


class RefuseHiddenSlashes:
    """RefuseHiddenSlashes refuses paths with ``%2f``, which proxies may read as other paths."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, unless its path has an encoded slash."""
        if scope["type"] == "http" and b"%2f" in scope.get("raw_path", b"").lower():
            why = Refusal("not-found", f"there is nothing at {scope['path']}")
            await problem(why, scope["path"])(scope, receive, send)
            return
        await self._app(scope, receive, send)
