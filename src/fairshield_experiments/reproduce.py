"""``reproduce`` runs all experiments from raw data to the report."""

from __future__ import annotations

import os
import platform
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd

import fairshield as fs
from fairshield_experiments.data import Dataset, describe, load
from fairshield_experiments.experiments import (
    FIVE,
    Extent,
    Model,
    cross_fit_tasks,
    model_tasks,
    perform,
    run_tasks,
)
from fairshield_experiments.experiments import make_extent as make_extent
from fairshield_experiments.keys import versions
from fairshield_experiments.people import Scored
from fairshield_experiments.results.figures import save
from fairshield_experiments.results.items import ITEMS, make_all
from fairshield_experiments.results.parts import Check, Item, Product, Results, Verdict
from fairshield_experiments.results.report import write_report
from fairshield_experiments.sweep.cluster import Dask
from fairshield_experiments.sweep.journal import FailedTask, Journal
from fairshield_experiments.sweep.run import run_sweep
from fairshield_experiments.sweep.task import Task
from fairshield_experiments.sweep.workers import InProcess, Processes, Workers
from fairshield_experiments.training import scored

Progress = Callable[[str, int, int, float | None], None]
"""``progress(stage, done, total, seconds_left)``."""
SIMULATED = ("runs", "departed", "paths", "resources", "trainings", "training_runs")
FRAMES = ("datasets", "metrics", *SIMULATED)


@dataclass(frozen=True, eq=False, kw_only=True)
class Reproduction:
    """Reproduction says what was made, and where the files are."""

    folder: Path
    products: Mapping[Item, Product]
    results: Results

    @property
    def checks(self) -> list[Check]:
        """Every published number beside ours."""
        return [check for product in self.products.values() for check in product.checks]

    @property
    def verdicts(self) -> Counter[Verdict]:
        """Verdicts on the published numbers, by the published convention on empty groups."""
        return sum((product.verdicts for product in self.products.values()), Counter())

    @property
    def as_published(self) -> Counter[Verdict]:
        """The same with all departures of the published runs; empty if they were not run."""
        if self.results.departed.empty:
            return Counter()
        return sum((product.as_published for product in self.products.values()), Counter())

    @property
    def runs(self) -> int:
        """Runs simulated, with a shield and without."""
        frames = (self.results.runs, self.results.departed)
        return sum(int((frame["period"] == 1).sum()) for frame in frames if len(frame))

    @property
    def report(self) -> Path:
        """The file to open."""
        return self.folder / "report.html"


def chosen(names: Sequence[str]) -> tuple[Item, ...]:
    """Items by name, in the order of the report.

    No names, or ``all``, are all but those that take time of their own.
    """
    known = [item.name for item in ITEMS]
    for name in names:
        if name not in known and name != "all":
            raise fs.InvalidValueError(
                f"unknown item {name!r}: choose from all, {', '.join(known)}"
            )
    whole = not names or "all" in names
    return tuple(item for item in ITEMS if item.name in names or (whole and item.in_all))


def make_workers(processes: int | None = None, scheduler: str | None = None) -> Workers:
    """Workers of a Dask scheduler, or processes of this machine, by default one per core."""
    if scheduler is None:
        return Processes(processes or _processors())
    if processes is not None:
        raise fs.InvalidValueError(
            f"{processes} processes and the scheduler {scheduler}: give one or the other"
        )
    return Dask(scheduler)


