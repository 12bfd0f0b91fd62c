"""Properties of the user's own on the command line: imported if asked for, and only then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RULES = '''
from dataclasses import dataclass

import fairshield as fs


@dataclass(frozen=True)
class Quota(fs.Property, kind="cli-quota"):
    """Accepted counts differ by at most ``most``."""

    most: int

    def fair(self, a, b):
        return abs(a.accepted - b.accepted) <= self.most


class Nameless(fs.Property):
    pass


number = 5
'''
OWN = ["--import", "rules:Quota"]
ASKED = ["--property", "cli-quota", "--argument", "most=2"]
SHARES = ["--groups", "a=0.5,b=0.5", "--horizon", "6"]


def fairshield(folder: Path, *words: Any) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, where nothing has been imported."""
    script = "import sys; sys.path.remove(''); from fairshield.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def rules(folder: Path) -> Path:
    (folder / "rules.py").write_text(RULES)
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "lacking.py").write_text("import nowhere_to_be_found\n")
    return folder


@pytest.mark.slow
def test_from_synthesis_to_audit(rules: Path) -> None:
    made = fairshield(rules, "synthesize", *OWN, *ASKED, *SHARES, "-o", "own.shield")
    assert made.returncode == 0, made.stderr
    (rules / "asked.csv").write_text("group,proposed\n" + "a,1\na,1\na,1\nb,0\nb,0\nb,0\n")
    for command in (
        ("inspect", "own.shield"),
        ("verify", "own.shield"),
        ("run", "own.shield", "asked.csv", "-o", "done.csv"),
        ("audit", "done.csv", "--policy", "own.shield"),
        ("audit", "done.csv", *ASKED, "--html", "page.html"),
        ("explain", "own.shield", "done.csv"),
        ("simulate", "own.shield", "--windows", "10"),
    ):
        without = fairshield(rules, *command)
        assert without.returncode == 2, command
        assert "--import" in without.stderr
        done = fairshield(rules, *command, *OWN)
        assert done.returncode == 0, done.stderr
    page = (rules / "page.html").read_text()
    assert "--import rules:Quota --property cli-quota --argument most=2" in page


def test_a_file_alone_imports_nothing(rules: Path) -> None:
    (rules / "rules.py").write_text(RULES + "\nopen('imported', 'w').close()\n")
    (rules / "own.toml").write_text('property = "cli-quota"\nmost = 2\nhorizon = 6\n'
                                    "groups = {a = 0.5, b = 0.5}\n")  # fmt: skip
    refused = fairshield(rules, "synthesize", "own.toml")
    assert refused.returncode == 2
    assert not (rules / "imported").exists()
    made = fairshield(rules, "synthesize", "own.toml", *OWN)
    assert made.returncode == 0, made.stderr
    assert (rules / "imported").exists()
    (rules / "imported").unlink()
    assert fairshield(rules, "inspect", "own.shield").returncode == 2
    assert not (rules / "imported").exists()


MISTAKES = {
    "rules": "expected MODULE:CLASS, as in rules:Quota",
    "nowhere:Quota": "no module 'nowhere': it must be in the current folder, or installed",
    "rules.inner:Quota": "no module 'rules.inner'",
    "rules:Quoter": "Quoter of the module rules is not there: it has Nameless, Quota",
    "rules:number": "number of the module rules is not a property: it has Nameless, Quota",
    "rules:Nameless": "rules:Nameless has no name for files",
    "broken:Quota": "'broken' cannot be imported: ZeroDivisionError",
    "lacking:Quota": "'lacking' cannot be imported: ModuleNotFoundError: No module named 'nowh",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_cannot_be_imported_is_told(rules: Path, name: str) -> None:
    done = fairshield(rules, "synthesize", "loans.toml", "--import", name)
    assert done.returncode == 2
    assert MISTAKES[name] in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--argument", "most"], "expected NAME=VALUE"),
        (["--argument", "mots=2"], "no property that was imported takes mots"),
        (["--argument", "horizon=2"], "horizon has an option of its own, --horizon"),
        (["--argument", "most=1", "--argument", "most=2"], "given twice"),
        ([], "cli-quota needs most"),
    ],
)
def test_mistakes_in_its_arguments_are_told(rules: Path, words: list[str], said: str) -> None:
    done = fairshield(rules, "synthesize", *OWN, "--property", "cli-quota", *words, *SHARES)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
