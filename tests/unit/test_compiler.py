"""Compiled code is found again while nothing changes, and never after something did."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fairshield.base import compiler

COMPILED = [
    "analysis.simulate",
    "analysis.verify.kernels",
    "periodic.closed.kernels",
    "policy.codes",
    "policy.long.kernels",
    "policy.long.price_kernels",
    "policy.many.kernels",
    "runtime.compiled",
    "runtime.evaluate",
    "synthesis.exact.best_effort",
    "synthesis.exact.counted_kernels",
    "synthesis.exact.kernels",
    "synthesis.exact.many_kernels",
    "synthesis.exact.row_kernels",
]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Two source files."""
    folder = tmp_path / "package"
    (folder / "inner").mkdir(parents=True)
    (folder / "outer.py").write_text("from inner import called")
    (folder / "inner" / "called.py").write_text("called = 1")
    return folder


def test_any_change_makes_another_digest(package: Path) -> None:
    seen = {compiler.content(package)}
    assert compiler.content(package) in seen
    (package / "notes.txt").write_text("not code")
    assert compiler.content(package) in seen
    called = package / "inner" / "called.py"
    for change in (
        lambda: called.write_text("called = 2"),
        lambda: called.rename(package / "inner" / "renamed.py"),
        lambda: (package / "new.py").write_text(""),
        lambda: (package / "outer.py").unlink(),
    ):
        change()
        digest = compiler.content(package)
        assert digest not in seen
        seen.add(digest)


def dispatchers(module: str) -> dict[str, Any]:
    names = vars(import_module(f"fairshield.{module}"))
    return {name: f for name, f in names.items() if hasattr(f, "signatures")}


@pytest.mark.parametrize("module", COMPILED)
def test_every_compiled_function_is_kept_under_the_content_of_the_package(module: str) -> None:
    digest = compiler.content(Path(compiler.__file__).parents[1])
    found = dispatchers(module)
    assert found
    for function in found.values():
        # What is inlined everywhere is kept nowhere.
        if not function.targetoptions.get("forceinline"):
            assert digest in function.stats.cache_path


def test_all_compiled_modules_are_listed() -> None:
    package = Path(compiler.__file__).parents[1]
    using = [p for p in package.rglob("*.py") if "fairshield.base.compiler import" in p.read_text()]
    names = [".".join(p.relative_to(package).with_suffix("").parts) for p in using]
    # The last one registers functions and compiles none.
    assert sorted(names) == sorted([*COMPILED, "policy.jitable"])
    direct = [p.name for p in package.rglob("*.py") if "import njit" in p.read_text()]
    assert direct == ["compiler.py"]


FIRST_USE = """
import numpy as np
import fairshield as fs
from fairshield.analysis.simulate import simulate
from numba.core.event import Listener, register

class Compiled(Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("fairshield"):
            print(function.__name__)

    def on_end(self, event):
        pass

register("numba:compile", Compiled())
even = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
policy = fs.synthesize(fs.DemographicParity("0.1"), even, horizon=10)
simulate(policy, n_windows=10, rng=np.random.default_rng(0))
"""


@pytest.mark.slow
def test_first_use_compiles_what_it_calls_and_the_rule_once(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_USE], env=environment, check=True, stdout=subprocess.PIPE
    )
    names = done.stdout.decode().split()
    for once in ("back_up", "back_up_and_note", "write_dense", "look_up", "feasible", "place"):
        assert names.count(once) == 1, once
    assert not {"back_up_one", "back_up_few", "back_up_many"}.intersection(names)


def test_numba_is_told_for_our_functions_only() -> None:
    before = compiler.config.CACHE_DIR
    compiler.jit()(lambda: 0)
    assert before == compiler.config.CACHE_DIR


def test_a_package_that_cannot_be_written_to_is_kept_in_the_users_cache(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    assert compiler.cache_folder(package).parent == package / "__pycache__"
    (package / "__pycache__").rename(tmp_path / "elsewhere")
    (package / "__pycache__").write_text("a file, where a folder cannot be made")
    folder = compiler.cache_folder(package)
    assert folder.parent == tmp_path / "users"
    assert folder.is_dir()
    monkeypatch.setattr(compiler.config, "CACHE_DIR", str(tmp_path / "told"))
    assert compiler.cache_folder(package).parent == tmp_path / "told"


SMALLEST = """
import numpy as np
from fairshield.policy.codes import accepts
accepts(np.zeros((1, 2, 2, 1), np.int64), 0, 0, 0, True, 0)
"""


def said(cache: Path, code: str = SMALLEST, *, terminal: bool) -> str:
    """What a process says that compiles one small function, if it is not in ``cache``."""
    ours, theirs = pty.openpty()
    streams: dict[str, Any] = (
        {"stdin": theirs, "stderr": theirs} if terminal else {"stderr": subprocess.PIPE}
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, **streams)
    os.write(theirs, b"\n")
    told = os.read(ours, 1000) if terminal else done.stderr
    for end in (ours, theirs):
        os.close(end)
    return bytes(told).decode().strip()


@pytest.mark.slow
def test_compiling_is_announced_once_and_on_a_terminal_only(tmp_path: Path) -> None:
    announced = "fairshield: compiling once, about 10 s"
    assert said(tmp_path / "pipe", terminal=False) == ""
    assert said(tmp_path / "terminal", terminal=True) == announced
    assert said(tmp_path / "terminal", terminal=True) == ""
    in_service = "import fairshield.service\n" + SMALLEST
    assert said(tmp_path / "service", in_service, terminal=True) == ""
