"""References to where a thing is defined lead to the name under which it is documented."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import fairshield

PUBLIC = {
    id(value): name
    for name in dir(fairshield)
    if getattr(value := getattr(fairshield, name), "__module__", None)
}


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.Element
) -> nodes.Element | None:
    """``fairshield.inputs.model.InputModel`` is documented as ``fairshield.InputModel``."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    name = _public(target) or _public(f"{node.get('py:module', 'fairshield')}.{target}")
    if name is None:
        return None
    domain = env.domains.python_domain
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", f"fairshield.{name}", node, text
    )


def _public(target: str) -> str | None:
    parts = target.split(".")
    for i in range(len(parts) - 1, 0, -1):
        try:
            value: Any = import_module(".".join(parts[:i]))
        except ImportError:
            continue
        for j, part in enumerate(parts[i:], i):
            value = getattr(value, part, None)
            if id(value) in PUBLIC:
                return ".".join([PUBLIC[id(value)], *parts[j + 1 :]])
        return None
    return None


def skip(app: Sphinx, what: str, name: str, item: object, skip: bool, options: Any) -> bool | None:
    """Leave out fields of named tuples: they are in the signature and in the text."""
    return True if str(item.__doc__).startswith("Alias for field number") else None


def own(app: Sphinx, name: str, item: type, options: Any, bases: list[type]) -> None:
    """Leave out a base that says nothing."""
    bases[:] = [base for base in bases if base is not object] or bases


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("autodoc-process-bases", own)
    app.connect("autodoc-skip-member", skip)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
