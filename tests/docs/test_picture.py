"""The picture of how a shield works is what its script draws, and can be read."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

DOCS = Path(__file__).parents[2] / "docs"
SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_is_what_its_script_draws(tmp_path: Path) -> None:
    script = DOCS / "examples" / "picture.py"
    subprocess.run([sys.executable, script, tmp_path / "drawn.svg"], check=True)
    kept = (DOCS / "images" / "shield.svg").read_bytes()
    assert (tmp_path / "drawn.svg").read_bytes() == kept, "run python docs/examples/picture.py"


def test_the_picture_has_its_own_ground_words_for_those_who_hear_it_and_nothing_to_fetch() -> None:
    source = (DOCS / "images" / "shield.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(source)
    ground = next(root.iter(f"{SVG}rect"))
    whole = float(root.get("width", 0)), float(root.get("height", 0))
    assert (float(ground.get("width", 0)) + 1, float(ground.get("height", 0)) + 1) == whole
    assert ground.get("fill") == "#FFFFFF"
    assert root.find(f"{SVG}title") is not None
    assert root.find(f"{SVG}desc") is not None
    assert not re.findall(r"https?://(?!www\.w3\.org/)|href|<script|<style", source)


def test_no_words_leave_the_picture() -> None:
    """No font is wider than 0.62 of its size on average, which is generous."""
    root = ElementTree.parse(DOCS / "images" / "shield.svg").getroot()
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for words in root.iter(f"{SVG}text"):
        x, y, size = (float(words.get(name, 0)) for name in ("x", "y", "font-size"))
        long = 0.62 * size * len(words.text or "")
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[words.get("text-anchor", "")] * long
        assert left >= 0, words.text
        assert left + long <= width, words.text
        assert size <= y <= height, words.text
