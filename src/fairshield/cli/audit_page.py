"""``audit_with_page`` audits a log for ``fairshield audit --html``, and writes the page.

It needs the extra ``cli``.
"""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import Any

import click

from fairshield.base.errors import InvalidValueError
from fairshield.cli.audit_log import AuditTask, Found, audit_one
from fairshield.cli.output import check_target
from fairshield.cli.reading import given_reading
from fairshield.policy.artifact import digest_of, replacing
from fairshield.reports.dossier import MARK, Keeper, Source, collect, render


def audit_with_page(task: AuditTask, page: str) -> tuple[Found, dict[str, Any]]:
    """Audit the log and write the page; returns what was found, and what was written where."""
    target = _target(page, task.log)
    found = audit_one(task, Keeper())
    return found, _write(found, target)


def _target(page: str, log: str) -> Path:
    """The path of the page; refuses names that are not HTML, and files of other origin."""
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


def _write(found: Found, target: Path) -> dict[str, Any]:
    """Write the page; returns where it is, its size and its digest."""
    task = found.task
    if not found.report.people:
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
        standing=found.guarantee,
        command=_command(task, target),
        date=task.date,
    )
    content = render(dossier).encode()
    with replacing(target) as file_:
        file_.write(content)
    digest = hashlib.sha256(content).hexdigest()
    return {"path": str(target), "bytes": len(content), "sha256": digest}


def _command(task: AuditTask, target: Path) -> str:
    """The command that makes the page again, run in a folder with the files."""
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
    options = {option.name: option for option in click.get_current_context().command.params}
    if name not in options:
        return ["--argument", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    if options[name].secondary_opts:
        return [(options[name].opts if value else options[name].secondary_opts)[0]]
    if name == "start":
        return [flag, ",".join(f"{g}={seen}:{accepted}" for g, (seen, accepted) in value.items())]
    if name == "checkpoints":
        return [word for point in value for word in ("--checkpoint", str(point))]
    return [flag, str(int(value)) if isinstance(value, bool) else str(value)]
