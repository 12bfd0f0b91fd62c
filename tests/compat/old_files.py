"""Functions that use files of any version, and return facts to compare.

``make_fixtures`` writes files and what these functions say of them, ``test_old_files`` asks the
same functions again, with the current version.  Names of the library occur in the first part only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from click.testing import CliRunner

import fairshield as fs
from fairshield.cli.app import app

FILES = Path(__file__).parent / "files"
"""One folder for each version that wrote files."""


# Names of the library -----------------------------------------------------------------------


@dataclass(frozen=True)
class AcceptedApart(fs.LinearProperty, kind="compat-accepted-apart"):
    """A property of the user's own: accepted counts differ by at most ``most``."""

    most: int

    def inequalities(self, n_a: Any, n_b: Any) -> Any:
        return (1, -1, self.most), (-1, 1, self.most)


def loaded(path: Path) -> Any:
    """The policy in a file, of whichever kind."""
    if path.name.startswith("periodic-"):
        return fs.PeriodicPolicy.load(path)
    return fs.Policy.load(path)


def new_stream(policy: Any) -> Any:
    """A policy in use, from its beginning, for as long as people come."""
    return fs.Run(policy)


def new_run(policy: Any) -> Any:
    """A run of a periodic policy, whose state can be saved."""
    return fs.Run(policy)


def resumed_run(policy: Any, state: dict[str, Any]) -> Any:
    """The run that goes on from a saved state."""
    return fs.Run(policy, state=state)


def state_of(saved: dict[str, Any]) -> Any:
    """A saved state in the form of this version: earlier versions wrote it otherwise."""
    return fs.periodic.RunState.from_dict(saved)


def monitor_of(policy: Any, how: dict[str, Any], state: dict[str, Any] | None = None) -> Any:
    """A monitor for what a policy keeps: ``shadow`` runs the policy beside it, too."""
    settings = {key: value for key, value in how.items() if key not in ("shadow", "inputs")}
    if how.get("shadow"):
        settings["shadow"] = policy
    if how.get("inputs"):
        settings["inputs"] = policy.inputs
    return fs.Monitor(policy.prop, state=state, **settings)


def run_command(folder: Path, *words: Any) -> tuple[int, str]:
    """Exit status and standard output of ``fairshield`` in a folder."""
    with contextlib.chdir(folder):
        result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.stdout


# Requests and decisions ---------------------------------------------------------------------

Row = list[Any]
"""A request: group, proposed, cost, outcome.  A decision: period, position, accepted, …"""


def requests_for(groups: Sequence[Any], n: int, seed: str) -> list[Row]:
    """Requests that a shield must overrule now and then."""
    rng = random.Random(seed)
    found = []
    for _ in range(n):
        place = rng.randrange(len(groups))
        likely = 0.15 + 0.7 * place / (len(groups) - 1)
        found.append(
            [groups[place], rng.random() < likely, rng.choice([0.5, 1.0, 2.0]), rng.random() < 0.6]
        )
    return found


def decisions_of(run: Any, requests: list[Row]) -> list[Row]:
    """What is decided, one by one, outcomes being observed at once where they count."""
    found = []
    for group, proposed, cost, outcome in requests:
        made = run.decide(group, proposed=proposed, cost=cost)
        if run.policy.labelled:
            run.observe(made, outcome=outcome)
        found.append(decision_row(made))
    return found


def decision_row(made: Any) -> Row:
    return [made.window, made.position, made.accepted, made.why.value, made.guaranteed]


def columns_of(requests: list[Row], *, labelled: bool) -> tuple[Any, ...]:
    """The same requests as arguments of ``decide_many``."""
    groups, proposed, costs, outcomes = (list(column) for column in zip(*requests, strict=True))
    return groups, proposed, costs, outcomes if labelled else None


# Facts --------------------------------------------------------------------------------------


