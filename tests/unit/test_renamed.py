"""Names and paths of earlier versions: they work, they warn, and the documentation lists them."""

import importlib
import inspect
import re
import subprocess
import sys
from dataclasses import dataclass
from inspect import isclass, isfunction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import fairshield as fs
from fairshield._renamed import MODULES, NAMES
from fairshield.base.renamed import Renamed
from fairshield.wire import messages

SOURCE = Path(fs.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "renamed.md"


@pytest.mark.parametrize("name", NAMES)
def test_an_old_name_is_the_new_thing_and_warns(name: str) -> None:
    module, new = NAMES[name]
    *path, last = name.split(".")
    here = importlib.import_module(".".join(["fairshield", *path]))
    with pytest.warns(DeprecationWarning, match=rf"fairshield\.{name} is called .*{new}") as caught:
        old = getattr(here, last)
    assert caught[0].filename == __file__  # elsewhere Python would not show it
    assert old is getattr(importlib.import_module(module), new)
    assert name not in fs.__all__


@pytest.mark.parametrize("module", ["fairshield", "fairshield.periodic", "fairshield.mlflow"])
def test_a_name_that_never_was_is_not_found(module: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'Shelf'"):
        _ = importlib.import_module(module).Shelf


@pytest.mark.parametrize("old", MODULES)
def test_an_old_path_is_the_new_module_and_warns(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is {MODULES[old]}"):
        module = importlib.import_module(old)
    assert module is sys.modules[MODULES[old]]
    assert module.__spec__ is not None
    assert module.__spec__.name == MODULES[old]


@pytest.mark.parametrize("name", messages.RENAMED)
def test_an_old_name_of_a_message_is_the_new_message_and_warns(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"messages.{name} is called {name}Message"):
        old = getattr(messages, name)
    assert old is getattr(messages, f"{name}Message")
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")


def test_an_old_path_does_not_hide_the_function_of_its_name() -> None:
    for name in ("simulate", "evaluate", "explain", "pareto", "verify"):
        sys.modules.pop(f"fairshield.{name}", None)
        with pytest.warns(DeprecationWarning, match=name):
            importlib.import_module(f"fairshield.{name}")
        assert isfunction(getattr(fs, name))


def test_a_class_below_an_old_path_is_the_same_class() -> None:
    code = (
        "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n"
        "from fairshield.verify.claim import Claim as old\n"
        "from fairshield.analysis.verify.claim import Claim as new\n"
        "assert old is new"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Attributes ---------------------------------------------------------------------------------


def renamed_attributes() -> dict[tuple[str, str], tuple[type, Renamed]]:
    """Every attribute that has an old name, by the name of its class and the old one."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        if "Renamed(" not in file.read_text() or file.name == "renamed.py":
            continue
        path = ".".join(["fairshield", *file.relative_to(SOURCE).with_suffix("").parts])
        for cls in vars(importlib.import_module(path)).values():
            if isclass(cls) and cls.__module__ == path:
                found |= {
                    (cls.__name__, name): (cls, value)
                    for name, value in vars(cls).items()
                    if isinstance(value, Renamed)
                }
    return found


ATTRIBUTES = renamed_attributes()


class Tuple(NamedTuple):
    paid: float


Tuple.cost_paid = Renamed("paid")  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Slotted:
    paid: float

    cost_paid = Renamed("paid")


class Below(Slotted):
    pass


@pytest.mark.parametrize("kind", [Tuple, Slotted, Below])
def test_an_old_attribute_reads_the_new_one(kind: type) -> None:
    report = kind(2.0)
    with pytest.warns(DeprecationWarning, match=rf"{kind.__name__}\.cost_paid is called paid"):
        assert report.cost_paid == 2.0
    assert isinstance(inspect.getattr_static(kind, "cost_paid"), Renamed)


@pytest.mark.parametrize(("owner", "old"), ATTRIBUTES)
def test_what_an_old_attribute_names_exists(owner: str, old: str) -> None:
    cls, renamed = ATTRIBUTES[owner, old]
    if not renamed.new.isidentifier():
        return
    annotated = {name for one in cls.__mro__ for name in getattr(one, "__annotations__", {})}
    assert renamed.new in annotated or not isinstance(getattr(cls, renamed.new), Renamed)
    assert old not in annotated


def old_values(item: Any) -> dict[str, Any]:
    """What the old names of an object say; each of them warns."""
    said = {}
    for (_, old), (cls, _) in ATTRIBUTES.items():
        if isinstance(item, cls):
            with pytest.warns(DeprecationWarning, match=rf"{type(item).__name__}\.{old} is called"):
                said[old] = getattr(item, old)
    return said


INPUTS = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
PARITY = fs.DemographicParity("0.5")


def test_what_a_run_and_its_reports_were_asked_before() -> None:
    run = fs.DynamicShield(PARITY, INPUTS, period=2)
    decisions = [run.decide(group, proposed=True) for group in "aab"]
    assert old_values(run) == {"period": 2, "shield": run.current, "at_once": 1}
    assert old_values(decisions[-1]) == {"period": 1}
    assert old_values(run.state) == {"decided": 1}
    report = run.guarantee
    assert (report.fair, report.unfair, report.exempt) == (0, 0, 1)  # nobody of b had come
    ends = {"fair_ends": 1, "exempt_ends": 1, "untold_ends": 0, "worst_bias": report.largest_bias}
    assert old_values(report) == {"period": 2, **ends}
    assert old_values(run.state.history) == ends
    explanation = run.explain(decisions[-1])
    assert old_values(explanation) == {"explanation": explanation}


def test_what_policies_and_their_figures_were_asked_before() -> None:
    policy = fs.synthesize(PARITY, INPUTS, horizon=4)
    told = old_values(policy)
    assert (told["rows"], told["reader"]) == (policy.decisions.rows, policy.decisions)  # type: ignore[attr-defined]
    assert old_values(PARITY) == {"difference_of_rates": True}
    assert old_values(fs.ShareParity("0.5")) == {"difference_of_rates": False}
    found = fs.evaluate(policy)
    assert old_values(found)["cost"] == found.expected_cost
    runs = fs.simulate(policy, n_windows=5, rng=np.random.default_rng(0))
    told = old_values(runs)
    assert told["costs"] is runs.paid
    assert (told["mean_cost"], told["cost_error"]) == (runs.mean_paid, runs.paid_error)
    assert told["unfair_windows"] == runs.n_unfair == 0


def test_a_record_takes_a_threshold_instead_of_a_rule() -> None:
    record = fs.records.Record(2, {"score": "655.5"})
    with pytest.warns(DeprecationWarning, match=r"ScoreRule\(threshold=640\)"):
        found = record.proposing(640)
    assert found == record.proposing(fs.records.ScoreRule(threshold=640))


def test_what_audits_and_monitors_were_asked_before() -> None:
    log = [{"group": g, "proposed": True, "accepted": g == "a", "cost": 3.0} for g in "abab"]
    report = fs.audit(PARITY, log, horizon=4)
    assert old_values(report) == {"cost_paid": 6.0}
    assert old_values(report.windows[0]) == old_values(report.violations[0]) == {"decided": 4}
    assert old_values(report.groups[0]) == {"people": 2}
    assert report.to_dict()["cost_paid"] == 6.0
    monitor = fs.Monitor(PARITY, shadow=fs.synthesize(PARITY, INPUTS, horizon=4))
    for line in log:
        monitor.observe(line["group"], accepted=line["accepted"], proposed=True, cost=3.0)  # type: ignore[arg-type]
    seen = monitor.report()
    told = {"decided": 4, "cost_paid": 6.0, "worst_bias": 1.0, "worst_measured": 1.0}
    assert old_values(seen) == told
    assert old_values(seen.shadow) == {"cost_paid": 0.0, "unfair_without": 1}


def test_everything_exported_exists_and_is_not_a_module() -> None:
    for name in fs.__all__:
        assert type(getattr(fs, name)).__name__ != "module"
    assert sorted(fs.__all__) == fs.__all__


def test_the_page_lists_every_old_name_and_path() -> None:
    page = PAGE.read_text()
    old = [name.removeprefix("fairshield.") for name in (*NAMES, *MODULES)]
    assert [name for name in old if f"`{name}`" not in page] == []


def test_the_page_lists_every_old_attribute() -> None:
    section = PAGE.read_text().split("## Attributes")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `?([^|`]+)`? \|$", section, re.MULTILINE)
    assert {(owner, old): new for owner, old, new in rows} == {
        key: renamed.new for key, (_, renamed) in ATTRIBUTES.items()
    }
    assert len(rows) == len(ATTRIBUTES)
