"""The demonstration tells the truth, and its picture can be drawn whatever it shows."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairshield as fs
from fairshield.analysis.simulate import Simulation, simulate
from fairshield.base.counts import GroupCount
from fairshield.base.errors import MissingExtraError
from fairshield.cli.tools.demo import NUMBERS, PICTURE, DemoReport, run_demo
from fairshield.policy.artifact import digest_of
from fairshield.reports.plots import Comparison, DrawnWindows, plot_running_bias, signed_gap

WINDOWS = 300
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def calls() -> list[tuple[str, float]]:
    return []


@pytest.fixture(scope="module")
def report(tmp_path_factory: Any, calls: list[tuple[str, float]]) -> DemoReport:
    out = tmp_path_factory.mktemp("demo") / "not" / "yet"
    return run_demo(out, windows=WINDOWS, progress=lambda *call: calls.append(call))


# The demo -----------------------------------------------------------------------------------


def test_no_window_is_unfair_with_a_shield_and_many_are_without(report: DemoReport) -> None:
    assert len(report.scenarios) == 3
    for scenario in report.scenarios:
        assert scenario.unfair_with == 0
        assert scenario.unfair_without > WINDOWS / 4


def test_a_right_model_costs_what_the_policy_expected(report: DemoReport) -> None:
    for scenario in report.scenarios:
        if scenario.name != "lending, wrong model":
            assert abs(scenario.mean_cost - scenario.expected_cost) < 5 * scenario.cost_error


def test_a_wrong_model_costs_money_and_nothing_else(report: DemoReport) -> None:
    right, wrong, _ = report.scenarios
    assert wrong.sha256 == right.sha256
    assert wrong.mean_cost > right.expected_cost + 5 * wrong.cost_error
    assert wrong.unfair_with == 0


def test_the_tenths_add_up_to_everybody_overruled(report: DemoReport) -> None:
    for scenario in report.scenarios:
        people = scenario.overruled_share * WINDOWS * scenario.horizon
        assert len(scenario.overruled_by_tenth) == 10
        assert sum(scenario.overruled_by_tenth) == pytest.approx(people, abs=1e-6)


def test_the_policies_it_reports_are_the_policies_it_saved(report: DemoReport) -> None:
    for scenario in report.scenarios:
        path = report.out / scenario.artifact
        policy = fs.Policy.load(path)
        assert policy.expected_cost == scenario.expected_cost
        assert policy.horizon == scenario.horizon
        assert str(policy.prop) in scenario.guarantee
        assert digest_of(path) == scenario.sha256
        assert path.stat().st_size == scenario.artifact_bytes


def test_numbers_and_picture_are_written(report: DemoReport) -> None:
    written = json.loads((report.out / NUMBERS).read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(report.to_dict()))
    assert (report.out / PICTURE) == report.picture
    assert report.picture.read_bytes().startswith(PNG)
    assert report.picture.stat().st_size < 300_000


def test_every_row_of_the_table_has_a_cell_per_scenario(report: DemoReport) -> None:
    rows = report.rows()
    assert {len(row) for row in rows} == {len(report.columns())} == {4}
    assert all(cell for row in rows for cell in row)
    assert ("unfair windows with the shield", *[f"0 of {WINDOWS}"] * 3) in rows


@pytest.mark.usefixtures("report")
def test_progress_only_rises_and_ends_at_one(calls: list[tuple[str, float]]) -> None:
    shares = [share for _, share in calls]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] == 1.0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(tmp_path: Path) -> None:
    def numbers(seed: int) -> list[dict[str, Any]]:
        scenarios = run_demo(tmp_path, windows=20, seed=seed).scenarios
        return [asdict(s) | {"synthesis_seconds": 0} for s in scenarios]

    first = numbers(1)
    assert numbers(1) == first
    assert numbers(2) != first


COMPILED = """
import sys
from pathlib import Path
import numpy as np
from fairshield.cli.tools import demo

def variants():
    kernels = [
        value
        for name, module in list(sys.modules.items()) if name.startswith("fairshield")
        for value in vars(module).values() if hasattr(value, "signatures")
    ]
    return sum(len(kernel.signatures) for kernel in kernels)

todo = demo.scenarios(0)
demo._compile(todo)
warm = variants()
for scenario in todo:
    demo._run(scenario, Path(sys.argv[1]), 2, np.random.default_rng(0))
