"""The wheel and the sdist hold what they should, and install where nothing else is.

``python tests/install/check_packages.py [--only STEP]`` builds both, compares their contents with
the source, installs the wheel into an empty environment without extras and for each extra, and runs
there what it is for; then once more, with ``synthesis``, for each supported Python that this
machine has.

Environments are made without pip, which is run from outside: that halves the time.  Of ``dev``,
with ``docs`` and ``experiments`` in it, the dependencies are only resolved: `make test` and
`make docs` run with them installed.  So are those of ``cuda``, if the index has them: they need a
device to be of use.
"""

from __future__ import annotations

import argparse
import email.parser
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
RESOLVED = ("dev", "cuda")
PART_OF_DEV = ("docs", "experiments")
PYTHONS = sorted(
    (int(minor) for minor in re.findall(r":: 3\.(\d+)'", str(PROJECT["classifiers"]))),
)
STRICT = ("-P", "-W", "error")  # -P: a script's neighbours are not on its path
LAWS = (
    "tests/golden/test_by_hand.py",
    "tests/laws/test_guarantee.py::test_every_stream_ends_fair",
)
MUST_SHIP = (
    "fairshield/py.typed",
    "fairshield/synthesis/cuda/kernels.cu",
    "fairshield/service/dashboard/static/fairshield.js",
    "fairshield/service/dashboard/templates/base.html.j2",
    "fairshield/service/store/migrations/sqlite/0001_log.sql",
    "fairshield/service/store/migrations/postgres/0001_log.sql",
    "fairshield_experiments/results/published/fairness.csv",
    "fairshield_experiments/results/templates/report.html.j2",
)


VENDORED = "fairshield/service/dashboard/static/vendor"
"""Files of others, each project in a folder with its licence."""


class Failure(Exception):
    """Something is not as it should be."""


