"""``document`` makes the OpenAPI document from the table of endpoints and the messages."""

from __future__ import annotations

import re
from functools import cache
from inspect import cleandoc
from typing import Any

import msgspec

from fairshield._version import __version__
from fairshield.periodic import PeriodicPolicy
from fairshield.service.api.base import Endpoint
from fairshield.service.api.endpoints import ENDPOINTS
from fairshield.spec import offered_kinds, parameters_of
from fairshield.wire.messages import Health, Name, ProblemMessage, message_name
from fairshield.wire.problems import KINDS

_ALWAYS = (
    "unauthorized", "forbidden", "too-many-requests", "unavailable", "internal",
    "invalid-request", "malformed-request", "headers-too-large",
)  # fmt: skip
_WITH_BODY = ("timeout", "too-large", "unsupported-media-type")
_PARAMETERS = {
    "name": ("Of the stream", Name),
    "n": ("Number of the decision, from 1", int),
    "policy": ("Id or digest of the policy", str),
}


_PLAIN = {
    "/livez": ("Whether the process answers", Health, "application/json"),
    "/readyz": ("Whether decisions can be made", Health, "application/json"),
    "/openapi.json": ("This document", dict[str, Any], "application/json"),
    "/metrics": ("Figures for Prometheus", str, "text/plain"),
}
_NAMING = ("$ref", "title")
"""Keys of a schema that name messages."""


@cache
def document() -> bytes:
    """The document, as JSON."""
    return msgspec.json.encode(_document())


def _document() -> dict[str, Any]:
    messages = [e.body for e in ENDPOINTS if _is_message(e.body)]
    messages += [kind for e in ENDPOINTS for kind in e.answers.values() if _is_message(kind)]
    messages += [ProblemMessage, Health]
    unique = list(dict.fromkeys(messages))
    _, schemas = _schemas(unique)
    schemas["Specification"] = _specification()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fairshield",
            "version": __version__,
            "description": "Decisions that are fair at the end of every window or period, on "
            "every input sequence. Every answered decision is on disk.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": _paths(),
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _paths() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    for path, (summary, kind, content_type) in _PLAIN.items():
        operation: dict[str, Any] = {
            "summary": summary,
            "operationId": re.sub(r"\W", "_", path[1:]),
            "responses": {
                "200": _answer("Yes", kind, content_type),
                "503": _answer("No", ProblemMessage),
            },
        }
        if path == "/metrics":
            operation["description"] = "Needs a key with the scope 'read' for all streams."
            for name in ("malformed-request", "unauthorized", "forbidden"):
                known = KINDS[name]
                operation["responses"][str(known.status)] = _answer(known.title, ProblemMessage)
        else:
            operation["security"] = []
        paths[path] = {"get": operation}
    return paths


_EXACT = {"type": ["string", "number"], "description": "Exact, as in '0.1' or '1/10'"}
_ANNOTATED = {
    "Number": _EXACT,
    "Undefined": {"type": "string"},
    "bool": {"type": "boolean"},
    "bool | None": {"type": ["boolean", "integer", "null"]},
    "int": {"type": "integer", "minimum": 0},
    "int | None": {"type": "integer", "minimum": 0},
}
"""JSON schemas of arguments of properties, by annotation; other arguments get no schema."""


def _arguments() -> dict[str, Any]:
    """Schemas of the arguments of all registered properties."""
    return {
        name: _ANNOTATED.get(str(parameter.annotation), {})
        for kind in offered_kinds()
        for name, parameter in parameters_of(kind).items()
    }


