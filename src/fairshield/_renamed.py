"""NAMES and MODULES list what had another name or place before version 0.2.

docs/renamed.md lists the same names; a test compares the two.
"""

NAMES: dict[str, tuple[str, str]] = {
    "Answers": ("fairshield", "Batch"),
    "Certificate": ("fairshield.spec", "Certificate"),
    "PeriodicShield": ("fairshield", "Run"),
    "PeriodicState": ("fairshield.periodic", "RunState"),
    "Stream": ("fairshield", "Run"),
    "Sustained": ("fairshield.spec", "Sustained"),
    "base.groups.intersection": ("fairshield", "intersection"),
    "mlflow.Reading": ("fairshield.mlflow", "ModelReading"),
    "periodic.PeriodicExplanation": ("fairshield.periodic", "RunExplanation"),
    "periodic.PeriodicShield": ("fairshield", "Run"),
    "periodic.PeriodicState": ("fairshield.periodic", "RunState"),
    "periodic.run.Answers": ("fairshield", "Batch"),
    "periodic.run.PeriodicShield": ("fairshield", "Run"),
    "periodic.run.Stream": ("fairshield", "Run"),
    "reports.plots.Side": ("fairshield.reports.plots", "DrawnWindows"),
    "periodic.verify.verify_periodic": ("fairshield", "verify"),
}
"""Where a name that ``fairshield``, or a module in it, exported is found now."""

MODULES: dict[str, str] = {
    f"fairshield.{old}": f"fairshield.{new}"
    for old, new in {
        "analysis.audit": "periodic.audit",
        "artifact": "policy.artifact",
        "bench": "cli.tools.bench",
        "codes": "policy.codes",
        "compiler": "base.compiler",
        "counts": "base.counts",
        "dates": "records.dates",
        "demo": "cli.tools.demo",
        "doctor": "cli.tools.doctor",
        "dossier": "reports.dossier",
        "errors": "base.errors",
        "evaluate": "runtime.evaluate",
        "explain": "analysis.explain",
        "extras": "base.extras",
        "frames": "adapters.frames",
        "groups": "base.groups",
        "layout": "policy.layout",
        "lines": "records.lines",
        "long": "policy.long",
        "many": "policy.many",
        "outcomes": "spec.outcomes",
        "pareto": "analysis.pareto",
        "periodic.shield": "periodic.run",
        "plots": "reports.plots",
        "reading": "records.reading",
        "rows": "policy.rows",
        "runtime.audit": "periodic.audit",
        "runtime.report": "analysis.report",
        "runtime.terms": "analysis.terms",
        "service.messages": "wire.messages",
        "service.problems": "wire.problems",
        "simulate": "analysis.simulate",
        "spec.properties": "spec",
        "specfile": "adapters.specfile",
        "stream": "periodic.run",
        "structure": "policy.structure",
        "tables": "records.tables",
        "verify": "analysis.verify",
        "windows": "periodic.windows",
        "words": "base.words",
    }.items()
}
"""New paths of modules, by old ones."""
