"""Compiled code is found again while nothing changes, and never after something did."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fairshield import compiler

COMPILED = [
    "codes",
    "evaluate",
    "long.kernels",
    "long.price_kernels",
    "many.kernels",
    "runtime.compiled",
    "simulate",
    "synthesis.best_effort",
    "synthesis.kernels",
    "synthesis.many_kernels",
    "synthesis.row_kernels",
    "verify.kernels",
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
    digest = compiler.content(Path(compiler.__file__).parent)
    found = dispatchers(module)
    assert found
    for function in found.values():
        # What is inlined everywhere is kept nowhere.
        if not function.targetoptions.get("forceinline"):
            assert digest in function.stats.cache_path


def test_all_compiled_modules_are_listed() -> None:
    package = Path(compiler.__file__).parent
    using = [p for p in package.rglob("*.py") if "fairshield.compiler import" in p.read_text()]
    names = [".".join(p.relative_to(package).with_suffix("").parts) for p in using]
    assert sorted(names) == COMPILED
    direct = [p.name for p in package.rglob("*.py") if "import njit" in p.read_text()]
    assert direct == ["compiler.py"]


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
