"""Whoever looks for a word of the field finds a place that says more, and titles are in words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import check_search
import pytest

DOCS = Path(__file__).parents[2] / "docs"
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def sections(page: Path) -> dict[str, str]:
    """Headings of a page, and what stands below each up to the next."""
    text = _FENCED.sub("", page.read_text("utf-8"))
    _, *parts = re.split(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


GLOSSARY = sections(DOCS / "glossary.md")


@pytest.mark.parametrize("words", check_search.SOUGHT)
def test_a_word_that_people_look_for_leads_somewhere(words: str) -> None:
    """To an entry of the glossary, which links to a page, or to another entry that does."""
    entries = [h for h in GLOSSARY if check_search.leads_to(words, h)]
    assert entries, f"no heading of glossary.md is about {words!r}"
    for heading in entries:
        text = GLOSSARY[heading]
        near = [h for h in GLOSSARY if f"(#{anchor(h)})" in text]
        assert re.search(r"\]\([\w/-]+\.md", text + "".join(GLOSSARY[h] for h in near)), heading


def anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_entries_of_the_glossary_are_in_order() -> None:
    terms = [heading.casefold() for heading in GLOSSARY if heading != "Glossary"]
    assert terms == sorted(terms)
    assert len(terms) > 50


def test_the_glossary_says_from_where_positions_count() -> None:
    assert "from 0" in GLOSSARY["Position"]
    assert "from 1" in GLOSSARY["Position"]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_headings_are_in_words(page: Path) -> None:
    """Letters of formulas are explained in the text below, not above it."""
    for heading in sections(page):
        assert not re.search(r"κ|\bT\b", heading), heading


def test_the_check_of_the_built_site_misses_what_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(headings: list[str]) -> None:
        index = json.dumps({"alltitles": {h: [[0, None]] for h in headings}})
        (tmp_path / "searchindex.js").write_text(f"Search.setIndex({index})", encoding="utf-8")

    write([*GLOSSARY])
    assert check_search.main(str(tmp_path)) == 0
    write([h for h in GLOSSARY if h != "Quota"])
    assert check_search.main(str(tmp_path)) == 1
    assert "'quota'" in capsys.readouterr().out
