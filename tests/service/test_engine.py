"""What the engine promises, over every store."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import pytest
from engines import (
    Artifacts,
    anyone,
    ask,
    check_log,
    log,
    many,
    one,
    opened,
    outcome,
    overrule,
    refused,
    reloaded,
    standing,
    stream,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from postgres_server import Cluster

import fairshield as fs
from fairshield.periodic import Run
from fairshield.service.engine.commands import Close, Command
from fairshield.service.engine.engine import Engine
from fairshield.service.engine.jobs import StreamLook
from fairshield.service.log.live import LiveStream
from fairshield.service.log.reports import describe
from fairshield.service.store import Connection, Database, StoreError, open_database
from fairshield.service.store.postgres import PostgresConnection
from fairshield.service.store.sqlite import SqliteConnection
from fairshield.wire.messages import StreamRequest
from fairshield.wire.problems import Refusal

PEOPLE = [("a", True), ("b", False), ("b", True), ("a", False), ("a", True), ("b", True)]


# Keys ---------------------------------------------------------------------------------------


async def test_a_key_has_one_answer_for_ever(address: str, artifacts: Artifacts) -> None:
    requests = {
        "one": one("a", True, 0.3), "two": one("b", False, 0.7), "batch": many(*PEOPLE),
        "three": one("b", True),
    }  # fmt: skip
    async with opened(address, artifacts, stream(artifacts, "window")) as engine:
        first = {k: await engine.submit("window", r, key=k) for k, r in requests.items()}
        again = {k: await engine.submit("window", r, key=k) for k, r in requests.items()}
    assert again == first
    async with opened(address, artifacts) as engine:
        for key in reversed(requests):
            assert await engine.submit("window", requests[key], key=key) == first[key]
        assert engine.figures.entries == 0
        await check_log(engine, "window")


async def test_a_key_is_refused_for_another_request(address: str, artifacts: Artifacts) -> None:
    streams = stream(artifacts, "labelled", human=True), stream(artifacts, "window")
    async with opened(address, artifacts, *streams) as engine:
        await ask(engine, "labelled", one("a", True, 0.5), "k")
        for other in (
            one("b", True, 0.5), one("a", False, 0.5), one("a", True, 0.6), outcome(1, True),
            overrule(1, False), many(("a", True, 0.5, True)), many(("a", True, 0.5), ("a", True)),
        ):  # fmt: skip
            assert await refused(engine, "labelled", other, "k") == "key-reused"
        await ask(engine, "labelled", outcome(1, True), "o")
        assert await refused(engine, "labelled", outcome(1, False), "o") == "key-reused"
        assert await refused(engine, "labelled", one("a", True, 0.5), "k") == "answered"
        assert await refused(engine, "window", one("b", False), "k") == "answered"
        await check_log(engine, "labelled")
        assert len(await log(engine, "labelled")) == 3


async def test_requests_that_share_a_key_in_one_commit_share_an_answer(
    address: str, artifacts: Artifacts
) -> None:
    streams = stream(artifacts, "window"), stream(artifacts, "perpetual")
    async with opened(address, artifacts, *streams) as engine:
        for name in ("window", "perpetual"):
            same = [engine.submit(name, one("a", True), key="k") for _ in range(5)]
            other = refused(engine, name, one("b", True), "k")
            *answers, kind = await asyncio.gather(*same, other)
            assert set(answers) == {answers[0]}
            assert kind == "key-reused"
            assert len(await log(engine, name)) == 2


async def test_what_was_refused_leaves_its_key_free(address: str, artifacts: Artifacts) -> None:
    async with opened(address, artifacts, stream(artifacts, "window")) as engine:
        assert await refused(engine, "window", one("c"), "k") == "unknown-group"
        assert await refused(engine, "window", one("a"), "k") == "answered"


# Order --------------------------------------------------------------------------------------


async def test_concurrent_requests_are_numbered_without_gaps_and_in_order_of_arrival(
    address: str, artifacts: Artifacts
) -> None:
    rng = random.Random(1)
    names = ("long", "window", "perpetual")
    async with opened(address, artifacts, *(stream(artifacts, name) for name in names)) as engine:
        jobs = [(name, anyone(rng), f"k{i}") for i in range(100) for name in names]
        answers = await asyncio.gather(*(ask(engine, *job) for job in jobs))
        for place, name in enumerate(names):
            assert [answer["n"] for answer in answers[place::3]] == list(range(1, 101))
            await check_log(engine, name)
        assert engine.figures.commits < 100


async def test_every_answer_carries_the_hash_of_the_log_up_to_it(
    address: str, artifacts: Artifacts
) -> None:
    async with opened(address, artifacts, stream(artifacts, "window")) as engine:
        answers = [await ask(engine, "window", one(*person)) for person in PEOPLE]
        rows = await engine.read(lambda c: c.entries(c.stream("window") or 0))
        assert [a["receipt"] for a in answers] == [row.hash.hex() for row in rows[1:]]


# Batches ------------------------------------------------------------------------------------


async def test_a_batch_decides_as_its_people_one_by_one(address: str, artifacts: Artifacts) -> None:
    people = PEOPLE * 5
    same = stream(artifacts, "window", "x"), stream(artifacts, "window", "y")
    same += stream(artifacts, "perpetual", "p"), stream(artifacts, "perpetual", "q")
    async with opened(address, artifacts, *same) as engine:
        for once, apart in (("x", "y"), ("p", "q")):
            batch = (await ask(engine, once, many(*people), "b"))["decisions"]
            singly = [await ask(engine, apart, one(*person)) for person in people]
            for ours, theirs in zip(batch, singly, strict=True):
                assert {**ours, "receipt": 0} == {**theirs, "receipt": 0}
            await check_log(engine, once)


@pytest.mark.parametrize("name", ["labelled", "labelled-perpetual"])
async def test_a_batch_with_outcomes_is_atomic_and_repeatable(
    address: str, artifacts: Artifacts, name: str
) -> None:
    rng = random.Random(2)
    people = [(rng.choice("ab"), rng.random() < 0.5, 1.0, rng.random() < 0.5) for _ in range(19)]
    last = ("a", True)
    async with opened(address, artifacts, stream(artifacts, name)) as engine:
        missing = many(*people[:3], last, *people[3:])
        assert await refused(engine, name, missing, "b") == "invalid-request"
        assert await refused(engine, name, many(*people, ("c", True)), "b") == "unknown-group"
        first = await engine.submit(name, many(*people, last), key="b")
        assert await engine.submit(name, many(*people, last), key="b") == first
        changed = [*people[:-1], (*people[-1][:3], not people[-1][3])]
        assert await refused(engine, name, many(*changed, last), "b") == "key-reused"
        assert await refused(engine, name, many(*people), "b") == "key-reused"
        entries = await log(engine, name)
        kinds = ["created", *["decision", "outcome"] * 19, "decision"]
        assert [entry["kind"] for entry in entries] == kinds
        assert await refused(engine, name, one()) == "outcome-pending"
        await ask(engine, name, outcome(20, True))
        await check_log(engine, name)
    async with opened(address, artifacts) as engine:
        assert await engine.submit(name, many(*people, last), key="b") == first


async def test_a_batch_that_does_not_fit_decides_nobody(address: str, artifacts: Artifacts) -> None:
    async with opened(address, artifacts, stream(artifacts, "window", windows=1)) as engine:
        assert await refused(engine, "window", many(*PEOPLE * 3), "b") == "stream-finished"
        assert await refused(engine, "window", many(*PEOPLE * 2), "b") == "answered"
        assert await refused(engine, "window", one(), "c") == "stream-finished"
        live = await reloaded(engine, "window")
        assert (live.n, live.finished, live.status) == (12, True, "finished")


# Outcomes -----------------------------------------------------------------------------------


async def test_outcomes_follow_their_decisions_one_by_one(
    address: str, artifacts: Artifacts
) -> None:
    streams = stream(artifacts, "labelled", windows=1), stream(artifacts, "window")
    async with opened(address, artifacts, *streams) as engine:
        assert await refused(engine, "labelled", outcome(1, True)) == "unexpected-outcome"
        for n in range(1, 9):
            await ask(engine, "labelled", one("ab"[n % 2], True), f"d{n}")
            assert await refused(engine, "labelled", one(), "x") == "outcome-pending"
            assert await refused(engine, "labelled", outcome(n + 1, True)) == "unexpected-outcome"
            answer = await ask(engine, "labelled", outcome(n, True), f"o{n}")
            assert answer == await ask(engine, "labelled", outcome(n, True), f"o{n}")
            assert await refused(engine, "labelled", outcome(n, True)) == "unexpected-outcome"
        assert await refused(engine, "window", outcome(1, True)) == "unexpected-outcome"
        await check_log(engine, "labelled")
        assert await engine.query("labelled", lambda live: live.status) == "finished"


# People -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "length"), [("window", 12), ("perpetual", 6)])
async def test_a_person_may_override_decisions_of_the_window_in_progress(
    address: str, artifacts: Artifacts, policy: str, length: int
) -> None:
    async with opened(address, artifacts, stream(artifacts, policy, "s", human=True)) as engine:
        answers = [await ask(engine, "s", one("ab"[i % 2], True)) for i in range(length - 1)]
        second = answers[1]["accepted"]
        given = await ask(engine, "s", overrule(2, not second, "a note"), "o")
        assert (given["decision"], given["accepted"]) == (2, not second)
        assert given == await ask(engine, "s", overrule(2, not second, "a note"), "o")
        assert await refused(engine, "s", overrule(2, not second)) == "not-overridable"
        assert await refused(engine, "s", overrule(length, True)) == "not-found"
        assert await refused(engine, "s", overrule(2, second)) == "not-overridable"
        assert await engine.query("s", lambda live: live.ledger.overridden) == 1
        await check_log(engine, "s")
        # With its last decision a window is over, and what was said of it stays said.
        last = await ask(engine, "s", one("a", True))
        before = await engine.read(lambda c: c.windows(1))
        for n in (length, 3):
            for accepted in (True, False):
                assert await refused(engine, "s", overrule(n, accepted)) == "not-overridable"
        assert await engine.read(lambda c: c.windows(1)) == before
        assert len(before) == 1
        await ask(engine, "s", one("a", last["accepted"]))
        assert await refused(engine, "s", overrule(length, True)) == "not-overridable"
        await check_log(engine, "s")


async def test_overrides_are_refused_where_decisions_are_final(
    address: str, artifacts: Artifacts
) -> None:
    streams = stream(artifacts, "window"), stream(artifacts, "labelled", human=True)
    async with opened(address, artifacts, *streams) as engine:
        accepted = (await ask(engine, "window", one()))["accepted"]
        assert await refused(engine, "window", overrule(1, not accepted)) == "not-overridable"
        accepted = (await ask(engine, "labelled", one()))["accepted"]
        await ask(engine, "labelled", overrule(1, not accepted))
        await ask(engine, "labelled", outcome(1, True))
        assert await refused(engine, "labelled", overrule(1, accepted)) == "not-overridable"
        await check_log(engine, "labelled")


# Streams ------------------------------------------------------------------------------------


async def test_a_stream_is_created_once_and_keeps_its_settings(
    address: str, artifacts: Artifacts
) -> None:
    async with opened(address, artifacts) as engine:
        request = stream(artifacts, "window", "s", windows=3)
        assert await engine.create(request) is True
        assert await engine.create(request) is False
        for other in (
            stream(artifacts, "long", "s", windows=3), stream(artifacts, "window", "s"),
            stream(artifacts, "window", "s", windows=3, human=True),
        ):  # fmt: skip
            with pytest.raises(Refusal, match="exists with") as caught:
                await engine.create(other)
            assert caught.value.kind == "name-taken"
        assert engine.figures.failures == 0


async def test_an_unknown_stream_is_not_found_until_it_is_created(
    address: str, artifacts: Artifacts
) -> None:
    async with opened(address, artifacts) as engine:
        assert await refused(engine, "window", one(), "k") == "not-found"
        with pytest.raises(Refusal, match="there is no stream 'window'"):
            await engine.query("window", standing)
        await engine.create(stream(artifacts, "window"))
        assert await refused(engine, "window", one(), "k") == "answered"


async def test_a_closed_stream_answers_what_it_answered_and_nothing_new(
    address: str, artifacts: Artifacts
) -> None:
    async with opened(address, artifacts, stream(artifacts, "perpetual")) as engine:
        first = await engine.submit("perpetual", one(), key="k")
        closed = await engine.submit("perpetual", Close())
        assert await engine.submit("perpetual", Close()) == closed
        assert await engine.submit("perpetual", one(), key="k") == first
        for request in (one(), many(("a", True)), outcome(1, True), overrule(1, True)):
            assert await refused(engine, "perpetual", request) == "stream-closed"
        await check_log(engine, "perpetual")
        assert await engine.query("perpetual", lambda live: live.status) == "finished"


async def test_windows_follow_each_other_and_each_ends_fair(
    address: str, artifacts: Artifacts
) -> None:
    rng = random.Random(3)
    async with opened(address, artifacts, stream(artifacts, "window", windows=4)) as engine:
        for _ in range(48):
            await ask(engine, "window", anyone(rng))
        assert await refused(engine, "window", one()) == "stream-finished"
        ends = await engine.read(lambda c: c.windows(1))
        assert [(end.window, end.n, end.fair) for end in ends] == [
            (i, 12 * (i + 1), True) for i in range(4)
        ]


@pytest.mark.parametrize("policy", ["window", "labelled", "perpetual"])
async def test_a_stream_between_two_windows_is_the_same_after_a_restart(
    address: str, artifacts: Artifacts, policy: str
) -> None:
    people = [(*person, 1.0, True if policy == "labelled" else None) for person in PEOPLE * 4]
    streams = [stream(artifacts, policy, name) for name in ("over", "closed")]
    if policy != "perpetual":
        windows = len(people) // artifacts.policies[policy].horizon
        streams.append(stream(artifacts, policy, "finished", windows=windows))
    async with opened(address, artifacts, *streams) as engine:
        for request in streams:
            await engine.submit(request.name, many(*people), key="b")
        await engine.submit("closed", Close())
        before = [await engine.query(request.name, describe) for request in streams]
    async with opened(address, artifacts) as engine:
        assert before == [await engine.query(r.name, describe) for r in streams]
        for request in streams:
            await check_log(engine, request.name)


async def test_watchers_hear_of_changes(address: str, artifacts: Artifacts) -> None:
    streams = stream(artifacts, "window"), stream(artifacts, "long")
    async with opened(address, artifacts, *streams) as engine:
        await asyncio.gather(*(engine.query(name, standing) for name in ("window", "long")))
        ours, any_, other = asyncio.Event(), asyncio.Event(), asyncio.Event()
        ends = [engine.watch(n, e) for n, e in (("window", ours), (None, any_), ("long", other))]
        await ask(engine, "window", one())
        assert (ours.is_set(), any_.is_set(), other.is_set()) == (True, True, False)
        for end in ends:
            end()
        ours.clear()
        await ask(engine, "window", one())
        assert not ours.is_set()


async def test_a_look_that_fails_harms_nobody(address: str, artifacts: Artifacts) -> None:
    async with opened(address, artifacts, stream(artifacts, "window")) as engine:
        with pytest.raises(Refusal, match="ZeroDivisionError"):
            await engine.query("window", lambda live: live.n / 0)
        assert engine.figures.failures == 0
        await ask(engine, "window", one())


async def test_stopping_answers_what_has_arrived(address: str, artifacts: Artifacts) -> None:
    streams = stream(artifacts, "perpetual"), stream(artifacts, "window")
    async with opened(address, artifacts, *streams):
        pass
    async with opened(address, artifacts) as engine:
        jobs = [
            asyncio.ensure_future(ask(engine, name, one(), f"k{i}"))
            for name in ("perpetual", "window") for i in range(9)
        ]  # fmt: skip
        await asyncio.sleep(0)
        await engine.stop()
        assert [answer["n"] for answer in await asyncio.gather(*jobs)] == [*range(1, 10)] * 2
        assert await refused(engine, "window", one()) == "unavailable"


# Faults -------------------------------------------------------------------------------------


class Failing:
    """Breaks the store's connections at a moment of one's choice."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at: str | None = None
        self.refuses = False
        kind = PostgresConnection if database.shared else SqliteConnection
        connect = database.connect
        for name in ("begin", "append", "commit"):
            monkeypatch.setattr(kind, name, self._wrapped(name, getattr(kind, name)))

        def connecting() -> Connection:
            if self.refuses:
                raise StoreError("the store is away")
            return connect()

        monkeypatch.setattr(database, "connect", connecting)

    def _wrapped(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if self.at == name:
                self.at = None
                raise StoreError(f"{name} failed")
            done = work(*arguments)
            if self.at == f"after {name}":
                self.at = None
                raise StoreError(f"the connection was lost after {name}")
            return done

        return call


@pytest.mark.parametrize("at", ["begin", "append", "commit", "after commit"])
async def test_after_a_failed_commit_the_service_recovers_from_disk(
    database: Database, artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    failing = Failing(database, monkeypatch)
    streams = stream(artifacts, "window"), stream(artifacts, "perpetual")
    async with opened(database, artifacts, *streams) as engine:
        rng = random.Random(4)
        requests = {f"k{i}": anyone(rng) for i in range(20)}
        answered: dict[tuple[str, str], bytes] = {}
        for name in ("window", "perpetual"):
            for i, (key, request) in enumerate(requests.items()):
                if i % 7 == 3:
                    failing.at = at
                kinds = [await refused(engine, name, request, key)]
                while kinds[-1] == "unavailable":
                    await asyncio.sleep(0.01)
                    kinds.append(await refused(engine, name, request, key))
                assert kinds[-1] == "answered"
                assert ("unavailable" in kinds) == (i % 7 == 3)
                answered[name, key] = await engine.submit(name, request, key=key)
        assert engine.figures.failures == 6
        for (name, key), answer in answered.items():
            assert await engine.submit(name, requests[key], key=key) == answer
        for name in ("window", "perpetual"):
            assert len(await log(engine, name)) == 21
            await check_log(engine, name)


@pytest.mark.parametrize("at", ["append", "commit", "after commit"])
async def test_who_waited_for_a_plan_is_refused_when_its_commit_fails(
    database: Database, artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    failing = Failing(database, monkeypatch)
    async with opened(database, artifacts, stream(artifacts, "perpetual")) as engine:
        across = many(*PEOPLE, ("a", True))  # the end of a period: planned in another thread
        await engine.query("perpetual", standing)
        failing.at = at
        jobs = [("perpetual", across, "b"), ("perpetual", one(), "k"), ("nowhere", one(), "k")]
        kinds = await asyncio.gather(*(refused(engine, *job) for job in jobs))
        assert kinds[0] == "unavailable"
        while (kind := await refused(engine, "perpetual", across, "b")) == "unavailable":
            await asyncio.sleep(0.01)
        assert kind == "answered"
        while await refused(engine, "perpetual", one(), "k") == "unavailable":
            await asyncio.sleep(0.01)
        assert len(await log(engine, "perpetual")) == 9
        await check_log(engine, "perpetual")


async def test_while_the_store_is_away_requests_are_refused_at_once(
    database: Database, artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing(database, monkeypatch)
    async with opened(database, artifacts, stream(artifacts, "window")) as engine:
        await ask(engine, "window", one(), "k")
        failing.at, failing.refuses = "commit", True
        kinds = await asyncio.gather(*(refused(engine, "window", one(), f"l{i}") for i in range(9)))
        assert set(kinds) == {"unavailable"}
        assert engine.status == "recovering"
        assert await refused(engine, "window", one(), "m") == "unavailable"
        failing.refuses = False
        while engine.status != "ready":
            await asyncio.sleep(0.01)
        answer = await ask(engine, "window", one(), "m")
        assert answer["n"] == 2


@pytest.fixture
def tamper(address: str, request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Changes the table of entries as somebody with all rights could."""

    def change(sql: str) -> None:
        if not address.startswith("postgresql"):
            with apsw.Connection(address) as file:
                file.execute(f"DROP TRIGGER entries_stay; DROP TRIGGER entries_remain; {sql}")
            file.close()
            return
        cluster: Cluster = request.getfixturevalue("cluster")
        statements = ("ALTER TABLE entries DISABLE TRIGGER USER", sql)
        cluster.run(*statements, database=address.rpartition("/")[2])

    return change


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE entries SET line = replace(line, 'true', 'false') WHERE stream = 1 AND seq = 3",
        "UPDATE entries SET line = replace(line, 'created', 'made') WHERE stream = 1 AND seq = 0",
        "UPDATE entries SET key = 'z' WHERE stream = 1 AND seq = 3",
        "UPDATE entries SET overruled = 1 - overruled WHERE stream = 1 AND seq = 3",
        "DELETE FROM entries WHERE stream = 1 AND seq = 3",
        "DELETE FROM entries WHERE stream = 1 AND seq = 0",
    ],
)
def test_a_log_that_was_changed_is_refused_and_no_other(
    address: str, artifacts: Artifacts, tamper: Callable[[str], None], sql: str
) -> None:
    async def before() -> None:
        streams = stream(artifacts, "long", "x"), stream(artifacts, "long", "y")
        async with opened(address, artifacts, *streams) as engine:
            for name in ("x", "y"):
                await engine.submit(name, many(*PEOPLE), key="b")

    async def after() -> None:
        async with opened(address, artifacts) as engine:
            broken = [refused(engine, "x", one(), f"k{i}") for i in range(5)]
            assert set(await asyncio.gather(*broken)) == {"log-broken"}
            with pytest.raises(Refusal) as caught:
                await engine.query("x", standing)
            assert caught.value.kind == "log-broken"
            assert (await ask(engine, "y", one(), "k"))["n"] == 7
            await check_log(engine, "y")

    asyncio.run(before())
    tamper(sql)
    asyncio.run(after())


async def test_a_snapshot_that_is_not_in_the_log_is_refused(
    tmp_path: Path, artifacts: Artifacts
) -> None:
    address = str(tmp_path / "shield.db")
    async with opened(address, artifacts, stream(artifacts, "window")) as engine:
        await engine.submit("window", many(*PEOPLE * 3), key="b")
    with apsw.Connection(address) as file:
        file.execute("""UPDATE windows SET snapshot = json_set(snapshot, '$.hash', '00')""")
    file.close()
    async with opened(address, artifacts) as engine:
        assert await refused(engine, "window", one(), "k") == "log-broken"


# Plans --------------------------------------------------------------------------------------


async def test_a_plan_in_the_making_holds_up_its_own_stream_only(
    address: str, artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, go_on = threading.Event(), threading.Event()
    decide = LiveStream.decide

    def slow(live: LiveStream, *arguments: Any) -> Any:
        if live.takes_long(len(arguments[0])):
            started.set()
            assert go_on.wait(60)
        return decide(live, *arguments)

    streams = stream(artifacts, "perpetual"), stream(artifacts, "window")
    async with opened(address, artifacts, *streams) as engine:
        await asyncio.gather(*(engine.query(name, standing) for name in ("perpetual", "window")))
        monkeypatch.setattr(LiveStream, "decide", slow)
        # Seven people cross the end of a period of six.
        waits = asyncio.ensure_future(ask(engine, "perpetual", many(*PEOPLE, ("a", True)), "b"))
        behind = asyncio.ensure_future(ask(engine, "perpetual", one(), "k"))
        await asyncio.to_thread(started.wait, 60)
        for i in range(30):
            assert (await ask(engine, "window", one(), f"k{i}"))["n"] == i + 1
        assert not waits.done()
        assert not behind.done()
        go_on.set()
        assert len((await waits)["decisions"]) == 7
        assert (await behind)["n"] == 8
        await check_log(engine, "perpetual")


# A model ------------------------------------------------------------------------------------

people = st.tuples(st.sampled_from("ab"), st.booleans(), st.sampled_from([0.0, 0.5, 1.0]))
keys = st.integers(0, 30)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("one"), keys, people),
        st.tuples(st.just("many"), keys, st.lists(people, min_size=1, max_size=9)),
        st.tuples(st.just("outcome"), keys, st.booleans()),
        st.tuples(st.just("outcome"), keys, st.booleans()),
        st.tuples(st.just("restart"), st.none(), st.none()),
    ),
    max_size=25,
)


class Model:
    """A stream as it should be: plain shields, a table of keys, nothing stored."""

    def __init__(self, policy: fs.Policy | fs.periodic.PeriodicPolicy) -> None:
        self.policy, self.decided, self.entries = policy, 0, 1
        self.known: dict[int, tuple[Any, Any]] = {}
        self._begin()

    def _begin(self) -> None:
        plain = isinstance(self.policy, fs.Policy)
        self.shield: Any = fs.Shield(self.policy) if plain else Run(self.policy)

    def ask(self, key: int, asked: list[Any] | bool) -> Any:
        """The decisions, the decision whose outcome it is, or the kind of a refusal."""
        if key in self.known:
            before, answer = self.known[key]
            if isinstance(asked, bool):
                return answer if before == (self.decided, asked) else "key-reused"
            return answer if before == asked else "key-reused"
        if isinstance(asked, bool):
            if self.shield.pending is None:
                return "unexpected-outcome"
            self.shield.observe(self.shield.pending, outcome=asked)
            self.entries += 1
            self.known[key] = ((self.decided, asked), self.decided)
            return self.decided
        if self.policy.labelled and len(asked) > 1:
            return "invalid-request"
        if self.shield.pending is not None:
            return "outcome-pending"
        self.known[key] = (asked, [self._decide(*person) for person in asked])
        return self.known[key][1]

    def _decide(self, group: str, proposed: bool, cost: float) -> tuple[bool, str]:
        if isinstance(self.shield, fs.Shield) and not self.shield.remaining:
            self._begin()
        decision = self.shield.decide(group, proposed=proposed, cost=cost)
        self.decided += 1
        self.entries += 1
        return decision.accepted, decision.why.value


async def compare(engine: Engine, name: str, model: Model, step: tuple[str, int, Any]) -> None:
    """Ask the engine and the model the same."""
    sort, key, what = step
    request: Command
    if sort == "outcome":
        expected = model.ask(key, what)
        request = outcome(max(model.decided, 1), what)
    else:
        expected = model.ask(key, what if sort == "many" else [what])
        request = many(*what) if sort == "many" else one(*what)
    if isinstance(expected, str):
        assert await refused(engine, name, request, str(key)) == expected
        return
    answer = await ask(engine, name, request, str(key))
    if sort == "outcome":
        assert (answer["decision"], answer["outcome"]) == (expected, what)
        return
    decisions = answer.get("decisions", [answer])
    assert [(d["accepted"], d["why"]) for d in decisions] == expected


@pytest.mark.parametrize("policy", ["window", "labelled", "perpetual", "labelled-perpetual"])
@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_the_service_decides_as_the_shield_does_whatever_happens_between(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    artifacts: Artifacts,
    store: str,
    policy: str,
) -> None:
    numbers = count()
    postgres = request.getfixturevalue("postgres") if store == "postgres" else None

    async def run(script: list[Any]) -> None:
        name = f"s{next(numbers)}"
        address = postgres or str(tmp_path_factory.mktemp("model") / "shield.db")
        model = Model(artifacts.policies[policy])
        settings = stream(artifacts, policy, name)
        while script:
            async with opened(address, artifacts, settings) as engine:
                while script and (step := script.pop(0))[0] != "restart":
                    await compare(engine, name, model, step)
                await check_log(engine, name)
                assert len(await log(engine, name)) == model.entries

    @settings(max_examples=12, suppress_health_check=list(HealthCheck))
    @given(steps)
    def law(script: list[Any]) -> None:
        asyncio.run(run(list(script)))

    law()


async def test_an_engine_stops_while_its_store_is_away(
    database: Database, artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing(database, monkeypatch)
    async with opened(database, artifacts, stream(artifacts, "window")) as engine:
        failing.at, failing.refuses = "commit", True
        assert await refused(engine, "window", one()) == "unavailable"
    assert engine.status == "stopped"


async def test_a_missing_policy_breaks_its_stream_only(address: str, artifacts: Artifacts) -> None:
    async with opened(address, artifacts, stream(artifacts, "window")) as engine:
        await engine.create(StreamRequest("lost", "0" * 64))
        assert await refused(engine, "lost", one()) == "log-broken"
        assert await refused(engine, "window", one()) == "answered"


def test_an_engine_over_a_store_that_cannot_be_opened_says_why(
    tmp_path: Path, artifacts: Artifacts
) -> None:
    async def start() -> None:
        async with opened(open_database("postgresql://127.0.0.1:1/x"), artifacts):
            pass

    with pytest.raises(StoreError, match="cannot be used"):
        asyncio.run(start())


# Many streams at once -----------------------------------------------------------------------


async def test_many_streams_are_looked_at_in_one_go(address: str, artifacts: Artifacts) -> None:
    names = [f"s{i}" for i in range(5)]
    async with opened(address, artifacts, *(stream(artifacts, "window", n) for n in names)) as e:
        await ask(e, "s1", one())
        found = await e.survey([*names, "nobody"], lambda live: live.n)
        assert {name: found[name] for name in names} == dict.fromkeys(names, 0) | {"s1": 1}
        assert isinstance(found["nobody"], Refusal)
        assert found["nobody"].kind == "not-found"


async def test_a_stream_that_is_busy_shows_what_was_seen_last(
    address: str, artifacts: Artifacts
) -> None:
    async with opened(address, artifacts, stream(artifacts, "perpetual")) as engine:
        seen = await engine.query("perpetual", describe)
        began, go = threading.Event(), threading.Event()

        def long(live: LiveStream) -> None:
            began.set()
            assert go.wait(20)

        slot = engine.slots["perpetual"]
        engine.apply_elsewhere(slot, StreamLook(None, "perpetual", long), None)
        await asyncio.to_thread(began.wait, 20)
        try:
            found = await engine.survey(["perpetual"], describe, lambda live: live.described)
            assert found == {"perpetual": seen}
        finally:
            go.set()


@pytest.mark.parametrize("kind", ["static", "exact", "optimal"])
async def test_periods_that_tables_decide_need_no_planning_thread(
    tmp_path: Path, artifacts: Artifacts, kind: str
) -> None:
    async with opened(str(tmp_path / "s.db"), artifacts, stream(artifacts, kind)) as engine:
        await ask(engine, kind, many(*[("ab"[i % 2], True) for i in range(6)]))
        assert not await engine.query(kind, lambda live: live.takes_long(12))
        await ask(engine, kind, many(*[("ab"[i % 2], True) for i in range(6)]))
        assert not await engine.query(kind, lambda live: live.takes_long())
