"""What every way of solving must have in common.

A new backend subclasses :class:`BackendConformance` and adds a ``solve`` fixture; it writes no
test.  The compiled backend is run as it is, and with its tuning constants shrunk, so that threads,
wavefronts and halos do their work at horizons where the reference can still follow.  So is the
CUDA backend, where there is a device; it does not need the compiled one beside it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import (
    GROUPS,
    NotThatMany,
    NotThatManyQualified,
    Spec,
    code_at,
    contested_specs,
    finely_priced_models,
    labelled_properties,
    mendable_properties,
    plain_properties,
    plans,
    positions,
    specs,
)

import fairshield as fs
from fairshield.synthesis.cuda import device
from fairshield.synthesis.cuda import solver as cuda
from fairshield.synthesis.problem import Problem

try:
    from fairshield.synthesis.exact import solver
except ImportError:  # without numba the CUDA backend is compared with the reference alone
    solver = None  # type: ignore[assignment]

compiled = pytest.mark.skipif(solver is None, reason="needs numba")
on_a_device = pytest.mark.skipif(device.missing() is not None, reason=str(device.missing()))

Solve = Callable[[Spec], fs.Policy]

# The fixture is a constant, and a suite is there to be inherited.
shared_fixture = settings(
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.differing_executors,
    ]
)


def outcome_of(solve: Solve, spec: Spec) -> fs.Policy | None:
    """The policy, or ``None`` if there is none."""
    try:
        return solve(spec)
    except fs.InfeasibleError:
        return None


def table_of(policy: fs.Policy) -> dict[Any, Any]:
    """Feasibility and both codes of every state."""
    reader, table = policy.decisions, {}
    for s in positions(policy.horizon, policy.labelled):
        codes = [code_at(reader, *s, g) for g in (0, 1)] if s.t < policy.horizon else []
        table[s] = (reader.feasible(*s), *codes)
    return table


def solved_as_by_the_reference(solve: Solve, spec: Spec) -> None:
    """The same value, and the same decisions in every state, or both infeasible."""
    expected = outcome_of(lambda s: s.synthesize(backend="reference"), spec)
    policy = outcome_of(solve, spec)
    assert (policy is None) == (expected is None)
    if policy is not None and expected is not None:
        cost = pytest.approx(expected.expected_cost, rel=1e-12, abs=1e-25)
        assert policy.expected_cost == cost
        assert table_of(policy) == table_of(expected)


class BackendConformance:
    """Laws of a backend; ``solve`` maps a specification to its policy."""

    @pytest.fixture
    def solve(self) -> Solve:
        raise NotImplementedError

    @shared_fixture
    @given(spec=specs(horizons=(1, 6), max_levels=3))
    def test_short_windows_are_solved_as_by_the_reference(self, solve: Solve, spec: Spec) -> None:
        solved_as_by_the_reference(solve, spec)

    @settings(shared_fixture, max_examples=examples(20))
    @given(
        spec=specs(plain_properties, horizons=(9, 14), max_levels=3)
        | specs(labelled_properties, horizons=(7, 9), max_levels=2)
        | contested_specs()
    )
    def test_longer_windows_are_solved_as_by_the_reference(self, solve: Solve, spec: Spec) -> None:
        solved_as_by_the_reference(solve, spec)

    @shared_fixture
    @given(spec=specs(mendable_properties, horizons=(3, 7), checkpointed=True))
    def test_checkpoints_are_solved_as_by_the_reference(self, solve: Solve, spec: Spec) -> None:
        solved_as_by_the_reference(solve, spec)

    @shared_fixture
    @given(
        spec=specs(mendable_properties, horizons=(3, 7), checkpointed=True),
        ceiling=st.sampled_from([0.0, 0.1234, 0.4321, 0.9876, 2.3456, 9.8765]),
    )
    def test_ceilings_are_kept_as_by_the_reference(
        self, solve: Solve, spec: Spec, ceiling: float
    ) -> None:
        solved_as_by_the_reference(solve, spec._replace(ceiling=ceiling))

    @shared_fixture
    @given(spec=plans())
    def test_plans_beyond_the_horizon_are_solved_as_by_the_reference(
        self, solve: Solve, spec: Spec
    ) -> None:
        solved_as_by_the_reference(solve, spec)

    @settings(shared_fixture, max_examples=examples(30))
    @given(spec=specs(horizons=(1, 5), models=finely_priced_models()))
    def test_many_cost_levels_are_solved_as_by_the_reference(
        self, solve: Solve, spec: Spec
    ) -> None:
        solved_as_by_the_reference(solve, spec)

    @pytest.mark.parametrize("prop", [NotThatMany(1), NotThatMany(2), NotThatManyQualified(1)])
    @pytest.mark.parametrize(("horizon", "point"), [(4, 2), (5, 3), (6, 3)])
    def test_rows_with_holes_are_solved_as_by_the_reference(
        self, solve: Solve, prop: fs.Property, horizon: int, point: int, even: fs.InputModel
    ) -> None:
        spec = Spec(prop, even, horizon, fs.Counts.zero(("a", "b")), (point,))
        solved_as_by_the_reference(solve, spec)

    def test_a_spec_that_no_shield_can_meet_is_infeasible(
        self, solve: Solve, even: fs.InputModel
    ) -> None:
        # One person of each group: rates are 0 or 1, so neither lies between 0.2 and 0.4.
        prop = fs.BoundedRates("0.2", "0.4", min_support=0)
        zero = fs.Counts.zero(("a", "b"))
        with pytest.raises(fs.InfeasibleError, match=r"rates in \[1/5, 2/5\].*over 2 decisions"):
            solve(Spec(prop, even, 2, zero, ()))

    @shared_fixture
    @given(spec=specs(horizons=(1, 4)))
    def test_inputs_are_not_written_to(self, solve: Solve, spec: Spec) -> None:
        before = copy.deepcopy((spec.prop.to_dict(), spec.inputs.to_dict(), dict(spec.start)))
        outcome_of(solve, spec)
        assert (spec.prop.to_dict(), spec.inputs.to_dict(), dict(spec.start)) == before

    @settings(shared_fixture, max_examples=examples(30))
    @given(spec=specs(horizons=(1, 6)))
    def test_the_same_spec_gives_the_same_file(
        self, solve: Solve, spec: Spec, tmp_path: Path
    ) -> None:
        policy = outcome_of(solve, spec)
        if policy is not None:
            digests = {p.save(tmp_path / "x.shield") for p in (policy, solve(spec))}
            assert len(digests) == 1


class TestReference(BackendConformance):
    @pytest.fixture
    def solve(self) -> Solve:
        return lambda spec: spec.synthesize(backend="reference")


@compiled
class TestCpu(BackendConformance):
    @pytest.fixture
    def solve(self) -> Solve:
        return lambda spec: spec.synthesize(backend="cpu", threads=1)


@pytest.fixture(params=[1, 2, 3])
def layers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Threads are used however small the problem, and a pass has this many layers."""
    monkeypatch.setattr(solver, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(solver, "_layers_per_pass", lambda layout, workers: request.param)
    return int(request.param)


@compiled
class TestCpuInPasses(BackendConformance):
    """Several layers to a pass, and passes cut short by checkpoints."""

    @pytest.fixture
    def solve(self, layers: int) -> Solve:
        return lambda spec: spec.synthesize(backend="cpu", threads=1)


@pytest.fixture(params=[2, 3])
def threads(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def split_passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many workers each pass had."""
    seen: list[int] = []
    split = solver._Induction._split

    def counting(self: Any, t: int, layers: int) -> Any:
        bounds = split(self, t, layers)
        seen.append(len(bounds))
        return bounds

    monkeypatch.setattr(solver._Induction, "_split", counting)
    return seen


@compiled
@pytest.mark.usefixtures("layers")
class TestCpuThreads:
    """Workers with halos: the horizons are long enough for passes to be split."""

    @settings(shared_fixture, max_examples=examples(6))
    @given(data=st.data())
    def test_threads_change_nothing_but_the_time(
        self, data: st.DataObject, threads: int, split_passes: list[int], tmp_path: Path
    ) -> None:
        spec = data.draw(specs(horizons=(26, 32), max_levels=2))
        alone = outcome_of(lambda s: s.synthesize(threads=1), spec)
        split_passes.clear()
        together = outcome_of(lambda s: s.synthesize(threads=threads), spec)
        assert (alone is None) == (together is None)
        if alone is not None and together is not None:
            files = [tmp_path / "alone.shield", tmp_path / "together.shield"]
            assert alone.save(files[0]) == together.save(files[1])
            assert files[0].read_bytes() == files[1].read_bytes()

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize(
        ("prop", "horizon"),
        [
            (fs.DisparateImpact("11/12", min_support=1, undefined="rate-0"), 38),
            (fs.DemographicParity("0.1"), 30),
            (NotThatMany(3), 24),
        ],
    )
    def test_uneven_shares_change_nothing(
        self, prop: fs.Property, horizon: int, seed: int, threads: int,
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    ) -> None:  # fmt: skip
        # Shares follow the clock; rows with dead ends lie near the edges of some of them.
        probs = [[[0.2], [0.4]], [[0.0], [0.4]]]
        spec = Spec(prop, fs.InputModel(GROUPS, [1.0], probs), horizon, fs.Counts.zero(GROUPS), ())
        alone = spec.synthesize(threads=1).save(tmp_path / "alone.shield")
        ticks = np.cumsum(np.random.default_rng(seed).exponential(size=10_000)).tolist()
        clock = SimpleNamespace(perf_counter=iter(ticks).__next__)
        monkeypatch.setattr(solver, "time", clock)
        assert spec.synthesize(threads=threads).save(tmp_path / "together.shield") == alone

    def test_passes_really_are_split(
        self, threads: int, layers: int, split_passes: list[int], even: fs.InputModel
    ) -> None:
        fs.synthesize(fs.DemographicParity("0.1"), even, horizon=40, threads=threads)
        assert max(split_passes) == threads
        assert min(split_passes) == 1

    @pytest.mark.parametrize("prop", [fs.DemographicParity("0.1"), fs.EqualOpportunity("0.2")])
    def test_split_passes_agree_with_the_reference(
        self, prop: fs.Property, threads: int, layers: int, even: fs.InputModel
    ) -> None:
        horizon = 4 * threads * layers + 1 if not prop.relevant_outcome else 4 * threads + 1
        horizon = min(horizon, 16 if prop.relevant_outcome else 26)
        expected = fs.synthesize(prop, even, horizon=horizon, backend="reference")
        policy = fs.synthesize(prop, even, horizon=horizon, threads=threads)
        assert policy.expected_cost == pytest.approx(expected.expected_cost, rel=1e-12)
        assert table_of(policy) == table_of(expected)


# CUDA ---------------------------------------------------------------------------------------


@on_a_device
class TestCuda(BackendConformance):
    @pytest.fixture
    def solve(self) -> Solve:
        return lambda spec: spec.synthesize(backend="cuda")

    def test_ceilings_are_kept_as_by_the_reference(  # type: ignore[override]
        self, solve: Solve, even: fs.InputModel
    ) -> None:
        zero = fs.Counts.zero(GROUPS)
        with pytest.raises(fs.InvalidValueError, match=r"keeps no ceiling.*1\.5.*use 'cpu'"):
            solve(Spec(fs.DemographicParity("0.1"), even, 4, zero, (2,), ceiling=1.5))


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of few layers, and no room for the irregular rows of all of them."""
    monkeypatch.setattr(cuda, "_STATES_AT_ONCE", 40)
    monkeypatch.setattr(cuda, "CODES_AT_ONCE", 1)
    monkeypatch.setattr(cuda, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(cuda, "_PIECE", 64)


@on_a_device
@pytest.mark.usefixtures("small_batches")
class TestCudaInBatches(TestCuda):
    """Several batches, and codes moved out of the way between them."""


def arrays_are_those_of_the_cpu(problem: Problem, record: int | None) -> None:
    """The same table array by array, and the same value but for rounding."""
    expected = solver.solve(problem, record=record, threads=1, progress=None)
    found = cuda.solve(problem, record=record, progress=None)
    assert found.value == pytest.approx(expected.value, rel=1e-12, abs=1e-25)
    assert (found.rows is None) == (expected.rows is None)
    if found.rows is not None and expected.rows is not None:
        for name in ("cuts", "dense_rows", "dense_starts", "dense_codes"):
            ours, theirs = getattr(found.rows, name), getattr(expected.rows, name)
            assert ours.dtype == theirs.dtype, name
            np.testing.assert_array_equal(ours, theirs, err_msg=name)


longer_specs = (
    specs(plain_properties, horizons=(20, 45), max_levels=3)
    | specs(labelled_properties, horizons=(8, 16), max_levels=3)
    | specs(horizons=(5, 14), models=finely_priced_models())
)


@on_a_device
@compiled
class TestCudaBesideTheCpu:
    """The policy is the same file, whichever backend made it."""

    @settings(max_examples=examples(60))
    @given(spec=longer_specs)
    def test_policies_are_the_same_arrays(self, spec: Spec) -> None:
        arrays_are_those_of_the_cpu(spec.problem(), spec.horizon)

    @settings(max_examples=examples(40))
    @given(spec=longer_specs, data=st.data())
    def test_the_beginning_of_a_plan_is_the_same_arrays(
        self, spec: Spec, data: st.DataObject
    ) -> None:
        arrays_are_those_of_the_cpu(spec.problem(), data.draw(st.integers(0, spec.horizon - 1)))

    @settings(max_examples=examples(60))
    @given(spec=longer_specs)
    def test_values_without_decisions_are_the_same(self, spec: Spec) -> None:
        arrays_are_those_of_the_cpu(spec.problem(), None)

    @pytest.mark.parametrize("horizon", [1, 2, 3, 4, 31, 32, 33, 64, 97, 130])
    def test_no_horizon_is_special(self, horizon: int, even: fs.InputModel) -> None:
        zero = fs.Counts.zero(GROUPS)
        problem = Spec(fs.DemographicParity("0.1"), even, horizon, zero, ()).problem()
        arrays_are_those_of_the_cpu(problem, horizon)
        arrays_are_those_of_the_cpu(problem, None)

    def test_spread_costs_are_the_same(self, even: fs.InputModel) -> None:
        options = {"horizon": 60, "spread": 3.0, "checkpoints": (25,)}
        ours, theirs = (
            fs.synthesize(fs.DemographicParity("0.1"), even, backend=b, **options)
            for b in ("cuda", "cpu")
        )
        assert ours.least_cost == pytest.approx(theirs.least_cost, rel=1e-12)
        np.testing.assert_array_equal(ours.decisions.rows.cuts, theirs.decisions.rows.cuts)


@compiled
@pytest.mark.parametrize(
    ("prop", "favoured", "horizon"),
    [
        (fs.DemographicParity("0.1"), 0.5, 30),
        (fs.DisparateImpact("0.7"), 0.8, 34),
        (fs.DisparateImpact("0.7"), 0.2, 34),
        (fs.EqualOpportunity("0.3"), 0.5, 14),
    ],
)
def test_a_price_nobody_has_changes_no_decision(
    prop: fs.Property, favoured: float, horizon: int
) -> None:
    # One cost level is stored as cuts where a row is regular, two are stored state by state.
    # Irregular rows are rare: it takes a longer window to meet all their forms.
    probs = np.array([[1 - favoured, favoured], [favoured, 1 - favoured]])[..., None] / 2
    half = np.full((2, 2, 1), 0.5)
    one = fs.InputModel(("a", "b"), [1.0], probs, half)
    finer = np.concatenate((probs, 0.0 * probs), axis=2)
    two = fs.InputModel(("a", "b"), [1.0, 2.0], finer, np.repeat(half, 2, axis=2))
    by_row, by_state = (fs.synthesize(prop, m, horizon=horizon).decisions for m in (one, two))
    for s in positions(horizon - 1, labelled=bool(prop.relevant_outcome)):
        assert by_row.feasible(*s) == by_state.feasible(*s)
        assert code_at(by_row, *s, 0) == np.sign(code_at(by_state, *s, 0))
        assert code_at(by_row, *s, 1) == np.sign(code_at(by_state, *s, 1))


@compiled
def test_without_decisions_only_the_value_is_kept(even: fs.InputModel) -> None:
    spec = Spec(fs.DemographicParity("0.1"), even, 12, fs.Counts.zero(("a", "b")), (6,))
    problem = spec.problem()
    bare = solver.solve(problem, record=None, threads=1, progress=None)
    full = solver.solve(problem, record=problem.layout.horizon, threads=1, progress=None)
    assert bare.rows is None
    assert bare.value == full.value
    assert np.isfinite(bare.value)
