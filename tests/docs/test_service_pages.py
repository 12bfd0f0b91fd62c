"""The pages on the service say what it does: endpoints, problems, errors, metrics, examples."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from shutil import which
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from fairshield.cli.keys import SCOPES
from fairshield.client import errors
from fairshield.service.api import metrics
from fairshield.service.api.base import Endpoint
from fairshield.service.api.endpoints import ENDPOINTS
from fairshield.service.engine.engine import MOST_WAITING
from fairshield.service.web import timings
from fairshield.service.web.context import Limits
from fairshield.wire.messages import MOST_IN_BATCH, DecisionMessage
from fairshield.wire.problems import KINDS

DOCS = Path(__file__).parents[2] / "docs"
API, CLIENT, SERVICE = (
    (DOCS / name).read_text("utf-8") for name in ("http-api.md", "client.md", "service.md")
)
CURLS = [
    re.sub(r"\\\n\s*", "", re.sub(r"\$(DIGEST|OTHER)", "0" * 64, command))
    for block in re.findall(r"^```sh\n(.*?)^```$", API, re.M | re.S)
    for command in re.findall(r"\bcurl -s(?:.*\\\n)*.*$", block, re.M)
]


def asked(command: str) -> tuple[Endpoint, str]:
    """The endpoint that a command asks, and the query."""
    method = "POST" if " -d " in command else "GET"
    found = re.search(r"localhost:8000([^\s'|)]*)", command)
    assert found
    parts = urlsplit(found[1])
    for endpoint in ENDPOINTS:
        pattern = re.sub(r"\{\w+\}", "[^/]+", endpoint.path)
        if endpoint.method == method and re.fullmatch(pattern, parts.path):
            return endpoint, parts.query
    raise AssertionError(f"no endpoint is asked by {command}")


def test_every_endpoint_is_documented_with_its_scope_and_no_other_is() -> None:
    rows = re.findall(r"^\| `((?:GET|POST) /v1\S+)` \| (\w+) \| (.*) \|$", API, re.M)
    assert {(row, scope) for row, scope, _ in rows} == {
        (f"{endpoint.method} {endpoint.path}", endpoint.scope) for endpoint in ENDPOINTS
    }
    words = {row: text for row, _, text in rows}
    for endpoint in ENDPOINTS:
        for name in endpoint.query.__struct_fields__:
            assert f"`{name}`" in words[f"{endpoint.method} {endpoint.path}"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_problem_is_documented_with_its_status(kind: str) -> None:
    found = re.search(rf"^\| `{kind}` \| (\d+) \|", API, re.M)
    assert found, f"docs/http-api.md does not list {kind}"
    assert int(found[1]) == KINDS[kind].status


def test_every_error_of_the_client_is_documented() -> None:
    table = set(re.findall(r"`(\w+Error)`", CLIENT))
    defined = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.ServiceError)
    }
    assert defined - {"ServiceError"} <= table


@pytest.mark.parametrize("command", CURLS)
def test_examples_with_curl_are_requests_that_the_service_takes(command: str) -> None:
    endpoint, query = asked(command)
    words = shlex.split(re.sub(r" \|.*", "", command))
    if "-d" in words:
        endpoint.decoder.decode(words[words.index("-d") + 1])
    assert endpoint.keyed == ("Idempotency-Key" in command)
    msgspec.convert(dict(parse_qsl(query)), endpoint.query, strict=False)


def test_the_example_of_an_answer_has_all_its_fields() -> None:
    found = re.search(r'^```json\n(\{"n".*?)^```$', API, re.M | re.S)
    assert found
    assert tuple(json.loads(found[1])) == DecisionMessage.__struct_fields__


@pytest.mark.skipif(not (which("curl") and which("jq")), reason="the page needs curl and jq")
def test_the_session_with_curl_is_answered_as_the_page_says(tmp_path: Path) -> None:
    listening, *commands = re.findall(r"^```sh\n(.*?)^```$", API, re.M | re.S)
    assert listening == "fairshield serve --db shield.db\n"
    serve = ["serve", "--db", str(tmp_path / "shield.db"), "--port", "0"]
    service = subprocess.Popen(
        [sys.executable, "-m", "fairshield", *serve],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert service.stdout
        address = service.stdout.readline().split()[-1].removeprefix("http://")
        script = "".join(
            line for text in commands for line in text.splitlines(True) if " -sN " not in line
        )
        script = script.replace("localhost:8000", address).replace(
            "curl -s ", r"curl -s -w '\n' --fail-with-body "
        )
        asked = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script], cwd=tmp_path, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=120,
        )  # fmt: skip
    finally:
        service.terminate()
        service.communicate(timeout=30)
    assert asked.returncode == 0, asked.stdout
    shown = json.loads(re.findall(r"^```json\n(.*?)^```$", API, re.M | re.S)[0])
    given = next(json.loads(line) for line in asked.stdout.splitlines() if line.startswith('{"n":'))
    assert list(shown) == list(given)
    changing = ("at", "receipt")
    assert {k: v for k, v in shown.items() if k not in changing} == {
        k: v for k, v in given.items() if k not in changing
    }


def test_every_metric_that_is_named_exists() -> None:
    source = inspect.getsource(metrics) + inspect.getsource(timings)
    for name in set(re.findall(r"\bfairshield_(\w+)", SERVICE)):
        base = re.sub(r"_(total|bucket)$", "", name)
        assert f'"{base}"' in source or f'"fairshield_{base}"' in source, name


def test_limits_are_those_of_the_service() -> None:
    limits = Limits()
    for value in (limits.rate, MOST_WAITING, MOST_IN_BATCH, limits.connections):
        assert f"{value:,.0f}" in SERVICE
    assert f"{limits.body >> 20} MB" in SERVICE
    assert f"{limits.upload >> 20} MB" in SERVICE
    assert f"{limits.seconds:g} s; a policy file {limits.upload_seconds:g} s" in SERVICE


def test_every_scope_is_explained() -> None:
    for scope in SCOPES:
        assert f"| `{scope}` |" in SERVICE
