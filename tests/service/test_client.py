"""Clients of a service that runs: decisions, retries, errors, tails."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from client_kit import Proxy, Served, between, command, labelled_policy, plain_policy, served

import fairshield as fs
from fairshield.client import errors
from fairshield.wire import messages

REQUESTS = [("ab"[i % 3 > 0], i % 5 > 1, 0.25 * (i % 4)) for i in range(20)]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def client(service: Served) -> Iterator[fs.Client]:
    with fs.Client(service.url) as connected:
        yield connected


@pytest.fixture(scope="module")
def plain(client: fs.Client) -> str:
    """The digest of a plain policy that the service has."""
    digest = client.add_policy(plain_policy()).digest
    assert digest is not None
    return digest


@pytest.fixture(scope="module")
def labelled(client: fs.Client) -> str:
    digest = client.add_policy(labelled_policy()).digest
    assert digest is not None
    return digest


@pytest.fixture
def proxy(service: Served) -> Iterator[Proxy]:
    with between(service.url) as standing:
        yield standing


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A stream for each test."""
    return hashlib.sha256(request.node.name.encode()).hexdigest()[:16]


# Decisions ----------------------------------------------------------------------------------


def test_a_stream_decides_like_a_shield(client: fs.Client, plain: str, name: str) -> None:
    shield, stream = fs.Shield(plain_policy()), client.create_stream(name, plain, windows=1)
    for group, proposed, cost in REQUESTS:
        mine = shield.decide(group, proposed=proposed, cost=cost)
        theirs = stream.decide(group, proposed=proposed, cost=cost)
        for field in ("position", "group", "proposed", "cost", "accepted", "overruled", "paid"):
            assert getattr(theirs, field) == getattr(mine, field)
        assert (theirs.reason, theirs.guaranteed) == (mine.reason, mine.guaranteed)
        assert theirs.remaining == shield.remaining
        assert theirs.why == mine.why.value
    state = stream.state()
    assert {g.group: (g.seen, g.accepted) for g in state.groups} == dict(shield.counts)
    assert stream.describe().status == "finished"


def test_many_at_once_are_decided_like_one_by_one(client: fs.Client, plain: str, name: str) -> None:
    one, other = client.create_stream(name, plain), client.create_stream(f"{name}-many", plain)
    groups, proposed, costs = zip(*REQUESTS, strict=True)
    singly = [one.decide(g, proposed=p, cost=c) for g, p, c in REQUESTS]
    together = other.decide_many(groups, proposed, costs, key="all")
    assert [d.accepted for d in together] == [d.accepted for d in singly]
    assert together == other.decide_many(groups, proposed, costs, key="all")
    assert other.state().decisions == len(REQUESTS)
    assert other.decide_many([], []) == ()


def test_a_policy_is_taken_in_every_form(
    client: fs.Client, plain: str, name: str, tmp_path: Path
) -> None:
    policy = plain_policy()
    policy.save(tmp_path / "p.shield")
    spec = {
        "property": "demographic-parity", "bound": "0.25", "horizon": 12,
        "groups": {"a": 0.5, "b": 0.5},
    }  # fmt: skip
    perpetual = fs.PerpetualShield(policy.prop, policy.inputs, period=6).policy
    told: list[messages.PolicyMessage] = []
    forms = (plain, tmp_path / "p.shield", str(tmp_path / "p.shield"), policy, spec, perpetual)
    streams = [
        client.create_stream(f"{name}-{i}", form, progress=told.append)
        for i, form in enumerate(forms)
    ]
    assert [stream.describe().kind for stream in streams] == ["window"] * 5 + ["perpetual"]
    assert {stream.describe().policy for stream in streams[:4]} == {plain}
    assert [policy.status for policy in told].count("ready") == len(forms)
    assert {stream.describe().policy for stream in streams} <= {p.digest for p in client.policies()}
    assert client.policy(plain).status == "ready"
    assert {f"{name}-{i}" for i in range(len(forms))} <= {s.name for s in client.streams()}


