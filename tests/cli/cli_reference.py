"""Write the help pages and console sessions of docs/cli.md.

``python tests/cli/cli_reference.py`` brings the page up to date; a test fails when that is needed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

import fairshield
from fairshield.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
_BEGIN, _END = "<!-- help pages -->\n", "<!-- end of help pages -->\n"
_FILE = re.compile(r"^`([\w.-]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SESSION = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CHANGING = re.compile(r"\b[0-9a-f]{8,64}\b|fairshield \d+\.\d+\.\d+")
"""Digests and versions, which change from release to release."""


def commands(group: click.Group = app, *before: str) -> Iterator[str]:
    """All commands in order; one that has others is followed by them."""
    for name, command in group.commands.items():
        yield " ".join([*before, name])
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)


def command_of(name: str) -> click.Command:
    """The command with this name, of one word or more."""
    found: click.Command = app
    for word in name.split():
        assert isinstance(found, click.Group)
        found = found.commands[word]
    return found


def help_page(name: str | None) -> str:
    """What ``fairshield NAME --help`` prints."""
    context = click.Context(app, None, "fairshield", terminal_width=96, **app.context_settings)
    words = (name or "").split()
    for i, word in enumerate(words, 1):
        command = command_of(" ".join(words[:i]))
        context = click.Context(command, context, word, terminal_width=96)
    return context.command.get_help(context)


def help_pages() -> str:
    """All help pages, as Markdown."""
    pages = [f"```text\n{help_page(None)}\n```\n"]
    pages += [f"### fairshield {name}\n\n```text\n{help_page(name)}\n```\n" for name in commands()]
    return "\n".join(pages)


def sessions(text: str) -> Iterator[str]:
    """The console sessions of a page, played again from its files and commands."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in _FILE.findall(text):
            (folder / file).write_text(content, encoding="utf-8")
        shim = folder / ".bin" / "fairshield"
        shim.parent.mkdir()
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fairshield "$@"\n')
        shim.chmod(0o755)
        for session in _SESSION.findall(text):
            yield "".join(f"$ {line}\n{_output(line, folder)}" for line in _commands(session))


def _commands(session: str) -> list[str]:
    """Commands, with the lines that a backslash continues."""
    found = re.findall(r"^\$ ((?:.*\\\n)*.*)$", session, re.MULTILINE)
    return [str(command) for command in found]


def _output(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", f'PATH="$PWD/.bin:$PATH"; {command}'],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(fairshield.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.stdout.decode()


def steady(text: str) -> str:
    """``text`` without what changes from release to release."""
    return _CHANGING.sub("…", text)


def up_to_date(text: str) -> str:
    """The page as it should be."""
    played = sessions(text)
    text = _SESSION.sub(lambda _: f"```console\n{next(played)}```", text)
    before, rest = text.split(_BEGIN)
    return before + _BEGIN + "\n" + help_pages() + "\n" + _END + rest.split(_END)[1]


if __name__ == "__main__":
    PAGE.write_text(up_to_date(PAGE.read_text("utf-8")), "utf-8")
