"""ARCHITECTURE.md names files that exist, and every folder of the package."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def test_every_path_that_is_named_exists() -> None:
    named = re.findall(r"`((?:src|tests|docs)/[\w/.-]+)`", TEXT)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_folder_of_the_package_is_in_the_table_of_layers() -> None:
    package = ROOT / "src" / "fairshield"
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    table = TEXT[TEXT.index("## Layers") : TEXT.index("## From a specification")]
    assert folders <= set(re.findall(r"`(\w+)/`", table))


def test_every_folder_of_the_service_is_in_its_table() -> None:
    service = ROOT / "src" / "fairshield" / "service"
    folders = {path.parent.name for path in service.glob("*/__init__.py")}
    table = TEXT[TEXT.index("## The service") : TEXT.index("**Group commit.**")]
    assert folders <= set(re.findall(r"`(\w+)/`", table))
