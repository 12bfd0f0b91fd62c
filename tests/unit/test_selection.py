"""What ``make test`` leaves out is never a whole file of laws."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("laws", "golden", "conformance")


class Collected:
    """A plugin that keeps the files of which a test was chosen."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.files = {item.path for item in session.items}


def chosen_by_make_test() -> str:
    """The expression over marks with which ``make test`` chooses its tests."""
    recipe = (ROOT / "Makefile").read_text("utf-8")
    found = re.search(r'^test:.*\n\t.*\$\(PYTEST\) -m "([^"]*)" \$\(ARGS\)$', recipe, re.M)
    assert found, "the Makefile does not say which tests make test runs"
    return found[1]


def test_every_file_of_laws_takes_part_in_make_test() -> None:
    folders = [ROOT / "tests" / folder for folder in FOLDERS]
    collected = Collected()
    options = ["--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:xdist"]
    assert not pytest.main(
        [*options, "-m", chosen_by_make_test(), *map(str, folders)], plugins=[collected]
    )
    laws = {file for folder in folders for file in folder.glob("test_*.py")}
    assert laws
    assert sorted(file.name for file in laws - collected.files) == []