def say(text: str) -> None:
    """Print a line at once, also from several threads."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def call(*command: str | Path, cwd: Path | None = None) -> str:
    """The output of a command; raises if it fails.  Nothing of this checkout is on its path."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=env | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_RETRIES": "10", "MPLBACKEND": "agg"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        raise Failure(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


# Building -----------------------------------------------------------------------------------


def build(out: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it."""
    call(sys.executable, "-m", "build", "--outdir", out, ROOT)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def check_contents(sdist: Path, wheel: Path, scratch: Path) -> str:
    """The wheel is the source and nothing else, however it is built; the sdist can be tested."""
    call(sys.executable, "-m", "build", "--wheel", "--outdir", scratch / "direct", ROOT)
    (direct,) = (scratch / "direct").glob("*.whl")
    shipped = contents(wheel)
    require(shipped == contents(direct), "the wheel of the sdist is not that of the source")
    files = {name for name in shipped if ".dist-info/" not in name}
    source = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    require(files == source, f"in the wheel or in src, not in both: {sorted(files ^ source)}")
    require(set(MUST_SHIP) <= files, f"missing: {sorted(set(MUST_SHIP) - files)}")
    folders = (path for path in (ROOT / "src" / VENDORED).iterdir() if path.is_dir())
    theirs = [f"src/{VENDORED}/{folder.name}/LICENSE" for folder in folders]
    kept = {name.partition(".dist-info/licenses/")[2] for name in shipped}
    missing = {"LICENSE", *theirs} - kept
    require(not missing, f"not among the licences of the wheel: {sorted(missing)}")
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    needed = {
        path.relative_to(ROOT).as_posix()
        for folder in ("tests", "docs", "benchmarks")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    needed |= {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "constraints.txt"}
    require(needed <= packed, f"not in the sdist: {sorted(needed - packed)}")
    strays = [n for n in packed if re.search(r"(^|/)(\.venv|build|dist|__pycache__)(/|$)", n)]
    require(not strays, f"in the sdist: {strays[:5]}")
    return f"{len(files)} files in the wheel, {len(packed)} in the sdist"


def contents(wheel: Path) -> dict[str, bytes]:
    """Files of a wheel, but for the list of them with their sums."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("RECORD")]
        return {name: archive.read(name) for name in names}


def check_metadata(wheel: Path) -> str:
    """Check the metadata that package indexes and installers read."""
    (name,) = (n for n in contents(wheel) if n.endswith(".dist-info/METADATA"))
    data = email.parser.BytesParser().parsebytes(contents(wheel)[name])
    require(data["Requires-Python"] == PROJECT["requires-python"], "Requires-Python")
    require(data["Description-Content-Type"] == "text/markdown", "Description-Content-Type")
    require(data["License-Expression"] == PROJECT["license"], "License-Expression")
    require(data.get_all("Classifier") == PROJECT["classifiers"], "Classifier")
    require("Typing :: Typed" in PROJECT["classifiers"], "py.typed is shipped: say so")
    extras = set(PROJECT["optional-dependencies"])
    require(set(data.get_all("Provides-Extra") or ()) == extras, "Provides-Extra")
    smokes = {path.stem for path in (HERE / "smoke").glob("*.py")} - {"decide"}
    covered = smokes | {*RESOLVED, *PART_OF_DEV}
    require(covered == extras, f"in pyproject.toml or here, not in both: {covered ^ extras}")
    return f"version {data['Version']}, {len(extras)} extras, Python {data['Requires-Python']}"


def require(truth: bool, otherwise: str) -> None:
    """Fail with a sentence."""
    if not truth:
        raise Failure(otherwise)


# Installing ---------------------------------------------------------------------------------


def environment(folder: Path, python: str = sys.executable) -> Path:
    """An empty environment's interpreter."""
    call(python, "-m", "venv", "--without-pip", folder)
    return folder / "bin" / "python"


def pip(python: Path, *arguments: str) -> str:
    """Install into another environment with our pip."""
    return call(
        sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-compile",
        "-c", ROOT / "constraints.txt", *arguments,
    )  # fmt: skip


def wanted(wheel: Path, extra: str = "") -> str:
    """The wheel and an extra as a requirement for pip."""
    return f"fairshield{f'[{extra}]' if extra else ''} @ {wheel.as_uri()}"


def check_extra(extra: str, wheel: Path, scratch: Path) -> str:
    """Install with one extra and nothing else, and use it."""
    folder = scratch / f"extra-{extra}"
    python = environment(folder)
    pip(python, wanted(wheel, extra))
    # In a folder of its own, so that the installed package is imported, not the checkout.
    work = folder / "work"
    work.mkdir()
    printed = call(python, *STRICT, HERE / "smoke" / f"{extra}.py", cwd=work)
    shutil.rmtree(folder)
    return printed.strip()


def check_plain(wheel: Path, scratch: Path) -> str:
    """Install without extras: numpy and nothing else, which loads a policy and decides."""
    folder = scratch / "plain"
    maker, python = environment(folder / "maker"), environment(folder / "user")
    pip(maker, wanted(wheel, "synthesis"))
    pip(python, wanted(wheel))
    work = folder / "work"
    work.mkdir()
    call(maker, *STRICT, HERE / "smoke" / "synthesis.py", cwd=work)
    printed = call(python, *STRICT, HERE / "smoke" / "decide.py", cwd=work)
    (site,) = (folder / "user").glob("lib/python*/site-packages")
    found = {path.name.partition("-")[0] for path in site.glob("*.dist-info")}
    require(found == {"fairshield", "numpy"}, f"a plain install brings {sorted(found)}")
    shutil.rmtree(folder)
    return printed.strip()


def check_resolved(extra: str, wheel: Path, scratch: Path) -> str:
    """Resolve the dependencies of a heavy extra, and install none."""
    python = environment(scratch / f"resolved-{extra}")
    try:
        pip(python, "--dry-run", wanted(wheel, extra))
    except Failure as failure:
        if extra == "cuda" and "No matching distribution found for cupy" in str(failure):
            return "skipped: this index has no CuPy"
        raise
    return "resolves"


def check_python(minor: int, wheel: Path, scratch: Path) -> str:
    """Check synthesis, decisions and laws with one version of Python."""
    found = interpreter(minor)
    if found is None:
        return "skipped: not on PATH, nor among pyenv's"
    python = environment(scratch / f"python-3.{minor}", found)
    testing = () if found == sys.executable else ("pytest", "hypothesis")
    pip(python, wanted(wheel, "synthesis"), *testing)
    work = scratch / f"work-3.{minor}"
    work.mkdir()
    printed = call(python, *STRICT, HERE / "smoke" / "synthesis.py", cwd=work)
    if found == sys.executable:
        return f"{printed.strip()}; make test does the rest"
    tests = call(
        python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", *LAWS, cwd=ROOT
    )
    return f"{printed.strip()}; {tests.strip().splitlines()[-1]}"


def interpreter(minor: int) -> str | None:
    """The path of a version of Python; ``None`` if it is not installed."""
    if sys.version_info[:2] == (3, minor):
        return sys.executable
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted(root.glob(f"versions/3.{minor}.*/bin/python"))
    for candidate in [*map(str, installed), shutil.which(f"python3.{minor}")]:
        if candidate and runs(candidate, minor):
            return candidate
    return None


def runs(candidate: str, minor: int) -> bool:
    """Whether an interpreter has the version of its name; pyenv has names that do not run."""
    script = f"import sys, venv; sys.exit(sys.version_info[:2] != (3, {minor}))"
    tried = subprocess.run([candidate, "-c", script], capture_output=True, check=False)
    return tried.returncode == 0


def timed(name: str, check: Callable[[], str]) -> bool:
    """Run a check, and print its result and time."""
    began = time.perf_counter()
    try:
        result, passed = check(), True
    except Failure as failure:
        result, passed = f"FAILED: {failure}", False
    say(f"{name:20} {time.perf_counter() - began:5.1f} s  {result}")
    return passed


def main() -> int:
    """Run all checks; 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", help="those whose name contains this")
    only = parser.parse_args().only or ""
    with tempfile.TemporaryDirectory(prefix="fairshield-packages-") as name:
        scratch = Path(name)
        sdist, wheel = build(scratch / "dist")
        checks: dict[str, Callable[[], str]] = {
            "contents": lambda: check_contents(sdist, wheel, scratch),
            "metadata": lambda: check_metadata(wheel),
            "plain": lambda: check_plain(wheel, scratch),
        }
        for minor in PYTHONS:
            checks[f"Python 3.{minor}"] = lambda minor=minor: check_python(minor, wheel, scratch)
        for extra in PROJECT["optional-dependencies"]:
            if extra in RESOLVED:
                checks[extra] = lambda extra=extra: check_resolved(extra, wheel, scratch)
            elif extra not in PART_OF_DEV:
                checks[extra] = lambda extra=extra: check_extra(extra, wheel, scratch)
        chosen = {name: check for name, check in checks.items() if only in name}
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            passed = list(pool.map(timed, chosen, chosen.values()))
    say(f"{sum(passed)} of {len(passed)} passed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
