"""What is left out of the reference, because it says nothing."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx


def skip(app: Sphinx, what: str, name: str, item: object, skip: bool, options: Any) -> bool | None:
    """Leave out fields of named tuples: they are in the signature and in the text."""
    return True if str(item.__doc__).startswith("Alias for field number") else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
