"""Flows for everything that can be asked of a service; both clients share them.

This module knows addresses and messages.  It does no input or output but reading policy files and
writing exports.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from fairshield.base.counts import Group
from fairshield.base.errors import InvalidValueError
from fairshield.client.errors import PolicyRefusedError
from fairshield.client.exchange import (
    ClientPatience,
    Flow,
    HttpRequest,
    Pause,
    ask,
    check,
    checked_key,
    exchange,
)
from fairshield.records import Flag, Request, as_cost, as_flag
from fairshield.wire.messages import (
    MOST_IN_BATCH,
    BatchItem,
    BatchRequest,
    DecisionMessage,
    DecisionRequest,
    DecisionsMessage,
    ExplanationMessage,
    GuaranteeReport,
    Log,
    LogEntry,
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
    WindowEnd,
    Windows,
)

T = TypeVar("T")
_PAGE = 1_000
_LONG_POLL = 20.0
_LOOKS = 0.05, 1.0
"""Seconds between two requests for the status of a policy: the first pause, and the longest."""

Page = tuple[Sequence[T], int | None]
"""Some items, and where the next page begins; ``None``: there is none."""
Progress = Callable[[PolicyMessage], object]


class Saved(Protocol):
    """Saved is any policy that can be saved to a file."""

    def save(self, path: str | os.PathLike[str], /) -> str:
        """Write the policy to a file; returns its digest."""


AnyPolicy = str | os.PathLike[str] | Saved | Mapping[str, Any]
"""A digest, the path of a file, a policy, or the words of a specification."""


# Policies and streams -----------------------------------------------------------------------


def prepared(policy: AnyPolicy) -> str | HttpRequest:
    """The digest of a policy, or the request that uploads or specifies it; reads its file."""
    if isinstance(policy, str) and re.fullmatch("[0-9a-f]{64}", policy):
        return policy
    if isinstance(policy, Mapping):
        return _post("/v1/policies", dict(policy))
    if isinstance(policy, (str, os.PathLike)):
        content = Path(policy).read_bytes()
    elif hasattr(policy, "save"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "policy.shield"
            policy.save(path)
            content = path.read_bytes()
    else:
        raise InvalidValueError(
            f"a policy is a Policy, the path of one, its digest, or a specification as a dict; got "
            f"{type(policy).__name__}"
        )
    kind = "application/octet-stream"
    return HttpRequest(method="POST", path="/v1/policies", body=content, content_type=kind)


def add_policy(
    how: str | HttpRequest, progress: Progress | None, terms: ClientPatience
) -> Flow[PolicyMessage]:
    """Bring a policy to the service, and wait until it is verified."""
    request = get_policy_request(how) if isinstance(how, str) else how
    found = yield from ask(request, PolicyMessage, terms)
    pause, longest = _LOOKS
    while found.status in ("synthesising", "verifying"):
        if progress is not None:
            progress(found)
        yield Pause(pause)
        pause = min(1.5 * pause, longest)
        found = yield from ask(get_policy_request(found.id), PolicyMessage, terms)
    if progress is not None:
        progress(found)
    if found.status != "ready" or found.digest is None:
        raise PolicyRefusedError(
            f"the service refused the policy: {found.error}", kind="policy-not-ready", status=409
        )
    return found


def create_stream(
    name: str,
    how: str | HttpRequest,
    *,
    windows: int | None,
    human: bool,
    progress: Progress | None,
    terms: ClientPatience,
) -> Flow[StreamMessage]:
    """Bring a policy to the service, and begin a stream of it."""
    policy = yield from add_policy(how, progress, terms)
    assert policy.digest is not None
    request = StreamRequest(name=name, policy=policy.digest, windows=windows, human=human)
    return (yield from ask(_post("/v1/streams", request), StreamMessage, terms))


def streams(terms: ClientPatience) -> Flow[tuple[StreamMessage, ...]]:
    """All streams."""
    found = yield from ask(_get("/v1/streams"), StreamsMessage, terms)
    return found.streams


def policies(terms: ClientPatience) -> Flow[tuple[PolicyMessage, ...]]:
    """All policies."""
    found = yield from ask(_get("/v1/policies"), Policies, terms)
    return found.policies


def policy(which: str, terms: ClientPatience) -> Flow[PolicyMessage]:
    """One policy, by id or digest."""
    return ask(get_policy_request(which), PolicyMessage, terms)


def get_policy_request(which: str) -> HttpRequest:
    """The request for a policy by its id or digest."""
    return _get(f"/v1/policies/{quote(which, safe='')}")


# One stream ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calls:
    """Calls makes the requests that can be sent to the stream ``name``."""

    name: str
    terms: ClientPatience

    # Decisions --------------------------------------------------------------------------------

    def decide(
        self, group: Group, proposed: Flag, cost: float, key: str | None
    ) -> Flow[DecisionMessage]:
        """Decide one person."""
        person, said, price, _ = Request(group, proposed, cost).values()
        body = DecisionRequest(_group(person), said, price)
        return self._add("decisions", body, DecisionMessage, _key(key))

    def decide_many(
        self,
        groups: Sequence[Group],
        proposed: Sequence[Flag],
        costs: Sequence[float] | float,
        outcomes: Sequence[Flag] | None,
        key: str | None,
    ) -> Flow[tuple[DecisionMessage, ...]]:
        """Decide many people, in as many requests as are needed."""
        items, whole = _items(groups, proposed, costs, outcomes), _key(key)
        return self._decide_parts(items, whole, _part_keys(whole, len(items)))

    def _decide_parts(
        self, items: Sequence[BatchItem], whole: str, keys: Sequence[str]
    ) -> Flow[tuple[DecisionMessage, ...]]:
        path, made = self._path("decisions:batch"), list[DecisionMessage]()
        for i, key in enumerate(keys):
            part = BatchRequest(tuple(items[i * MOST_IN_BATCH : (i + 1) * MOST_IN_BATCH]))
            request = _post(path, part, key=key, call_key=whole)
            found = yield from ask(request, DecisionsMessage, self.terms)
            made += found.decisions
        return tuple(made)

    def observe(
        self, decision: DecisionMessage | int, outcome: Flag, key: str | None
    ) -> Flow[OutcomeMessage]:
        """Record an outcome."""
        body = OutcomeRequest(decision=number_of(decision), outcome=as_flag(outcome))
        return self._add("outcomes", body, OutcomeMessage, _key(key))

    def override(
        self, decision: DecisionMessage | int, accepted: Flag, note: str, key: str | None
    ) -> Flow[Override]:
        """Record a person's decision."""
        body = OverrideRequest(accepted=as_flag(accepted), note=note)
        where = f"decisions/{number_of(decision)}/override"
        return self._add(where, body, Override, _key(key))

    def _add(self, where: str, body: msgspec.Struct, kind: type[T], key: str) -> Flow[T]:
        return ask(_post(self._path(where), body, key=key), kind, self.terms)

    # What is known ----------------------------------------------------------------------------

    def describe(self) -> Flow[StreamMessage]:
        """Return what the stream promises, and where it stands."""
        return ask(_get(self._path()), StreamMessage, self.terms)

    def state(self) -> Flow[StateMessage]:
        """Return where the stream stands."""
        return self._look("state", StateMessage)

    def guarantee(self) -> Flow[GuaranteeReport]:
        """Return the guarantee of the stream."""
        return self._look("guarantee", GuaranteeReport)

    def outlook(self, cost: float) -> Flow[Outlook]:
        """Return the outlook of the stream."""
        return self._look("outlook", Outlook, cost=repr(as_cost(cost)))

    def series(self, last: int) -> Flow[Series]:
        """Return the bias of the stream over time."""
        return self._look("series", Series, last=str(last))

    def decision(self, n: int) -> Flow[DecisionMessage]:
        """A decision, as it was answered."""
        return self._look(f"decisions/{number_of(n)}", DecisionMessage)

    def explain(self, decision: DecisionMessage | int) -> Flow[ExplanationMessage]:
        """Why a decision was made."""
        return self._look(f"decisions/{number_of(decision)}/explanation", ExplanationMessage)

    def close(self) -> Flow[StreamMessage]:
        """End the stream."""
        return ask(HttpRequest(method="POST", path=self._path("close")), StreamMessage, self.terms)

    def _look(self, where: str, kind: type[T], **query: str) -> Flow[T]:
        return ask(_get(self._path(where), **query), kind, self.terms)

    # Pages: each says where the next one begins ---------------------------------------------------

    def decisions(self, before: int, *, overruled: bool) -> Flow[Page[DecisionMessage]]:
        """Decisions before decision ``before``, the latest first."""
        query = {"before": str(before), "limit": str(_PAGE), "overruled": str(overruled).lower()}
        found = yield from self._look("decisions", DecisionsMessage, **query)
        full = len(found.decisions) == _PAGE
        return found.decisions, found.decisions[-1].n if full else None

    def windows(self, first: int) -> Flow[Page[WindowEnd]]:
        """Ends of windows, from ``first`` on."""
        found = yield from self._look("windows", Windows, first=str(first), limit=str(_PAGE))
        return found.windows, found.next

    def log(self, after: int) -> Flow[Page[LogEntry]]:
        """Entries after entry ``after``."""
        found = yield from self._look("log", Log, after=str(after), limit=str(_PAGE))
        return found.entries, found.next

    def tail(self, after: int) -> Flow[Page[LogEntry]]:
        """Wait for entries after entry ``after``; returns none if none came in time."""
        path, clock = self._path("log"), self.terms.clock
        query = {"after": str(after), "limit": str(_PAGE), "wait": f"{_LONG_POLL:g}"}
        request = HttpRequest(method="GET", path=path, query=query, wait=_LONG_POLL)
        begun = clock()
        found = yield from ask(request, Log, self.terms, for_ever=True)
        if not found.entries:
            # A service that is stopping answers without waiting: pause before the next request.
            if clock() - begun < _LONG_POLL / 2:
                yield Pause(self.terms.first)
            return (), after
        last = found.entries[-1].line
        return found.entries, None if last["kind"] == "closed" else last["seq"]

    def tail_from(self, after: int | None) -> Flow[int | None]:
        """The entry after which a tail begins; ``None`` if it is the last of a closed stream."""
        stream = yield from self.describe()
        start = stream.state.seq if after is None else after
        return None if stream.closed and start >= stream.state.seq else start

    # Files ------------------------------------------------------------------------------------

    def export(self, target: Path, sink: Any) -> Flow[Path]:
        """Write the log into ``sink``, in the format that the name of ``target`` says."""
        request = HttpRequest(method="GET", path=self._path(f"log{target.suffix}"), sink=sink)
        answer = yield from exchange(request, self.terms)
        check(request, answer)
        return target

    def _path(self, where: str = "") -> str:
        return f"/v1/streams/{quote(self.name, safe='')}" + (f"/{where}" if where else "")


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Any]:
    """A temporary file that replaces ``target`` once it is written completely."""
    if target.suffix not in (".jsonl", ".csv"):
        raise InvalidValueError(f"export writes .jsonl and .csv, got {target.name!r}")
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    try:
        with part.open("xb") as sink:
            yield sink
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


