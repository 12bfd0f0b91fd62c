"""Figures as Prometheus reads them."""

from __future__ import annotations

import math
import random
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_server import (
    LiveServer,
    PolicyFile,
    exchange,
    files,
    live,
    populate,
    program,
    raw,
    serving,
    upload,
    wait_for,
)
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

import fairshield as fs
from fairshield.policy.artifact import digest_of
from fairshield.service.web.timings import Latencies

pytestmark = pytest.mark.slow

__all__ = ["files", "live"]


def scraped(server: LiveServer) -> dict[str, Metric]:
    with server.client() as client:
        answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


def value(families: dict[str, Metric], sample: str, **labels: str) -> float:
    found = [
        s.value for family in families.values() for s in family.samples
        if s.name == sample and labels.items() <= s.labels.items()
    ]  # fmt: skip
    assert len(found) == 1, (sample, labels, found)
    return float(found[0])


def test_names_and_kinds(live: LiveServer) -> None:
    families = scraped(live)
    kinds = {name: family.type for name, family in families.items()}
    counters = ("decisions", "overruled", "cost_paid", "windows", "windows_fair",
                "windows_unfair", "windows_exempt", "commits", "entries", "store_failures",
                "repeats")  # fmt: skip
    gauges = ("bias", "measured_bias", "bias_limit", "bias_unshielded", "remaining", "guaranteed",
              "can_bind", "alarm", "watched", "queue", "loading", "ready",
              "audit_findings")  # fmt: skip
    histograms = ("decision_seconds", "commit_seconds", "commit_entries")
    expected = dict.fromkeys(counters, "counter") | dict.fromkeys(gauges, "gauge")
    expected |= dict.fromkeys(histograms, "histogram")
    assert kinds == {f"fairshield_{name}": kind for name, kind in expected.items()}
    assert all(family.documentation for family in families.values())


def test_figures_follow_decisions(live: LiveServer) -> None:
    before = scraped(live)
    rng = random.Random(1)
    for i in range(20):
        body = {"group": rng.choice(("alpha", "beta")), "proposed": rng.random() < 0.5}
        answer = exchange(live, raw("POST", "/v1/streams/plain/decisions", body, key=f"m{i}"))
        assert answer is not None
        assert answer.status == 200
    after = scraped(live)

    def more(sample: str, **labels: str) -> float:
        return value(after, sample, **labels) - value(before, sample, **labels)

    assert more("fairshield_decisions_total", stream="plain") == 20
    assert more("fairshield_decisions_total", stream="periods") == 0
    assert more("fairshield_entries_total") == 20
    assert more("fairshield_decision_seconds_count") == 20
    assert more("fairshield_decision_seconds_bucket", le="+Inf") == 20
    assert more("fairshield_decision_seconds_sum") > 0
    assert more("fairshield_commit_entries_sum") == 20
    assert more("fairshield_commit_entries_count") == more("fairshield_commits_total")
    assert more("fairshield_commit_seconds_count") == more("fairshield_commits_total")
    assert value(after, "fairshield_ready") == 1
    assert value(after, "fairshield_queue") == 0
    with live.client() as client:
        state = client.get("/v1/streams/plain/state").json()
    assert value(after, "fairshield_remaining", stream="plain") == state["remaining"]
    assert value(after, "fairshield_overruled_total", stream="plain") == state["overruled"]
    for verdict in ("fair", "unfair", "exempt"):
        sample = f"fairshield_windows_{verdict}_total"
        assert value(after, sample, stream="plain") == state["whole_stream"][verdict]


def test_exempt_windows_and_alarms_are_counted(live: LiveServer) -> None:
    with live.client() as client:
        policy = client.get("/v1/streams/plain").json()["policy"]
        client.post("/v1/streams", json={"name": "lonely", "policy": policy})
        length = client.get("/v1/streams/lonely").json()["length"]
        people = [{"group": "alpha", "proposed": True, "cost": 7.0}] * (length + 1)
        client.post(
            "/v1/streams/lonely/decisions:batch",
            json={"decisions": people},
            headers={"idempotency-key": "lonely"},
        )
        alarms = client.get("/v1/streams/lonely").json()["alarms"]
    found = scraped(live)
    assert value(found, "fairshield_windows_exempt_total", stream="lonely") == 1
    assert value(found, "fairshield_windows_fair_total", stream="lonely") == 0
    assert value(found, "fairshield_can_bind", stream="lonely") == 1
    for kind in ("bias", "model"):
        raised = kind in {alarm["kind"] for alarm in alarms}
        assert value(found, "fairshield_alarm", stream="lonely", kind=kind) == raised
    assert [alarm["kind"] for alarm in alarms] == ["model"]


