"""Remedies name the options of the command at hand, the keys of a file, or arguments of Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import fairshield as fs
from fairshield.base.errors import argument, called, spelling

RATES = ["--property", "bounded-rates", "--lower", "0.4", "--upper", "0.6", "--min-support", "0"]
EVEN = ["--groups", "a=0.5,b=0.5"]
PARITY = ["--property", "demographic-parity", "--bound", "0.1"]
TOLD = {
    "min_support": (["synthesize", *RATES, "--horizon", "5", *EVEN], "set --min-support so that"),
    "horizon": (["synthesize", *PARITY, *EVEN], "as in --horizon 100"),
    "property": (["synthesize", *EVEN], "as in --property demographic-parity and --bound 0.1"),
    "groups": (["synthesize", *PARITY, "--horizon", "5"], "--groups a=0.4,b=0.6"),
    "inputs": (
        ["synthesize", *PARITY, "--horizon", "5", *EVEN, "--bins", "3"],
        "--bins goes with --inputs, not with --groups",
    ),
    "two_sided": (
        ["synthesize", "--property", "disparate-impact", "--bound", "1", "--one-sided",
         "--horizon", "5", "--groups", "a=0.5,b=0.25,c=0.25"],
        "use --two-sided, which",
    ),
    "lower": (["synthesize", *PARITY, "--lower", "0.1", "--horizon", "5", *EVEN],
              "takes no --lower: it takes --bound, --min-support, --undefined"),
    "endgame": (["synthesize", *PARITY, "--horizon", "5", *EVEN, "--endgame", "3",
                 "--method", "exact"], "--endgame 3 is for long policies, and --method exact"),
    "period": (["synthesize", *PARITY, *EVEN, "--periodic", "dynamic"], "as in --period 50"),
    "unseen": (["run", "plain.shield", "asked.jsonl"], "others with --unseen"),
    "names": (["audit", "one.jsonl", *PARITY], "name both with --names first,second"),
    "horizon of a policy": (
        ["audit", "log.jsonl", "--policy", "plain.shield", "--horizon", "9"],
        "--horizon 9 is not the policy's 6",
    ),
}  # fmt: skip


@pytest.fixture
def files(folder: Path, plain: Path) -> None:
    (folder / "plain.shield").write_bytes(plain.read_bytes())
    (folder / "log.jsonl").write_text('{"group": "c", "proposed": 1, "accepted": 1}\n')
    (folder / "asked.jsonl").write_text('{"group": "c", "proposed": 1}\n')
    (folder / "one.jsonl").write_text('{"group": "a", "accepted": 1}\n')


@pytest.mark.parametrize("name", TOLD)
@pytest.mark.usefixtures("files")
def test_remedies_name_options(command: Any, name: str) -> None:
    words, said = TOLD[name]
    done = command(*words)
    assert done.exit_code in (1, 2)
    assert said in done.stderr
    assert not re.search(r"\b[a-z]+(_[a-z]+)+\b|\b[a-z]+=[('\"]|=$", done.stderr), done.stderr


def test_a_specification_is_told_its_keys(command: Any, folder: Path) -> None:
    (folder / "short.toml").write_text('property = "share-parity"\nbound = 1\nbins = 2\n')
    assert "as in horizon = 100" in command("synthesize", "short.toml").stderr
    done = command("synthesize", "short.toml", "--horizon", "5", *EVEN, "--lower", "0.1")
    assert "share-parity takes no --lower: it takes bound, min_support" in done.stderr


def test_python_is_told_arguments() -> None:
    assert argument("unseen", "follow") == "unseen='follow'"
    with spelling(lambda name, value: f"<{name} {value}>"):
        assert (argument("horizon", 5), called("horizon")) == ("<horizon 5>", "<horizon None>")
    with pytest.raises(fs.InvalidValueError, match=r"groups=\('first', 'second'\)"):
        fs.audit(fs.DemographicParity("0.1"), [{"group": "a", "accepted": 1}])
