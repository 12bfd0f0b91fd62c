"""What the pages show can be run, and what they point to exists."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path

import pytest
from page_blocks import RUNNABLE, Block, Page, blocks

from fairshield.periodic import PeriodicPolicy

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = sorted(ROOT.glob("docs/**/*.md"))
PAGES = sorted([*ROOT.glob("*.md"), *DOCS])
ELSEWHERE = {
    "cli.md",  # its sessions are played, and compared letter by letter, by tests/cli
    "http-api.md",  # its commands are sent to a service by test_service_pages
}
READ_DATA = {"datasets.md", "reproduce.md"}  # their examples need the raw data sets


def to_run(page: Path) -> list[Block]:
    """The blocks of a page that are run, and the files they need.

    The doctests of the README are run by pytest itself.
    """
    wanted = RUNNABLE - {"python"} if page == README else RUNNABLE
    return [
        block
        for block in blocks(page.read_text("utf-8"))
        if (block.language in wanted or block.file) and not block.not_run
    ]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[] if page == README else pytest.mark.slow)
        for page in [README, *DOCS]
        if page.name not in ELSEWHERE and to_run(page)
    ],
)
def test_what_a_page_shows_can_be_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.name in READ_DATA and not os.environ.get("FAIRSHIELD_DATA"):
        pytest.skip("FAIRSHIELD_DATA names no directory with the raw data sets")
    # A page may add a kind of period, which other tests must not find.
    monkeypatch.setattr(PeriodicPolicy, "_stored", dict(PeriodicPolicy._stored))
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    shown = Page(page.name, folder)
    for name, value in shown.env.items():
        monkeypatch.setenv(name, value)
    for block in to_run(page):
        shown.run(block)


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_data_on_a_page_can_be_read(page: Path) -> None:
    readers = {"json": json.loads, "toml": tomllib.loads}
    for block in blocks(page.read_text("utf-8")):
        if block.language in readers:
            readers[block.language](block.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_source_files_that_are_named_exist(page: Path) -> None:
    for name in re.findall(
        r"`((?:src|tests|docs|benchmarks)/[\w/.-]+\.\w+)`", page.read_text("utf-8")
    ):
        assert (ROOT / name).exists(), f"{page.name} names {name}"