def file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def policy_facts(policy: Any, requests: list[Row]) -> dict[str, Any]:
    """Facts about a policy: its description and its decisions."""
    facts = {"str": str(policy), "labelled": policy.labelled, "groups": list(policy.groups)}
    # The version that wrote these files did not list the end of a period as due.
    due = ("due",) if hasattr(policy, "horizon") else ()
    for name in (
        "expected_cost", "least_cost", "risk", "method", "horizon", *due, "spread",
        "kind", "period", "last", "fingerprint", "unconditional", "can_bind",
    ):  # fmt: skip
        if hasattr(policy, name):
            value = getattr(policy, name)
            facts[name] = list(value) if isinstance(value, tuple) else value
    return facts | {
        "property": policy.prop.to_dict(),
        "inputs": policy.inputs.to_dict(),
        "start": [[group, *policy.start[group]] for group in policy.groups],
        "decisions": decisions_of(new_stream(policy), requests),
    }


def run_facts(run: Any, requests: list[Row]) -> dict[str, Any]:
    """What a run says and decides from where it stands; an outcome that is awaited is 1."""
    facts: dict[str, Any] = {"guarantee": run.guarantee.to_dict()}
    if run.pending is not None:
        facts["pending"] = decision_row(run.pending)
        run.observe(run.pending, outcome=True)
    facts["decisions"] = decisions_of(run, requests)
    return facts | {"then": run.state.to_dict()}


def observe_all(monitor: Any, requests: list[Row]) -> None:
    """Show a monitor requests that were all decided as proposed."""
    for group, proposed, cost, outcome in requests:
        known = outcome if monitor.prop.relevant_outcome is not None else None
        monitor.observe(group, accepted=proposed, proposed=proposed, cost=cost, outcome=known)


def monitor_facts(monitor: Any, requests: list[Row]) -> dict[str, Any]:
    """What a monitor says where it stands, and after more decisions."""
    before = monitor.report().to_dict()
    observe_all(monitor, requests)
    return {"report": before, "then": monitor.report().to_dict()}


_WATCHED = ["--property", "demographic-parity", "--bound", "0.2", "--horizon", "10"]


def log_facts(folder: Path, log: str, policy: str, unseen: str) -> dict[str, Any]:
    """What commands say of a log that ``fairshield run`` has written."""
    strangers = ["--unseen", unseen]
    return {
        name: [status, [json.loads(line) for line in said.splitlines()]]
        for name, (status, said) in {
            "audit": run_command(folder, "audit", log, "--policy", policy, "--json", *strangers),
            "explain": run_command(folder, "explain", policy, log, "--json", *strangers),
            "monitor": run_command(folder, "monitor", log, *_WATCHED, "--json"),
        }.items()
    }


# The service --------------------------------------------------------------------------------

_SECONDS = 90.0


@contextlib.contextmanager
def serving(
    database: Path, token: str | None = None, program: str | None = None
) -> Iterator[httpx.Client]:
    """``fairshield serve`` over a database, and a client that shows the token.

    ``program`` is run instead of ``python -m fairshield``.
    """
    how = ["-m", "fairshield"] if program is None else ["-c", program]
    output = database.with_suffix(".out")
    with output.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, *how, "serve", "--db", str(database), "--port", "0"],
            stdout=out, stderr=subprocess.STDOUT, env=dict(os.environ),
        )  # fmt: skip
    try:
        address = _wait_for(lambda: _announced(process, output))
        headers = {"authorization": f"Bearer {token}"} if token else {}
        with httpx.Client(base_url=address, headers=headers, timeout=_SECONDS) as client:
            yield client
        process.send_signal(signal.SIGTERM)
        assert process.wait(_SECONDS) == 0, output.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _announced(process: subprocess.Popen[bytes], output: Path) -> str:
    if process.poll() is not None:
        raise AssertionError(f"the server ended: {output.read_text()}")
    found = re.search(r"at (http://\S+)", output.read_text())
    return found[1] if found else ""


