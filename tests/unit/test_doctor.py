"""The doctor tells what is missing from what is broken."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner
from packaging.specifiers import SpecifierSet

from fairshield.cli import doctor as doctor_command
from fairshield.cli.app import app
from fairshield.cli.tools import doctor, packages


def only(**broken: Exception) -> Any:
    """An importer for which these modules fail, all others being there."""

    def load(name: str) -> ModuleType:
        if name in broken:
            raise broken[name]
        if name.startswith("fairshield"):
            return importlib.import_module(name)
        return ModuleType(name)

    return load


def test_what_is_not_installed_is_missing_and_no_fault() -> None:
    error = ModuleNotFoundError("No module named 'no_such'", name="no_such")
    found = packages.examine("no-such>=1", only(no_such=error))
    assert (found.state, found.needs) == ("missing", ">=1")


@pytest.mark.parametrize(
    "error",
    [
        ImportError("libx.so: cannot open shared object"),
        ModuleNotFoundError("No module named 'inner'", name="inner"),
        RuntimeError("compiled against another numpy"),
        OSError("no such library"),
    ],
)
def test_what_is_installed_and_cannot_be_imported_is_broken(error: Exception) -> None:
    found = packages.examine("click>=8", only(click=error))
    assert found.state == "broken"
    assert str(error) in found.detail


def test_a_distribution_without_its_module_is_broken() -> None:
    error = ModuleNotFoundError("No module named 'click'", name="click")
    assert packages.examine("click>=8", only(click=error)).state == "broken"


def test_a_version_too_old_is_a_fault() -> None:
    found = packages.examine("click>=999", only())
    assert found.state == "old"
    assert ">=999 is needed" in found.detail


def test_every_extra_is_listed_with_the_command_that_completes_it() -> None:
    core, extras = packages.requirements()
    assert any(text.startswith("numpy") for text in core)
    assert {"cli", "plot", "service", "cuda", "experiments"} <= set(extras)
    error = ModuleNotFoundError("No module named 'narwhals'", name="no_such")
    package = packages.Package(name="no_such", needs="", state="missing", detail=str(error))
    extra = packages.Extra(name="frames", packages=(package,))
    assert (extra.missing, extra.remedy) == (("no_such",), "pip install 'fairshield[frames]'")
    # Extras that are made of others have what those have.
    assert set(extras["service"]) <= set(extras["postgres"])


def test_requirements_of_other_machines_are_left_out() -> None:
    texts = ["a; sys_platform == 'no-such'", "b; sys_platform != 'no-such'"]
    texts.append("c; sys_platform == 'no-such' and extra == 'x'")
    assert packages.split(texts, ["x"]) == (["b"], {"x": []})


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Without importing everything there is."""
    monkeypatch.setattr(
        doctor,
        "requirements",
        lambda: (["numpy>=1.26"], {"cli": ["click>=8"], "odd": ["no-such-package>=3"]}),
    )
    return monkeypatch


def test_a_healthy_installation_exits_with_0(quick: Any) -> None:
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    assert "odd  not complete: pip install 'fairshield[odd]'" in result.stdout
    assert "a policy was made, used and verified" in result.stdout
    data = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert data["works"]
    assert data["extras"][1]["packages"][0]["state"] == "missing"
    assert data["cache"]["writable"]


@pytest.mark.parametrize("size", [0, 1000])
def test_whoever_waits_for_the_compiler_is_told(quick: Any, size: int) -> None:
    cache = doctor.Cache(folder=".", bytes=size, writable=True, older=0, older_bytes=0)
    quick.setattr(doctor, "_cache", lambda: cache)
    told: list[str] = []
    assert doctor.checkup(compiles=lambda: told.append("compiling")).works
    assert told == ([] if size else ["compiling"])


def test_the_terminal_is_told_that_it_compiles(
    quick: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for terminal in (True, False):
        quick.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal, raising=False)
        doctor_command._say_that_it_compiles()
        assert ("Compiling" in capsys.readouterr().err) == terminal


def test_without_a_compiler_the_rest_works_and_what_is_missing_is_named(quick: Any) -> None:
    quick.setattr(doctor, "can_compile", lambda: False)
    quick.setattr(doctor, "_cache", lambda: None)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    assert "making, simulating and verifying policies need numba" in result.stdout
    assert "pip install 'fairshield[synthesis]'" in result.stdout


def test_a_broken_package_exits_with_1_and_is_named(quick: Any) -> None:
    quick.setattr(doctor, "requirements", lambda: (["numpy>=999"], {}))
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "FAULT: numpy" in result.stdout


def test_a_core_that_fails_exits_with_1(quick: Any) -> None:
    def fails() -> str:
        raise RuntimeError("no compiler")

    quick.setattr(doctor, "_use", fails)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "the self-check failed: RuntimeError: no compiler" in result.stdout


def test_a_core_package_that_is_missing_is_a_fault(quick: Any) -> None:
    quick.setattr(doctor, "requirements", lambda: (["no-such-package>=3"], {}))
    assert doctor.checkup(only()).core[0].state == "ok"  # the importer knows everything
    found = CliRunner().invoke(app, ["doctor"])
    assert (found.exit_code, "no-such-package is missing" in found.stdout) == (1, True)


def test_data_sets_are_looked_for_where_the_variable_says(
    quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = pytest.importorskip("fairshield_experiments.data.sources")
    monkeypatch.setenv("FAIRSHIELD_DATA", str(tmp_path))
    path = tmp_path / sources.GERMAN.path
    path.parent.mkdir()
    path.write_bytes(b"x" * sources.GERMAN.size)
    found = doctor.checkup().data
    assert found.folder == str(tmp_path)
    assert found.present == ("german",)
    assert set(found.absent) == {"adult", "bank", "compas"}
    error = ModuleNotFoundError("No module named 'pandas'", name="pandas")
    without = doctor.checkup(only(**{"fairshield_experiments.data.sources": error})).data
    assert "fairshield[experiments]" in without.detail


@pytest.mark.parametrize(
    ("version", "needs", "fits"),
    [
        ("1!2.0", ">=3", True),
        ("2.0rc1", ">=2.0", False),
        ("2.1.dev0", ">=2.0", True),
        ("2.5", "~=2.4", True),
        ("3.0", "~=2.4", False),
        ("unknown", ">=1", False),
    ],
)
def test_versions_are_compared_as_installers_compare_them(
    version: str, needs: str, fits: bool
) -> None:
    assert packages.satisfies(version, SpecifierSet(needs)) is fits
