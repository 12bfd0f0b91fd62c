""":class:`Client` and :class:`AsyncClient` use streams of a service like local shields.

Needs the extra ``client``.
"""

from __future__ import annotations

from importlib.util import find_spec

from fairshield.base.errors import MissingExtraError

_MISSING = [name for name in ("httpx", "msgspec") if find_spec(name) is None]
if _MISSING:
    raise MissingExtraError(
        f"fairshield.Client needs {' and '.join(_MISSING)}: pip install 'fairshield[client]'"
    )

from fairshield.client.asynchronous import AsyncClient as AsyncClient
from fairshield.client.asynchronous import AsyncStream as AsyncStream
from fairshield.client.errors import ServiceError as ServiceError
from fairshield.client.errors import UnavailableError as UnavailableError
from fairshield.client.synchronous import Client as Client
from fairshield.client.synchronous import Stream as Stream
