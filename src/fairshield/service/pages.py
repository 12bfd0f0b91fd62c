"""The dashboard: pages rendered here, kept up to date by a small script."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from fairshield.service.context import Call
from fairshield.service.http import App, Reply
from fairshield.service.messages import Scope

STATIC = Path(__file__).with_name("static")


@dataclass(frozen=True)
class Page:
    """A page: its path, who may see it, how it is made."""

    path: str
    handle: Callable[[Call], Awaitable[App]]
    scope: Scope | None = "read"


async def overview(call: Call) -> Reply:
    """All streams."""
    return Reply(b"<!doctype html><title>fairshield</title>", content_type=b"text/html")


PAGES = (Page("/", overview),)
