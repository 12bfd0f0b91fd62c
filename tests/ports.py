"""``free_port`` finds a port for a server that is told which to use."""

from __future__ import annotations

import random
import socket

_CHOICE = range(20_000, 30_000)
"""Below those that the system gives to whoever asks for any port, also while a server starts."""


def free_port() -> int:
    """A port of the loopback interface that is free, another one in every process."""
    for port in random.SystemRandom().sample(_CHOICE, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("a hundred ports are taken")
