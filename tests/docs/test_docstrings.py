"""Docstrings of classes say in their first line who does what."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_SOURCES = Path(__file__).parents[2] / "src"


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield every class, and the place where it is defined."""
    for path in sorted(_SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield f"{path.relative_to(_SOURCES)}:{node.lineno}", node


def begins_with_name_and_verb(name: str, text: str) -> bool:
    """Whether a text begins with the name and a verb in the third person."""
    return re.match(rf"{re.escape(name)} (?!as\b)[a-z]+s\b", text) is not None


def test_the_docstring_of_a_class_begins_with_its_name_and_a_verb() -> None:
    others = [
        f"{where}: {node.name}: {(text or 'no docstring').splitlines()[0]}"
        for where, node in classes()
        if not begins_with_name_and_verb(node.name, text := ast.get_docstring(node) or "")
    ]
    assert not others, "\n".join(others)


def test_a_noun_phrase_is_not_a_statement() -> None:
    assert begins_with_name_and_verb("Ledger", "Ledger counts decisions.")
    for text in ("Counts decisions.", "Ledger: counts decisions.", "Ledger as arrays.", ""):
        assert not begins_with_name_and_verb("Ledger", text)
