"""From raw data to the report, by function and by command, whatever is killed on the way."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from own_learners import logistic, make_logistic, raising

import fairshield as fs
from fairshield_experiments import reproduce as reproduce_module
from fairshield_experiments.data import ENVIRONMENTS
from fairshield_experiments.experiments import Extent
from fairshield_experiments.reproduce import FRAMES, chosen, make_workers, reproduce
from fairshield_experiments.results.items import ITEMS
from fairshield_experiments.sweep.cluster import Dask
from fairshield_experiments.sweep.workers import InProcess, Processes

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
TINY = Extent(
    learners={"ERM": logistic, "mine": make_logistic()},
    environments=("german-age",),
    bounds=("0.2",),
    period_bounds=("0.2",),
    horizon={"demographic-parity": 20, "equal-opportunity": 12},
    runs=4,
    period_length=10,
    periods=2,
    period_runs=3,
    folds=2,
    trainings=2,
    horizons={"demographic-parity": (5, 10)},
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, data_directory: Path) -> Path:
    """All items of a tiny extent, in a folder."""
    folder = tmp_path_factory.mktemp("whole")
    made = reproduce(["all", "table-departures"], TINY, output=folder, workers=InProcess())
    assert made.results.failures.empty
    return folder


def rows(folder: Path, name: str = "runs") -> pd.DataFrame:
    return pd.read_parquet(folder / f"{name}.parquet")


# What comes out -----------------------------------------------------------------------------


def test_every_item_leaves_its_files(whole: Path) -> None:
    for name in (*FRAMES, "checks"):
        assert len(rows(whole, name)), name
    tables = {path.stem for path in (whole / "tables").iterdir()}
    figures = {path.stem for path in (whole / "figures").iterdir()}
    for item in ITEMS:
        made = tables if item.name.startswith("table") else figures
        assert any(name.startswith(item.name) for name in made), item.name
    for name in tables:
        assert all(
            (whole / "tables" / f"{name}.{end}").stat().st_size for end in ("md", "tex", "csv")
        )
    for name in figures:
        assert all((whole / "figures" / f"{name}.{end}").stat().st_size for end in ("svg", "png"))
    page = (whole / "report.html").read_text("utf-8")
    assert all(item.title in page for item in ITEMS)


def test_guaranteed_runs_are_fair_and_every_row_says_where_it_comes_from(whole: Path) -> None:
    frame = rows(whole)
    guaranteed = frame["shield"].isin(["finite-horizon", "exact", "perpetual", "optimal"])
    assert guaranteed.any()
    assert frame.loc[guaranteed, "fair"].all()
    assert set(frame["seed"]) == {0}
    assert frame["versions"].str.contains(f"fairshield {fs.__version__}").all()
    assert frame["versions"].str.contains("torch").all()
    keys = ["environment", "learner", "property", "undefined", "bound", "shield", "inputs",
            "min_support", "periods", "run", "period"]  # fmt: skip
    assert not frame.duplicated(keys).any()


def test_trainings_and_out_of_fold_scores_leave_the_runs_of_the_first_training_alone(
    whole: Path,
) -> None:
    again, frame = rows(whole, "training_runs"), rows(whole)
    assert set(again["seed"]) == set(rows(whole, "trainings")["seed"]) == {1}
    assert set(rows(whole, "metrics")["seed"]) == {0}
    assert set(again["learner"]) == {"ERM", "mine"}
    assert (again["shield"] != "finite-horizon").any()
    folded = frame[frame["inputs"].str.endswith("cross-fitted")]
    assert set(folded["learner"]) == {"ERM"}
    keys = ["property", "undefined", "bound", "shield", "learner", "run", "period"]
    both = folded.merge(frame[frame["inputs"] == "learned"], on=keys)
    assert len(both) == len(folded)
    assert (both["correct_unshielded_x"] == both["correct_unshielded_y"]).all()


def test_people_are_the_same_with_every_shield(whole: Path) -> None:
    frame = rows(whole)
    keys = ["environment", "learner", "property", "undefined", "periods", "run", "period"]
    plain = frame[frame["min_support"] == 0]
    assert (plain.groupby(keys)["bias_unshielded"].nunique() == 1).all()
    assert (plain.groupby(keys)["correct_unshielded"].nunique() == 1).all()
    assert set(frame["shield"]) >= {"threshold-optimizer", "exponentiated-gradient"}


def test_files_of_an_earlier_call_do_not_stay(tmp_path: Path, data_directory: Path) -> None:
    for name in ("table-datasets", "table-resources"):
        reproduce([name], TINY, output=tmp_path, workers=InProcess())
        made = {path.stem for path in (tmp_path / "tables").iterdir()}
        assert made == {name}


def test_downloads_are_told(
    tmp_path: Path, data_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str, *, progress: Any) -> Any:
        progress("https://example.org/german.zip", 500, 1000)
        progress("https://example.org/german.zip", 700, None)
        return load_really(name)

    load_really = reproduce_module.load
    monkeypatch.setattr(reproduce_module, "load", load)
    told: list[Any] = []
    reproduce(
        ["table-datasets"], TINY, output=tmp_path, workers=InProcess(),
        progress=lambda *said: told.append(said),
    )  # fmt: skip
    stage = "downloading https://example.org/german.zip"
    assert told[1:3] == [(stage, 500, 1000, None), (stage, 700, 700, None)]


def test_one_item_needs_only_its_own_experiments(tmp_path: Path, data_directory: Path) -> None:
    made = reproduce(["table-datasets"], TINY, output=tmp_path, workers=InProcess())
    assert [item.name for item in made.products] == ["table-datasets"]
    assert made.results.metrics.empty
    assert "1 of 7 environments" in (tmp_path / "report.html").read_text("utf-8")
    assert made.runs == 0
    assert len(made.results.datasets) == 1


def test_a_second_call_computes_nothing(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rows(whole)

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr("fairshield_experiments.reproduce.perform", forbidden)
    made = reproduce(["all", "table-departures"], TINY, output=whole, workers=InProcess())
    assert made.results.failures.empty
    pd.testing.assert_frame_equal(rows(whole), before)


def test_departures_are_rows_of_their_own(whole: Path) -> None:
    assert set(rows(whole)["departures"]) == {""}
    frame = rows(whole, "departed")
    assert {"as-published", "prices", "person-twice"} <= set(frame["departures"])
    assert set(frame["undefined"]) == {"rate-0"}
    assert set(frame["learner"]) == {"ERM", "mine"}


def test_another_seed_gives_other_people(tmp_path: Path, data_directory: Path, whole: Path) -> None:
    extent = replace(TINY, seed=1)
    reproduce(["table-fairness"], extent, output=tmp_path, workers=InProcess())
    other, frame = rows(tmp_path), rows(whole)
    same = frame.merge(other, on=["learner", "property", "undefined", "bound", "shield", "inputs",
                                  "min_support", "run", "period", "periods"])  # fmt: skip
    assert len(same) == len(other)
    assert not np.allclose(same["bias_unshielded_x"], same["bias_unshielded_y"])


# What goes wrong ----------------------------------------------------------------------------


def test_a_learner_that_raises_spoils_its_own_settings_only(
    tmp_path: Path, data_directory: Path
) -> None:
    extent = replace(TINY, learners={"ERM": logistic, "broken": raising})
    made = reproduce(["table-fairness"], extent, output=tmp_path, workers=Processes(2))
    failures = made.results.failures.to_dict("records")
    assert failures == [
        {
            "title": "train broken on german-age",
            "error": "RuntimeError: this learner never learned anything",
        }
    ]
    assert set(rows(tmp_path)["learner"]) == {"ERM"}
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "train broken on german-age" in page
    assert "this learner never learned anything" in page
    assert "Traceback" in (tmp_path / "failures.txt").read_text("utf-8")
    mended = replace(extent, learners={"ERM": logistic, "broken": make_logistic()})
    again = reproduce(["table-fairness"], mended, output=tmp_path, workers=InProcess())
    assert again.results.failures.empty
    assert not (tmp_path / "failures.txt").exists()
    assert set(rows(tmp_path)["learner"]) == {"ERM", "broken"}


def test_unknown_items_are_told_with_the_known_ones() -> None:
    with pytest.raises(fs.InvalidValueError, match="unknown item 'table-moon': choose from all"):
        chosen(["all", "table-moon"])
    assert chosen([]) == chosen(["all"]) == tuple(item for item in ITEMS if item.in_all)
    assert chosen(["all", "table-departures"]) == ITEMS
    assert [item.name for item in ITEMS if not item.in_all] == ["table-departures"]


def test_workers_are_processes_or_a_cluster_not_both() -> None:
    assert make_workers(3) == Processes(3)
    assert make_workers(None, "tcp://127.0.0.1:1") == Dask("tcp://127.0.0.1:1")
    with pytest.raises(fs.InvalidValueError, match="one or the other"):
        make_workers(3, "tcp://127.0.0.1:1")


# The command --------------------------------------------------------------------------------

COMMAND = (
    sys.executable, "-m", "fairshield", "reproduce", "--quick", "--environments", "german-age",
    "--learners", "ERM", "--learner", "ERM=own_learners:logistic",
)  # fmt: skip


def command(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=HERE,
        env={**os.environ, **environment},
    )  # fmt: skip


@pytest.fixture(scope="module")
def finite(tmp_path_factory: pytest.TempPathFactory, data_directory: Path) -> Path:
    """What the command leaves when nothing happens to it."""
    folder = tmp_path_factory.mktemp("finite")
    done = command("table-fairness", "--output", folder, "--json", "--workers", "1")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["items"] == ["table-fairness"]
    assert said["report"] == str(folder / "report.html")
    assert said["runs"] == len(rows(folder)) == 10 * 2 * 2 * 2
    assert said["failures"] == []
    return folder


def test_killed_and_run_again_it_leaves_the_same_numbers(finite: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal.sqlite"
    arguments = ("table-fairness", "--output", str(tmp_path), "--workers", "2")
    for least in (1, 3):
        process = subprocess.Popen([*COMMAND, *arguments], cwd=HERE, stderr=subprocess.DEVNULL)
        _wait_for(process, journal, least)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (tmp_path / "runs.parquet").exists()
    done = command(*arguments[:-2], "--workers", "2")
    assert done.returncode == 0, done.stderr
    pd.testing.assert_frame_equal(rows(tmp_path), rows(finite))


def _wait_for(process: subprocess.Popen[Any], journal: Path, least: int) -> None:
    """Until so many tasks are recorded; the file itself is locked, a copy is not."""
    copies = journal.parent / "copy"
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        assert process.poll() is None, "it ended before it could be killed"
        copies.mkdir(exist_ok=True)
        for file in journal.parent.glob("journal.sqlite*"):
            with contextlib.suppress(FileNotFoundError):  # SQLite's own, gone again
                shutil.copy(file, copies)
        try:
            with contextlib.closing(sqlite3.connect(copies / journal.name)) as connection:
                (found,) = connection.execute("SELECT count(*) FROM task").fetchone()
        except sqlite3.Error:  # not there yet, or copied between two writes
            found = 0
        shutil.rmtree(copies)
        if found >= least:
            return
        time.sleep(0.01)
    raise AssertionError(f"fewer than {least} tasks in five minutes")


def test_a_damaged_data_directory_ends_in_one_sentence(
    tmp_path: Path, data_directory: Path
) -> None:
    broken, output = tmp_path / "data", tmp_path / "output"
    shutil.copytree(data_directory, broken)
    file = broken / "german" / "german.data"
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-100])
    done = command("table-datasets", "--output", output, "--data", broken)
    assert done.returncode == 2
    assert "german.data" in done.stderr
    assert "sha256" in done.stderr.lower()
    assert "Traceback" not in done.stderr
    assert not output.exists()


def test_a_failure_ends_in_exit_code_one(tmp_path: Path, data_directory: Path) -> None:
    done = command(
        "table-performance", "--output", tmp_path, "--learners", "ERM,broken",
        "--learner", "broken=own_learners:raising",
    )  # fmt: skip
    assert done.returncode == 1
    assert "Failed: train broken on german-age: RuntimeError" in done.stderr
    assert "Report:" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["table-moon"], "unknown item 'table-moon': choose from all, table-datasets"),
        (["--environments", "mars"], "unknown environment 'mars'"),
        (["--learner", "x"], "--learner 'x' is not NAME=MODULE:OBJECT"),
        (["--learner", "x=no_such_module:y"], "No module named 'no_such_module'"),
        (["--learner", "x=sklearn.pipeline:Pipeline"], "cannot be made: Pipeline.__init__()"),
        (["--learner", "x=own_learners:logistic"] * 2, "two learners 'x'"),
        (["--learner", "x=collections:Counter", "--learners", "x"], "Counter"),
        (["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "one or the other"),
    ],
)
def test_mistakes_end_in_one_sentence(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    done = command(*arguments, "--output", tmp_path / "output")
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "output").exists()


def test_items_are_listed() -> None:
    done = command("--list")
    assert done.returncode == 0
    assert all(item.name in done.stdout for item in ITEMS)


NO_TORCH = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Absent())
"""


def test_without_torch_it_says_which_extra_is_missing(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_TORCH, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    plain = [sys.executable, "-m", "fairshield", "reproduce", "table-performance"]
    done = subprocess.run(
        plain, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 2
    assert "torch" in done.stderr
    assert "pip install 'fairshield[experiments]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_seven_environments_are_those_of_the_paper() -> None:
    assert len(ENVIRONMENTS) == 7
