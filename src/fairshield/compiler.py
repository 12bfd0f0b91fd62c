"""How our functions are compiled: the options they share, and where the result is kept.

numba keeps compiled code beside the file of a function and compiles anew when that file changes.
It does not notice that a function called from another file changed, so that after an update old
decisions could be read from new tables.  Ours is kept in a folder named after the content of all
our files instead: any change, and nothing old is found.

On a terminal the first compilation is announced, as it takes longer than people wait for an answer.

Importing this module loads numba, or says how to install it.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairshield.extras import check_can_compile

check_can_compile()

from numba import config as _numba_config
from numba import njit
from numba.core.event import Listener, register

_PACKAGE = Path(__file__).parent
config: Any = _numba_config  # its settings are made at run time, unknown to type checkers
# None of our functions is passed as a value, which is what the wrapper for C would be for.
_OPTIONS: dict[str, Any] = {
    "boundscheck": False, "error_model": "numpy", "no_cfunc_wrapper": True,
}  # fmt: skip
NO_ALLOCATION: dict[str, Any] = {"_nrt": False}
"""For functions that allocate nothing: counting references to arrays takes time at every call."""


class _Announcement(Listener):
    """Tells somebody at a terminal, once, that our functions are being compiled.

    Numba reports a compilation only if the result was not found where it is kept.
    """

    told = False

    def on_start(self, event: Any) -> None:
        """A function begins to be compiled."""
        ours = event.data["dispatcher"].py_func.__module__.startswith("fairshield")
        if ours and not self.told:
            self.told = True
            if somebody_waits():
                sys.stderr.write("fairshield: compiling once, about 10 s\n")
                sys.stderr.flush()

    def on_end(self, event: Any) -> None:
        """It is compiled."""


def somebody_waits() -> bool:
    """Whether a person at a terminal waits for this process, which is no service."""
    streams = (sys.stdin, sys.stderr)
    at_terminal = all(stream is not None and stream.isatty() for stream in streams)
    return at_terminal and "fairshield.service" not in sys.modules


listen: Any = register  # untyped, as all of numba
listen("numba:compile", _Announcement())


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile on the first call, for good; the interpreter lock is released while it runs."""
    decorate = njit(cache=True, nogil=True, **_OPTIONS, **options)

    def compiled(function: Callable[..., Any]) -> Any:
        with _kept_in(FOLDER):
            return decorate(function)

    return compiled


def inlined(**options: Any) -> Any:
    """Compile as a part of every function that calls it."""
    return njit(forceinline=True, **_OPTIONS, **options)


def content(package: Path) -> str:
    """A digest of all source files below ``package``."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(package)} {len(source)}\n".encode() + source)
    return digest.hexdigest()[:16]


def cache_folder(package: Path) -> Path:
    """The first place that we may write to: where numba was told, the package, a user's cache."""
    told = [Path(config.CACHE_DIR)] if config.CACHE_DIR else []
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = f"fairshield-{content(package)}"
    for place in (*told, package / "__pycache__", users):
        folder = place / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix=name))


@contextmanager
def _kept_in(folder: Path) -> Iterator[None]:
    """Numba asks where to keep a function's code at the moment it is decorated."""
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


FOLDER = cache_folder(_PACKAGE)
"""Where compiled code is kept."""
