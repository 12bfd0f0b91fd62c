"""What is loaded when: deciding must work where no compiler is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "numba", "llvmlite", "click", "rich", "matplotlib", "pandas", "polars", "pyarrow", "httpx",
    "msgspec", "starlette", "uvicorn", "apsw", "asyncpg", "jinja2", "prometheus_client",
)  # fmt: skip


def loaded_after(code: str) -> set[str]:
    """Which heavy modules a fresh interpreter has loaded after running ``code``."""
    report = f"{code}\nimport sys\nprint(*(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", report], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


SOLVE = """
import fairshield as fs
inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
"""

DECIDE = f"""{SOLVE}
policy = fs.synthesize(fs.DemographicParity("0.25"), inputs, horizon=4, backend="reference")
shield = fs.Shield(policy)
decision = shield.decide("a", proposed=True, cost=0.3)
assert decision.reason
fs.step(policy, fs.State.initial(policy), "b", proposed=False)
shield.record(shield.advise("b", proposed=True), final=True)
"""


@pytest.mark.parametrize(
    "code", ["import fairshield", SOLVE, DECIDE], ids=["import", "model", "decide"]
)
def test_deciding_loads_nothing_heavy(code: str) -> None:
    assert loaded_after(code) == set()


def test_synthesis_loads_the_compiler_and_nothing_else() -> None:
    code = f'{SOLVE}fs.synthesize(fs.DemographicParity("0.25"), inputs, horizon=4)'
    assert loaded_after(code) == {"numba", "llvmlite"}


def test_every_public_name_is_there() -> None:
    import fairshield  # noqa: PLC0415

    expected = {
        "ArtifactError", "BoundedRates", "Counts", "Decision", "DemographicParity",
        "DisparateImpact", "EqualOpportunity", "FairshieldError", "InfeasibleError", "InputModel",
        "InputSchedule", "InvalidValueError", "MemoryLimitError", "OutcomePendingError", "Policy",
        "PredictiveEquality", "Property", "ShareParity", "Shield", "State",
        "UnexpectedOutcomeError", "UnknownGroupError", "Why", "WindowOverError", "step",
        "synthesize", "__version__",
    }  # fmt: skip
    assert expected <= set(dir(fairshield))


def test_periodic_shields_are_loaded_when_asked_for() -> None:
    code = """
import sys, fairshield as fs
assert "fairshield.periodic" not in sys.modules
assert "PerpetualShield" in dir(fs)
assert issubclass(fs.PerpetualShield, fs.Run)
try:
    fs.NoSuchShield
except AttributeError as error:
    assert "NoSuchShield" in str(error)
else:
    raise AssertionError
"""
    assert not loaded_after(code)


def test_a_client_is_loaded_when_asked_for_and_brings_no_service_along() -> None:
    code = """
import sys, fairshield as fs
assert {"Client", "AsyncClient"} < set(dir(fs))
assert "fairshield.client" not in sys.modules
fs.Client("http://127.0.0.1:8000").close()
own = {name for name in sys.modules if name.startswith("fairshield.service")}
assert not own, own
"""
    assert loaded_after(code) - {"click", "rich"} == {"httpx", "msgspec"}  # httpx has a command


@pytest.mark.parametrize("missing", ["httpx", "msgspec"])
def test_without_its_extra_a_client_says_what_to_install(missing: str) -> None:
    code = f"""
import sys; sys.modules[{missing!r}] = None
import fairshield as fs
for name in ("Client", "AsyncClient"):
    try:
        getattr(fs, name)
    except ImportError as error:
        assert isinstance(error, fs.FairshieldError)
        said = "fairshield.Client needs {missing}: pip install 'fairshield[client]'"
        assert str(error) == said, error
    else:
        raise AssertionError
"""
    loaded_after(code)
