"""The command line: each command parses, calls one library function and prints.

This file imports only the standard library, so that it can name packages that are missing.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

_NEEDED = ("click", "rich")


def main() -> None:
    """Run the command ``fairshield``."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"The fairshield command needs {' and '.join(missing)}: pip install 'fairshield[cli]'\n"
        )
        raise SystemExit(2)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the parent process has closed it
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115  (open to the end)
        # A terminal that cannot show a character shows a question mark instead of failing.
        getattr(sys, name).reconfigure(errors="replace")
    import_module("fairshield.cli.app").app(prog_name="fairshield")
