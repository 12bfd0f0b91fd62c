"""Spans say what happened and how long it took, and nothing of anybody."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from live_server import PATIENCE, PolicyFile, files, upload, wait_for
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from fairshield.service.server.app import create_app
from fairshield.service.server.tracing import Tracing
from fairshield.service.store import open_database

__all__ = ["files"]

_PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


Traced = tuple[httpx.Client, InMemorySpanExporter]


@pytest.fixture
def traced(tmp_path: Path, files: dict[str, PolicyFile]) -> Iterator[Traced]:
    """A service whose spans are kept, and a stream in it."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    database = open_database(str(tmp_path / "shield.db"))
    app = create_app(database, tracing=Tracing(provider))
    config = uvicorn.Config(app, port=0, log_config=None, lifespan="on", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_for(lambda: server.started, "it does not start")
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
            assert upload(client, files["plain"])["status"] == "ready"
            client.post("/v1/streams", json={"name": "loans", "policy": files["plain"].digest})
            exporter.clear()
            yield client, exporter
    finally:
        server.should_exit = True
        thread.join()


def decide(client: httpx.Client, group: str, **headers: str) -> int:
    return client.post(
        "/v1/streams/loans/decisions",
        json={"group": group, "proposed": True},
        headers={"idempotency-key": "secret-key", **headers},
    ).status_code


def spans(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def test_a_request_is_a_span_named_by_its_route(traced: Traced) -> None:
    client, exporter = traced
    assert decide(client, "alpha") == 200
    (span,) = spans(exporter, "POST /v1/streams/{name}/decisions")
    assert span.kind is SpanKind.SERVER
    assert dict(span.attributes or {}) == {
        "http.request.method": "POST",
        "http.route": "/v1/streams/{name}/decisions",
        "http.response.status_code": 200,
        "fairshield.stream": "loans",
    }


def test_a_commit_is_a_span_with_its_size(traced: Traced) -> None:
    client, exporter = traced
    assert decide(client, "alpha") == 200
    (span,) = spans(exporter, "commit")
    assert dict(span.attributes or {}) == {"fairshield.entries": 1, "fairshield.requests": 1}
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time > span.start_time


def test_a_trace_that_began_elsewhere_goes_on_here(traced: Traced) -> None:
    client, exporter = traced
    assert decide(client, "alpha", traceparent=_PARENT) == 200
    (span,) = spans(exporter, "POST /v1/streams/{name}/decisions")
    assert span.context is not None
    assert span.parent is not None
    assert f"{span.context.trace_id:032x}" == _PARENT.split("-")[1]
    assert f"{span.parent.span_id:016x}" == _PARENT.split("-")[2]


@pytest.mark.parametrize("parent", ["", "nonsense", "00-0-0-0", _PARENT + "-x" * 500])
def test_a_trace_that_cannot_be_read_is_a_new_one(traced: Traced, parent: str) -> None:
    client, _ = traced
    assert decide(client, "alpha", traceparent=parent) == 200


def test_a_refusal_is_told_by_its_kind_and_nobody_is_named(traced: Traced) -> None:
    client, exporter = traced
    assert decide(client, "omega") == 422
    assert client.get("/nowhere").status_code == 404
    (span,) = spans(exporter, "POST /v1/streams/{name}/decisions")
    assert (span.attributes or {})["error.type"] == "unknown-group"
    assert span.status.status_code is StatusCode.UNSET
    decide(client, "alpha")
    told = "".join(span.to_json() for span in exporter.get_finished_spans())
    for secret in ("alpha", "omega", "secret-key"):
        assert secret not in told


def test_nothing_of_it_is_loaded_unless_it_is_wanted() -> None:
    code = (
        "import sys, fairshield.service.server.server; "
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_a_missing_package_is_told_with_its_remedy() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from fairshield.base.errors import MissingExtraError\n"
        "try:\n    import fairshield.service.server.tracing\n"
        "except MissingExtraError as error:\n    print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'fairshield[otel]'" in ran.stdout
