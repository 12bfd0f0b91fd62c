"""docs/cli.md tells everything, and shows what really happens."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from cli.cli_reference import PAGE, command_of, commands, help_page, sessions, steady
from fairshield.cli.app import app

TEXT = PAGE.read_text("utf-8")
REMEDY = "bring the page up to date: python tests/cli/cli_reference.py"
PINNED = (PAGE.parents[1] / "constraints.txt").read_text("utf-8")


def section(name: str) -> str:
    """What the page says under the heading of a command."""
    found = re.search(rf"^### fairshield {name}\n(.*?)(?=^### |^<!-- )", TEXT, re.M | re.S)
    assert found, f"no section on {name}; {REMEDY}"
    return found[1]


@pytest.mark.parametrize("name", [*commands()])
def test_every_command_and_option_is_documented(name: str) -> None:
    words = set(re.findall(r"--?[\w-]+|\w+", section(name)))
    for parameter in command_of(name).params:
        for option in [*parameter.opts, *parameter.secondary_opts]:
            if option.startswith("-"):
                assert option in words, f"{option} is not documented; {REMEDY}"


@pytest.mark.parametrize("name", app.commands)
def test_every_command_is_listed_with_its_whole_first_sentence(name: str) -> None:
    first = (app.commands[name].help or "").split("\n")[0]
    assert re.search(rf"^  {name} +{re.escape(first)}$", help_page(None), re.M)


@pytest.mark.parametrize("name", [*commands()])
def test_every_help_page_ends_with_an_example(name: str) -> None:
    last = help_page(name).split("Example")[-1]
    assert f"fairshield {name}" in last


@pytest.mark.skipif(f"click=={version('click')}" not in PINNED, reason="another click wraps lines")
def test_help_pages_are_up_to_date() -> None:
    # In a process of its own: here other tests have added properties, which are offered as well.
    printed = [sys.executable, "-c", "import cli_reference; print(cli_reference.help_pages())"]
    done = subprocess.run(printed, cwd=Path(__file__).parent, check=True, stdout=subprocess.PIPE)
    assert done.stdout.decode() in TEXT, REMEDY


@pytest.mark.slow
def test_sessions_give_what_the_page_shows() -> None:
    shown = re.findall(r"^```console\n(.*?)^```$", TEXT, re.M | re.S)
    assert "guarantee holds" in TEXT
    assert not re.search("Traceback|No module|not found", TEXT)
    for old, new in zip(shown, sessions(TEXT), strict=True):
        assert steady(old) == steady(new), REMEDY


def test_every_key_of_a_spec_is_documented() -> None:
    rows = re.findall(r"^\| (`.*?) \|", TEXT, re.M)
    documented = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
    # In a process of its own: tests register properties of theirs, which have other keys.
    script = "from fairshield.adapters.specfile import known_keys; print(*known_keys())"
    keys = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout
    assert set(keys.decode().split()) <= documented


def test_every_field_of_a_decision_is_documented(command: Any, plain: Path, jsonl: str) -> None:
    line = command("run", plain, "--format", "csv", "--explain", stdin="group,proposed\na,1\n")
    for field in line.stdout.splitlines()[0].split(","):
        assert f"`{field}`" in TEXT
