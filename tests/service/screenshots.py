"""Pictures of the dashboard for the documentation.

``PYTHONPATH=tests python tests/service/screenshots.py`` takes them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from browser_kit import WebServer, chromium, serving
from live_server import wait_for
from playwright.sync_api import expect

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SIZE = {"width": 1280, "height": 800}
PICTURES = (
    ("dashboard", "/", "light", SIZE | {"height": 640}),
    ("stream", "/streams/loans", "light", SIZE),
    ("stream-dark", "/streams/benefits", "dark", SIZE),
)


def main() -> None:
    """Take all pictures of a demonstration that has run for a while."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), "--demo") as server,
        chromium() as browser,
    ):
        wait_for(lambda: _well_under_way(server), "the demonstration does not get going")
        for name, path, scheme, viewport in PICTURES:
            page = browser.new_page(viewport=viewport, color_scheme=scheme)
            page.goto(server.address + path)
            expect(page.locator("#live")).to_have_text("Live")
            expect(page.get_by_text("being computed")).to_have_count(0, timeout=60_000)
            wait_for(lambda: _well_under_way(server), "the demonstration does not go on")
            page.wait_for_timeout(1_200)
            page.screenshot(path=IMAGES / f"{name}.png")
            page.close()


def _well_under_way(server: WebServer) -> bool:
    streams: list[Any] = server.get("/v1/streams")["streams"]
    done = [stream["state"]["position"] / stream["length"] for stream in streams]
    return len(done) == 3 and all(0.5 < share < 0.8 for share in done)


if __name__ == "__main__":
    main()
