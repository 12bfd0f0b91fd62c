"""Commands that report: audit, verify, explain, simulate, inspect, bench, demo."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairshield as fs
from fairshield.evaluate import evaluate
from fairshield.explain import explain
from fairshield.policy import RowTable
from fairshield.simulate import simulate


@pytest.fixture(scope="session")
def decided(command: Any, plain: Path, jsonl: str, tmp_path_factory: Any) -> Path:
    """Forty decisions of the plain policy."""
    log = tmp_path_factory.mktemp("log") / "decisions.jsonl"
    log.write_text(command("run", plain, stdin=jsonl).stdout)
    return Path(log)


@pytest.fixture(scope="session")
def broken(plain: Path) -> Path:
    """A policy that claims every state to be feasible and follows every proposal."""
    policy = fs.Policy.load(plain)
    cuts = np.array(policy.rows.cuts)
    starts = policy.layout.layer_starts
    for t in range(policy.horizon + 1):
        rows = slice(starts[t], starts[t + 1])
        n_a = np.repeat(np.arange(t + 1), np.arange(1, t + 2))
        cuts[rows] = np.stack([0 * n_a, t - n_a + 1] * 3, axis=1)
    empty = np.empty(0, np.int64)
    rows_table = RowTable(cuts, empty, empty, np.empty(0, np.int8))
    path = plain.with_name("broken.shield")
    replace(policy, rows=rows_table).save(path)
    return path


# audit --------------------------------------------------------------------------------------


def test_what_run_decides_passes_the_audit(
    command: Any, policies: Path, jsonl: str, csv_text: str, tmp_path: Path
) -> None:
    for name in ("plain", "labelled"):
        for suffix, text in (("jsonl", jsonl), ("csv", csv_text)):
            log, policy = tmp_path / f"{name}.{suffix}", policies / f"{name}.shield"
            log.write_text(command("run", policy, "--format", suffix, stdin=text).stdout)
            result = command("audit", log, "--policy", policy)
            assert result.exit_code == 0, result.output
            assert "held at the end of every window" in result.stdout


def test_an_audit_reads_standard_input(command: Any, plain: Path, decided: Path) -> None:
    result = command("audit", "-", "--policy", plain, "--json", stdin=decided.read_text())
    report = json.loads(result.stdout)
    assert (report["holds"], report["decisions"]) == (True, 40)


def test_groups_are_compared_as_text_in_an_audit(command: Any, policies: Path) -> None:
    numbered = policies / "numbered.shield"
    stream = "group,proposed\n0,1\n1,0\n"
    log = command("run", numbered, "--format", "csv", stdin=stream).stdout
    result = command("audit", "-", "--format", "csv", "--policy", numbered, stdin=log)
    assert result.exit_code == 0, result.output


def test_a_violation_is_shown_with_its_line_and_exits_with_1(command: Any, decided: Path) -> None:
    options = ("--property", "demographic-parity", "--bound", "0", "--horizon", "6")
    result = command("audit", decided, *options)
    report = json.loads(command("audit", decided, *options, "--json").stdout)
    assert result.exit_code == 1
    assert not report["holds"]
    assert "VIOLATED: demographic parity ≤ 0 did not hold in" in result.stdout
    first = report["violations"][0]
    row = next(line for line in result.stdout.splitlines() if line.startswith("window "))
    assert row.split()[:5] == [
        "window",
        str(first["window"]),
        str(first["line"]),
        "6",
        f"{first['bias']:.4g}",
    ]


def test_a_changed_decision_is_found(command: Any, plain: Path, decided: Path) -> None:
    lines = decided.read_text().splitlines()
    answer = json.loads(lines[4])
    changed = {"accepted": not answer["accepted"], "overruled": not answer["overruled"]}
    lines[4] = json.dumps(answer | changed)
    result = command("audit", "-", "--policy", plain, stdin="\n".join(lines) + "\n")
    assert "line 5" in result.stdout
    assert "the policy would have" in result.stdout


def test_an_audit_needs_to_know_what_had_to_hold(command: Any, decided: Path) -> None:
    result = command("audit", decided)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--policy POLICY, or --property and --bound" in result.stderr


def test_an_unfinished_window_is_not_judged(command: Any, plain: Path, decided: Path) -> None:
    few = "".join(decided.read_text().splitlines(keepends=True)[:3])
    result = command("audit", "-", "--policy", plain, stdin=few)
    assert result.exit_code == 0
    assert "so far: the window is not finished" in result.stdout
    assert "0 complete, one unfinished after 3 decisions" in result.stdout


def test_an_empty_log_is_said_to_be_empty(command: Any, plain: Path) -> None:
    result = command("audit", "-", "--policy", plain, stdin="")
    assert result.exit_code == 0
    assert "nothing to check" in result.stdout


# verify -------------------------------------------------------------------------------------


def test_an_honest_policy_is_confirmed(command: Any, policies: Path) -> None:
    for name in ("plain", "labelled", "numbered"):
        result = command("verify", policies / f"{name}.shield")
        assert (result.exit_code, result.stderr) == (0, "")
        assert "guarantee holds" in result.stdout
        assert "states" in result.stdout


def test_the_audit_reproduces_the_counterexample(
    command: Any, broken: Path, tmp_path: Path
) -> None:
    found = command("verify", broken)
    assert found.exit_code == 1
    assert "guarantee violated" in found.stderr
    audited = command("audit", "-", "--policy", broken, "--json", stdin=found.stdout)
    report = json.loads(audited.stdout)
    assert audited.exit_code == 1
    assert report["difference"] is None, "the counterexample is not what the policy does"
    assert report["violations"][0]["line"] == report["decisions"]
    log = tmp_path / "broken.jsonl"
    again = command("verify", broken, "--counterexample", log)
    assert (again.exit_code, again.stderr) == (1, "")
    assert log.read_text() == found.stdout


def test_verify_as_json(command: Any, plain: Path, broken: Path) -> None:
    assert json.loads(command("verify", plain, "--json").stdout)["counterexample"] is None
    result = command("verify", broken, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["counterexample"]["decisions"]


# explain ------------------------------------------------------------------------------------


def test_every_overruled_line_gets_one_sentence(command: Any, plain: Path, decided: Path) -> None:
    overruled = [
        n
        for n, line in enumerate(decided.read_text().splitlines(), start=1)
        if json.loads(line)["overruled"]
    ]
    sentences = command("explain", plain, decided).stdout.splitlines()
    assert [int(s.split(",")[0].removeprefix("line ")) for s in sentences] == overruled
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
        assert result.stdout == f"line {n}, window 0: {expected}\n"


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
        ([], "either a log or a request"),
        (["LOG", "--group", "a"], "either a log or a request"),
        (["LOG", "--line", "99"], "no decision on line 99"),
        (["--group", "a"], "say what was proposed"),
        (["--group", "z", "--proposed", "accept"], "unknown group 'z'"),
        (["--group", "a", "--proposed", "accept", "--cost", "nan"], "finite number"),
        (["--group", "a", "--proposed", "accept", "--counts", "a=9:1,b=0:0"], "do not fit"),
        (["--group", "a", "--proposed", "accept", "--counts", "a=3:1,b=3:1"], "have been made"),
        (["--group", "a", "--proposed", "accept", "--counts", "a=1"], "cannot read 'a=1'"),
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
    assert facts["mean_cost"] == expected.mean_cost
    assert facts["unfair_windows"] == 0
    assert facts["unfair_windows_unshielded"] == expected.unfair_windows_unshielded > 0
    people = sum(sum(part["overruled"]) for part in facts["interventions"])
    assert people == expected.overruled.sum()
    assert f"{expected.mean_cost:.4f} ± {expected.cost_error:.4f}" in table
    assert f"{policy.expected_cost:.4f}" in table


def test_a_simulation_of_other_inputs_claims_no_expected_cost(command: Any, plain: Path) -> None:
    options = ("--windows", "100", "--groups", "a=0.1,b=0.9", "--json")
    facts = json.loads(command("simulate", plain, *options).stdout)
    assert facts["expected_cost"] is None
    assert facts["unfair_windows"] == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--windows", "0"], "at least 1, got 0"),
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
