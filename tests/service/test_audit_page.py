"""The page of an audit in a real browser, of logs that a real service has exported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_kit import CHROMIUM, chromium, make_policies, populate, serving
from click.testing import CliRunner

from fairshield.cli.app import app

pytestmark = pytest.mark.slow

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")

STREAMS = {"credit": "plain", "labelled": "labelled", "periods": "perpetual"}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each stream, from its log in either format, and one with violations."""
    folder = tmp_path_factory.mktemp("pages")
    policies = make_policies(folder)
    with serving(folder, "--db", str(folder / "s.db")) as server, server.client() as client:
        populate(server, policies, tuple(STREAMS))
        logs = {}
        for stream in STREAMS:
            for kind in ("jsonl", "csv"):
                logs[stream, kind] = folder / f"{stream}.{kind}"
                content = client.get(f"/v1/streams/{stream}/log.{kind}").content
                logs[stream, kind].write_bytes(content)
    made = {}
    for (stream, kind), log in logs.items():
        page = folder / f"{stream}-{kind}.html"
        options = ["--policy", str(policies[STREAMS[stream]]), "--html", str(page)]
        result = CliRunner().invoke(app, ["audit", str(log), *options])
        assert result.exit_code == 0, result.output
        assert "not the policy's" not in result.output
        made[page.stem] = page
    page = made["violated"] = folder / "violated.html"
    options = ["--property", "demographic-parity", "--bound", "0", "--horizon", "3"]
    log = logs["credit", "csv"]
    result = CliRunner().invoke(app, ["audit", str(log), *options, "--html", str(page)])
    assert result.exit_code == 1, result.output
    return made


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium to look with")
    with chromium() as found:
        yield found


def test_both_exports_of_a_stream_tell_the_same_overruled_decisions(
    pages: dict[str, Path],
) -> None:
    for stream in STREAMS:
        counts = {
            pages[f"{stream}-{kind}"].read_text("utf-8").count("<tr><th scope")
            for kind in ("jsonl", "csv")
        }
        assert len(counts) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["credit-csv", "labelled-csv", "periods-jsonl", "violated"])
def test_a_page_is_accessible_and_makes_no_noise(
    browser: Any, pages: dict[str, Path], name: str, scheme: Any
) -> None:
    complaints: list[str] = []
    asked: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(pages[name].as_uri())
    found = axe.Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "best-practice"]})
    context.close()
    assert found.violations_count == 0, found.generate_report()
    assert complaints == []
    assert asked == [pages[name].as_uri()]


@pytest.mark.parametrize("width", [375, 800])
def test_a_page_fits_a_phone_and_paper(browser: Any, pages: dict[str, Path], width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.emulate_media(media="print" if width == 800 else "screen")
    page.goto(pages["credit-csv"].as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_on_paper_everything_is_unfolded(browser: Any, pages: dict[str, Path]) -> None:
    page = browser.new_page()
    page.goto(pages["credit-csv"].as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
    last = page.locator("table.overruled tbody tr").last
    assert not last.evaluate("row => row.checkVisibility()")
    page.emulate_media(media="print")
    assert last.evaluate("row => row.checkVisibility()")
    page.close()
