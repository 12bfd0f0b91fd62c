"""The OpenAPI document is true: of the service, and as OpenAPI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from live_server import LiveServer, files, live
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR
from starlette.routing import Route

from fairshield.service.api.endpoints import ENDPOINTS
from fairshield.service.api.openapi import document
from fairshield.service.dashboard.pages import PAGES
from fairshield.service.server.app import routes
from fairshield.wire.problems import KINDS

__all__ = ["files", "live"]

_HERE = Path(__file__).parent
_EVENTS = r"/events$"
"""They do not end, which nothing in OpenAPI can say; tested elsewhere."""

_SETTINGS = """
# A request may fit its schema and still break a rule that no schema can say: a group that the
# policy does not know, an outcome where none is counted, 1.0 where a whole number is due.
[[operations]]
include-method = "POST"
checks.positive_data_acceptance.expected-statuses = ["2xx", "404", "409", "422"]

[[operations]]
include-method = "GET"
checks.positive_data_acceptance.expected-statuses = ["2xx", "404"]
"""


@pytest.mark.slow
def test_schemathesis_finds_no_difference_between_document_and_service(
    live: LiveServer, tmp_path: Path
) -> None:
    before = live.receipts()
    (tmp_path / "schemathesis.toml").write_text(_SETTINGS)
    path = os.pathsep.join([str(_HERE), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": path}
    ran = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "run", f"{live.address}/openapi.json",
            "--checks", "all", "--max-examples", "15", "--seed", "1", "--workers", "1",
            "--exclude-path-regex", _EVENTS, "--request-timeout", "20", "--continue-on-failure",
        ],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    after = live.receipts()
    for name in ("plain", "periods", "labelled"):
        assert after[name] != before[name], (
            f"nothing was decided in {name}: only errors were tested"
        )


def test_the_document_is_openapi_3_1(validated: dict[str, Any]) -> None:
    assert validated["openapi"].startswith("3.1")


def test_messages_have_the_names_of_the_api(validated: dict[str, Any]) -> None:
    names = set(validated["components"]["schemas"])
    shared = {"Alarm", "Decision", "Decisions", "Explanation", "Outcome", "Policy", "Problem"}
    assert shared | {"State", "Stream", "Streams"} <= names
    assert not [name for name in names if name.endswith("Message")]
    assert "Message" not in json.dumps(validated["components"])


def test_descriptions_are_not_indented_which_would_make_them_code(
    validated: dict[str, Any],
) -> None:
    described = [s.get("description", "") for s in validated["components"]["schemas"].values()]
    assert not [text for text in described if "\n " in text]


def test_every_schema_is_a_json_schema(validated: dict[str, Any]) -> None:
    schemas = validated["components"]["schemas"]
    assert {"Decision", "Problem", "Specification"} <= set(schemas)
    for schema in schemas.values():
        jsonschema_rs.meta.validate({"$schema": _DIALECT, **schema})


_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@pytest.fixture(scope="module")
def validated() -> dict[str, Any]:
    """The document, of which schemathesis' copy of the OpenAPI schema says that it is one."""
    found: dict[str, Any] = json.loads(document())
    OPENAPI_31_VALIDATOR.validate(found)
    return found


def test_every_route_is_documented_and_every_documented_route_exists(
    validated: dict[str, Any],
) -> None:
    documented = {
        (path, method.upper()) for path, item in validated["paths"].items() for method in item
    }
    assert {(e.path, e.method) for e in ENDPOINTS} < documented
    others = {"/static/{path:path}", *(page.path for page in PAGES)}
    served = {route.path for route in routes() if isinstance(route, Route)}
    assert {path for path, _ in documented} == served - others


def test_every_problem_has_its_status_in_the_document(validated: dict[str, Any]) -> None:
    operations = [op for item in validated["paths"].values() for op in item.values()]
    documented = {status for operation in operations for status in operation["responses"]}
    answered = {str(kind.status) for name, kind in KINDS.items() if name != "method-not-allowed"}
    assert answered <= documented


def test_operations_have_names_of_their_own(validated: dict[str, Any]) -> None:
    names = [op["operationId"] for item in validated["paths"].values() for op in item.values()]
    assert len(set(names)) == len(names)
