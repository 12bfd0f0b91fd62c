"""``fairshield reproduce``."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairshield.base.errors import InvalidValueError, MissingExtraError
from fairshield.cli.options import examples, json_option, names_callback, seed_option
from fairshield.cli.output import number_of, print_facts, print_json, print_table, progress_bar

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
    help="For the report, tables, figures and rows; they are those of the last call. Run again, it "
    "goes on where it stopped.  [default: reproduction, or reproduction-quick]",
)
@click.option(
    "--data",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="With the raw files.  [default: FAIRSHIELD_DATA, else the cache, else download]",
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
    output: Path | None,
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
        print_facts(
            (item.name, item.title + (" (by name only)" * (not item.in_all)))
            for item in experiments.ITEMS
        )
        return
    experiments.chosen(items)
    if data is not None:
        os.environ["FAIRSHIELD_DATA"] = str(data)
    extent = experiments.make_extent(
        quick=quick, epochs=epochs, seed=seed, environments=environments, learners=learners,
        own=_own_learners(own),
    )  # fmt: skip
    output = output or Path("reproduction-quick" if quick else "reproduction")
    crew = experiments.make_workers(workers, scheduler)
    begin = time.monotonic()
    try:
        with progress_bar("starting") as bar:
            made = experiments.reproduce(
                items, extent, output=output, workers=crew, progress=_teller(bar, begin),
                facts={"command": shlex.join(["fairshield", *sys.argv[1:]])},
            )  # fmt: skip
    except KeyboardInterrupt:
        click.echo("What is finished is kept: the same command goes on from there.", err=True)
        raise
    _tell(made, time.monotonic() - begin, as_json)


def _experiments() -> Any:
    """The module of the experiments; an error that names the extra if something is missing."""
    try:
        return importlib.import_module("fairshield_experiments.reproduce")
    except ImportError as error:
        raise MissingExtraError(
            f"fairshield reproduce needs {error.name}, which is not installed: "
            "pip install 'fairshield[experiments]'"
        ) from None


def _own_learners(texts: Sequence[str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, learner in map(_own_learner, texts):
        if name in made:
            raise InvalidValueError(f"--learner names two learners {name!r}: rename one of them")
        made[name] = learner
    return made


def _own_learner(text: str) -> tuple[str, Any]:
    """``NAME=MODULE:OBJECT`` as the name and the object."""
    name, _, place = text.partition("=")
    module, _, attribute = place.partition(":")
    if not (name and module and attribute):
        raise InvalidValueError(f"--learner {text!r} is not NAME=MODULE:OBJECT")
    if os.getcwd() not in sys.path:  # installed commands do not search it
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidValueError(f"--learner {text!r}: {error}") from None
    if hasattr(found, "fit") and not isinstance(found, type):
        return name, found
    try:
        return name, found()
    except Exception as error:
        raise InvalidValueError(f"--learner {text!r} cannot be made: {error}") from None


def _teller(bar: Callable[..., None], begin: float) -> Callable[..., None]:
    """Progress as a bar on a terminal, elsewhere as a line for every tenth of a stage."""
    told: set[tuple[str, int]] = set()

    def tell(stage: str, done: int, total: int, left: float | None) -> None:
        words = stage if total <= 1 else f"{stage}: {done:,} of {total:,}"
        words += "" if left is None else f", {_minutes(left)} left"
        bar(done / max(total, 1), words)
        here = stage, 10 * done // max(total, 1)
        if not sys.stderr.isatty() and here not in told:
            told.add(here)
            click.echo(f"{time.monotonic() - begin:6.0f} s  {words}", err=True)

    return tell


def _minutes(seconds: float) -> str:
    """A time for people.

    >>> _minutes(59.2), _minutes(125)
    ('59 s', '2 min')
    """
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _tell(made: Reproduction, seconds: float, as_json: bool) -> None:
    """Print the summary; exit code 1 if something failed."""
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
                "as_published": {name: made.as_published[name] for name in made.as_published},
                "failures": failures,
            }
        )
    else:
        rows = [
            (item.name, *(str(product.verdicts[verdict] or "") for verdict in VERDICTS))
            for item, product in made.products.items()
        ]
        print_table(("item", *VERDICTS), rows)
        counts = ", ".join(f"{verdict} {made.verdicts[verdict]}" for verdict in VERDICTS)
        click.echo(
            f"\n{number_of(made.runs, 'run')} in {_minutes(seconds)}. Published numbers: {counts}"
        )
        if made.as_published:
            counts = ", ".join(f"{name} {made.as_published[name]}" for name in VERDICTS)
            click.echo(f"As the published runs were made: {counts}")
        click.echo(f"Report: {made.report}")
        for failure in failures:
            click.echo(f"Failed: {failure['title']}: {failure['error']}", err=True)
    if failures:
        raise click.exceptions.Exit(_FAILED)
