""":class:`Client` and :class:`AsyncClient` use streams of a service like local shields.

Needs the extra ``client``.
"""

from __future__ import annotations

from fairshield.base.extras import check_installed

check_installed("fairshield.Client", "httpx", "msgspec", extra="client")

from fairshield.client.asynchronous import AsyncClient as AsyncClient
from fairshield.client.asynchronous import AsyncStream as AsyncStream
from fairshield.client.errors import ServiceError as ServiceError
from fairshield.client.errors import UnavailableError as UnavailableError
from fairshield.client.synchronous import Client as Client
from fairshield.client.synchronous import Stream as Stream