def _processes(workers: Workers) -> int:
    """How many processes of this machine may draw figures."""
    if isinstance(workers, InProcess):
        return 1
    return workers.count if isinstance(workers, Processes) else _processors()


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def reproduce(
    names: Sequence[str],
    extent: Extent,
    *,
    output: Path,
    workers: Workers,
    progress: Progress | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Reproduction:
    """Run what the items need and write their tables, figures and report into ``output``.

    What an earlier call with the same extent finished is taken from its journal.  ``facts`` are
    printed in the report.
    """
    items = chosen(names)
    needs = sorted({need for item in items for need in item.needs})
    tell = progress or (lambda stage, done, total, left: None)
    tell("reading data", 0, 1, None)

    def fetching(url: str, received: int, total: int | None) -> None:
        tell(f"downloading {url}", received, total or received, None)

    datasets = {name: load(name, progress=fetching) for name in extent.environments}
    output.mkdir(parents=True, exist_ok=True)
    with Journal(output / "journal.sqlite") as journal:
        gathered = _Gathered(extent, journal, workers, tell)
        frames = gathered.frames(needs, datasets)
    tell("writing results", 0, 1, None)
    results = Results(
        datasets=pd.DataFrame([describe(dataset) for dataset in datasets.values()]),
        **frames,
        failures=_failures(gathered.failures, output),
        facts=_facts(extent, workers, gathered.seconds) | dict(facts or {}),
    )
    products = make_all(items, results, _processes(workers))
    made = Reproduction(folder=output, products=products, results=results)
    write(made)
    return made


class _Gathered:
    """_Gathered runs the sweeps and collects their frames."""

    def __init__(
        self, extent: Extent, journal: Journal, workers: Workers, progress: Progress
    ) -> None:
        self._extent, self._journal, self._workers = extent, journal, workers
        self._progress = progress
        self.failures: list[FailedTask] = []
        self.seconds: dict[str, float] = {}

    def frames(
        self, needs: Sequence[str], datasets: Mapping[str, Dataset]
    ) -> dict[str, pd.DataFrame]:
        """All frames but that of the data sets."""
        extent = self._extent
        models: dict[Model, Scored] = {}
        cross_fitted: dict[Model, Scored] = {}
        trained: list[str] = []
        if set(needs) - {"datasets", "resources"}:
            tasks, folded = model_tasks(extent), cross_fit_tasks(needs, extent)
            done = self._sweep("training", [*tasks.values(), *folded.values()])
            trained = [task.key for task in tasks.values() if task.key in done]
            models = {
                at: scored(datasets[at[0]], at[1], self._scores(task))
                for at, task in tasks.items()
                if task.key in trained
            }
            cross_fitted = {
                at: models[at].with_out_of_fold(self._scores(task))
                for at, task in folded.items()
                if at in models and task.key in done
            }
        simulated = self._sweep("simulating", run_tasks(needs, extent, models, cross_fitted))
        frames = {name: self._journal.collect(name, simulated) for name in SIMULATED}
        return frames | {"metrics": self._journal.collect("metrics", trained)}

    def _scores(self, task: Task) -> Any:
        return self._journal.collect("scores", [task.key])["score"].to_numpy()

    def _sweep(self, stage: str, tasks: Sequence[Task]) -> list[str]:
        """Keys of the tasks that are done, in their order."""
        begin = perf_counter()
        report = run_sweep(
            perform, tasks, self._journal, self._workers,
            progress=lambda done, total, _title, left: self._progress(stage, done, total, left),
        )  # fmt: skip
        self.failures += report.failures
        self.seconds[stage] = round(perf_counter() - begin, 1)
        done = {*report.finished, *report.resumed}
        return [task.key for task in tasks if task.key in done]


def _failures(failed: Sequence[FailedTask], output: Path) -> pd.DataFrame:
    """Titles and last lines of failed tasks; full texts go into ``failures.txt``."""
    path = output / "failures.txt"
    path.unlink(missing_ok=True)
    if failed:
        path.write_text("\n\n".join(f"{task.title}\n{task.error}" for task in failed) + "\n")
    return pd.DataFrame(
        [{"title": task.title, "error": task.error.splitlines()[-1]} for task in failed],
        columns=["title", "error"],
    )


def _facts(extent: Extent, workers: Workers, seconds: Mapping[str, float]) -> dict[str, Any]:
    return {
        "seed": extent.seed,
        **({"part": part} if (part := part_of(extent)) else {}),
        "training": _training(extent),
        "environments": list(extent.environments),
        "learners": [f"{name}: {learner!r}" for name, learner in extent.learners.items()],
        "runs": f"{extent.runs} of a finite horizon, "
        f"{extent.period_runs} of {extent.periods} periods",
        "versions": versions(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "workers": _words(workers),
        "seconds": dict(seconds),
    }


def part_of(extent: Extent) -> str:
    """Which parts of the paper's extent are left out, in words; empty if none is."""
    whole = Extent(learners=dict.fromkeys(FIVE))
    counts = (
        ("environments", len(extent.environments), len(whole.environments)),
        ("learners", sum(name in FIVE for name in extent.learners), len(FIVE)),
        ("bounds", len(extent.bounds), len(whole.bounds)),
        ("runs of a finite horizon", extent.runs, whole.runs),
        ("runs of periods", extent.period_runs, whole.period_runs),
        ("trainings", extent.trainings, whole.trainings),
    )
    return ", ".join(f"{has} of {of} {what}" for what, has, of in counts if has < of)


def _training(extent: Extent) -> str:
    """How long networks are trained, in words."""
    schedules = {str(getattr(x, "schedule", "")) for x in extent.learners.values()} - {""}
    return "; ".join(sorted(schedules)) or "as the learners do"


def _words(workers: Workers) -> str:
    match workers:
        case Processes(count):
            return f"{count} processes"
        case Dask(address):
            return f"Dask at {address}"
        case _:
            return "this process"


# Writing ------------------------------------------------------------------------------------


def write(made: Reproduction) -> None:
    """All files but the journal."""
    folder, results = made.folder, made.results
    for name in FRAMES:
        _write_parquet(getattr(results, name), folder / f"{name}.parquet")
    _write_parquet(
        pd.DataFrame([_check_row(check) for check in made.checks]), folder / "checks.parquet"
    )
    for kind in ("tables", "figures"):
        # Files of an earlier call may belong to another extent.
        shutil.rmtree(folder / kind, ignore_errors=True)
        (folder / kind).mkdir()
    for product in made.products.values():
        for table in product.tables:
            for suffix, text in (
                ("md", table.markdown()),
                ("tex", table.latex()),
                ("csv", table.csv()),
            ):
                (folder / "tables" / f"{table.name}.{suffix}").write_text(text, encoding="utf-8")
        for figure in product.figures:
            save(figure, folder / "figures")
    write_report(made.products, results, made.report)


def _check_row(check: Check) -> dict[str, Any]:
    return {name: getattr(check, name) for name in Check.__dataclass_fields__}


def _write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame; the file is complete or absent."""
    unfinished = path.with_suffix(".part")
    frame.to_parquet(unfinished, index=False)
    unfinished.replace(path)
