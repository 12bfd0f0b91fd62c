"""Words that people look for lead to a heading: ``python tests/docs/check_search.py HTML``.

The site's search shows a heading, with a link to its place, if the words stand in it and make up
half of it; then come the pages on which all of them occur.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

SOUGHT = (
    "adverse action", "adverse impact", "bias audit", "calendar", "delayed",
    "demographic parity", "disparate impact", "drift", "equal opportunity", "equalized odds",
    "exempt", "false-positive rate", "four-fifths rule", "impact ratio", "inconclusive",
    "intersection", "Local Law 144", "PDF", "protected attribute", "quarter", "quota",
    "selective labels", "semicolon", "sensitive feature", "start counters", "statistical parity",
    "terminal", "true-positive rate", "vacuous",
)  # fmt: skip


def leads_to(words: str, heading: str) -> bool:
    """Whether the site's search shows ``heading`` to whoever looks for ``words``."""
    words, heading = words.lower(), heading.lower()
    return words in heading and 2 * len(words) >= len(heading)


def unfound(headings: Iterable[str]) -> list[str]:
    """The words that lead to none of these headings."""
    shown = list(headings)
    return [words for words in SOUGHT if not any(leads_to(words, heading) for heading in shown)]


def headings(site: Path) -> list[str]:
    """All headings in the search index of a built site."""
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    return list(index["alltitles"])


def main(folder: str) -> int:
    """Say which words are not found in the site in ``folder``; 1 if any is not."""
    missing = unfound(headings(Path(folder)))
    sys.stdout.write("".join(f"the search does not find {words!r}\n" for words in missing))
    sys.stdout.write(f"{len(SOUGHT)} words looked for, {len(missing)} not found\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