BROKEN_MONITOR = """
from fairshield.monitor import Monitor

def fail(*_, **__):
    raise ArithmeticError("too much")

Monitor.observe_many = fail
"""


def test_a_stream_whose_monitor_failed_does_not_look_quiet(
    files: dict[str, PolicyFile], tmp_path: Path
) -> None:
    with serving(tmp_path, program=BROKEN_MONITOR + program()) as server:
        populate(server, files)
        found = scraped(server)
        with server.client() as client:
            seen = client.get("/v1/streams/plain").json()
            pages = [client.get(path).text for path in ("/", "/streams/plain")]
    assert seen["unwatched"] == "the monitor failed at entry 5: ArithmeticError: too much"
    assert (seen["alarms"], seen["status"]) == ([], "guaranteed")
    assert value(found, "fairshield_watched", stream="plain") == 0
    assert not [s for s in found["fairshield_alarm"].samples if s.labels["stream"] == "plain"]
    assert "not watched" in pages[0]
    assert "Not watched" in pages[1]
    assert "the monitor failed at entry 5: ArithmeticError: too much" in pages[1]


def test_a_stream_that_is_watched_says_so(live: LiveServer) -> None:
    with live.client() as client:
        assert client.get("/v1/streams/plain").json()["unwatched"] is None
        pages = [client.get(path).text for path in ("/", "/streams/plain")]
    assert value(scraped(live), "fairshield_watched", stream="plain") == 1
    assert not any("not watched" in page.lower() for page in pages)


def test_nothing_is_guaranteed_where_nothing_can_bind_or_come(
    live: LiveServer, tmp_path: Path
) -> None:
    inputs = fs.InputModel.agnostic({"alpha": 0.5, "beta": 0.5})
    vacuous = fs.synthesize(fs.DemographicParity("0.2", min_support=9), inputs, horizon=8)
    vacuous.save(tmp_path / "v.shield")
    file = PolicyFile((tmp_path / "v.shield").read_bytes(), digest_of(tmp_path / "v.shield"))
    with live.client() as client:
        assert upload(client, file)["status"] == "ready"
        made = client.post("/v1/streams", json={"name": "vacuous", "policy": file.digest})
        assert made.status_code == 201, made.text
    told = {s.labels["stream"] for s in scraped(live)["fairshield_guaranteed"].samples}
    assert "plain" in told
    assert not told & {"vacuous", "closed"}


@given(st.lists(st.floats(0, 10)))
def test_buckets_count_what_is_at_most_their_bound(values: list[float]) -> None:
    latencies = Latencies()
    for one in values:
        latencies.add(one)
    (family,) = latencies.histogram.collect()
    bounds = {
        float(sample.labels["le"]): sample.value
        for sample in family.samples
        if "le" in sample.labels
    }
    assert bounds == {bound: sum(one <= bound for one in values) for bound in bounds}
    assert math.inf in bounds
    assert {s.value for s in family.samples if s.name.endswith("_sum")} == {sum(values)}


def test_the_audit_at_the_start_finds_what_loading_a_stream_does_not_see(
    files: dict[str, PolicyFile], tmp_path: Path
) -> None:
    with serving(tmp_path) as server:
        populate(server, files)
        people = {"decisions": [{"group": "alpha", "proposed": True}] * 60}
        request = raw("POST", "/v1/streams/plain/decisions:batch", people, key="many")
        answer = exchange(server, request)
        assert answer is not None
        assert answer.status == 200
        assert server.stop() == 0
        database = apsw.Connection(str(server.database))
        database.execute("DROP TRIGGER entries_stay")
        # In a window that is long over: a stream is loaded from the end of a later one on.
        database.execute(
            "UPDATE entries SET line = replace(line, 'alpha', 'omega') "
            "WHERE seq = 3 AND stream = (SELECT id FROM streams WHERE name = 'plain')"
        )
        database.close()
        server.start()

        def audited() -> dict[str, float]:
            samples = scraped(server)["fairshield_audit_findings"].samples
            found = {sample.labels["stream"]: sample.value for sample in samples}
            return found if len(found) == 6 else {}

        findings = wait_for(audited, "there is no audit")
        assert findings.pop("plain") > 0
        assert set(findings.values()) == {0}
        assert "stream plain: the audit has" in server.output
        assert "does not replay" not in server.output
        assert "omega" not in server.output
