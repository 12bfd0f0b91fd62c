"""The page of ``fairshield audit --html``."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import Any

import click

from fairshield.artifact import digest_of, replacing
from fairshield.cli.audit_log import Found, Task
from fairshield.cli.extras import needed_by
from fairshield.cli.output import (
    check_target,
    human_size,
    print_facts,
)
from fairshield.cli.reading import given_reading
from fairshield.errors import InvalidValueError


def page_target(page: str, log: str) -> Path:
    """Where the page goes, which must be a name for a page and not somebody else's file."""
    with needed_by("audit --html", extra="cli"):
        from fairshield.dossier import MARK

    target = Path(page or ("audit.html" if log == "-" else f"{Path(log).stem}-audit.html"))
    if target.suffix.lower() not in (".html", ".htm"):
        raise InvalidValueError(f"--html writes a page, as in --html audit.html, got {page!r}")
    check_target(target)
    if target.is_file():
        with target.open("rb") as earlier:
            if MARK.encode() not in earlier.read(1000):
                raise InvalidValueError(
                    f"{target} exists and is not a page of an audit: remove it, or choose another "
                    "name"
                )
    return target


def new_keeper() -> Any:
    """Keeps what a page needs of every decision."""
    from fairshield.dossier import Keeper

    return Keeper()


def write_page(found: Found, target: Path) -> dict[str, Any]:
    """Write the page; returns where it is, its size and its digest."""
    from fairshield.dossier import Source, collect, render

    task, chosen = found.task, found.task.chosen
    if not found.report.overruled_by_group:
        raise InvalidValueError(
            f"{task.log}: the log has no decisions, and a page names the groups: name them with "
            "--names first,second"
        )
    name = "standard input" if task.log == "-" else Path(task.log).name
    trace, file = found.trace, task.policy
    dossier = collect(
        found.report,
        found.keeper,
        prop=found.prop,
        log=Source(name=name, sha256=trace.sha256, size=trace.size, lines=trace.lines),
        policy=found.policy,
        policy_file=None
        if file is None
        else Source(name=file.name, sha256=digest_of(file), size=file.stat().st_size),
        standing=None if found.derived is None else found.derived.guarantee,
        start=found.start,
        checkpoints=chosen.get("checkpoints", ()),
        horizon=chosen.get("horizon"),
        period=chosen.get("period"),
        by=chosen.get("by"),
        command=_command(task, target),
        date=task.date,
    )
    content = render(dossier).encode()
    with replacing(target) as file_:
        file_.write(content)
    digest = hashlib.sha256(content).hexdigest()
    return {"path": str(target), "bytes": len(content), "sha256": digest}


def _command(task: Task, target: Path) -> str:
    """What makes the page again, in a folder with the files."""
    words = ["fairshield", "audit", "-" if task.log == "-" else Path(task.log).name]
    if task.policy is not None:
        words += ["--policy", task.policy.name]
    words += [word for name in task.imports for word in ("--import", name)]
    for name, value in task.chosen.items():
        words += _option(name, value)
    if task.names is not None:
        words += ["--names", ",".join(task.names)]
    if task.unseen.kind != "refuse":
        words += ["--unseen", str(task.unseen)]
    for name, values in given_reading(task.reading).items():
        words += [word for value in values for word in (f"--{name}", value)]
    words += ["--date", task.date] if task.date else []
    return shlex.join([*words, "--html", target.name])


def _option(name: str, value: Any) -> list[str]:
    """An option as it was given."""
    flag = f"--{name.replace('_', '-')}"
    if name not in {option.name for option in click.get_current_context().command.params}:
        return ["--argument", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    if name == "two_sided":
        return ["--two-sided" if value else "--one-sided"]
    if name == "start":
        return [flag, ",".join(f"{g}={seen}:{accepted}" for g, (seen, accepted) in value.items())]
    if name == "checkpoints":
        return [word for point in value for word in ("--checkpoint", str(point))]
    return [flag, str(int(value)) if isinstance(value, bool) else str(value)]


def print_page(written: dict[str, Any]) -> None:
    """Where the page is, and its digest."""
    click.echo("")
    size = human_size(written["bytes"])
    print_facts([("page", f"{written['path']}, {size}"), ("its sha256", written["sha256"])])
