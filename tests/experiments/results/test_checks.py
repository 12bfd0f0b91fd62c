"""Every published number is looked for, judged by one rule, and accounted for."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairshield_experiments.results.accounts import NO_REASON, account, left_over
from fairshield_experiments.results.checks import unexplained
from fairshield_experiments.results.departed import Departed
from fairshield_experiments.results.names import ENVIRONMENTS, LEARNERS, METRICS
from fairshield_experiments.results.parts import DEPARTED, Check, Product
from fairshield_experiments.results.published import FILES, Published, published
from fairshield_experiments.results.statistics import Estimate
from fairshield_experiments.results.trainings import Spread, p_value
from fairshield_experiments.results.verdicts import verdict

LOSS = Published(
    item="table-utility", measure="loss", value=1.9, digit=0.01, unit="%", source="fig:x"
)


def everything() -> tuple[Published, ...]:
    return tuple(number for item in FILES for number in published(item))


@pytest.fixture(scope="module")
def checks(products: dict[str, Product]) -> tuple[Check, ...]:
    return tuple(check for product in products.values() for check in product.checks)


def test_a_published_number_is_named_once_per_source() -> None:
    names = [(n.item, n.source, n.what) for n in everything()]
    assert len(names) == len(set(names))


def test_the_paper_has_as_many_numbers_as_its_tables_have_cells() -> None:
    assert len(published("table-datasets")) == len(ENVIRONMENTS) * 8
    assert len(published("table-performance")) == len(ENVIRONMENTS) * len(LEARNERS) * len(METRICS)
    assert len(published("table-utility")) == len(ENVIRONMENTS) * 2 * (5 + 3)
    assert len(published("table-fairness")) == 4 * 6 + 4
    assert len(published("table-periodic")) == 2 * 3 * 2 + 2


def test_shares_of_a_published_row_add_up_to_one() -> None:
    found = {(n.environment, n.measure): n.value for n in published("table-datasets")}
    for name in ENVIRONMENTS:
        assert found[name, "y0"] + found[name, "y1"] == pytest.approx(100)
        assert found[name, "ga"] + found[name, "gb"] == pytest.approx(100)


@pytest.mark.slow
def test_every_published_number_is_checked(checks: tuple[Check, ...]) -> None:
    made = {(c.item, c.source, c.what) for c in checks if c.verdict != "not run"}
    assert made == {(n.item, n.source, n.what) for n in everything()}


def test_what_does_not_agree_is_accounted_for(checks: tuple[Check, ...]) -> None:
    assert not unexplained(checks)
    assert any(check.verdict == "differs" for check in checks)
    assert not any(check.account for check in checks if check.verdict == "agrees")


def test_numbers_that_depend_on_a_convention_are_checked_with_both(
    checks: tuple[Check, ...],
) -> None:
    for item in ("table-fairness", "table-utility", "table-periodic"):
        both = [
            sorted(c.undefined for c in checks if (c.item, c.source, c.what) == key)
            for key in {(c.item, c.source, c.what) for c in checks if c.item == item}
        ]
        assert all(pair == ["bias-0", "rate-0"] for pair in both)


@given(st.floats(0, 0.5), st.floats(-1, 1))
def test_ours_agrees_within_two_errors_and_half_a_digit(error: float, part: float) -> None:
    ours = LOSS.value + part * (2 * error + LOSS.digit / 2)
    assert verdict(LOSS, Estimate(ours, error, 30)) == "agrees"


@pytest.mark.parametrize(
    ("unit", "value", "ours", "expected"),
    [
        ("%", 1.9, 3.89, "close"),
        ("%", 1.9, 3.92, "differs"),
        ("%", 60.0, 66.0, "close"),
        ("%", 60.0, 66.1, "differs"),
        ("s", 1.9, 2.05, "close"),
        ("s", 1.9, 2.3, "differs"),
        ("", 0.14, 0.145, "agrees"),
        ("", -0.2, -0.21, "close"),
    ],
)
def test_close_is_a_tenth_or_two_percentage_points(
    unit: str, value: float, ours: float, expected: str
) -> None:
    number = replace(LOSS, unit=unit, value=value)
    assert verdict(number, Estimate(ours, 0.0 if ours != 0.145 else 0.01, 30)) == expected


def test_an_unknown_error_counts_as_none() -> None:
    assert verdict(LOSS, Estimate(1.9, math.nan, 1)) == "agrees"
    assert verdict(LOSS, Estimate(4.0, math.nan, 1)) == "differs"
    assert verdict(LOSS, None) == "not run"


def test_where_nothing_is_known_the_account_says_so() -> None:
    number = replace(LOSS, item="table-datasets")
    assert account(number, Estimate(9.0, 0.0, 1)) == NO_REASON


def test_an_account_gives_the_other_ways_of_measuring_and_what_they_give() -> None:
    words = account(LOSS, Estimate(9.0, 0.1, 30), [("Measured otherwise", Estimate(1.9, 0.1, 30))])
    assert words.startswith("Measured otherwise we get 1.900 ± 0.100 %, which agrees.")
    assert "Which people were drawn does not explain" in words
    near = account(LOSS, Estimate(2.2, 0.14, 30))
    assert "the draw of people may explain it" in near


def test_an_account_names_the_departures_that_can_change_the_number() -> None:
    numbers = {(n.shield, n.prop, n.measure): n for n in published("table-periodic")}
    static = numbers["static-bounded", "demographic-parity", "fairness satisfied"]
    words = account(static, Estimate(77.0, 1.4, 420))
    assert "departed from the text here: missing-entries (an entry" in words
    assert "; prices (values come from a table made at cost ¼" in words
    assert "person-twice" not in words
    unshielded = numbers["none", "equal-opportunity", "fairness satisfied"]
    words = account(unshielded, Estimate(10.0, 1.0, 420))
    assert "here: population (each run" in words
    assert "prices" not in words


FAR, NEAR = Estimate(9.0, 0.1, 30), Estimate(2.0, 0.1, 30)


def test_a_departure_that_comes_nearest_alone_explains_a_difference() -> None:
    departed = Departed(NEAR, {"prices": Estimate(6.0, 0.1, 30), "population": FAR})
    assert departed.switch(LOSS, FAR) == "prices"
    words = account(LOSS, FAR, departed=departed)
    assert (
        "With all departures of the published runs we get 2.000 ± 0.100 %, which agrees." in words
    )
    assert "The departure prices alone gives 6.000 ± 0.100 %." in words
    assert "What is left" not in words


def test_departures_that_explain_nothing_alone_do_so_together() -> None:
    alone = {"prices": Estimate(8.0, 0.1, 30)}
    assert Departed(NEAR, alone).switch(LOSS, FAR) == "several"
    assert Departed(Estimate(8.5, 0.1, 30), alone).switch(LOSS, FAR) == ""
    assert Departed(NEAR, {}).switch(LOSS, FAR) == ""


def test_what_departures_leave_has_a_chance() -> None:
    left = Departed(Estimate(4.9, 1.0, 30), {})
    words = account(LOSS, FAR, departed=left)
    # (3 - 0.005) / (1.0 √2) = 2.1 standard errors
    assert "What is left is 2.1 standard errors" in words
    assert "chance alone makes as much in 3.4 % of cases" in words
    wide = account(LOSS, FAR, departed=left, spread=Spread((6.0, 9.0, 12.0)))
    # (3 - 0.005) / (3.0 √2) = 0.71
    assert "What is left is 0.7 standard errors" in wide
    assert "training included: chance alone makes as much in 48 % of cases" in wide
    assert "our standard error includes that" in wide
    assert "our standard error leaves that out" in words
    assert left_over(LOSS, left) in words
    assert "no known chance" in left_over(LOSS, Departed(Estimate(9.0, math.nan, 1), {}))
    assert left_over(LOSS, Departed(NEAR, {})) == left_over(LOSS, Departed(None, {})) == ""


def test_single_models_have_a_chance_too() -> None:
    number = next(n for n in published("table-performance") if n.measure == "accuracy")
    words = account(number, Estimate(number.value + 1, 0.5, 1))
    assert "covers the choice of test people only" in words
    assert "The difference is 1.3 standard errors" in words
    spread = Spread((number.value, number.value + 0.5, number.value + 1))
    assert "covers the training as well" in account(
        number, Estimate(number.value + 1, 0.5, 1), spread=spread
    )


def test_checks_have_both_readings(checks: tuple[Check, ...]) -> None:
    for check in checks:
        simulated = check.item in DEPARTED
        assert (check.departed_verdict is not None) == simulated
        if not simulated:
            assert check.as_published == check.verdict
        assert not (check.switch and check.verdict == "agrees")
        assert bool(check.left) == (check.departed_verdict == "differs")
    assert any(check.left for check in checks)
    assert {check.switch for check in checks} >= {"prices", "person-twice"}


def test_accounts_say_what_several_trainings_make_of_a_number() -> None:
    ours, wide, narrow = Estimate(9.0, 0.1, 30), Spread((1.0, 9.0, 4.0)), Spread((9.0, 9.1, 8.9))
    for spread in (wide, narrow):
        assert f"chance: p = {p_value(spread.chance(LOSS))}." in account(LOSS, ours, spread=spread)
    assert wide.chance(LOSS) > narrow.chance(LOSS)


def test_less_time_and_memory_are_better_and_more_differs() -> None:
    numbers = [n for n in published("table-resources") if n.value]
    assert {verdict(n, Estimate(n.value / 10, math.nan, 1)) for n in numbers} == {"better"}
    assert {verdict(n, Estimate(n.value * 10, math.nan, 1)) for n in numbers} == {"differs"}


def test_text_and_table_of_the_paper_are_told_apart() -> None:
    (number,) = [
        n for n in published("table-fairness") if n.value == 44 and n.source == "sec:experiments"
    ]
    words = account(number, Estimate(41.0, 0.5, 4200))
    assert "as 44 % (sec:experiments) and as 42.46 % (tab:fair_distr)" in words
    assert "ours is nearer to 42.46 %" in words


def test_thirty_runs_do_not_fit_the_published_shares() -> None:
    printed = [n for n in published("table-fairness") if n.digit == 0.01 and n.unit == "%"]
    said = {n.value for n in printed if "50 runs fit" in account(n, Estimate(90.0, 1.0, 10))}
    assert said == {42.46, 65.06}
