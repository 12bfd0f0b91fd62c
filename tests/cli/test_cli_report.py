"""Commands that report: explain, simulate, inspect, bench, demo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairshield as fs
from fairshield.analysis.explain import explain
from fairshield.analysis.simulate import simulate
from fairshield.runtime.evaluate import evaluate

# explain ------------------------------------------------------------------------------------


def test_every_overruled_line_gets_one_sentence(command: Any, plain: Path, decided: Path) -> None:
    overruled = [
        n
        for n, line in enumerate(decided.read_text().splitlines(), start=1)
        if json.loads(line)["overruled"]
    ]
    sentences = command("explain", plain, decided).stdout.splitlines()
    assert [int(s.split(":")[0].removeprefix("line ")) for s in sentences] == overruled
    assert all("although" in sentence for sentence in sentences)


def test_a_line_is_explained_as_the_library_explains_it(
    command: Any, plain: Path, decided: Path, requests: list[dict[str, Any]]
) -> None:
    policy = fs.Policy.load(plain)
    shield = fs.Shield(policy)
    for n, request in enumerate(requests[:6], start=1):
        asked = {key: request[key] for key in ("proposed", "cost")}
        expected = explain(policy, shield.decide(request["group"], **asked))
        result = command("explain", plain, decided, "--line", n)
        assert result.stdout == f"line {n}: {expected}\n"


def test_all_lines_can_be_explained_as_json(command: Any, labelled: Path, jsonl: str) -> None:
    log = command("run", labelled, stdin=jsonl).stdout
    result = command("explain", labelled, "-", "--all", "--json", stdin=log)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [a["line"] for a in answers] == list(range(1, 41))
    assert all(a["explanation"].startswith("Decision ") for a in answers)


def test_a_request_may_be_explained_before_it_is_made(command: Any, plain: Path) -> None:
    policy = fs.Policy.load(plain)
    counts = fs.Counts({"a": (2, 2), "b": (2, 1)})
    advice = fs.Shield(policy, counts=counts).advise("a", proposed=True, cost=0.3)
    options = ("--group", "a", "--proposed", "accept", "--cost", "0.3", "--counts", "a=2:2,b=2:1")
    assert command("explain", plain, *options).stdout == f"{explain(policy, advice)}\n"


def test_a_persons_decision_is_explained_as_such(command: Any, plain: Path) -> None:
    log = '{"group": "a", "proposed": true, "accepted": false}\n'
    result = command("explain", plain, "-", stdin=log)
    assert "by a person against the shield's advice" in result.stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "say what to explain: a log that run has written, or a request"),
        (["LOG", "--group", "a"], "or a request (--group), not both"),
        (["LOG", "--line", "99"], "no decision on line 99"),
        (["--group", "a"], "say what was proposed"),
        (["--group", "z", "--proposed", "accept"], "unknown group 'z'"),
        (["--group", "a", "--proposed", "accept", "--cost", "nan"], "finite number"),
        (["--group", "a", "--proposed", "accept", "--counts", "a=9:1,b=0:0"], "do not fit"),
        (["--group", "a", "--proposed", "accept", "--counts", "a=3:1,b=3:1"], "have been made"),
        (["--group", "a", "--proposed", "accept", "--counts", "a=1"], "expected SEEN:ACCEPTED"),
        (["--group", "a", "--proposed", "accept", "--counts", "b=1:1"], "nothing about group 'a'"),
    ],
)
def test_mistakes_in_asking_are_told(
    command: Any, plain: Path, decided: Path, options: list[str], sentence: str
) -> None:
    named = [decided if option == "LOG" else option for option in options]
    result = command("explain", plain, *named)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


# simulate, inspect, bench, demo -------------------------------------------------------------


def test_simulation_figures_are_the_librarys(command: Any, plain: Path) -> None:
    policy = fs.Policy.load(plain)
    expected = simulate(policy, n_windows=500, rng=np.random.default_rng(3))
    options = ("--windows", "500", "--seed", "3")
    facts = json.loads(command("simulate", plain, *options, "--json").stdout)
    table = command("simulate", plain, *options).stdout
    assert facts["mean_cost"] == expected.mean_paid
    assert facts["unfair_windows"] == 0
    assert facts["unfair_windows_unshielded"] == expected.n_unfair_unshielded > 0
    people = sum(sum(part["overruled"]) for part in facts["interventions"])
    assert people == expected.overruled.sum()
    assert f"{expected.mean_paid:.4f} ± {expected.paid_error:.4f}" in table
    assert f"{policy.expected_cost:.4f}" in table


def test_groups_are_compared_as_text_in_a_simulation(
    command: Any, policies: Path, tmp_path: Path
) -> None:
    records = tmp_path / "records.csv"
    records.write_text("group,proposed\n1,1\n0,0\n")
    for options in (
        ("--groups", "0=0.5,1=0.5"),
        ("--groups", "1=0.5,0=0.5"),
        ("--inputs", records),
    ):
        result = command("simulate", policies / "numbered.shield", "--windows", 5, *options)
        assert result.exit_code == 0, result.output


def test_a_simulation_of_other_inputs_claims_no_expected_cost(command: Any, plain: Path) -> None:
    options = ("--windows", "100", "--groups", "a=0.1,b=0.9", "--json")
    facts = json.loads(command("simulate", plain, *options).stdout)
    assert facts["expected_cost"] is None
    assert facts["unfair_windows"] == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--windows", "0"], "0 is not in the range x>=1"),
        (["--windows", "9999999999999"], "out of memory"),
        (["--seed", "-1"], "not in the range"),
        (["--groups", "c=0.5,d=0.5"], "('c', 'd')"),
        (["--bins", "3"], "so far there is neither"),
    ],
)
def test_mistakes_in_simulating_are_told(
    command: Any, plain: Path, options: list[str], sentence: str
) -> None:
    result = command("simulate", plain, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


def test_inspect_promises_no_more_than_a_best_effort_gives(command: Any, tmp_path: Path) -> None:
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    start = fs.Counts({"a": (2, 1), "b": (98, 49)})
    policy = fs.synthesize(
        fs.DemographicParity("0.05"), inputs, horizon=20, start=start, best_effort=True
    )
    policy.save(tmp_path / "x.shield")
    page = command("inspect", tmp_path / "x.shield").stdout
    assert "guarantee" not in page
    assert "after 20 decisions, violated with probability 0.00111" in page


def test_inspect_tells_guarantee_provenance_and_interventions(command: Any, tmp_path: Path) -> None:
    inputs = fs.InputModel.agnostic({"[red]x": 0.5, "y": 0.5})
    start = fs.Counts({"[red]x": (4, 2), "y": (4, 2)})
    policy = fs.synthesize(
        fs.DemographicParity("0.2"), inputs, horizon=12, start=start, checkpoints=(6,), spread=4.0
    )
    digest = policy.save(tmp_path / "x.shield")
    facts = json.loads(command("inspect", tmp_path / "x.shield", "--json").stdout)
    page = command("inspect", tmp_path / "x.shield").stdout
    for text in (
        "demographic parity ≤ 1/5 after 6 and 12 decisions, whatever arrives",
        "[red]x and y",
        "[red]x 2 of 4 accepted, y 2 of 4 accepted",
        f"{policy.expected_cost - policy.least_cost:.3g} for spreading",
        digest,
        f"fairshield {fs.__version__}",
    ):
        assert text in page
    overruled = np.array([part["overruled"] for part in facts["interventions"]])
    assert overruled.sum(axis=0) == pytest.approx(evaluate(policy).overruled.sum(axis=0))
    assert facts["checkpoints"] == [6]
    assert facts["start"] == [["[red]x", 4, 2], ["y", 4, 2]]


def test_interventions_can_be_left_out(command: Any, plain: Path) -> None:
    page = command("inspect", plain, "--no-interventions").stdout
    assert "guarantee" in page
    assert "by position" not in page


def test_interventions_of_a_long_window_are_computed_on_request(
    command: Any, tmp_path: Path
) -> None:
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=110).save(tmp_path / "x.shield")
    page = command("inspect", tmp_path / "x.shield").stdout
    assert "add --interventions" in page
    assert "by position" not in page


def test_bench_measures_every_horizon_and_thread_count(command: Any) -> None:
    options = ("--horizon", "5,9", "--threads", "1,2")
    rows = [json.loads(line) for line in command("bench", *options, "--json").stdout.splitlines()]
    assert [(r["horizon"], r["threads"]) for r in rows] == [(5, 1), (5, 2), (9, 1), (9, 2)]
    assert all(min(r["seconds"], r["ns_per_state"], r["decide_us"]) > 0 for r in rows)
    table = command("bench", "--horizon", "5", "--threads", "1").stdout.splitlines()
    assert len(table) == 2
    assert command("bench", "--horizon", "0").exit_code == 2


def test_demo_prints_the_table_and_where_the_picture_is(command: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = command("demo", "--out", tmp_path / "out", "--windows", "20")
    assert result.exit_code == 0, result.output
    assert "unfair windows with the shield" in result.stdout
    picture = result.stdout.split("Picture: ")[1].split("  ")[0].strip()
    assert Path(picture).stat().st_size > 0


def test_mistakes_in_the_demo_are_told(command: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert command("demo", "--out", tmp_path / "file").exit_code == 2
    assert command("demo", "--out", tmp_path / "file" / "x", "--windows", "2").exit_code == 2
    assert "at least 1" in command("demo", "--out", tmp_path, "--windows", "0").stderr