def test_outcomes_are_observed_by_decision_or_number(
    client: fs.Client, labelled: str, name: str
) -> None:
    stream = client.create_stream(name, labelled)
    made = stream.decide("a", proposed=True)
    with pytest.raises(fs.OutcomePendingError):
        stream.decide("a", proposed=True)
    seen = stream.observe(made, outcome=True, key="o")
    assert seen == stream.observe(made, outcome=True, key="o")
    assert stream.observe(stream.decide("b", proposed=False).n, outcome=0).decision == 2
    decided = stream.decide_many(["a", "b"], [True, True], outcomes=[True, False])
    assert [d.n for d in decided] == [3, 4]
    assert stream.state().pending is None


def test_a_person_may_override(client: fs.Client, plain: str, name: str) -> None:
    stream = client.create_stream(name, plain, human=True)
    made = stream.decide("a", proposed=True)
    changed = stream.override(made, accepted=not made.accepted, note="seen in person", key="o")
    assert changed == stream.override(1, accepted=not made.accepted, note="seen in person", key="o")
    assert (changed.decision, changed.accepted) == (1, not made.accepted)
    accepted = next(g.accepted for g in stream.state().groups if g.group == "a")
    assert accepted == (not made.accepted)


def test_everything_about_a_stream_can_be_asked(
    client: fs.Client, plain: str, name: str, tmp_path: Path
) -> None:
    stream = client.create_stream(name, plain)
    groups, proposed, costs = zip(*REQUESTS * 2, strict=True)
    made = stream.decide_many(groups, proposed, costs)
    assert stream.decision(7) == made[6]
    assert stream.explain(made[6]).decision == made[6]
    assert stream.explain(7).text.startswith("Decision")
    assert list(stream.decisions()) == list(reversed(made))
    assert list(stream.decisions(overruled=True)) == [d for d in reversed(made) if d.overruled]
    assert [window.window for window in stream.windows()] == [0, 1]
    assert [window.window for window in stream.windows(first=1)] == [1]
    assert stream.guarantee().windows_fair == 2
    assert len(stream.outlook(cost=1e300).what_if) == 4
    assert stream.series(last=5).n[-1] == 40
    log = list(stream.log())
    assert [entry.line["seq"] for entry in log] == list(range(41))
    assert list(stream.log(after=30)) == log[31:]
    stream.export(tmp_path / "log.jsonl")
    hash = bytes(32)
    for line, entry in zip((tmp_path / "log.jsonl").read_bytes().splitlines(), log, strict=True):
        hash = hashlib.sha256(hash + line).digest()
        assert entry.receipt == hash.hex()
    with stream.export(tmp_path / "log.csv").open(newline="") as file:
        assert [row["receipt"] for row in csv.DictReader(file)] == [e.receipt for e in log]
    with pytest.raises(fs.InvalidValueError, match="jsonl"):
        stream.export(tmp_path / "log.xlsx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv", "log.jsonl"]


def test_long_logs_come_in_pages(client: fs.Client, plain: str, name: str) -> None:
    stream = client.create_stream(name, plain)
    made = stream.decide_many(["a", "b"] * 1_250, [True, False] * 1_250)
    assert [entry.line["seq"] for entry in stream.log()] == list(range(2_501))
    assert [d.n for d in stream.decisions()] == list(range(2_500, 0, -1))
    assert len(made) == 2_500


