"""Write files of the current version, and facts about them, into ``files/<version>/``.

Run it once, with the version whose files later versions must read::

    python tests/compat/make_fixtures.py

Files of a version that was released are never written again: what the tests prove is that they can
still be read.  The same version writes the same bytes: requests are drawn with fixed seeds, the
clock of the service stands still, and the token of its key is no secret.

``policies/*.shield``
    Policies of every method and kind.
``states/*.json``
    ``state.to_dict()`` of periodic runs that were interrupted.
``monitors/*.json``
    ``monitor.state``.
``logs/*.jsonl``, ``logs/*.csv``
    What ``fairshield run`` has written, next to ``*.requests.*``, from which it did.
``mlflow/*``
    Models of MLflow that hold a policy.
``service/shield.db.gz``
    The database of ``fairshield serve``.

Next to each, or with it, is a ``.json`` with what the functions of ``old_files`` say of it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from fixture_policies import periodic_policies, window_policies
from old_files import (
    FILES,
    Row,
    answered,
    decisions_of,
    exported_facts,
    file_digest,
    gone_on,
    loaded,
    log_facts,
    monitor_facts,
    monitor_of,
    new_run,
    observe_all,
    policy_facts,
    post,
    requests_for,
    resumed_run,
    run_command,
    run_facts,
    service_facts,
    serving,
)
from old_models import model_facts, people, save_model

import fairshield as fs

_REQUESTS, _ROWS = 60, 40
_MOMENT = "2026-01-01T00:00:00.000000Z"
_STEADY = f"""
import secrets
from datetime import datetime
from fairshield.cli import keys, main
from fairshield.service import api, watching
from fairshield.service.engine import Engine
Engine.now = lambda engine: {_MOMENT!r}
api.utc_now = lambda: datetime.fromisoformat({_MOMENT!r})
keys._now = lambda: {_MOMENT!r}
secrets.token_hex, secrets.token_urlsafe = (lambda n: "c0" * n), (lambda n: "A" * 43)
watching._EVERY = 16
main()
"""
"""``fairshield`` whose clock stands still, whose keys are no secret, and whose monitors are stored
after few decisions."""


def main() -> None:
    """Write everything, where nothing is yet."""
    target = FILES / fs.__version__.rsplit(".", 1)[0]
    if target.exists():
        sys.exit(f"{target} is there already: what a version wrote is never written again")
    for name in ("policies", "states", "monitors", "logs", "mlflow", "service"):
        (target / name).mkdir(parents=True)
    write_policies(target / "policies")
    write_states(target / "policies", target / "states")
    write_monitors(target / "policies", target / "monitors")
    write_logs(target / "policies", target / "logs")
    write_model(target / "policies", target / "mlflow")
    write_service(target / "policies", target / "service")


def write_facts(path: Path, facts: dict[str, Any]) -> None:
    """JSON with one line for each fact, and one for each row of a list of rows."""
    parts = []
    for key, value in facts.items():
        rows = isinstance(value, list) and value and isinstance(value[0], list)
        inner = ",\n  ".join(map(json.dumps, value)) if rows else ""
        parts.append(f" {json.dumps(key)}: " + (f"[\n  {inner}\n ]" if rows else json.dumps(value)))
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


# Policies -----------------------------------------------------------------------------------


def write_policies(folder: Path) -> None:
    for name, policy in (window_policies() | periodic_policies()).items():
        path = folder / f"{name}.shield"
        digest = policy.save(path)
        last = getattr(policy, "last", None)
        n = _REQUESTS if last is None else min(_REQUESTS, last * policy.period)
        requests = requests_for(policy.groups, n, name)
        facts = {"digest": digest, "file": file_digest(path), "requests": requests}
        write_facts(folder / f"{name}.json", facts | policy_facts(loaded(path), requests))


# States -------------------------------------------------------------------------------------


def write_states(policies: Path, folder: Path) -> None:
    for path in sorted(policies.glob("periodic-*.shield")):
        policy = loaded(path)
        for situation, run, left in interrupted(policy):
            name = f"{path.stem.removeprefix('periodic-')}-{situation}"
            state, requests = run.state.to_dict(), requests_for(policy.groups, left, name)
            facts = {"policy": path.name, "state": state, "requests": requests}
            facts |= run_facts(resumed_run(policy, state), requests)
            write_facts(folder / f"{name}.json", facts)


def interrupted(policy: Any) -> list[tuple[str, Any, int]]:
    """Runs that were interrupted at various points, and how many requests are to follow."""
    period, last = policy.period, policy.last
    total = 6 * period if last is None else last * period
    people = requests_for(policy.groups, total, f"before {policy.kind}")
    found = []
    for situation, decided in (("mid", period + 3), ("ended", 2 * period)):
        run = new_run(policy)
        decisions_of(run, people[:decided])
        found.append((situation, run, min(20, total - decided)))
    if last is not None:
        run = new_run(policy)
        decisions_of(run, people)
        found.append(("over", run, 0))
    run, decided = overridden(policy, people)
    found.append(("mended" if run.state.mended else "overridden", run, min(20, total - decided)))
    return found + (awaited(policy, people, total) if policy.labelled else [])


def awaited(policy: Any, people: list[Row], total: int) -> list[tuple[str, Any, int]]:
    """Runs whose last outcome is not known yet."""
    plain = new_run(policy)
    decisions_of(plain, people[:2])
    against, decided = overridden(policy, people, waiting=True)
    mended, later = overridden(policy, people)
    for run in (plain, mended):
        run.decide("a", proposed=True)
    return [
        ("pending", plain, min(20, total - 3)),
        ("overridden-pending", against, min(20, total - decided)),
        ("mended-pending", mended, min(20, total - later - 1)),
    ]


def overridden(policy: Any, people: list[Row], *, waiting: bool = False) -> tuple[Any, int]:
    """A run in whose first period a person accepted all of one group and none of the other.

    It stops where a new plan was made because of that, or shortly before the end of the period;
    with ``waiting``, after the first decision against advice, whose outcome is not observed.
    """
    run, decided = new_run(policy), 0
    while decided < policy.period - 2 and run.state.mended is None:
        group, _, cost, _ = people[decided]
        made = run.record(run.advise(group, proposed=True, cost=cost), final=group == "b")
        decided += 1
        if waiting and made.why.value == "human":
            break
        if policy.labelled:
            run.observe(made, outcome=True)
    return run, decided


# Monitors -----------------------------------------------------------------------------------


def write_monitors(policies: Path, folder: Path) -> None:
    for name, policy_name, how, n in (
        ("windows", "plain", {"horizon": 12}, 75),
        ("one-window", "plain", {"min_group_size": 5}, 75),
        ("labelled", "labelled", {"horizon": 8, "confidence": 0.9}, 75),
        ("periods", "plain", {"period": 10, "keep": 3}, 75),
        ("inputs", "prices", {"horizon": 12, "inputs": True}, 300),
        ("shadow", "plain", {"shadow": True}, 75),
        ("shadow-labelled", "labelled", {"shadow": True}, 75),
        ("shadow-long", "long", {"shadow": True}, 75),
        ("shadow-periodic", "periodic-perpetual", {"shadow": True}, 75),
        ("three-groups", "three-groups", {"horizon": 7}, 75),
    ):
        policy = loaded(policies / f"{policy_name}.shield")
        monitor = monitor_of(policy, how)
        observe_all(monitor, requests_for(policy.groups, n, f"before {name}"))
        state, requests = monitor.state, requests_for(policy.groups, 30, name)
        facts = {"policy": f"{policy_name}.shield", "how": how, "state": state}
        facts |= {"requests": requests} | monitor_facts(monitor_of(policy, how, state), requests)
        write_facts(folder / f"{name}.json", facts)


# Logs ---------------------------------------------------------------------------------------


def write_logs(policies: Path, folder: Path) -> None:
    for name, policy, form, unseen in (
        ("plain", "plain", "jsonl", "refuse"),
        ("table", "plain", "csv", "refuse"),
        ("labelled", "labelled", "csv", "refuse"),
        ("checkpoints", "checkpoints", "jsonl", "refuse"),
        ("strangers", "plain", "jsonl", "follow"),
        ("three-groups", "three-groups", "jsonl", "refuse"),
        ("best-effort", "best-effort", "jsonl", "refuse"),
        ("long", "long", "jsonl", "refuse"),
        ("perpetual", "periodic-perpetual", "jsonl", "refuse"),
        ("static-labelled", "periodic-static-fair-labelled", "csv", "refuse"),
    ):
        groups = [*loaded(policies / f"{policy}.shield").groups]
        people = requests_for(groups + ["stranger"] * (unseen == "follow"), 50, f"log {name}")
        asked, log = f"{name}.requests.{form}", f"{name}.{form}"
        (folder / asked).write_text(requests_text(people, form))
        file = f"../policies/{policy}.shield"
        status, _ = run_command(folder, "run", file, asked, "-o", log, "--unseen", unseen)
        assert status == 0, log
        facts = {"policy": file, "log": log, "requests": asked, "unseen": unseen}
        write_facts(folder / f"{name}.json", facts | log_facts(folder, log, file, unseen))


def requests_text(people: list[Row], form: str) -> str:
    """Requests as a file."""
    names = ("group", "proposed", "cost", "outcome")
    rows = [{"id": f"p{i}"} | dict(zip(names, row, strict=True)) for i, row in enumerate(people)]
    if form == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, ["id", *names], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


# Models of MLflow ---------------------------------------------------------------------------


def write_model(policies: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        save_model(policies / "plain.shield", folder / "scores", Path(temporary))
    asked = people(_ROWS)
    write_facts(folder / "scores.json", {"asked": asked} | model_facts(folder / "scores", asked))


# The service --------------------------------------------------------------------------------

_STREAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("plain", {}),
    "people": ("plain", {"human": True}),
    "limited": ("plain", {"windows": 2}),
    "labelled": ("labelled", {}),
    "waiting": ("labelled", {"human": True}),
    "checkpoints": ("checkpoints", {}),
    "best-effort": ("best-effort", {}),
    "long": ("long", {}),
    "long-labelled": ("long-labelled", {}),
    "static-fair": ("periodic-static-fair", {}),
    "static-bounded": ("periodic-static-bounded", {"human": True}),
    "dynamic": ("periodic-dynamic", {}),
    "exact": ("periodic-exact", {}),
    "perpetual": ("periodic-perpetual", {}),
    "perpetual-people": ("periodic-perpetual", {"human": True}),
    "perpetual-labelled": ("periodic-perpetual-labelled", {}),
    "closed": ("prices", {}),
}
"""By stream, its policy and its settings."""
_SPECIFIED = {
    "property": "demographic-parity", "bound": "0.3", "horizon": 9, "groups": {"a": 0.5, "b": 0.5}
}  # fmt: skip
"""A policy that the service makes itself."""


def write_service(policies: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        database = Path(temporary) / "shield.db"
        with serving(database, program=_STEADY) as client:
            asked = [fill(client, policies, name) for name in _STREAMS]
            held(client, _SPECIFIED)
        token = new_key(database)
        (folder / "shield.db.gz").write_bytes(gzip.compress(database.read_bytes(), 9, mtime=0))
        facts: dict[str, Any] = {"token": token, "asked": [one for many in asked for one in many]}
        with serving(database, token, _STEADY) as client:
            facts |= service_facts(client, database)
            facts["exported"] = exported_facts(client, policies)
            facts["then"] = gone_on(client, database)
    write_facts(folder / "shield.json", facts)


def new_key(database: Path) -> str:
    command = [sys.executable, "-c", _STEADY, "keys", "create", "--db", str(database)]
    made = subprocess.run(
        [*command, "--name", "ops", "--scope", "admin"],
        capture_output=True, text=True, check=True, env=dict(os.environ),
    )  # fmt: skip
    return made.stdout.strip()


def held(client: httpx.Client, content: bytes | dict[str, Any]) -> str:
    """The digest of a policy file, or of a specified policy, once the service has verified it."""
    how = (
        {"json": content} if isinstance(content, dict)
        else {"content": content, "headers": {"content-type": "application/octet-stream"}}
    )  # fmt: skip
    policy = answered(client.post("/v1/policies", **how))
    while policy["status"] != "ready":
        assert policy["status"] != "failed", policy
        time.sleep(0.02)
        policy = answered(client.get(f"/v1/policies/{policy['id']}"))
    digest: str = policy["digest"]
    return digest


def fill(client: httpx.Client, policies: Path, name: str) -> list[list[Any]]:
    """Create a stream and send requests to it; returns those with a key, and their answers."""
    policy_name, settings = _STREAMS[name]
    path = policies / f"{policy_name}.shield"
    digest, policy = held(client, path.read_bytes()), loaded(path)
    post(client, "/v1/streams", {"name": name, "policy": digest} | settings)
    where, last = f"/v1/streams/{name}", getattr(policy, "last", None)
    length = getattr(policy, "period", None) or policy.horizon
    most = length * settings["windows"] if "windows" in settings else 200
    n = min(max(20, 2 * length + 3), most, 200 if last is None else length * last - 2)
    people = requests_for(policy.groups, n, f"served {name}")
    asked = []

    def ask(place: str, body: Any, key: str) -> Any:
        answer = post(client, f"{where}/{place}", body, f"{name}-{key}")
        asked.append([f"{where}/{place}", body, f"{name}-{key}", answer])
        return answer

    half, names = n // 2, ("group", "proposed", "cost", "outcome")
    batch = [dict(zip(names, row, strict=True)) for row in people[:half]]
    for person in batch if not policy.labelled else ():
        del person["outcome"]
    ask("decisions:batch", {"decisions": batch}, "batch")
    for i, (group, proposed, cost, outcome) in enumerate(people[half:], half + 1):
        body = {"group": group, "proposed": proposed, "cost": cost}
        answer = ask("decisions", body, f"d{i}")
        if settings.get("human") and i % 4 == 1:
            note = {"accepted": not answer["accepted"], "note": "ägenhändig"}
            ask(f"decisions/{i}/override", note, f"h{i}")
        if policy.labelled and not (i == n and name == "waiting"):
            ask("outcomes", {"decision": i, "outcome": outcome}, f"o{i}")
    if name == "closed":
        answered(client.post(f"{where}/close"))
    return [asked[0], *asked[-3:]]


if __name__ == "__main__":
    main()
