"""People of groups that the policy was not made for, on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def mixed(jsonl: str) -> str:
    """The requests, every fourth of a group nobody declared."""
    lines = [json.loads(line) for line in jsonl.splitlines()]
    for line in lines[::4]:
        line["group"] = "z"
    return "".join(json.dumps(line) + "\n" for line in lines)


def decide(command: Any, policy: Path, text: str, *options: str) -> Any:
    return command("run", policy, *options, stdin=text)


def test_they_are_refused_by_default(command: Any, plain: Path, mixed: str) -> None:
    result = decide(command, plain, mixed)
    assert result.exit_code == 2
    assert "line 1: unknown group 'z': this policy knows 'a', 'b'" in result.stderr


@pytest.mark.parametrize("name", ["plain", "labelled"])
def test_followed_they_change_nothing_for_others(
    command: Any, policies: Path, mixed: str, tmp_path: Path, name: str
) -> None:
    policy = policies / f"{name}.shield"
    others = "".join(line + "\n" for line in mixed.splitlines() if '"z"' not in line)
    decided = decide(command, policy, mixed, "--unseen", "follow").stdout
    rows = [json.loads(line) for line in decided.splitlines()]
    alone = decide(command, policy, others).stdout
    assert [row for row in rows if row["group"] != "z"] == [
        json.loads(line) for line in alone.splitlines()
    ]
    strangers = [row for row in rows if row["group"] == "z"]
    assert all(row["accepted"] == row["proposed"] for row in strangers)
    assert "not made for group 'z'" in strangers[0]["reason"]

    log = tmp_path / "log.jsonl"
    log.write_text(decided)
    audited = command("audit", log, "--policy", policy, "--unseen", "follow")
    assert audited.exit_code == 0, audited.output
    assert "10 of undeclared groups: z 10" in audited.stdout
    report = command("audit", log, "--policy", policy, "--unseen", "follow", "--json").stdout
    assert json.loads(report)["followed"] == [["z", 10]]
    assert command("explain", policy, log, "--unseen", "follow").exit_code == 0
    one = command("explain", policy, log, "--unseen", "follow", "--line", 1)
    assert "the policy did not decide" in one.stderr


def test_mapped_they_count_as_the_group_named(
    command: Any, policies: Path, mixed: str, tmp_path: Path
) -> None:
    policy = policies / "plain.shield"
    renamed = mixed.replace('"z"', '"b"')
    mapped = decide(command, policy, mixed, "--unseen", "map:b").stdout
    as_b = decide(command, policy, renamed).stdout
    assert mapped.replace('"z"', '"b"') == as_b
    log = tmp_path / "log.jsonl"
    log.write_text(mapped)
    assert command("audit", log, "--policy", policy, "--unseen", "map:b").exit_code == 0


def test_a_target_is_read_as_text(command: Any, policies: Path) -> None:
    stream = "group,proposed\n0,1\n7,0\n"
    numbered = policies / "numbered.shield"
    result = command("run", numbered, "--format", "csv", "--unseen", "map:1", stdin=stream)
    assert result.exit_code == 0, result.output


def test_mistakes_are_named(command: Any, plain: Path, mixed: str) -> None:
    wrong = decide(command, plain, mixed, "--unseen", "skip")
    assert wrong.exit_code == 2
    assert "unseen must be 'refuse', 'follow', 'map:GROUP'" in wrong.stderr
    nowhere = decide(command, plain, mixed, "--unseen", "map:q")
    assert "unknown group 'q': this policy knows 'a', 'b'" in nowhere.stderr


@pytest.mark.parametrize("how", ["follow", "map:b"])
def test_an_empty_group_is_one_that_nobody_declared(
    command: Any, plain: Path, tmp_path: Path, how: str
) -> None:
    stream = "group,proposed\na,1\n,0\nb,1\n,1\n"
    log = tmp_path / "log.csv"
    log.write_text(decide(command, plain, stream, "--format", "csv", "--unseen", how).stdout)
    assert len(log.read_text().splitlines()) == 5
    rest = tmp_path / "in.csv"
    rest.write_text(stream + ",0\n")
    again = command("run", plain, rest, "--resume", log, "-o", log, "--unseen", how)
    assert again.exit_code == 0, again.output
    audited = command("audit", log, "--policy", plain, "--unseen", how)
    assert audited.exit_code == 3, audited.output  # the window is not over
    assert "decisions are the policy's" in audited.stdout, audited.output
    assert ("3 of undeclared groups: (missing) 3" in audited.stdout) == (how == "follow")
    parity = ("--property", "demographic-parity", "--bound", "1")
    bare = command("audit", log, *parity, "--unseen", how, "--json")
    followed = json.loads(bare.stdout)["followed"]
    assert followed == ([["(missing)", 3]] if how == "follow" else [])


def test_an_empty_group_is_refused_by_default(command: Any, plain: Path) -> None:
    log = "group,proposed,accepted\na,1,1\n,0,0\n"
    asked = "group,proposed\na,1\n,0\n"
    for result in (
        command("audit", "-", "--format", "csv", "--policy", plain, stdin=log),
        decide(command, plain, asked, "--format", "csv"),
    ):
        assert result.exit_code == 2
        assert "line 3: the group is empty" in result.stderr
        assert "--unseen follow" in result.stderr