def test_more_than_fit_into_a_batch_are_sent_in_several(
    service: Served, proxy: Proxy, client: fs.Client, plain: str, name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("fairshield.client.calls.MOST_IN_BATCH", 8)
    client.create_stream(name, plain)
    groups, proposed, costs = zip(*REQUESTS, strict=True)
    with fs.Client(proxy.url, retries=0) as losing:
        stream = losing.stream(name)
        proxy.faults.extend(["pass", "drop"])
        with pytest.raises(errors.UnavailableError) as caught:
            stream.decide_many(groups, proposed, costs, key="k")
        assert caught.value.key == "k"
        made = stream.decide_many(groups, proposed, costs, key="k")
    assert proxy.keys() == ["k.1", "k.2", "k.1", "k.2", "k.3"]
    assert [d.n for d in made] == list(range(1, 21))
    assert client.stream(name).state().decisions == 20


# Retries ------------------------------------------------------------------------------------


FAULTS = ["drop", "cut", 502, 503, 504, 429, 408]


def test_an_answer_that_is_lost_is_asked_for_again_and_counted_once(
    client: fs.Client, proxy: Proxy, plain: str, name: str
) -> None:
    steady = client.create_stream(name, plain)
    with fs.Client(proxy.url) as losing:
        stream = losing.stream(name)
        for i, (group, proposed, cost) in enumerate(REQUESTS):
            proxy.faults.extend(FAULTS[i % len(FAULTS)] for _ in range(i % 3))
            made = stream.decide(group, proposed=proposed, cost=cost)
            assert made == steady.decision(i + 1)
            assert not proxy.faults
    logged = [entry.line["key"] for entry in steady.log(after=0)]
    assert logged == list(dict.fromkeys(proxy.keys()))
    assert len(logged) == len(REQUESTS) < len(proxy.keys())


def test_a_silent_service_is_asked_again(
    client: fs.Client, proxy: Proxy, plain: str, name: str
) -> None:
    steady = client.create_stream(name, plain)
    proxy.faults.append("hang")
    with fs.Client(proxy.url, timeout=2.0) as hasty:
        made = hasty.stream(name).decide("a", proposed=True)
    assert made == steady.decision(1)
    assert steady.state().decisions == 1
    assert len(proxy.seen) == 2


def test_what_else_may_be_lost_is_asked_for_again(
    proxy: Proxy, labelled: str, plain: str, name: str, tmp_path: Path
) -> None:
    def faulty() -> None:
        proxy.faults.extend(["drop", "cut", 503])

    with fs.Client(proxy.url) as losing:
        faulty()
        stream = losing.create_stream(name, labelled)
        made = stream.decide("a", proposed=True)
        faulty()
        stream.observe(made, outcome=True)
        faulty()
        assert stream.state().seq == 2
        faulty()
        stream.export(tmp_path / "log.jsonl")
        human = losing.create_stream(f"{name}-human", plain, human=True)
        faulty()
        human.override(human.decide("a", proposed=True), accepted=False)
        assert [e.line["kind"] for e in human.log()] == ["created", "decision", "override"]
        faulty()
        assert stream.close().closed
        assert stream.close().closed
    assert len((tmp_path / "log.jsonl").read_bytes().splitlines()) == 3


def test_without_a_service_there_is_an_end_to_trying(tmp_path: Path) -> None:
    with fs.Client("http://127.0.0.1:9", retries=2) as client:
        with pytest.raises(errors.UnavailableError, match="3 attempts") as caught:
            client.stream("x").decide("a", proposed=True, key="mine")
        assert (caught.value.status, caught.value.key) == (None, "mine")
        assert isinstance(caught.value, ConnectionError)
        with pytest.raises(errors.UnavailableError):
            client.stream("x").export(tmp_path / "log.csv")
    assert list(tmp_path.iterdir()) == []


def test_threads_share_a_client(client: fs.Client, plain: str, name: str) -> None:
    stream = client.create_stream(name, plain)
    made: list[messages.DecisionMessage] = []

    def decide() -> None:
        for _ in range(25):
            made.append(stream.decide("a", proposed=True))  # noqa: PERF401  (one after the other)

    threads = [threading.Thread(target=decide) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(d.n for d in made) == list(range(1, 201))


# Errors -------------------------------------------------------------------------------------


def test_each_refusal_is_an_error_of_its_own(
    client: fs.Client, plain: str, labelled: str, name: str
) -> None:
    stream = client.create_stream(name, plain, windows=1)
    stream.decide("a", proposed=True, key="k")
    with pytest.raises(errors.KeyReusedError):
        stream.decide("b", proposed=True, key="k")
    with pytest.raises(fs.UnknownGroupError, match="this policy knows 'a', 'b'") as caught:
        stream.decide("c", proposed=True)
    assert isinstance(caught.value, errors.ServiceError)
    with pytest.raises(fs.UnexpectedOutcomeError):
        stream.observe(1, outcome=True)
    with pytest.raises(errors.NotOverridableError):
        stream.override(1, accepted=False)
    with pytest.raises(fs.WindowOverError):
        stream.decide_many(["a"] * 20, [True] * 20)
    with pytest.raises(errors.NameTakenError):
        client.create_stream(name, labelled)
    with pytest.raises(errors.NotFoundError):
        client.stream("nobody").state()
    with pytest.raises(errors.NotFoundError):
        stream.explain(99)
    with pytest.raises(errors.NotFoundError):
        client.create_stream(name, "0" * 64)
    with pytest.raises(errors.InvalidRequestError):
        client.create_stream("no spaces, please", plain)
    with pytest.raises(errors.InvalidRequestError):
        stream.decide("x" * 201, proposed=True)
    with pytest.raises(errors.TooLargeError):
        stream.decide_many(["x" * 600] * 10_000, [True] * 10_000)
    stream.close()
    with pytest.raises(errors.StreamClosedError):
        stream.decide("a", proposed=True)


def test_policies_that_cannot_be_used_are_refused(
    client: fs.Client, name: str, tmp_path: Path
) -> None:
    (tmp_path / "junk.shield").write_bytes(b"not a policy")
    with pytest.raises(fs.InvalidValueError):
        client.create_stream(name, tmp_path / "junk.shield")
    with pytest.raises(FileNotFoundError):
        client.create_stream(name, tmp_path / "absent.shield")
    hopeless = {
        "property": "demographic-parity", "bound": "0", "horizon": 3,
        "groups": {"a": 0.5, "b": 0.5}, "start": {"a": [10, 10], "b": [10, 0]},
    }  # fmt: skip
    with pytest.raises(errors.PolicyRefusedError, match="cannot be guaranteed"):
        client.create_stream(name, hopeless)
    with pytest.raises(errors.InvalidRequestError, match="unknown key"):
        client.add_policy({"proprety": "demographic-parity"})


def test_keys_decide_who_may_do_what(tmp_path: Path) -> None:
    def key(*options: str) -> str:
        made = command("keys", "create", "--db", tmp_path / "shield.db", "--name", "x", *options)
        return made.stdout.strip()

    admin, reader = key("--scope", "admin"), key("--scope", "read", "--stream", "loans")
    with served(tmp_path) as service, fs.Client(service.url, token=admin) as client:
        client.create_stream("loans", plain_policy()).decide("a", proposed=True)
        client.create_stream("other", plain_policy())
        with fs.Client(service.url) as anybody, pytest.raises(errors.UnauthorizedError):
            anybody.streams()
        with fs.Client(service.url, token=f"{admin[:-1]}_") as wrong:
            with pytest.raises(errors.UnauthorizedError) as caught:
                wrong.streams()
            assert admin[-20:-1] not in str(caught.value)
        with fs.Client(service.url, token=reader) as reading:
            assert reading.stream("loans").state().decisions == 1
            with pytest.raises(errors.ForbiddenError):
                reading.stream("loans").decide("a", proposed=True)
            with pytest.raises(errors.ForbiddenError):
                reading.stream("other").state()


def test_too_many_requests_are_slowed_down_not_lost(tmp_path: Path) -> None:
    with served(tmp_path, "--rate", "20") as service, fs.Client(service.url) as client:
        stream = client.create_stream("loans", plain_policy())
        made = [stream.decide("a", proposed=True) for _ in range(45)]
        assert [d.n for d in made] == list(range(1, 46))
        with fs.Client(service.url, retries=0) as hasty:
            with pytest.raises(errors.TooManyRequestsError) as caught:
                _ask_often(hasty)
            assert caught.value.status == 429


def _ask_often(client: fs.Client) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: client.streams(), range(100)))


