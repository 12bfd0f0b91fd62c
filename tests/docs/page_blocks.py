"""The fenced blocks of a documentation page, and how each kind of block is run.

Blocks of a page run in their order, in one folder and one namespace:

* ``python`` with prompts: as a doctest; without: as it stands.
* ``console``: each command after ``$`` in a shell, its output compared where the page shows some;
  ``…`` on the page stands for anything.
* a block after ```` `name`: ```` is the content of that file.

``<!-- not run: why -->`` on the line above leaves a block out.  A session that shows no output
for a command says nothing about it but that it exits with 0.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import fairshield

RUNNABLE = frozenset({"python", "console", "sh", "bash"})
_BLOCK = re.compile(
    r"^(?:`(?P<file>[\w.-]+)`:\n\n|<!-- not run: (?P<reason>.+?) -->\n)?"
    r"```(?P<language>[\w{}-]*).*\n(?P<text>(?:.*\n)*?)```$",
    re.MULTILINE,
)
_CHANGING = re.compile(r"\b[0-9a-f]{8,64}\b|fairshield \d+\.\d+\.\d+")
"""Digests and versions, which change from release to release."""


class Block(NamedTuple):
    """One fenced block of a page."""

    line: int
    language: str
    text: str
    file: str | None
    not_run: str | None


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    for found in _BLOCK.finditer(page):
        line = page.count("\n", 0, found.start("text")) + 1
        yield Block(line, found["language"], found["text"], found["file"], found["reason"])


class Page:
    """Runs blocks in ``folder``, which is also where its Python code looks for files."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.examples = doctest.DocTestRunner()
        # Kept beside the folder, so that it is not listed where a page lists its files.
        shim = folder.with_name(folder.name + "-bin") / "fairshield"
        shim.parent.mkdir()
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fairshield "$@"\n')
        shim.chmod(0o755)
        self.env = {
            "PYTHONPATH": str(Path(fairshield.__file__).parents[1]),
            "PATH": f"{shim.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        """What it needs in its environment, which is given to it by who runs it."""

    def run(self, block: Block) -> None:
        """Run a block, or fail as the page's reader would."""
        if block.file:
            (self.folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            self._converse(block)
        elif block.text.lstrip().startswith(">>>"):
            self._examine(block)
        else:
            exec(compile(block.text, f"{self.name}:{block.line}", "exec"), self.names)

    def _examine(self, block: Block) -> None:
        example = doctest.DocTestParser().get_doctest(
            block.text, self.names, self.name, self.name, block.line - 1
        )
        example.globs = self.names  # not a copy: other blocks need its names
        self.examples.run(example, clear_globs=False)
        assert self.examples.failures == 0, f"{self.name}, line {block.line}: see above"

    def _converse(self, block: Block) -> None:
        for command, shown in turns(block.text):
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            where = f"{self.name}, line {block.line}: $ {command}"
            assert done.returncode == 0, f"{where}\n{done.stdout}"
            if shown:
                assert matches(shown, done.stdout), f"{where}\n{done.stdout}"


def turns(session: str) -> list[tuple[str, str]]:
    """Commands, with the lines that a backslash continues, and what follows each."""
    return re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE)


def matches(shown: str, printed: str) -> bool:
    """Whether ``printed`` is what the page shows, but for digests, versions and ``…``."""
    pattern = ".*".join(map(re.escape, _steady(shown).strip().split("…")))
    return re.fullmatch(pattern, _steady(printed).strip(), re.DOTALL) is not None


def _steady(text: str) -> str:
    return re.sub(r"[ \t]+$", "", _CHANGING.sub("", text), flags=re.MULTILINE)
