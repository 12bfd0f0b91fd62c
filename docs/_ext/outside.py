"""Pages that stand outside the folder: the changelog, the architecture.

A page of the site that is nothing but a link to such a file shows the file itself; links between
the two worlds are turned so that they work here as they do on a code host.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers.data import JsonLexer
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

_STANDS_FOR = re.compile(r"\[[^\]]*\]\((\.\./[\w./-]+)\)\s*")
_LINK = re.compile(r"(?<=\]\()([\w./-]+\.\w+)(?=[#)])")


def show(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the file in the place of the page, and turn links that leave the folder."""
    here = Path(app.srcdir) / page
    shown = _STANDS_FOR.fullmatch(source[0])
    folder = here.parent
    if shown:
        file = (folder / shown[1]).resolve()
        app.env.note_dependency(str(file))
        source[0] = file.read_text(encoding="utf-8")
        folder = file.parent
    elif "../" not in source[0]:
        return
    places = _places(Path(app.srcdir))

    def turned(link: re.Match[str]) -> str:
        target = (folder / link[1]).resolve()
        return os.path.relpath(places.get(target, target), here.parent)

    source[0] = _LINK.sub(turned, source[0])


def _places(docs: Path) -> dict[Path, Path]:
    """Which page shows a file."""
    found = {}
    for page in docs.glob("*.md"):
        if shown := _STANDS_FOR.fullmatch(page.read_text(encoding="utf-8")):
            found[(docs / shown[1]).resolve()] = page
    return found


def trim(app: Sphinx, doctree: nodes.document) -> None:
    """Drop the empty line that ends an example for the sake of doctest."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext() and block.rawsource.endswith("\n"):
            block.rawsource = block.rawsource.rstrip("\n")
            block[:] = [nodes.Text(block.rawsource)]


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("source-read", show)
    app.connect("doctree-read", trim)
    app.add_lexer("csv", TextLexer)
    app.add_lexer("jsonl", JsonLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