print(warm, variants())
"""


def test_everything_is_compiled_before_a_synthesis_is_timed(tmp_path: Path) -> None:
    """In a fresh process, where no other test has compiled anything."""
    command = [sys.executable, "-c", COMPILED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    warm, after = map(int, done.stdout.split())
    assert warm == after > 0


@pytest.mark.parametrize(("windows", "seed"), [(0, 0), (-1, 0), (10, -1)])
def test_impossible_numbers_are_refused_before_anything_is_written(
    tmp_path: Path, windows: int, seed: int
) -> None:
    with pytest.raises(fs.InvalidValueError, match="must be at least"):
        run_demo(tmp_path / "out", windows=windows, seed=seed)
    assert not (tmp_path / "out").exists()


def test_without_matplotlib_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fairshield\[plot\]'"):
        run_demo(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_empty_team_must_reject_everybody() -> None:
    """Why the demo grows a team that exists: the other language may never arrive."""
    inputs = fs.InputModel.agnostic({"A": 0.6, "B": 0.4})
    policy = fs.synthesize(fs.ShareParity("0.1"), inputs, horizon=12)
    assert policy.expected_cost == pytest.approx(6.0)  # half of twelve are proposed
    shield = fs.Shield(policy)
    assert not any(shield.decide(g, proposed=True).accepted for g in "ABABABABABAB")


# What the picture shows ---------------------------------------------------------------------


@st.composite
def counters(draw: st.DrawFn) -> list[int]:
    seen = [draw(st.integers(0, 50)) for _ in range(2)]
    return [x for n in seen for x in (n, draw(st.integers(0, n)))]


SYMMETRIC = [
    fs.DemographicParity("0.1"),
    fs.EqualOpportunity("0.2", min_support=3),
    fs.ShareParity("0.1"),
    fs.DisparateImpact("0.8"),
]


@given(st.sampled_from(SYMMETRIC), counters())
def test_the_signed_gap_is_the_bias_with_the_sign_of_the_leading_group(
    prop: fs.Property, at: list[int]
) -> None:
    n_a, k_a, n_b, k_b = at
    gap = float(signed_gap(prop, np.array(at)))
    assert abs(gap) == float(prop.bias(GroupCount(n_a, k_a), GroupCount(n_b, k_b)))
    assert gap == -float(signed_gap(prop, np.array([n_b, k_b, n_a, k_a])))
    if gap:
        lead = k_a - k_b if isinstance(prop, fs.ShareParity) else k_a * n_b - k_b * n_a
        assert (gap > 0) == (lead > 0)


def simulated(prop: fs.Property, start: fs.Counts | None = None) -> tuple[fs.Policy, Simulation]:
    inputs = fs.InputModel.agnostic({"a": 0.3, "b": 0.7})
    policy = fs.synthesize(prop, inputs, horizon=12, start=start)
    return policy, simulate(policy, n_windows=9, rng=np.random.default_rng(5), keep=6)


@pytest.mark.parametrize("prop", [fs.DemographicParity("0.3"), fs.EqualOpportunity("0.3")])
@pytest.mark.parametrize("start", [None, fs.Counts({"a": (4, 2), "b": (6, 3)})])
def test_kept_counters_tell_the_same_story_as_the_bias(
    prop: fs.Property, start: fs.Counts | None
) -> None:
    policy, sim = simulated(prop, start)
    first = policy.start.numbers()
    for path, end in (
        (sim.counters, sim.bias),
        (sim.counters_unshielded, sim.bias_unshielded),
    ):
        assert path.shape == (6, 13, 4)
        assert (path[:, 0] == first).all()
        assert set(np.unique(np.diff(path, axis=1))) <= {0, 1}
        assert (np.abs(signed_gap(prop, path[:, -1])) == end[:6]).all()
    # A shield changes who is accepted, never who is seen.
    seen = [0, 2]
    assert (sim.counters[..., seen] == sim.counters_unshielded[..., seen]).all()


def test_an_accepted_count_differs_from_the_unshielded_one_where_somebody_was_overruled() -> None:
    _, sim = simulated(fs.DemographicParity("0.1"))
    with_shield, without = (
        np.diff(c[..., [1, 3]].sum(axis=2), axis=1) for c in (sim.counters, sim.counters_unshielded)
    )
    assert ((with_shield != without).sum(axis=1) == sim.overruled[:6]).all()
    assert sim.overruled[:6].any()


@pytest.mark.parametrize(
    "prop",
    [
        fs.DemographicParity("1"),  # nothing is unfair
        fs.DemographicParity("0", min_support=3),  # the band is a line
        fs.BoundedRates("0.2", "0.7"),  # its bias has no sign
        fs.PredictiveEquality("0.4"),
    ],
    ids=str,
)
def test_every_property_can_be_drawn(prop: fs.Property, tmp_path: Path) -> None:
    policy, sim = simulated(prop)
    before, after = (
        DrawnWindows(prop=prop, counters=c, unfair=0, windows=9)
        for c in (sim.counters_unshielded, sim.counters)
    )
    row = Comparison(
        title=str(prop),
        groups=policy.groups,
        before=before,
        after=after,
        overruled_at=sim.overruled_at.sum(axis=1),
    )
    plot_running_bias([row], tmp_path / "picture.png", dpi=50)
    assert (tmp_path / "picture.png").read_bytes().startswith(PNG)
