"""WebServer runs a server with streams for tests in a browser."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from live_server import PATIENCE, wait_for
from ports import free_port

import fairshield as fs

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
_QUIETLY = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*_QUIETLY])
        yield browser
        browser.close()


# The server ---------------------------------------------------------------------------------


@dataclass
class WebServer:
    """``fairshield serve`` with these arguments, always on the same port."""

    folder: Path
    arguments: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    token: str | None = None
    _process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start, and wait until it answers."""
        command = [sys.executable, "-m", "fairshield", "serve", "--port", str(self.port)]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *self.arguments], stdout=log, stderr=log, env={**os.environ}
            )
        wait_for(self._answers, "the server does not answer")

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.address}/readyz", timeout=1).status_code == 200
        except httpx.TransportError:
            return False

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and wait for the end; returns the exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(how)
        return self._process.wait(PATIENCE)

    def client(self) -> httpx.Client:
        """A client for the API."""
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        return httpx.Client(base_url=self.address, headers=headers, timeout=PATIENCE)

    def post(self, path: str, body: Any, key: str | None = None) -> Any:
        """Send a POST request to the API; returns the answer."""
        headers = {"idempotency-key": key} if key else {}
        with self.client() as client:
            answer = client.post(path, json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer.json()

    def get(self, path: str) -> Any:
        """Send a GET request to the API; returns the answer."""
        with self.client() as client:
            return client.get(path).json()

    def decide(self, stream: str, group: str, proposed: bool, cost: float = 0.5) -> Any:
        """Decide one person, with a new idempotency key."""
        body = {"group": group, "proposed": proposed, "cost": cost}
        return self.post(f"/v1/streams/{stream}/decisions", body, key=str(time.monotonic_ns()))


@contextlib.contextmanager
def serving(folder: Path, *arguments: str, **settings: Any) -> Iterator[WebServer]:
    """A running server, which ends with the context."""
    server = WebServer(folder, arguments, **settings)
    try:
        server.start()
        yield server
    finally:
        server.stop(signal.SIGKILL)


# Streams ------------------------------------------------------------------------------------


def make_policies(folder: Path) -> dict[str, Path]:
    """Write small policy files."""
    even = fs.InputModel.agnostic({"alpha": 0.5, "beta": 0.5})
    parity = fs.DemographicParity("0.25")
    priced = fs.InputModel.from_table(
        {
            (group, proposed, cost): share
            for group in ("alpha", "beta")
            for proposed in (False, True)
            for cost, share in ((0.0, 0.02), (0.25, 0.13), (0.5, 0.05), (0.75, 0.05))
        }
    )
    made = {
        "plain": fs.synthesize(parity, even, horizon=12),
        "labelled": fs.synthesize(fs.EqualOpportunity("0.25"), even, horizon=8),
        "perpetual": fs.PerpetualShield(parity, even, period=8).policy,
        "support": fs.synthesize(fs.DisparateImpact("0.8", min_support=4), priced, horizon=12),
        "never": fs.synthesize(fs.DemographicParity("0.25", min_support=7), even, horizon=12),
    }
    paths = {name: folder / f"{name}.shield" for name in made}
    for name, policy in made.items():
        policy.save(paths[name])
    return paths


STREAMS: dict[str, dict[str, Any]] = {
    "credit": {"policy": "plain", "human": True},
    "empty": {"policy": "plain"},
    "labelled": {"policy": "labelled"},
    "over": {"policy": "plain", "windows": 1},
    "periods": {"policy": "perpetual"},
    "rare": {"policy": "support"},
    "never": {"policy": "never"},
}
_PEOPLE = {"credit": 29, "labelled": 13, "over": 12, "periods": 21, "rare": 430, "never": 14}


def populate(server: WebServer, policies: dict[str, Path], names: tuple[str, ...] = ()) -> None:
    """Streams of every sort, with decisions in most of them."""
    digests = {name: _upload(server, path) for name, path in policies.items()}
    for name in names or tuple(STREAMS):
        settings = STREAMS[name]
        server.post(
            "/v1/streams", {**settings, "name": name, "policy": digests[settings["policy"]]}
        )
        if name in _PEOPLE:
            people = [_person(i, name) for i in range(_PEOPLE[name])]
            server.post(f"/v1/streams/{name}/decisions:batch", {"decisions": people}, key="first")


def _person(i: int, name: str) -> dict[str, Any]:
    """Of alpha one in five is proposed, of beta four in five; every third window is alpha's."""
    labelled = name == "labelled"
    group = ("alpha", "beta")[i % 2 if name != "rare" or i // 12 % 3 else 0]
    person = {"group": group, "proposed": (i // 2 % 5 > 0) == (group == "beta"), "cost": i % 4 / 4}
    return person | ({"outcome": i % 3 > 0} if labelled else {})


def _upload(server: WebServer, path: Path) -> str:
    with server.client() as client:
        kind = {"content-type": "application/octet-stream"}
        digest: str = client.post("/v1/policies", content=path.read_bytes(), headers=kind).json()[
            "digest"
        ]

        def ready() -> bool:
            return bool(client.get(f"/v1/policies/{digest}").json()["status"] == "ready")

        wait_for(ready, "the policy is never ready")
    return digest


def number(text: str) -> int:
    """The first whole number in a text."""
    found = re.search(r"[\d,]+", text)
    assert found, text
    return int(found[0].replace(",", ""))
