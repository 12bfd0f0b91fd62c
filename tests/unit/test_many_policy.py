"""Policies of three groups or more: files, limits, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import with_decisions

import fairshield as fs
from fairshield.base.errors import FairshieldError
from fairshield.periodic import Dynamic
from fairshield.policy.many import ManyLayout, StateDecisions
from fairshield.policy.many.layout import largest_horizon
from fairshield.records import Record
from fairshield.runtime.evaluate import evaluate
from fairshield.synthesis import cost_to_go
from fairshield.synthesis.exact import many

THREE = {"a": 0.2, "b": 0.3, "c": 0.5}
INPUTS = fs.InputModel.agnostic(THREE)
PARITY = fs.DemographicParity("0.3")


@pytest.fixture(scope="module")
def policy() -> fs.Policy:
    made = fs.synthesize(PARITY, INPUTS, horizon=6)
    assert isinstance(made.decisions, StateDecisions)
    return made


def refused(make: Callable[[], Any], *parts: str, error: type[Exception] = FairshieldError) -> None:
    with pytest.raises(error) as raised:
        make()
    assert all(part in str(raised.value) for part in parts), str(raised.value)


# What it is ---------------------------------------------------------------------------------


def test_it_is_an_exact_policy_that_names_its_groups(policy: fs.Policy) -> None:
    assert policy.method == "exact"
    assert "6 decisions and 3 groups" in policy.reason
    assert "groups a, b and c" in str(policy)
    assert policy.nbytes == 3 * policy.decisions.n_states
    assert fs.Shield(policy).guaranteed


@pytest.mark.parametrize("prop", [fs.DemographicParity("1/2"), fs.EqualOpportunity("1/2")])
def test_a_saved_policy_decides_alike(prop: fs.Property, tmp_path: Path) -> None:
    inputs = fs.InputSchedule([(INPUTS, 2), (fs.InputModel.agnostic(THREE, cost=0.5), 2)])
    start = fs.Counts({"a": (4, 2), "b": (5, 2), "c": (3, 1)})
    made = fs.synthesize(prop, inputs, horizon=4, start=start, checkpoints=(4,), spread=2.0)
    made.save(tmp_path / "many.shield")
    loaded = fs.Policy.load(tmp_path / "many.shield")
    assert isinstance(made.decisions, StateDecisions)
    assert isinstance(loaded.decisions, StateDecisions)
    assert np.array_equal(loaded.decisions.codes, made.decisions.codes)
    assert np.array_equal(loaded.ranks, made.ranks)
    assert (loaded.prop, loaded.start, loaded.groups) == (prop, start, ("a", "b", "c"))
    assert (loaded.expected_cost, loaded.least_cost) == (made.expected_cost, made.least_cost)
    assert (loaded.reason, loaded.spread, str(loaded)) == (made.reason, 2.0, str(made))
    assert fs.verify(loaded).holds


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda codes: codes[:, :-1], "codes has shape"),
        (lambda codes: codes[:2], "codes has shape"),
        (lambda codes: codes.astype(np.int64), "codes has type int64"),
    ],
)
def test_codes_that_do_not_fit_are_refused(
    policy: fs.Policy, tmp_path: Path, change: Callable[[Any], Any], part: str
) -> None:
    broken = with_decisions(policy, codes=change(policy.decisions.codes).copy())
    refused(broken.check, part, "synthesise the policy again", error=fs.ArtifactError)
    if broken.decisions.codes.dtype != np.int64:
        broken.save(tmp_path / "broken.shield")
        refused(lambda: fs.Policy.load(tmp_path / "broken.shield"), part, error=fs.ArtifactError)


def test_ranks_of_two_groups_do_not_fit_three(policy: fs.Policy) -> None:
    refused(with_decisions(policy, ranks=policy.ranks[:, :2]).check, "ranks has shape (1, 2, 2, 1)")


def test_a_window_is_resumed_from_its_counters(policy: fs.Policy) -> None:
    shield = fs.Shield(policy)
    for group in "abca":
        shield.decide(group, proposed=group == "a")
    again = fs.Shield(policy, counts=shield.counts)
    assert (again.decided, again.counts) == (4, shield.counts)
    for group in "cb":
        ours, theirs = (s.decide(group, proposed=True) for s in (shield, again))
        assert ours == theirs
    assert PARITY.holds(shield.counts)


def test_advice_that_is_not_taken_is_counted(policy: fs.Policy) -> None:
    shield = fs.Shield(policy)
    final = shield.record(shield.advise("c", proposed=True), final=False)
    assert final.seen_before == (0, 0, 0, 0, 0, 0)
    assert shield.counts == fs.Counts({"a": (0, 0), "b": (0, 0), "c": (1, 0)})


def test_an_explanation_speaks_of_costs(policy: fs.Policy) -> None:
    shield = fs.Shield(policy)
    for _ in range(3):
        shield.decide("c", proposed=False)
    decision = shield.decide("a", proposed=True)
    found = fs.explain(policy, decision)
    after = policy.start.plus(decision.seen_before).after("a", accepted=decision.accepted)
    ours = found.if_accepted if decision.accepted else found.if_rejected
    assert ours == cost_to_go(policy, after, 4)
    assert "group a" in str(found)


def test_an_audit_decides_three_groups_again(policy: fs.Policy) -> None:
    shield, log = fs.Shield(policy), []
    for line, group in enumerate("abccba", start=1):
        made = shield.decide(group, proposed=group == "b")
        fields = {"group": group, "proposed": made.proposed, "accepted": made.accepted}
        log.append(Record(line, fields))
    report = fs.audit(PARITY, log, policy=policy)
    assert report.holds
    assert report.difference is None
    assert report.windows[0].counts == shield.counts
    assert fs.audit(PARITY, log).windows[0].counts == shield.counts
    fields = log[-1].fields
    log[-1] = Record(6, {**fields, "accepted": not fields["accepted"]})
    assert fs.audit(PARITY, log, policy=policy).difference is not None


def test_an_audit_refuses_what_compares_two_groups() -> None:
    log = [Record(i, {"group": g, "accepted": 1}) for i, g in enumerate("abc", 1)]
    one_sided = fs.DisparateImpact("0.8", two_sided=False)
    refused(lambda: fs.audit(one_sided, log), "compares two groups, got 3")


def test_another_model_is_evaluated_over_the_same_groups(policy: fs.Policy) -> None:
    other = fs.InputModel.agnostic({"a": 0.0, "b": 0.0, "c": 1.0})
    assert evaluate(policy, other).expected_cost <= policy.expected_cost
    refused(
        lambda: evaluate(policy, fs.InputModel.agnostic({"a": 0.5, "b": 0.5})), "('a', 'b', 'c')"
    )


# Limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_groups", "most"), [(3, 91), (4, 45), (5, 30), (6, 23)])
def test_the_longest_window_is_the_longest(n_groups: int, most: int) -> None:
    assert largest_horizon(n_groups, False, many.MOST_STATES) == most
    assert ManyLayout(most, n_groups, False).n_states <= many.MOST_STATES
    assert ManyLayout(most + 1, n_groups, False).n_states > many.MOST_STATES


@pytest.mark.parametrize("prop", [PARITY, fs.EqualOpportunity("0.3")])
def test_too_many_states_are_refused_with_the_longest_window(prop: fs.Property) -> None:
    most = largest_horizon(3, prop.relevant_outcome is not None, many.MOST_STATES)
    refused(
        lambda: fs.synthesize(prop, INPUTS, horizon=1000),
        "1000 decisions and 3 groups", "states", f"at most {most} decisions", "method='exact'",
        error=fs.MemoryLimitError,
    )  # fmt: skip


def test_no_number_of_states_is_too_large_to_be_told() -> None:
    crowd = fs.InputModel.agnostic(dict.fromkeys(range(100), 0.01))
    for method in ("auto", "exact"):
        refused(
            lambda method=method: fs.synthesize(PARITY, crowd, horizon=10**9, method=method),
            "100 groups has 1.27e+1425 states", "at most 4 decisions",
            error=fs.MemoryLimitError,
        )  # fmt: skip


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_too_little_memory_is_told_before_anything_is_allocated(
    method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    have = 10_000_000
    monkeypatch.setattr(many, "available_bytes", lambda: have)
    refused(
        lambda: fs.synthesize(PARITY, INPUTS, horizon=60, method=method),
        "60 decisions and 3 groups", "9.09e+7 states", "10 MB are available", "at most 26 dec",
        error=fs.MemoryLimitError,
    )  # fmt: skip
    needs = [many.needed_bytes(ManyLayout(t, 3, False), 1, record=True) for t in (26, 27)]
    assert needs[0] <= have < needs[1]


def test_the_reference_goes_as_far_as_is_reasonable() -> None:
    refused(
        lambda: fs.synthesize(PARITY, INPUTS, horizon=30, backend="reference"),
        "200000 states", "1947792", "use 'cpu'",
    )  # fmt: skip


# Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"method": "long"}, "certificates for two groups: use 'exact'"),
        ({"endgame": 3}, "leave it out"),
        ({"further": 2}, "further plans periods"),
        ({"terminal": fs.DemographicParity("0.9")}, "terminal is for two groups"),
        ({"best_effort": True}, "loosen the bound or set min_support"),
        ({"backend": "cuda"}, "use 'cpu'"),
        ({"method": "short"}, "method must be 'auto', 'exact' or 'long'"),
    ],
)
def test_what_is_for_two_groups_says_so(options: dict[str, Any], part: str) -> None:
    refused(lambda: fs.synthesize(PARITY, INPUTS, horizon=4, **options), part)


def test_an_infeasible_start_is_told_with_all_groups() -> None:
    start = fs.Counts({"a": (9, 0), "b": (9, 9), "c": (5, 2)})
    refused(
        lambda: fs.synthesize(PARITY, INPUTS, horizon=3, start=start),
        "0 accepted of 9 in a, 9 accepted of 9 in b and 2 accepted of 5 in c",
        error=fs.InfeasibleError,
    )


def test_periods_are_for_two_groups() -> None:
    refused(lambda: Dynamic(PARITY, INPUTS, 10), "periods are for two groups", "a, b and c")


def test_a_property_that_compares_two_groups_is_refused() -> None:
    one_sided = fs.DisparateImpact("0.8", two_sided=False)
    refused(lambda: fs.synthesize(one_sided, INPUTS, horizon=4), "two_sided=True")


def test_counters_of_a_missing_group_are_refused() -> None:
    start = fs.Counts({"a": (1, 1), "b": (1, 1)})
    refused(lambda: fs.synthesize(PARITY, INPUTS, horizon=4, start=start), "group 'c'")


def test_unknown_groups_are_refused_by_name(policy: fs.Policy) -> None:
    shield = fs.Shield(policy)
    refused(lambda: shield.decide("d", proposed=True), "'d'", "'a', 'b', 'c'")
    refused(lambda: shield.decide_many(["a", "d"], [True, True]), "'d'", "'a', 'b', 'c'")
    assert shield.decided == 0


def test_a_fresh_process_loads_a_policy_of_three_groups(tmp_path: Path) -> None:
    inputs = fs.InputModel.agnostic({"a": 0.4, "b": 0.3, "c": 0.3})
    made = fs.synthesize(fs.DemographicParity("0.5"), inputs, horizon=4)
    made.save(tmp_path / "three.shield")
    code = "import fairshield as fs; print(fs.Policy.load('three.shield'))"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == str(made)