def _specification() -> dict[str, Any]:
    """Return the schema of a specification: the words of specfile, as JSON."""
    whole = {"type": "integer", "minimum": 1}
    shares = {
        "type": "object",
        "additionalProperties": {"type": "number"},
        "minProperties": 2,
        "maxProperties": 2,
    }
    counts = {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 2}
    properties = {
        "property": {"enum": sorted(offered_kinds())},
        **_arguments(),
        "horizon": whole,
        "checkpoints": {"type": "array", "items": whole},
        "spread": {"type": "number"},
        "trust_support": {"type": "boolean"},
        "start": {"type": "object", "additionalProperties": {**counts, "minItems": 2}},
        "periodic": {"enum": list(PeriodicPolicy.kinds())},
        "period": whole, "periods": whole, "lookahead": whole,
        "bounds": {"anyOf": [{"enum": ["centred", "cheapest"]},
                             {"type": "array", "items": _EXACT, "minItems": 2, "maxItems": 2}]},
        "fallback": {"type": "string"},
        "groups": shares, "outcomes": shares,
        "cost": {"type": "number"},
    }  # fmt: skip
    return {
        "title": "Specification",
        "description": "A policy to be made: the property, how often it must hold (horizon, or "
        "periodic and period), and the shares of the groups. What does not fit together is "
        "refused, and the problem says why.",
        "type": "object",
        "properties": properties,
        "required": ["property", "groups"],
        "additionalProperties": False,
        "examples": [
            {"property": "demographic-parity", "bound": "0.1", "horizon": 100,
             "groups": {"a": 0.3, "b": 0.7}}
        ],
    }  # fmt: skip


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": endpoint.handle.__name__,
        "tags": [endpoint.path.split("/")[2]],
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint)],
        "responses": _responses(endpoint),
    }
    if endpoint.scope is not None:
        operation["description"] = (
            f"Needs a key with the scope {endpoint.scope!r}, if keys are used."
        )
    if endpoint.keyed:
        operation["parameters"].append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": True,
                "description": "New for each request, the same for each retry.",
                "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
            }
        )
    if endpoint.body is not None:
        content: dict[str, Any] = {"application/json": {"schema": _schema(endpoint.body)}}
        if endpoint.upload:
            specification = {"$ref": "#/components/schemas/Specification"}
            content = {
                "application/json": {"schema": specification},
                "application/octet-stream": {"schema": {}},
            }
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    found = []
    for name in re.findall(r"{(\w+)}", endpoint.path):
        description, kind = _PARAMETERS[name]
        schema = {"type": "integer", "minimum": 1} if name == "n" else _schema(kind)
        found.append(
            {"name": name, "in": "path", "required": True, "description": description,
             "schema": schema}
        )  # fmt: skip
    return found


def _query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    _, parts = msgspec.json.schema_components([endpoint.query])
    properties = parts[endpoint.query.__name__]["properties"]
    return [
        {"name": name, "in": "query", "required": False, "schema": of_one}
        for name, of_one in properties.items()
    ]


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    answers = {
        str(status): _answer("Done", kind, endpoint.content_type)
        for status, kind in endpoint.answers.items()
    }
    kinds = [*_ALWAYS, *endpoint.problems]
    kinds += _WITH_BODY if endpoint.body is not None else ()
    kinds += ("missing-key", "key-reused") if endpoint.keyed else ()
    by_status: dict[int, list[str]] = {}
    for kind in dict.fromkeys(kinds):
        by_status.setdefault(KINDS[kind].status, []).append(kind)
    for status, of_status in sorted(by_status.items()):
        titles = "; ".join(f"{kind}: {KINDS[kind].title}" for kind in of_status)
        answers[str(status)] = _answer(titles, ProblemMessage, "application/problem+json")
    return answers


def _answer(description: str, kind: Any, content_type: str = "application/json") -> dict[str, Any]:
    if kind is ProblemMessage:
        content_type = "application/problem+json"
    return {"description": description, "content": {content_type: {"schema": _schema(kind)}}}


def _schema(kind: Any) -> dict[str, Any]:
    (schema,), _ = _schemas([kind])
    return schema


def _schemas(kinds: list[Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A schema of each, and those that they refer to, under the names of the messages."""
    found, parts = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    return (
        [_called(schema) for schema in found],
        {message_name(name): _called(schema) for name, schema in parts.items()},
    )


def _called(schema: Any, key: str = "") -> Any:
    """A schema in which messages have the names that they have in the API."""
    match schema:
        case str() if key in _NAMING:
            return message_name(schema)
        case str() if key == "description":  # a docstring, which begins with the class's name
            name, _, rest = cleandoc(schema).partition(" ")
            return f"{message_name(name)} {rest}"
        case dict():
            return {name: _called(part, name) for name, part in schema.items()}
        case list():
            return [_called(part) for part in schema]
        case _:
            return schema


def _is_message(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
