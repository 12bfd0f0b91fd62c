"""Pages that ask for an access key, accept it and delete it."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qs, parse_qsl

from fairshield.service.dashboard.base import render, see_other
from fairshield.service.web.callers import COOKIE
from fairshield.service.web.context import Call
from fairshield.service.web.http import Reply
from fairshield.wire.problems import Refusal


async def login(call: Call) -> Reply:
    """Ask for a key."""
    if not call.service.access.required:
        return see_other("/")
    asked = parse_qs(call.scope["query_string"].decode("latin-1")).get("next", ["/"])[0]
    return render(call, "login.html.j2", next=_local(asked), refused=False)


async def take_key(call: Call) -> Reply:
    """Take the key that was typed in, if it is in force."""
    form = dict(parse_qsl(call.body.decode("latin-1")))
    token, then = form.get("key", "").strip(), _local(form.get("next", "/"))
    try:
        call.service.access.caller(token)
    except Refusal:
        page = render(call, "login.html.j2", next=then, refused=True)
        return replace(page, status=401)
    return see_other(then, _cookie(call, token))


async def logout(call: Call) -> Reply:
    """Forget the key."""
    return see_other("/login", _cookie(call, "", "; Max-Age=0"))


def _cookie(call: Call, value: str, more: str = "") -> tuple[bytes, bytes]:
    secure = "; Secure" if call.scope.get("scheme") == "https" else ""
    text = f"{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{more}"
    return b"set-cookie", text.encode("latin-1")


def _local(path: str) -> str:
    """``path`` if it is an address on this service, else the first page."""
    plain = path.startswith("/") and path[1:2] not in ("/", "\\") and path.isprintable()
    return path if plain else "/"