# Crashes ------------------------------------------------------------------------------------


def test_decisions_and_tails_survive_a_service_that_is_killed(tmp_path: Path) -> None:
    with served(tmp_path) as service, fs.Client(service.url, retries=200) as client:
        stream = client.create_stream("loans", plain_policy())
        entries: list[int] = []
        begun = threading.Event()

        def follow() -> None:
            with fs.Client(service.url) as other:
                following = other.stream("loans").tail(after=0)
                begun.set()
                entries.extend(entry.line["seq"] for entry in following)

        following = threading.Thread(target=follow, daemon=True)
        following.start()
        assert begun.wait(20)
        made = []
        for end in (service.kill, service.stop):
            made += [stream.decide("a", proposed=True, key=f"{len(made)}.{i}") for i in range(3)]
            end()
            again = threading.Timer(0.5, service.start)
            again.start()
            made.append(stream.decide("b", proposed=False))
            again.join()
        assert [d.n for d in made] == list(range(1, 9))
        assert made[0] == stream.decide("a", proposed=True, key="0.0")
        stream.close()
        following.join(30)
        assert entries == list(range(1, 10))


def test_a_tail_begins_now_unless_told_otherwise(client: fs.Client, plain: str, name: str) -> None:
    stream = client.create_stream(name, plain)
    stream.decide_many(["a"] * 5, [True] * 5)
    assert [e.line["n"] for e in islice(stream.tail(after=2), 3)] == [3, 4, 5]
    following = stream.tail()
    stream.decide("b", proposed=True)
    assert next(following).line["n"] == 6
    stream.close()
    assert [e.line["kind"] for e in following] == ["closed"]
    assert list(stream.tail()) == []
    assert list(stream.tail(after=99)) == []