def _wait_for(look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError(f"nothing happened for {_SECONDS} seconds")


def answered(response: httpx.Response) -> Any:
    """The answer of the service, which must be one."""
    assert response.is_success, response.text
    return response.json()


def post(client: httpx.Client, path: str, body: Any, key: str | None = None) -> Any:
    headers = {} if key is None else {"idempotency-key": key}
    return answered(client.post(path, json=body, headers=headers))


def stream_facts(client: httpx.Client, name: str) -> dict[str, Any]:
    """What the service says of a stream, the lines of its log, and its last hash."""
    where = f"/v1/streams/{name}"
    facts = {
        part: answered(client.get(f"{where}/{part}")) for part in ("state", "guarantee", "windows")
    }
    lines = client.get(f"{where}/log.jsonl").content
    described = answered(client.get(where))
    del described["state"]
    return facts | {
        "described": described,
        "entries": lines.count(b"\n"),
        "lines": hashlib.sha256(lines).hexdigest(),
        "last_hash": facts["state"]["receipt"],
        "explained": answered(client.get(f"{where}/decisions/1/explanation")),
    }


def streams_of(client: httpx.Client) -> list[str]:
    return sorted(stream["name"] for stream in answered(client.get("/v1/streams"))["streams"])


def policies_of(client: httpx.Client) -> list[Any]:
    found: list[Any] = answered(client.get("/v1/policies"))["policies"]
    return sorted(found, key=lambda policy: str(policy["digest"]))


def service_facts(client: httpx.Client, database: Path) -> dict[str, Any]:
    """What the service says of all that is in its database, and what an audit says of it."""
    return {
        "streams": {name: stream_facts(client, name) for name in streams_of(client)},
        "policies": policies_of(client),
        "audit": audit_facts(database),
    }


def audit_facts(database: Path) -> list[Any]:
    status, said = run_command(database.parent, "audit", "--db", database.name, "--json")
    return [status, json.loads(said)]


def exported_facts(client: httpx.Client, policies: Path) -> dict[str, Any]:
    """What an audit says of each log, exported in either format, with the file of its policy."""
    files = {
        json.loads(path.with_suffix(".json").read_text())["digest"]: path
        for path in policies.glob("*.shield")
    }
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in streams_of(client):
            policy = files[answered(client.get(f"/v1/streams/{name}"))["policy"]]
            for log in ("log.jsonl", "log.csv"):
                (Path(folder) / log).write_bytes(client.get(f"/v1/streams/{name}/{log}").content)
                audit = run_command(Path(folder), "audit", log, "--policy", policy, "--json")
                said = json.loads(audit[1])
                told = ("verdict", "decisions", "overruled", "cost_paid", "checked", "unfair")
                found[f"{name} {log}"] = [audit[0], *(said[key] for key in told)]
    return found


def repeated(client: httpx.Client, asked: list[list[Any]]) -> list[Any]:
    """Answers to requests whose keys were used before; they must be the first answers."""
    return [post(client, path, body, key) for path, body, key, _answer in asked]


def whole_windows(client: httpx.Client, name: str) -> bool:
    """Decide as many people as two windows have, if the stream still decides."""
    stream = answered(client.get(f"/v1/streams/{name}"))
    known = {"outcome": True} if stream["labelled"] else {}
    groups = stream["groups"]
    people = [
        {"group": groups[i % 2], "proposed": i % 3 > 0, **known}
        for i in range(2 * stream["length"])
    ]
    path, key = f"/v1/streams/{name}/decisions:batch", {"idempotency-key": "windows"}
    answer = client.post(path, json={"decisions": people}, headers=key)
    return bool(answer.is_success)


def gone_on(client: httpx.Client, database: Path) -> dict[str, Any]:
    """Make one more decision in every open stream; returns the audits afterwards.

    For a stream that makes no more decisions, the kind of the refusal is returned.
    """
    found = {}
    for name in streams_of(client):
        path, request = f"/v1/streams/{name}/decisions", {"group": "a", "proposed": True}
        answer = client.post(path, json=request, headers={"idempotency-key": "next"}).json()
        known = ("n", "seq", "window", "position", "accepted", "why", "guaranteed", "remaining")
        decided = {key: answer[key] for key in known if key in answer}
        found[name] = decided or answer["type"]
    status, audit = audit_facts(database)
    findings = {stream["stream"]: stream["findings"] for stream in audit["streams"]}
    return {"decided": found, "audit": [status, audit["verdict"], findings]}
