"""Without numba policies are loaded and decide the same; what needs it says what to install."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from strategies import THREE

import fairshield as fs
from fairshield.periodic import StaticFair

WITHOUT = """
import sys
sys.modules["numba"] = None  # as if it were not installed
"""
SHARES = {"a": 0.4, "b": 0.6}
LEVELS = fs.InputModel.from_table(
    {(g, r, c): 1 / 16 for g in "ab" for r in (False, True) for c in (0.5, 1.0, 1.5, 2.0)}
)
STARTED = fs.Counts({"a": (3, 0), "b": (3, 3)})


def policies() -> dict[str, Any]:
    """One of each kind whose decisions are a table."""
    agnostic = fs.InputModel.agnostic(SHARES)
    three = fs.InputModel.agnostic(dict.fromkeys(THREE, 1 / 3))
    parity, opportunity = fs.DemographicParity("0.2"), fs.EqualOpportunity("0.25")
    return {
        "plain": fs.synthesize(parity, agnostic, horizon=9),
        "levels": fs.synthesize(parity, LEVELS, horizon=9, spread=2.0),
        "labelled": fs.synthesize(opportunity, agnostic, horizon=7),
        "many": fs.synthesize(fs.DemographicParity("0.5"), three, horizon=8),
        "lost": fs.synthesize(parity, agnostic, horizon=4, start=STARTED, best_effort=True),
        "periodic": StaticFair(parity, agnostic, 6),
    }


def asked(policy: Any, rng: np.random.Generator, n: int) -> dict[str, list[Any]]:
    return {
        "groups": rng.choice(policy.groups, n).tolist(),
        "proposed": (rng.random(n) < 0.5).tolist(),
        "costs": rng.choice([0.0, 0.4, 1.0, 1.7, 9.0], n).tolist(),
        "outcomes": (rng.random(n) < 0.5).tolist(),
    }


def told(policy: Any, columns: dict[str, list[Any]]) -> list[Any]:
    stream = fs.Run(policy, unseen="follow")
    answers = stream.decide_many(**columns, reasons=True)
    arrays = [column.tolist() for column in answers[:5]]
    again = fs.Run(policy).decide_many(**columns)
    assert again.accepted.tolist() == arrays[0]
    return [*arrays, list(answers.reasons or ()), [list(c) for c in stream.counts.values()]]


ANSWER = (
    WITHOUT
    + """
import json
from pathlib import Path
import fairshield as fs
from fairshield.periodic import load_policy
questions = json.loads(Path("questions.json").read_text())
answers = {}
for name, columns in questions.items():
    policy = load_policy(f"{name}.shield")
    stream = fs.Run(policy, unseen="follow")
    given = stream.decide_many(**columns, reasons=True)
    whole = fs.Run(policy).decide_many(**columns)
    assert whole.accepted.tolist() == given.accepted.tolist()
    arrays = [column.tolist() for column in given[:5]]
    answers[name] = [*arrays, list(given.reasons), [list(c) for c in stream.counts.values()]]
Path("answers.json").write_text(json.dumps(answers))
assert "llvmlite" not in sys.modules
"""
)


def run(code: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_decisions_are_the_same_without_a_compiler(tmp_path: Path) -> None:
    made, rng = policies(), np.random.default_rng(0)
    questions = {name: asked(policy, rng, 60) for name, policy in made.items()}
    for name, policy in made.items():
        policy.save(tmp_path / f"{name}.shield")
    (tmp_path / "questions.json").write_text(json.dumps(questions))
    run(ANSWER, tmp_path)
    answers = json.loads((tmp_path / "answers.json").read_text())
    for name, policy in made.items():
        assert answers[name] == json.loads(json.dumps(told(policy, questions[name]))), name


NEEDS = {
    "synthesize": "fs.synthesize(policy.prop, policy.inputs, horizon=4)",
    "synthesize long": "fs.synthesize(policy.prop, policy.inputs, horizon=4, method='long')",
    "verify": "fs.verify(policy)",
    "simulate": "from fairshield.analysis.simulate import simulate",
    "evaluate": "from fairshield.runtime.evaluate import evaluate",
    "explain": "fs.explain(policy, fs.Shield(policy).decide('a', proposed=True))",
    "pareto": "fs.pareto(fs.DemographicParity, policy.inputs, bounds=['0.1'], horizons=[4])",
    "perpetual": "fs.PerpetualShield(policy.prop, policy.inputs, period=10)",
    "many": "fs.synthesize(policy.prop, fs.InputModel.agnostic({'a': 0.4, 'b': 0.3, 'c': 0.3}), "
    "horizon=3)",
    "long": "fs.Shield(long).decide('a', proposed=True)",
    "long many": "fs.Run(long).decide_many(['a'], [True])",
}


REFUSED = f"""{WITHOUT}
import fairshield as fs
policy, long = fs.Policy.load("table.shield"), fs.Policy.load("long.shield")
def said(code):
    try:
        exec(code)
    except ImportError as error:
        assert isinstance(error, fs.FairshieldError)
        return str(error)
    return "it did without"
for name, code in {NEEDS}.items():
    assert "pip install 'fairshield[synthesis]'" in said(code), (name, said(code))
"""


def test_what_needs_the_compiler_says_what_to_install(tmp_path: Path) -> None:
    agnostic = fs.InputModel.agnostic(SHARES)
    prop = fs.DemographicParity("0.2")
    fs.synthesize(prop, agnostic, horizon=9).save(tmp_path / "table.shield")
    fs.synthesize(prop, agnostic, horizon=90, method="long").save(tmp_path / "long.shield")
    run(REFUSED, tmp_path)


def test_modules_that_may_do_without_the_compiler_load_without_it(tmp_path: Path) -> None:
    quiet = "import warnings; warnings.simplefilter('ignore')"  # of libraries, not ours
    modules = (
        "periodic.run",
        "adapters.frames",
        "monitor",
        "periodic.windows",
        "sklearn",
        "mlflow",
        "client",
    )
    loads = "".join(
        f"\nimport fairshield.{module}" for module in (*modules, "reports.plots", "fairlearn")
    )
    run(f"{WITHOUT}{quiet}{loads}", tmp_path)
