"""Hooks that tell schemathesis which streams and groups exist in the service."""

from __future__ import annotations

from typing import Any

import schemathesis

_NAMES = ("plain", "labelled", "periods", "human", "over", "closed")
_GROUPS = ("alpha", "beta")


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Shorten long polls, and often name streams and groups that exist."""
    if isinstance(case.query, dict) and _is_number(case.query.get("wait")):
        case.query["wait"] = 0.01
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    path = case.path_parameters
    if isinstance(path, dict) and isinstance(path.get("name"), str):
        path["name"] = _NAMES[len(path["name"]) % len(_NAMES)]
    body = case.body
    if isinstance(body, dict):
        for item in body.get("decisions", [body]):
            if "group" in item:
                item["group"] = _GROUPS[len(str(item["group"])) % len(_GROUPS)]


def _is_number(value: Any) -> bool:
    try:
        return 0 <= float(value) <= 60
    except (TypeError, ValueError):
        return False