# Parts of requests --------------------------------------------------------------------------


def _get(path: str, **query: str) -> HttpRequest:
    return HttpRequest(method="GET", path=path, query=query)


def _post(
    path: str,
    body: msgspec.Struct | dict[str, Any],
    *,
    key: str | None = None,
    call_key: str | None = None,
) -> HttpRequest:
    try:
        content = msgspec.json.encode(body)
    except (TypeError, msgspec.MsgspecError) as error:
        raise InvalidValueError(f"this cannot be sent as JSON: {error}") from None
    return HttpRequest(method="POST", path=path, body=content, key=key, call_key=call_key)


def number_of(decision: DecisionMessage | int) -> int:
    """The number of a decision in its stream."""
    n = decision.n if isinstance(decision, DecisionMessage) else decision
    if isinstance(n, bool) or not isinstance(n, int):
        raise InvalidValueError(
            f"a decision of this stream, or its number, is needed; got {type(decision).__name__}"
        )
    return n


def _group(group: Group) -> str | int:
    return str(group) if isinstance(group, bool) else group


def _key(key: str | None) -> str:
    return str(uuid.uuid4()) if key is None else checked_key(key)


def _part_keys(whole: str, decisions: int) -> list[str]:
    """One key for each request of a batch; the same for the same batch."""
    parts = -(-decisions // MOST_IN_BATCH)
    return [whole] if parts == 1 else [checked_key(f"{whole}.{i}") for i in range(1, parts + 1)]


def _items(groups: Any, proposed: Any, costs: Any, outcomes: Any) -> list[BatchItem]:
    names = _plain(groups, "groups")
    same = isinstance(costs, (int, float)) or getattr(costs, "ndim", 1) == 0
    columns = {
        "proposed": _plain(proposed, "proposed"),
        "costs": [costs] * len(names) if same else _plain(costs, "costs"),
        "outcomes": [None] * len(names) if outcomes is None else _plain(outcomes, "outcomes"),
    }
    for name, column in columns.items():
        if len(column) != len(names):
            raise InvalidValueError(f"{name} has {len(column)} entries, groups has {len(names)}")
    asked = (Request(*person).values() for person in zip(names, *columns.values(), strict=True))
    return [BatchItem(_group(group), flag, cost, truth) for group, flag, cost, truth in asked]


def _plain(values: Any, name: str) -> list[Any]:
    """A column as a list of Python's own values."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise InvalidValueError(f"{name} must be a sequence, got {type(values).__name__}")
    return list(values.tolist() if hasattr(values, "tolist") else values)
