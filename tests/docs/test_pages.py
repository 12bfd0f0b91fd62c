"""What the pages show can be run, and what they point to exists."""

from __future__ import annotations

import doctest
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
READ_DATA = {"datasets.md", "reproduce.md"}  # their examples need the raw data sets


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=lambda page: page.name)
def test_examples_give_what_the_page_says(page: Path) -> None:
    # The README is run by pytest itself.
    if page.name in READ_DATA and not os.environ.get("FAIRSHIELD_DATA"):
        pytest.skip("FAIRSHIELD_DATA names no directory with the raw data sets")
    failed, _ = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert failed == 0


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
