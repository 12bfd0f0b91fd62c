"""The HTTP API: one table of endpoints, of which routes and the OpenAPI document are made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.routing import Route

from fairshield.service.api.base import Endpoint, EndpointApp
from fairshield.service.api.decisions import (
    DecisionsQuery,
    decide,
    decide_batch,
    explain_decision,
    get_decision,
    list_decisions,
    observe,
    override,
)
from fairshield.service.api.events import all_events, stream_events
from fairshield.service.api.log import LogQuery, export_csv, export_jsonl, get_log
from fairshield.service.api.policies import create_policy, get_policy, list_policies
from fairshield.service.api.streams import (
    OutlookQuery,
    SeriesQuery,
    WindowsQuery,
    close_stream,
    create_stream,
    get_guarantee,
    get_outlook,
    get_series,
    get_state,
    get_stream,
    list_streams,
    list_windows,
)
from fairshield.service.web.http import App
from fairshield.service.web.routing import Dispatch
from fairshield.wire.messages import (
    BatchRequest,
    DecisionMessage,
    DecisionRequest,
    DecisionsMessage,
    ExplanationMessage,
    GuaranteeReport,
    Log,
    OutcomeMessage,
    OutcomeRequest,
    Outlook,
    Override,
    OverrideRequest,
    Policies,
    PolicyMessage,
    Series,
    StateMessage,
    StreamMessage,
    StreamRequest,
    StreamsMessage,
    Windows,
)

_STREAM = "/v1/streams/{name}"
_OF_STREAM = ("not-found", "log-broken")
_OF_LOG = (*_OF_STREAM, "stream-closed")

ENDPOINTS = (
    Endpoint(
        method="POST", path=f"{_STREAM}/decisions", handle=decide, scope="decide", keyed=True,
        summary="Decide one person", body=DecisionRequest, answers={200: DecisionMessage},
        problems=(*_OF_LOG, "unknown-group", "stream-finished", "outcome-pending", "infeasible"),
    ),
    Endpoint(
        method="POST", path=f"{_STREAM}/decisions:batch", handle=decide_batch, scope="decide",
        summary="Decide many people, all or none", body=BatchRequest, keyed=True,
        answers={200: DecisionsMessage},
        problems=(*_OF_LOG, "unknown-group", "stream-finished", "outcome-pending", "infeasible"),
    ),
    Endpoint(
        method="POST", path=f"{_STREAM}/outcomes", handle=observe, scope="decide", keyed=True,
        summary="Record the outcome of a decision", body=OutcomeRequest,
        answers={200: OutcomeMessage}, problems=(*_OF_LOG, "unexpected-outcome"),
    ),
    Endpoint(
        method="POST", path=f"{_STREAM}/decisions/{{n}}/override", handle=override,
        summary="Record a person's decision in the place of the shield's", scope="decide",
        body=OverrideRequest, answers={200: Override}, problems=(*_OF_LOG, "not-overridable"),
        keyed=True,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/decisions", handle=list_decisions, query=DecisionsQuery,
        summary="Decisions, the latest first", answers={200: DecisionsMessage}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/decisions/{{n}}", handle=get_decision,
        summary="One decision, as it was answered", answers={200: DecisionMessage},
        problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/decisions/{{n}}/explanation", handle=explain_decision,
        summary="Why a decision was made", answers={200: ExplanationMessage}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path="/v1/streams", handle=list_streams, summary="All streams",
        answers={200: StreamsMessage}, filtered=True,
    ),
    Endpoint(
        method="POST", path="/v1/streams", handle=create_stream, scope="admin",
        summary="Create a stream", body=StreamRequest,
        answers={200: StreamMessage, 201: StreamMessage},
        problems=("not-found", "name-taken", "policy-not-ready", "log-broken", "infeasible"),
    ),
    Endpoint(
        method="GET", path=_STREAM, handle=get_stream, summary="One stream",
        answers={200: StreamMessage}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="POST", path=f"{_STREAM}/close", handle=close_stream, scope="admin",
        summary="End a stream; its log stays", answers={200: StreamMessage}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/state", handle=get_state, summary="Where a stream stands",
        answers={200: StateMessage}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/guarantee", handle=get_guarantee,
        summary="What is guaranteed right now", answers={200: GuaranteeReport},
        problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/outlook", handle=get_outlook, query=OutlookQuery,
        summary="Expected cost, and what would be decided now", answers={200: Outlook},
        problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/windows", handle=list_windows, query=WindowsQuery,
        summary="Windows or periods that are over", answers={200: Windows}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/series", handle=get_series, query=SeriesQuery,
        summary="Bias over time", answers={200: Series}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/log", handle=get_log, query=LogQuery,
        summary="A page of the log", answers={200: Log}, problems=_OF_STREAM,
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/log.jsonl", handle=export_jsonl,
        summary="The log: the lines that are hashed", answers={200: str}, problems=_OF_STREAM,
        content_type="application/x-ndjson",
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/log.csv", handle=export_csv, summary="The log as a table",
        answers={200: str}, problems=_OF_STREAM, content_type="text/csv",
    ),
    Endpoint(
        method="GET", path=f"{_STREAM}/events", handle=stream_events,
        summary="Changes of a stream, as server-sent events", answers={200: str},
        problems=_OF_STREAM, content_type="text/event-stream",
    ),
    Endpoint(
        method="GET", path="/v1/events", handle=all_events,
        summary="Changes of all streams, as server-sent events", answers={200: str},
        content_type="text/event-stream", filtered=True,
    ),
    Endpoint(
        method="POST", path="/v1/policies", handle=create_policy, scope="admin", upload=True,
        summary="Upload a policy file, or have the policy of a specification made",
        body=dict[str, Any], answers={200: PolicyMessage, 202: PolicyMessage},
        problems=("infeasible", "too-costly"),
    ),
    Endpoint(
        method="GET", path="/v1/policies", handle=list_policies, summary="All policies",
        answers={200: Policies},
    ),
    Endpoint(
        method="GET", path="/v1/policies/{policy}", handle=get_policy,
        summary="One policy, by id or digest", answers={200: PolicyMessage},
        problems=("not-found",),
    ),
)  # fmt: skip


def api_routes() -> Iterable[Route]:
    """A route for every path of the table."""
    by_path: dict[str, list[Endpoint]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, []).append(endpoint)
    for path, endpoints in by_path.items():
        methods: dict[str, App] = {one.method: EndpointApp(one) for one in endpoints}
        endless = any(one.content_type == "text/event-stream" for one in endpoints)
        yield Route(path, Dispatch(path, methods, endless=endless))
