"""Commands that judge: audit and verify."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

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
            assert re.search("held (at the end of every|in . of .) window", result.stdout)
            assert "all 40 decisions are the policy's" in result.stdout


def test_an_audit_reads_standard_input(command: Any, plain: Path, decided: Path) -> None:
    result = command("audit", "-", "--policy", plain, "--json", stdin=decided.read_text())
    report = json.loads(result.stdout)
    assert (report["holds"], report["decisions"]) == (True, 40)


def test_groups_are_compared_as_text_in_an_audit(command: Any, policies: Path) -> None:
    numbered = policies / "numbered.shield"
    stream = "group,proposed\n0,1\n1,0\n"
    log = command("run", numbered, "--format", "csv", stdin=stream).stdout
    result = command("audit", "-", "--format", "csv", "--policy", numbered, stdin=log)
    assert "all 2 decisions are the policy's" in result.stdout, result.output


def test_options_of_an_audit_name_groups_as_text(command: Any, policies: Path) -> None:
    log = '{"group": 0, "accepted": 1}\n{"group": 1, "accepted": 0}\n'
    prop = ("--property", "demographic-parity", "--bound", "0.5")
    for options in (("--names", "1,0"), ("--start", "1=0:0,0=0:0")):
        result = command("audit", "-", *prop, *options, "--json", stdin=log)
        assert result.exit_code == 1, result.output
        assert [count[0] for count in json.loads(result.stdout)["windows"][0]["counts"]] == [
            "1",
            "0",
        ]
    numbered = ("--policy", policies / "numbered.shield")
    for options in (("--names", "0,1"), ("--start", "0=0:0,1=0:0")):
        assert command("audit", "-", *numbered, *options, stdin="").exit_code == 3
    result = command("audit", "-", *numbered, "--names", "1,0", stdin="")
    assert "is not the policy's (0, 1)" in result.stderr


def test_start_counters_of_one_group_name_the_other(command: Any, plain: Path) -> None:
    result = command("audit", "-", "--policy", plain, "--start", "a=1:1", stdin="")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "start says nothing about group 'b'" in result.stderr


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


def test_a_missing_line_is_found(command: Any, plain: Path, decided: Path, tmp_path: Path) -> None:
    lines = decided.read_text().splitlines()
    log, page = tmp_path / "log.jsonl", tmp_path / "page.html"
    log.write_text("\n".join([*lines[:3], *lines[4:]]) + "\n")
    result = command("audit", log, "--policy", plain, "--html", page)
    assert result.exit_code == 1
    told = "its 'position' is 4 where 3 was expected: a line is missing, doubled or out of order"
    assert f"line 4: {told}" in result.stdout
    assert "a line is missing, doubled or out of order" in page.read_text()
    report = json.loads(command("audit", log, "--policy", plain, "--json").stdout)
    assert report["difference"]["expected"] is None
    assert report["difference"]["reason"] == told


def test_a_changed_decision_is_found(command: Any, plain: Path, decided: Path) -> None:
    lines = decided.read_text().splitlines()
    answer = json.loads(lines[4])
    changed = {"accepted": not answer["accepted"], "overruled": not answer["overruled"]}
    lines[4] = json.dumps(answer | changed)
    result = command("audit", "-", "--policy", plain, stdin="\n".join(lines) + "\n")
    assert result.exit_code == 1
    assert "; and line 5 is not the policy's" in result.stdout
    assert "the policy would have" in result.stdout
    assert "derived again" not in result.stdout
    loose = ("--property", "demographic-parity", "--bound", "0.99")
    held = command("audit", "-", "--policy", plain, *loose, stdin="\n".join(lines) + "\n")
    assert held.exit_code == 1
    assert "NOT THE POLICY'S: line 5 is not what it decides; demographic parity" in held.stdout


def test_an_audit_needs_to_know_what_had_to_hold(command: Any, decided: Path) -> None:
    result = command("audit", decided)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--policy POLICY, or --property and --bound" in result.stderr


def test_an_unfinished_window_is_not_judged(command: Any, plain: Path, decided: Path) -> None:
    few = "".join(decided.read_text().splitlines(keepends=True)[:3])
    result = command("audit", "-", "--policy", plain, stdin=few)
    assert result.exit_code == 3
    assert "nothing had to hold yet: the window is not finished (now gap" in result.stdout
    assert "0 complete, one unfinished after 3 decisions" in result.stdout


def test_an_empty_log_is_said_to_be_empty(command: Any, plain: Path) -> None:
    result = command("audit", "-", "--policy", plain, stdin="")
    assert result.exit_code == 3
    assert "nothing to check" in result.stdout


def test_a_horizon_beyond_the_log_judges_nothing_but_checkpoints(command: Any) -> None:
    log = '{"group": "a", "accepted": 1}\n{"group": "b", "accepted": 0}\n' * 2
    options = ("--property", "demographic-parity", "--bound", "0.1", "--horizon", "9")
    result = command("audit", "-", *options, stdin=log)
    assert result.exit_code == 3
    now = "gap 1 between b and a where at most 0.1 is asked"
    assert f"nothing had to hold yet: the window is not finished (now {now})" in result.stdout
    assert json.loads(command("audit", "-", *options, "--json", stdin=log).stdout)["checked"] == 0
    loose = ("--property", "demographic-parity", "--bound", "0.99", "--horizon", "9")
    fair = log.replace("0}", "1}")
    for given, text, point, says, status in (
        (options, log, 1, "bound nothing at the checkpoints so far", 3),
        (options, log, 2, "VIOLATED", 1),
        (loose, fair, 2, "held at every checkpoint so far", 0),
    ):
        result = command("audit", "-", *given, "--checkpoint", point, stdin=text)
        assert says in result.stdout
        assert result.exit_code == status


def test_another_property_than_the_policys_is_named(
    command: Any, plain: Path, decided: Path
) -> None:
    options = ("--policy", plain, "--property", "demographic-parity", "--bound", "1")
    result = command("audit", decided, *options)
    assert (
        "demographic parity ≤ 1, instead of the policy's own demographic parity ≤ 1/4"
        in result.stdout
    )
    assert "instead of" not in command("audit", decided, "--policy", plain).stdout


def test_a_log_without_proposals_does_not_say_that_nobody_was_overruled(command: Any) -> None:
    log = '{"group": "a", "accepted": 1}\n{"group": "b", "accepted": 1}\n'
    prop = ("--property", "demographic-parity", "--bound", "0.1")
    result = command("audit", "-", *prop, stdin=log)
    assert result.stdout.count("cannot be told, the log has no 'proposed'") == 1
    log += '{"group": "b", "accepted": 1, "proposed": 0}\n'
    result = command("audit", "-", *prop, stdin=log)
    assert "1 (33.33%): a 0, b 1; 2 more have no 'proposed'" in result.stdout


HIDDEN = ("\x1b[2J", "\u202e", "\u2066", "\u200f")


def test_names_cannot_write_to_the_terminal_or_turn_its_lines(command: Any) -> None:
    for mark in HIDDEN:
        rows = [{"group": f"{mark}a", "accepted": 1}, {"group": "b", "accepted": 0}]
        log = "".join(json.dumps(row | {"proposed": 0}) + "\n" for row in rows)
        for name in ("audit", "monitor"):
            result = command(
                name, "-", "--property", "demographic-parity", "--bound", "0", stdin=log
            )
            assert result.exit_code == 1
            assert mark[0] not in result.output
            assert "\N{REPLACEMENT CHARACTER}" in result.output


def test_a_contradiction_names_its_three_values_and_no_more(command: Any) -> None:
    row = {"group": "a", "proposed": 1, "accepted": 0, "overruled": "no", "diary": "private"}
    prop = ("--property", "demographic-parity", "--bound", "0", "--names", "a,b")
    result = command("audit", "-", *prop, stdin=json.dumps(row))
    assert result.exit_code == 2
    assert "line 1: 'overruled' is 'no', which contradicts 'proposed' 1" in result.stderr
    assert "private" not in result.stderr


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


@pytest.mark.parametrize(
    ("log", "options", "status", "told"),
    [
        ("", [], 3, "nothing to check: the log has no decisions"),
        ("", ["--names", "a,b"], 3, "nothing to check: the log has no decisions"),
        ("", ["--html"], 2, "the log has no decisions, and a page names the groups"),
        ("männlich,1\n", [], 2, "only one group, 'männlich': two are compared"),
        ("männlich,1\n", [], 2, "name both with --names first,second"),
    ],
)
def test_a_log_that_does_not_show_two_groups(
    command: Any, tmp_path: Path, log: str, options: list[str], status: int, told: str
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"group,accepted\n{log}")
    done = command("audit", path, "--property", "demographic-parity", "--bound", "0.1", *options)
    assert done.exit_code == status
    assert told in done.output
