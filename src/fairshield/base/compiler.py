"""The decorators that compile fairshield's functions, and the folder that keeps the result.

numba keeps compiled code beside the file of a function and compiles anew when that file changes.
It does not notice that a function called from another file changed, so that after an update old
decisions could be read from new tables.  So compiled code of fairshield is kept in a folder whose
name is a digest of all its source files: after any change the folder is a new, empty one.

At a terminal the first compilation is announced, because it takes about ten seconds.

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

from fairshield.base.extras import check_can_compile

check_can_compile()

from numba import config as _numba_config
from numba import njit
from numba.core.event import Listener, register
from numba.extending import overload, register_jitable

_PACKAGE = Path(__file__).parents[1]
config: Any = _numba_config  # numba makes its settings at run time, unseen by type checkers
# The wrapper for C is needed by functions that are passed as values; none of these is.
_OPTIONS: dict[str, Any] = {
    "boundscheck": False, "error_model": "numpy", "no_cfunc_wrapper": True,
}  # fmt: skip
NO_ALLOCATION: dict[str, Any] = {"_nrt": False}
"""For functions that allocate nothing: counting references to arrays takes time at every call."""


class _Announcement(Listener):
    """_Announcement tells the user of a terminal, once, that functions are being compiled.

    Numba reports a compilation only if the folder does not have its result already.
    """

    told = False

    def on_start(self, event: Any) -> None:
        """Announce the first compilation of one of our functions, if somebody waits."""
        ours = event.data["dispatcher"].py_func.__module__.startswith("fairshield")
        if ours and not self.told:
            self.told = True
            if somebody_waits():
                sys.stderr.write("fairshield: compiling once, about 10 s\n")
                sys.stderr.flush()

    def on_end(self, event: Any) -> None:
        """Do nothing: only the beginning of a compilation is announced."""


def somebody_waits() -> bool:
    """Whether this process runs at a terminal, where a person waits, and is no service."""
    streams = (sys.stdin, sys.stderr)
    at_terminal = all(stream is not None and stream.isatty() for stream in streams)
    return at_terminal and "fairshield.service" not in sys.modules


listen: Any = register  # numba has no types
listen("numba:compile", _Announcement())


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function on its first call and keep the result; it runs without the GIL."""
    decorate = njit(cache=True, nogil=True, **_OPTIONS, **options)

    def compiled(function: Callable[..., Any]) -> Any:
        with _kept_in(FOLDER):
            return decorate(function)

    return compiled


def inlined(**options: Any) -> Any:
    """Compile a function as a part of every compiled function that calls it."""
    return njit(forceinline=True, **_OPTIONS, **options)


def jitable(function: Callable[..., Any], **options: Any) -> None:
    """Let compiled functions call ``function``, which remains a plain Python function."""
    register_jitable(error_model="numpy", **options)(function)


def by_type(
    function: Callable[..., Any], kinds: dict[type, Callable[..., Any]], **options: Any
) -> None:
    """Let compiled functions call ``function``; ``kinds`` has one by type of its first argument."""

    def chosen(first: Any, *others: Any) -> Any:
        return kinds[first.instance_class]

    declare: Any = overload
    declare(function, jit_options=options, strict=False)(chosen)


def content(package: Path) -> str:
    """A digest of all source files below ``package``."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(package)} {len(source)}\n".encode() + source)
    return digest.hexdigest()[:16]


def cache_folder(package: Path) -> Path:
    """The first writable folder of: numba's setting, the package, the user's cache, temporary."""
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
    """Functions decorated in this context are kept in ``folder``: numba reads its setting then."""
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


FOLDER = cache_folder(_PACKAGE)
"""Where compiled code is kept."""
