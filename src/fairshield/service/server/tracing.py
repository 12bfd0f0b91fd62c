"""Tracing makes OpenTelemetry spans: one for each request and each group commit.

Spans carry methods, route templates, stream names, counts and kinds of problems: no groups, no
keys, no bodies.  A request's ``traceparent`` is taken up (W3C Trace Context).  Without
tracing this module is not imported.
"""

from __future__ import annotations

import os
import time
from collections.abc import MutableMapping
from typing import Any

from fairshield.base.errors import MissingExtraError
from fairshield.service.web.http import App, Receive, Scope, Send

try:
    from opentelemetry import propagate, trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import SpanKind, Status, StatusCode
except ImportError as error:
    raise MissingExtraError(
        f"traces need {error.name}, which is not installed: pip install 'fairshield[otel]'"
    ) from None


class Tracing:
    """Tracing sends a span for each request and commit.

    Parameters
    ----------
    provider
        Where they go; default: to a collector, by OTLP over HTTP, as the standard ``OTEL_``
        environment variables say.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        if provider is None:
            name = os.environ.get("OTEL_SERVICE_NAME", "fairshield")
            provider = TracerProvider(resource=Resource.create({"service.name": name}))
            provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._provider = provider
        self._tracer = provider.get_tracer("fairshield.service")

    def committed(self, entries: int, requests: int, seconds: float) -> None:
        """Note a group commit that has just ended."""
        end = time.time_ns()
        span = self._tracer.start_span(
            "commit",
            kind=SpanKind.INTERNAL,
            start_time=end - int(seconds * 1e9),
            attributes={"fairshield.entries": entries, "fairshield.requests": requests},
        )
        span.end(end)

    def traced(self, app: App) -> App:
        """The same application, with a span for every request."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            carrier = {
                name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
            }
            method: str = scope["method"]
            span = self._tracer.start_span(
                method,
                context=propagate.extract(carrier),
                kind=SpanKind.SERVER,
                attributes={"http.request.method": method},
            )

            async def noting(message: MutableMapping[str, Any]) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(Status(StatusCode.ERROR))
                await send(message)

            try:
                with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                    await app(scope, receive, noting)
            finally:
                _describe(span, scope)
                span.end()

        return serve

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


def _describe(span: trace.Span, scope: Scope) -> None:
    """Name the span by the route, which is known once it is found, and say what was refused."""
    if "problem" in scope:
        span.set_attribute("error.type", scope["problem"])
    route = getattr(scope.get("endpoint"), "path", None)
    if route is None:
        return
    span.update_name(f"{scope['method']} {route}")
    span.set_attribute("http.route", route)
    name = scope.get("path_params", {}).get("name")
    if name is not None:
        span.set_attribute("fairshield.stream", name)
