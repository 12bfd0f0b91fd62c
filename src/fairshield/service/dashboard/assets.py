"""Assets are files that pages need: compressed once, kept in memory, addressed by hash.

An address contains the hash of the content, so browsers may cache the answer for ever.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from fairshield.service.web.http import Receive, Reply, Scope, Send, problem
from fairshield.wire.problems import Refusal

_FOLDER = Path(__file__).with_name("static")
_FOR_GOOD = b"public, max-age=31536000, immutable"


@dataclass(frozen=True)
class Asset:
    """Asset is a file: its content, plain and compressed, and the hash in its address."""

    plain: bytes
    packed: bytes
    content_type: bytes
    version: str


@cache
def assets() -> dict[str, Asset]:
    """All files by name."""
    return {
        path.relative_to(_FOLDER).as_posix(): _asset(path)
        for path in sorted(_FOLDER.rglob("*"))
        if path.is_file()
    }


def _asset(path: Path) -> Asset:
    plain = path.read_bytes()
    kind = mimetypes.guess_type(path.name)[0] or "text/plain"
    charset = "; charset=utf-8" if kind.startswith("text/") else ""
    packed = gzip.compress(plain, 9, mtime=0)
    return Asset(plain, packed, (kind + charset).encode(), hashlib.sha256(plain).hexdigest()[:12])


def address(name: str) -> str:
    """Where a page finds a file."""
    return f"/static/{name}?v={assets()[name].version}"


async def serve_asset(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a file."""
    asset = assets().get(scope["path_params"]["path"])
    if asset is None:
        why = Refusal("not-found", f"there is nothing at {scope['path']}")
        await problem(why, scope["path"])(scope, receive, send)
        return
    current = scope["query_string"] == b"v=" + asset.version.encode()
    answer = compressed(scope, asset.plain, asset.content_type, packed=asset.packed)
    await replace(answer, cache=_FOR_GOOD if current else b"no-cache")(scope, receive, send)


def compressed(
    scope: Scope, plain: bytes, content_type: bytes, *, packed: bytes | None = None
) -> Reply:
    """An answer, compressed if the client accepts that."""
    vary = (b"vary", b"accept-encoding")
    if b"gzip" not in dict(scope["headers"]).get(b"accept-encoding", b""):
        return Reply(plain, content_type=content_type, headers=(vary,))
    body = gzip.compress(plain, 5) if packed is None else packed
    headers = (vary, (b"content-encoding", b"gzip"))
    return Reply(body, content_type=content_type, headers=headers)
