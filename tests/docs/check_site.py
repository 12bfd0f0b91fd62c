"""The built site needs no network and misses no page: ``python tests/docs/check_site.py HTML``.

Scripts, styles, fonts and pictures must come from the site itself, and links within it must lead
to a file and, where they name one, to a place in it.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {
    "audio": "src", "embed": "src", "iframe": "src", "img": "src", "link": "href",
    "object": "data", "script": "src", "source": "src", "video": "src",
}  # fmt: skip
NOT_LOADED = {"canonical", "next", "prev", "index", "search", "author", "license"}
_STYLE_LOADS = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in LOADS and LOADS[tag] in given and given.get("rel") not in NOT_LOADED:
            self.loads.append(given[LOADS[tag]])
        self.loads += [a or b for a, b in _STYLE_LOADS.findall(given.get("style", ""))]


@cache
def _page(path: Path) -> _Page:
    return _Page(path.read_text(encoding="utf-8"))


def problems(site: Path) -> list[str]:
    """What is wrong, one line each."""
    found = []
    for path in sorted(site.rglob("*.html")):
        page = _page(path)
        found += [f"{path}: loads {url}" for url in page.loads if _is_elsewhere(url)]
        found += [f"{path}: links to {url}" for url in page.links if _leads_nowhere(path, url)]
    for path in sorted(site.rglob("*.css")):
        loads = _STYLE_LOADS.findall(path.read_text(encoding="utf-8"))
        found += [f"{path}: loads {a or b}" for a, b in loads if _is_elsewhere(a or b)]
    return found


def _is_elsewhere(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def _leads_nowhere(path: Path, url: str) -> bool:
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        return False
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return True
    place = unquote(parts.fragment)
    return bool(place) and target.suffix == ".html" and place not in _page(target).places


def main(folder: str) -> int:
    """Say what is wrong with the site in ``folder``; 1 if anything is."""
    site = Path(folder).resolve()
    pages = len(list(site.rglob("*.html")))
    found = problems(site)
    sys.stdout.write("".join(f"{line}\n" for line in found))
    sys.stdout.write(f"{pages} pages in {folder}: {len(found)} problems\n")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
