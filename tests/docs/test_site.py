"""The site lists everything: public names, pages, notebooks."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from pathlib import Path

import check_site
import pytest

import fairshield

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted(DOCS.glob("notebooks/*.ipynb"))
PACKAGES = ("client", "fairlearn", "mlflow", "monitor", "periodic", "reports.plots", "sklearn")
"""Packages that pages name as places to import from, besides ``fairshield`` itself."""
HELPERS = {"require_matplotlib", "save_small", "signed_gap", "sparkline", "tenths"}
"""Functions of ``reports.plots`` that other modules of the library draw with."""


def documented() -> set[str]:
    """Everything in the reference, by the paths that it gives."""
    text = "".join(page.read_text("utf-8") for page in DOCS.glob("api/*.md"))
    return set(re.findall(r"^\.\. auto\w+:: ([\w.]+)(?:\(.*\))?$", text, re.M))


def named(path: str) -> object:
    """What stands at a path."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def exported(package: str) -> dict[str, object]:
    """The classes and functions that a package imports in order to offer them."""
    module = importlib.import_module(f"fairshield.{package}")
    names = [
        alias.asname
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    ]
    offered = {name: getattr(module, name) for name in names if name is not None}
    return {
        name: it for name, it in offered.items() if inspect.isroutine(it) or isinstance(it, type)
    }


def test_every_public_name_is_in_the_reference() -> None:
    direct = {path.removeprefix("fairshield.") for path in documented() if path.count(".") == 1}
    assert set(fairshield.__all__) - {"__version__"} == direct


@pytest.mark.parametrize("package", PACKAGES)
def test_what_a_documented_package_exports_is_in_the_reference(package: str) -> None:
    found = exported(package)
    assert found
    known = {id(named(path)) for path in documented()}
    assert {name for name, it in found.items() if id(it) not in known} - HELPERS == set()


@pytest.mark.parametrize("path", sorted(documented()))
def test_the_reference_gives_the_shortest_path(path: str) -> None:
    *folders, name = path.split(".")
    for end in range(1, len(folders)):
        outer = importlib.import_module(".".join(folders[:end]))
        offered = name in vars(outer) or name in getattr(outer, "__all__", ())
        same = offered and getattr(outer, name) is named(path)
        assert not same, f"{outer.__name__} exports it"


def listed(page: Path) -> set[str]:
    """The pages in the tables of contents of a page."""
    trees = re.findall(r"^```\{toctree\}\n((?:.*\n)*?)```$", page.read_text("utf-8"), re.M)
    entries = [line for tree in trees for line in tree.splitlines() if re.match(r"[^:\s]", line)]
    return {re.sub(r".*<(.*)>", r"\1", entry) for entry in entries}


@pytest.mark.parametrize("folder", [DOCS, DOCS / "api"], ids=["docs", "api"])
def test_every_page_is_in_a_table_of_contents(folder: Path) -> None:
    pages = {page.stem for page in folder.glob("*.md")} - {"index"}
    assert {name for name in listed(folder / "index.md") if "/" not in name} == pages


def test_every_notebook_is_in_a_table_of_contents() -> None:
    names = {f"notebooks/{path.stem}" for path in NOTEBOOKS}
    assert names == {name for name in listed(DOCS / "index.md") if name.startswith("notebooks/")}
    assert len(names) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path: Path) -> None:
    # They are made when the site is built; kept, they would change with every run.
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        assert not cell.get("outputs"), cell["source"]
        assert cell.get("execution_count") is None


@pytest.mark.parametrize(
    "line",
    [
        '<script src="https://cdn.example.org/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/a.css">',
        '<img src="http://example.org/a.png">',
        '<p style="background: url(https://example.org/a.png)">',
        '<a href="missing.html">',
        '<a href="index.html#missing">',
        '<a href="#missing">',
    ],
)
def test_a_site_that_fetches_or_misses_something_is_refused(line: str, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text('<a id="here" href="#here"></a><img src="data:image/png;base64,">')
    assert check_site.main(str(tmp_path)) == 0
    page.write_text(page.read_text() + line)
    check_site._page.cache_clear()
    assert check_site.main(str(tmp_path)) == 1


def test_a_style_that_fetches_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<p>")
    (tmp_path / "a.css").write_text('@import "https://example.org/a.css";')
    check_site._page.cache_clear()
    assert check_site.main(str(tmp_path)) == 1