# Without waiting ----------------------------------------------------------------------------


def test_coroutines_do_the_same(
    service: Served, proxy: Proxy, plain: str, labelled: str, name: str, tmp_path: Path
) -> None:
    async def use() -> None:
        async with fs.AsyncClient(proxy.url) as client:
            proxy.faults.extend(FAULTS[:3])
            stream = await client.create_stream(name, plain_policy(), human=True)
            proxy.faults.extend(FAULTS[:3])
            made = await stream.decide("a", proposed=True, cost=0.3, key="k")
            assert made == await stream.decide("a", proposed=True, cost=0.3, key="k")
            with pytest.raises(errors.KeyReusedError):
                await stream.decide("b", proposed=True, key="k")
            many = await asyncio.gather(*(stream.decide("b", proposed=True) for _ in range(9)))
            assert sorted(d.n for d in many) == list(range(2, 11))
            await stream.override(made, accepted=False)
            await stream.decide_many(["a", "b"] * 8, [True, False] * 8)
            assert (await stream.decision(1)) == made
            assert (await stream.explain(made)).decision == made
            assert (await stream.state()).decisions == 26
            assert (await stream.describe()).state == await stream.state()
            assert (await stream.guarantee()).stream == name
            assert (await stream.outlook()).what_if
            assert (await stream.series()).n[-1] == 26
            assert [w.window async for w in stream.windows()] == [0]
            assert [d.n async for d in stream.decisions(before=4)] == [3, 2, 1]
            assert len([e async for e in stream.log()]) == 28
            proxy.faults.append("cut")
            await stream.export(tmp_path / "log.jsonl")
            assert name in {s.name for s in await client.streams()}
            assert plain in {p.digest for p in await client.policies()}
            assert (await client.policy(plain)).status == "ready"
            assert (await client.add_policy(labelled)).digest == labelled
            other = await client.create_stream(f"{name}-labelled", labelled)
            await other.observe(await other.decide("a", proposed=True), outcome=True)
            following = asyncio.create_task(_kinds(stream.tail(after=26)))
            await asyncio.sleep(0.1)
            await stream.close()
            assert await following == ["decision", "closed"]

    asyncio.run(asyncio.wait_for(use(), 60))
    assert len((tmp_path / "log.jsonl").read_bytes().splitlines()) == 28


async def _kinds(entries: Any) -> list[str]:
    return [entry.line["kind"] async for entry in entries]
