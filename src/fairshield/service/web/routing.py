"""Dispatch answers the methods of a path; ``path_of`` checks the names in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from fairshield.base.errors import FairshieldError
from fairshield.service.web.context import RunningService
from fairshield.service.web.http import App, Receive, Reply, Scope, Send, problem, problem_of
from fairshield.wire.problems import Refusal

_NAMED = re.compile(r"[A-Za-z0-9._-]{1,80}\Z")
"""Pattern of names of streams and ids of policies."""


def problem_at(scope: Scope, error: FairshieldError) -> Reply:
    """An error as a problem in JSON."""
    return problem_of(error, scope["path"])


class Dispatch:
    """Dispatch passes a request to the app of its method; ``refused`` makes answers to errors."""

    def __init__(
        self,
        path: str,
        by_method: dict[str, App],
        *,
        endless: bool = False,
        refused: Callable[[Scope, FairshieldError], App] = problem_at,
    ) -> None:
        self.path, self.refused = path, refused
        self._by_method = dict(by_method)
        if "GET" in by_method and not endless:
            self._by_method["HEAD"] = by_method["GET"]
        self._allow = ", ".join(sorted(self._by_method)).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        app = self._by_method.get(scope["method"])
        if app is None:
            why = Refusal("method-not-allowed", f"{scope['method']} is not for {scope['path']}")
            app = problem(why, scope["path"], (b"allow", self._allow))
        await app(scope, receive, send)


def path_of(scope: Scope) -> dict[str, Any]:
    """The parameters of the path; names that cannot exist are refused."""
    path: dict[str, Any] = dict(scope["path_params"])
    for name in ("name", "policy"):
        if not _NAMED.match(path.get(name, "-")):
            raise Refusal("not-found", f"there is nothing called {path[name]!r}")
    if "n" in path:
        text = path["n"]
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise Refusal("not-found", f"{text!r} is not the number of a decision")
        path["n"] = int(text)
    return path


def service_of(scope: Scope) -> RunningService:
    """The running service that was asked."""
    service: RunningService = scope["app"].state.service
    return service
