"""``rule_of`` turns an error of msgspec into a sentence about the rule that was broken.

msgspec has no error codes, so this module parses the texts of its errors.  A text of another form
is passed on as it is.  Tests of the sentences fail if a version of msgspec changes its texts.
"""

from __future__ import annotations

import re

import msgspec

_RULES = {
    "name": "1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit",
    "policy": "a digest, 64 hexadecimal digits: GET /v1/policies/{id} shows it once the policy is "
    "ready",
    "group": "a string of at most 200 characters or a whole number, at most 2^53 in size",
    "cost": "a number from 0 to 1e300",
}
"""Rules of fields for which a type or a single bound says too little."""
_TYPES = {
    "bool": ("true", "false"),
    "int": ("a whole number",),
    "float": ("a number",),
    "str": ("a string",),
    "array": ("an array",),
    "object": ("an object",),
    "null": ("null",),
}
_PLACE = re.compile(r"(.*?)(?: - at `\$\.?([^`]*)`)?", re.S)
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.S)
_BOUND = re.compile(r"Expected `(\w+)`( of length)? (<=|>=) (\S+)")
_TYPE = re.compile(r"Expected `([^`]+)`(?:, got `.*`)?", re.S)


def rule_of(error: msgspec.ValidationError, noun: str = "field") -> str:
    """The rule that a message breaks, as a sentence.

    >>> rule_of(msgspec.ValidationError("Expected `bool`, got `int` - at `$.proposed`"))
    'proposed must be true or false'
    >>> rule_of(msgspec.ValidationError("Expected `int` <= 1000 - at `$.limit`"))
    'limit must be at most 1000'
    """
    placed = _PLACE.fullmatch(str(error))
    assert placed is not None
    text, where = placed[1], placed[2] or ""
    if found := _FIELD.fullmatch(text):
        inside = f" in {where}" if where else ""
        if found[1] == "missing required":
            return f"{found[2]} is missing{inside}"
        return f"{found[2]!r} is no {noun} of this request{inside}: leave it out or correct it"
    rule = _RULES.get(where.rpartition(".")[2]) or _rule(text)
    subject = where or "the body"
    return f"{subject}: {text}" if rule is None else f"{subject} must {_verb(rule)}{rule}"


def _verb(rule: str) -> str:
    return "" if rule.startswith("have ") else "be "


def _rule(text: str) -> str | None:
    """The broken bound or type in words; ``None`` if it is neither."""
    if found := _BOUND.fullmatch(text):
        kind, length, sign, bound = found.groups()
        limit = f"{'at most' if sign == '<=' else 'at least'} {bound.removesuffix('.0')}"
        if not length:
            return limit
        return f"have {limit} {'character' if kind == 'str' else 'item'}{'s' * (bound != '1')}"
    if found := _TYPE.fullmatch(text):
        *most, last = [word for kind in found[1].split(" | ") for word in _TYPES.get(kind, (kind,))]
        return f"{', '.join(most)} or {last}" if most else last
    return None
