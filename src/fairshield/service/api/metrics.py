"""``exposition`` gathers figures for Prometheus when they are requested."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import get_args

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from fairshield.service.store import Connection
from fairshield.service.web.context import RunningService, described
from fairshield.wire.messages import AlarmKind, StreamMessage


async def exposition(service: RunningService) -> tuple[bytes, str]:
    """All figures in Prometheus' text format, and its content type."""
    engine = service.engine
    names = [name for _, name in await engine.read(Connection.streams)]
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(service, await described(service, names)))
    return generate_latest(registry), CONTENT_TYPE_LATEST


_Reading = tuple[str, str, Callable[[StreamMessage], float | None]]
"""Name, explanation and value of a figure of a stream."""


def _guaranteed(stream: StreamMessage) -> float | None:
    """Return 1 if the property is guaranteed, 0 if not, ``None`` where there is no promise."""
    return None if stream.closed or not stream.can_bind else float(stream.state.guaranteed)


class _Figures(Collector):
    """_Figures yields the metrics of streams and service, each time they are asked for."""

    def __init__(self, service: RunningService, streams: Sequence[StreamMessage]) -> None:
        self._service, self._streams = service, streams

    def collect(self) -> Iterable[Metric]:
        yield from self._of_streams()
        yield from self._of_service()

    def _of_streams(self) -> Iterable[Metric]:
        counters: tuple[_Reading, ...] = (
            ("decisions", "Decisions made", lambda s: s.state.decisions),
            ("overruled", "Decisions that differ from the proposal", lambda s: s.state.overruled),
            ("cost_paid", "Cost of overruling", lambda s: s.state.cost_paid),
            ("windows", "Windows or periods completed", lambda s: s.state.windows_completed),
            ("windows_fair", "Of these, bound and fair", lambda s: s.state.windows_fair),
            ("windows_unfair", "Of these, unfair", lambda s: s.state.windows_unfair),
            ("windows_exempt", "Of these, bound by nothing", lambda s: s.state.windows_exempt),
        )
        for name, text, value in counters:
            counter = CounterMetricFamily(f"fairshield_{name}", text, labels=["stream"])
            for stream in self._streams:
                counter.add_metric([stream.name], value(stream) or 0.0)
            yield counter
        gauges: tuple[_Reading, ...] = (
            ("bias", "Bias of the counters now", lambda s: s.state.bias),
            (
                "measured_bias",
                "The same, without support, too",
                lambda s: s.state.in_progress.measured_bias,
            ),
            ("can_bind", "0: the property can never bind", lambda s: float(s.can_bind)),
            ("watched", "0: the monitor has failed", lambda s: float(s.unwatched is None)),
            ("bias_limit", "The largest bias that is fair", lambda s: s.limit),
            ("bias_unshielded", "What the proposals led to", lambda s: s.state.bias_unshielded),
            ("remaining", "Decisions left in the window or period", lambda s: s.state.remaining),
            (
                "guaranteed",
                "1: certain to hold whenever it is still due in the window",
                _guaranteed,
            ),
        )
        audited = GaugeMetricFamily(
            "fairshield_audit_findings", "Of the audit at the start", labels=["stream"]
        )
        for name, found in list(self._service.findings.items()):
            audited.add_metric([name], found)
        yield audited
        yield self._alarms()
        for name, text, value in gauges:
            gauge = GaugeMetricFamily(f"fairshield_{name}", text, labels=["stream"])
            for stream in self._streams:
                if (number := value(stream)) is not None:
                    gauge.add_metric([stream.name], number)
            yield gauge

    def _alarms(self) -> Metric:
        raised = GaugeMetricFamily(
            "fairshield_alarm", "1: raised by the monitor", labels=["stream", "kind"]
        )
        for stream in self._streams:
            kinds = {alarm.kind for alarm in stream.alarms}
            for kind in get_args(AlarmKind):
                if kind in kinds or stream.unwatched is None:
                    raised.add_metric([stream.name, kind], float(kind in kinds))
        return raised

    def _of_service(self) -> Iterable[Metric]:
        engine, figures = self._service.engine, self._service.engine.figures
        for name, text, value in (
            ("commits", "Transactions committed", figures.commits),
            ("entries", "Entries stored", figures.entries),
            ("store_failures", "Times the store failed and was read again", figures.failures),
            ("repeats", "Requests answered from the log", figures.repeats),
        ):
            yield CounterMetricFamily(f"fairshield_{name}", text, value=value)
        yield GaugeMetricFamily("fairshield_queue", "Requests waiting", value=engine.waiting)
        yield GaugeMetricFamily("fairshield_loading", "Streams replaying", value=engine.loading)
        ready = int(engine.status == "ready")
        yield GaugeMetricFamily("fairshield_ready", "1: decisions can be made", value=ready)
        latencies, commits = self._service.latencies, self._service.commits
        for histogram in (latencies.histogram, commits.seconds, commits.entries):
            yield from histogram.collect()
