"""``audit_one`` audits the log that ``fairshield audit`` was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from fairshield.adapters.specfile import parse_property, parse_start
from fairshield.analysis.report import AuditReport
from fairshield.base.errors import InvalidValueError
from fairshield.base.groups import Unseen
from fairshield.cli.output import reading_bar
from fairshield.cli.reading import groups_known
from fairshield.cli.stream import blamed_on
from fairshield.periodic import Guarantee, PeriodicPolicy, Run, kind_of, load_policy
from fairshield.periodic.audit import audit as audit_log
from fairshield.records.lines import Trace
from fairshield.records.reading import Reading
from fairshield.spec import Property

_ASKED = ("horizon", "period", "checkpoints", "by", "date_format", "timezone")
"""Options that are arguments of :func:`fairshield.audit` by the same name."""


class AuditTask(NamedTuple):
    """AuditTask holds what ``fairshield audit`` was asked: the log, how to read it, what to check.

    ``chosen`` are the options that were given about the property, its windows and dates, by their
    names; ``date`` is that of the page, ``imports`` are modules with properties of the user's own.
    """

    log: str
    policy: Path | None
    names: tuple[str, ...] | None
    reading: Reading
    unseen: Unseen
    chosen: dict[str, Any]
    date: str
    imports: tuple[str, ...] = ()


class Found(NamedTuple):
    """Found holds the report of an audit, what was audited, and the digest of the log.

    ``run`` has decided the log again, if a policy was given.
    """

    task: AuditTask
    report: AuditReport
    prop: Property
    run: Run | None
    trace: Trace
    keeper: Any

    @property
    def policy(self) -> PeriodicPolicy | None:
        """The policy that was given."""
        return None if self.run is None else self.run.policy

    @property
    def guarantee(self) -> Guarantee | None:
        """Where a run stands at the end of the log, if it made all its decisions.

        ``None`` where windows begin anew and trust nothing.
        """
        if self.run is None or not self.run.policy.stands or self.report.difference is not None:
            return None
        return self.run.guarantee


def audit_one(task: AuditTask, keeper: Any = None) -> Found:
    """Audit the log; ``keeper`` is shown every decision on the way."""
    chosen = task.chosen
    loaded = None if task.policy is None else kind_of(load_policy(task.policy))
    run = None if loaded is None else Run(loaded)
    if loaded is None and "property" not in chosen:
        raise InvalidValueError("say what had to hold: --policy POLICY, or --property and --bound")
    prop = parse_property(chosen) if "property" in chosen or loaded is None else loaded.prop
    groups = groups_known(task.names, loaded, chosen.get("start"))
    start = None if groups is None else parse_start(chosen, groups)
    trace = Trace()
    with reading_bar("auditing", task.log, task.reading, trace) as lines, blamed_on(task.log):
        records = task.reading.read(lines, task.log, exported=True, requests=loaded is not None)
        report = audit_log(
            prop,
            records
            if groups is None
            else (record.declared(groups, empty=task.unseen.empty) for record in records),
            groups=groups,
            start=start,
            watch=keeper,
            policy=run,
            unseen=task.unseen,
            **{key: chosen[key] for key in _ASKED if key in chosen},
        )
    return Found(task, report, prop, run, trace, keeper)


def data_of(found: Found) -> dict[str, Any]:
    """What ``--json`` prints."""
    if found.policy is None or not found.policy.stands:
        return found.report.to_dict()
    guarantee = found.guarantee
    return found.report.to_dict() | {
        "guarantee": None if guarantee is None else guarantee.to_dict()
    }
