"""``fairshield reproduce``."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairshield.cli.options import examples, json_option, names_callback, seed_option
from fairshield.cli.output import number_of, print_json, print_table, progress_bar
from fairshield.errors import InvalidValueError, MissingExtraError

if TYPE_CHECKING:
    from fairshield_experiments.reproduce import Reproduction

_FAILED = 1


@click.command(
    epilog=examples(
        "fairshield reproduce --quick",
        "fairshield reproduce all --output reproduction --workers 2",
        "fairshield reproduce table-fairness figure-resources",
        "fairshield reproduce table-utility --learner mine=my_package.models:make_model",
        "fairshield reproduce all --scheduler tcp://10.0.0.1:8786",
    )
)
@click.argument("items", metavar="[all|table-...|figure-...]...", nargs=-1)
@click.option("--list", "only_list", is_flag=True, help="List the items and stop.")
@click.option("--quick", is_flag=True, help="Two environments, two learners, few runs.")
@click.option(
    "--output",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    default="reproduction",
    show_default=True,
    help="For the report, tables, figures and rows. Run again, it goes on where it stopped.",
)
@click.option(
    "--data",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="With the raw files, as FAIRSHIELD_DATA.  [default: download]",
)
@click.option(
    "--workers", metavar="N", type=click.IntRange(min=1), help="Processes.  [default: one per core]"
)
@click.option(
    "--scheduler", metavar="ADDRESS", help="Use the workers of this Dask scheduler instead."
)
@click.option(
    "--environments",
    metavar="NAME,...",
    callback=names_callback,
    help="Only these.  [default: all seven]",
)
@click.option("--epochs", is_flag=True, help="Train for 150 epochs, not 150 steps.")
@click.option(
    "--learners",
    metavar="NAME,...",
    callback=names_callback,
    help="Only these.  [default: ERM,DiffDP,HSIC,LAFTR,PR and your own]",
)
@click.option(
    "--learner",
    "own",
    metavar="NAME=MODULE:OBJECT",
    multiple=True,
    help="Your own learner or scikit-learn classifier, or a function that makes one.",
)
@seed_option
@json_option
def reproduce(
    items: tuple[str, ...],
    only_list: bool,
    quick: bool,
    output: Path,
    data: Path | None,
    workers: int | None,
    scheduler: str | None,
    environments: tuple[str, ...] | None,
    epochs: bool,
    learners: tuple[str, ...] | None,
    own: tuple[str, ...],
    seed: int,
    as_json: bool,
) -> None:
    """Run the paper's experiments and write a report.

    From the raw public data sets to every table and figure of the paper and some that it could
    not show, with our numbers beside the published ones. Needs fairshield[experiments]. Exit code
    1: some computation failed; the report names it.
    """
    experiments = _experiments()
    if only_list:
        print_table(("item", "what it shows"), [(i.name, i.title) for i in experiments.chosen([])])
        return
    experiments.chosen(items)
    if data is not None:
        os.environ["FAIRSHIELD_DATA"] = str(data)
    plan = experiments.make_plan(
        quick=quick, epochs=epochs, seed=seed, environments=environments, learners=learners,
        own=dict(map(_own_learner, own)),
    )  # fmt: skip
    crew = experiments.make_workers(workers, scheduler)
    begin = time.monotonic()
    with progress_bar("starting") as bar:
        made = experiments.reproduce(
            items, plan, output=output, workers=crew, progress=_teller(bar, begin),
            facts={"command": shlex.join(["fairshield", *sys.argv[1:]])},
        )  # fmt: skip
    _tell(made, time.monotonic() - begin, as_json)


def _experiments() -> Any:
    """The module that does it; if something it needs is missing, an error that says so."""
    try:
        return importlib.import_module("fairshield_experiments.reproduce")
    except ImportError as error:
        raise MissingExtraError(
            f"fairshield reproduce needs {error.name}, which is not installed: "
            "pip install 'fairshield[experiments]'"
        ) from None


def _own_learner(text: str) -> tuple[str, Any]:
    """``NAME=MODULE:OBJECT`` as the name and the object."""
    name, _, place = text.partition("=")
    module, _, attribute = place.partition(":")
    if not (name and module and attribute):
        raise InvalidValueError(f"--learner {text!r} is not NAME=MODULE:OBJECT")
    if os.getcwd() not in sys.path:  # where python would look, and its commands do not
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidValueError(f"--learner {text!r}: {error}") from None
    ready = hasattr(found, "fit") and not isinstance(found, type)
    return name, found if ready else found()


def _teller(bar: Callable[..., None], begin: float) -> Callable[..., None]:
    """Progress as a bar on a terminal, as a line for each stage elsewhere."""
    stages: list[str] = []

    def tell(stage: str, done: int, total: int, left: float | None) -> None:
        if stage not in stages:
            stages.append(stage)
            if not sys.stderr.isatty():
                passed = time.monotonic() - begin
                click.echo(f"{passed:6.0f} s  {stage}" + f", {total} tasks" * (total > 1), err=True)
        words = stage if total <= 1 else f"{stage}: {done} of {total}"
        bar(done / max(total, 1), words + ("" if left is None else f", {_minutes(left)} left"))

    return tell


def _minutes(seconds: float) -> str:
    """A time for people.

    >>> _minutes(59.2), _minutes(125)
    ('59 s', '2 min')
    """
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _tell(made: Reproduction, seconds: float, as_json: bool) -> None:
    """The summary; exit code 1 if something failed."""
    from fairshield_experiments.results.parts import VERDICTS

    failures = made.results.failures.to_dict("records")
    if as_json:
        print_json(
            {
                "report": str(made.report),
                "items": [item.name for item in made.products],
                "seconds": round(seconds, 1),
                "stages": made.results.facts["seconds"],
                "runs": made.runs,
                "checks": {verdict: made.verdicts[verdict] for verdict in VERDICTS},
                "failures": failures,
            }
        )
    else:
        rows = [
            (item.name, *(str(product.verdicts[verdict] or "") for verdict in VERDICTS))
            for item, product in made.products.items()
        ]
        print_table(("item", *VERDICTS), rows)
        click.echo(
            f"\n{number_of(made.runs, 'run')} in {_minutes(seconds)}; published numbers: "
            + ", ".join(f"{made.verdicts[verdict]} {verdict}" for verdict in VERDICTS)
        )
        click.echo(f"Report: {made.report}")
        for failure in failures:
            click.echo(f"Failed: {failure['title']}: {failure['error']}", err=True)
    if failures:
        raise click.exceptions.Exit(_FAILED)
