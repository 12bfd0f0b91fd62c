"""Items are made of whatever rows there are."""

from __future__ import annotations

from dataclasses import replace

import frames
import numpy as np
import pandas as pd
import pytest

from fairshield_experiments.results.items import ITEMS, make_all
from fairshield_experiments.results.parts import Item, Product, Results
from fairshield_experiments.results.published import FILES
from fairshield_experiments.results.tables import claims, models, more, paper, trainings

pytestmark = pytest.mark.slow

EXPERIMENTS = {
    *("datasets", "models", "finite", "periodic", "paths", "resources"),
    *("inputs", "guaranteed", "support", "baselines", "trainings", "as-published", "ablation"),
}
OF_RUNS = [item for item in ITEMS if {"finite", "periodic"} & set(item.needs)]
items = pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.name)
of_runs = pytest.mark.parametrize("item", OF_RUNS, ids=lambda item: item.name)


def well_formed(product: Product) -> bool:
    return all(
        len(row) == len(table.columns) and all(isinstance(cell, str) for cell in row)
        for table in product.tables
        for row in table.rows
    )


def test_items_and_their_tables_have_names_of_their_own(products: dict[str, Product]) -> None:
    names = [item.name for item in ITEMS]
    tables = [table.name for product in products.values() for table in product.tables]
    assert len(set(names)) == len(names)
    assert len(set(tables)) == len(tables)
    assert all("." not in name and "/" not in name for name in (*names, *tables))
    assert {need for item in ITEMS for need in item.needs} <= EXPERIMENTS


@items
def test_complete_results_give_complete_tables(item: Item, products: dict[str, Product]) -> None:
    product = products[item.name]
    assert well_formed(product)
    assert all(table.rows for table in product.tables)
    assert all(table.markdown() and table.latex() and table.html() for table in product.tables)
    assert bool(product.checks) == (item.name in FILES)
    assert item.published or not product.checks


@of_runs
def test_the_same_rows_in_another_order_give_the_same(item: Item, small: Results) -> None:
    shuffled = small.runs.sample(frac=1, random_state=1).reset_index(drop=True)
    again = item.make(replace(small, runs=shuffled))
    first = item.make(small)
    assert again.tables == first.tables
    assert [c.verdict for c in again.checks] == [c.verdict for c in first.checks]


@items
def test_without_rows_nothing_is_run_and_nothing_breaks(item: Item) -> None:
    product = item.make(frames.empty())
    assert well_formed(product)
    assert {check.verdict for check in product.checks} <= {"not run"}


@items
def test_frames_with_columns_only_are_as_good_as_empty(item: Item, small: Results) -> None:
    bare = replace(
        small,
        datasets=small.datasets.iloc[:0],
        metrics=small.metrics.iloc[:0],
        runs=small.runs.iloc[:0],
        departed=small.departed.iloc[:0],
        resources=small.resources.iloc[:0],
    )
    assert {check.verdict for check in item.make(bare).checks} <= {"not run"}


@of_runs
def test_a_learner_that_failed_somewhere_costs_its_numbers_only(item: Item, small: Results) -> None:
    def survives(frame: pd.DataFrame) -> pd.DataFrame:
        return frame[~((frame["environment"] == "bank-age") & (frame["learner"] == "ERM"))]

    partial = replace(small, runs=survives(small.runs), metrics=survives(small.metrics))
    product = item.make(partial)
    assert well_formed(product)
    lost = [check for check in product.checks if check.verdict == "not run"]
    assert not any("Adult (race)" in check.what for check in lost)
    assert all("Bank (age), PR" not in check.what for check in lost)


@pytest.mark.parametrize(
    ("name", "shield"),
    [
        ("table-fairness", "finite-horizon"),
        ("table-utility", "inactive"),
        ("table-periodic", "inactive"),
        ("table-claims", "static-fair"),
        ("table-guaranteed", "inactive"),
        ("table-guaranteed", "exact"),
        ("table-inputs", "finite-horizon"),
        ("table-cross-fitted", "finite-horizon"),
        ("table-trainings", "finite-horizon"),
        ("table-support", "finite-horizon"),
        ("table-baselines", "finite-horizon"),
        ("table-baselines", "threshold-optimizer"),
    ],
)
def test_the_runs_of_a_shield_may_be_missing(name: str, shield: str, small: Results) -> None:
    item = next(item for item in ITEMS if item.name == name)
    rest = small.runs[small.runs["shield"] != shield]
    assert well_formed(item.make(replace(small, runs=rest)))


@of_runs
def test_lost_rows_and_groups_without_positives_break_nothing(item: Item, small: Results) -> None:
    some = small.runs.sample(frac=0.5, random_state=3)
    runs = some.assign(
        bias=some["bias"].where(some["run"] > 0),
        bias_unshielded=np.nan,
        n_a=0,
        k_a=0,
        correct_unshielded=np.where(some["run"] == 1, 0, 50),
    )
    metrics = small.metrics.assign(
        value=small.metrics["value"].where(small.metrics["metric"] != "eqopp")
    )
    assert well_formed(item.make(replace(small, runs=runs, metrics=metrics)))


@of_runs
def test_a_single_run_has_numbers_without_errors(item: Item, small: Results) -> None:
    single = replace(small, runs=small.runs[small.runs["run"] == 0])
    product = item.make(single)
    assert well_formed(product)
    assert all(check.error is None for check in product.checks)


def test_pooled_numbers_say_what_they_lack(complete: Results) -> None:
    item = next(item for item in ITEMS if item.name == "table-fairness")
    runs = complete.runs
    failed = (runs["environment"] == "bank-age") & (runs["learner"] == "PR")
    product = item.make(replace(complete, runs=runs[~failed]))
    sentence = "Nothing was run for 1 of 35 pairs of environment and learner."
    assert sentence in product.tables[0].note
    assert all(sentence in check.account for check in product.checks if check.account)


def test_the_answer_names_the_input_model_that_loses_least(small: Results) -> None:
    runs = small.runs
    lucky = (runs["inputs"] == "confidence") & (runs["shield"] == "finite-horizon")
    better = runs.assign(correct=np.where(lucky, runs["correct_unshielded"], runs["correct"]))
    table = more.inputs(replace(small, runs=better)).tables[0]
    assert table.note.count(": confidence, 0.00 ± 0.00 %") == 4
    assert "within two standard errors" not in table.note


def test_methods_are_compared_on_the_same_windows_only(small: Results) -> None:
    runs = small.runs
    lost = (runs["shield"] == "threshold-optimizer") & (runs["run"] == 0)
    table = more.baselines(replace(small, runs=runs[~lost])).tables[0]
    assert len({row[4] for row in table.rows if row[2] != "all"}) == 1


def test_claims_are_read_off_the_runs(small: Results) -> None:
    runs = small.runs
    shielded = runs["shield"] == "finite-horizon"
    fair = replace(small, runs=runs.assign(fair=runs["fair"] | shielded))

    def verdicts(results: Results, words: str) -> set[str]:
        rows = claims.claims(results).tables[0].rows
        return {row[-1] for row in rows if row[0].startswith(words)}

    always = "With FinHzn every run is fair"
    assert verdicts(fair, always) == {"yes"}
    assert verdicts(replace(small, runs=runs.assign(fair=False)), always) == {"no"}
    assert verdicts(frames.empty(), always) == {"–"}
    cheaper = runs.assign(correct=runs["correct_unshielded"] - (runs["bound"] == 0.05))
    assert verdicts(replace(small, runs=cheaper), "A tighter bound") == {"yes"}


def test_learners_of_ones_own_are_shown_and_not_pooled(small: Results) -> None:
    mine = small.runs[small.runs["learner"] == "PR"].assign(learner="Mine", fair=False)
    metrics = small.metrics[small.metrics["learner"] == "PR"].assign(learner="Mine")
    more_runs = replace(
        small,
        runs=pd.concat([small.runs, mine], ignore_index=True),
        metrics=pd.concat([small.metrics, metrics], ignore_index=True),
    )
    assert paper.fairness(more_runs).tables == paper.fairness(small).tables
    columns = paper.utility(more_runs).tables[0].columns
    assert columns[-2:] == ("FinHzn, PR", "FinHzn, Mine")
    assert any(row[1] == "Mine" for row in models.performance(more_runs).tables[0].rows)


def test_every_utility_table_has_all_bounds_and_says_whose_numbers_it_has(
    products: dict[str, Product],
) -> None:
    tables = {table.name: table for product in products.values() for table in product.tables}
    for bound in ("0.1", "0.15", "0.2"):
        alone = "Published numbers exist for κ = 0.1 alone; these are ours."
        note = tables[f"table-utility-{round(100 * float(bound)):03d}"].note
        assert (alone in note) == (bound != "0.1")
        for name in ("table-inputs-finite-horizon", "table-support"):
            assert any(row[2] == f"all, κ = {bound}" for row in tables[name].rows), name
        assert f"κ = {bound}" in tables["table-guaranteed-utility"].columns
    figures = {figure.name for product in products.values() for figure in product.figures}
    assert {f"figure-inputs-{bound}" for bound in ("0.1", "0.15", "0.2")} <= figures


def test_cross_fitted_models_are_compared_with_their_own_kind_on_the_same_runs(
    small: Results,
) -> None:
    runs = small.runs
    lucky = runs["inputs"] == "learned-cross-fitted"
    better = runs.assign(
        correct=np.where(lucky, runs["correct_unshielded"], runs["correct"]),
        cost=np.where(lucky, 0.0, runs["cost"]),
    )
    lost = (runs["inputs"] == "learned") & (runs["run"] == 0)
    (table,) = more.cross_fitted(replace(small, runs=better[~lost])).tables
    rows = [row for row in table.rows if row[2] == "FinHzn" and row[3] == "learned"]
    assert {row[5] for row in rows if row[4] == "Adult (race)"} == {str(2 * 4)}
    assert {row[7] for row in rows if row[5] != "–"} == {"0.00 ± 0.00"}
    assert all(row[8].startswith("-") for row in rows if row[5] != "–")
    other = [row for row in table.rows if row[2] == "FinHzn" and row[3] == "confidence"]
    assert {row[7] for row in other if row[5] != "–"} != {"0.00 ± 0.00"}


def test_trainings_are_told_with_their_spread_and_the_chance_of_the_published_number(
    complete: Results,
) -> None:
    quality, loss = (item.rows for item in trainings.trainings(complete).tables)
    assert len(quality) == 7 * 5 * 6
    assert len(loss) == 7 * 2 * (5 + 3)
    assert {row[3] for row in quality} == {row[6] for row in loss} == {"3"}
    assert all(0 <= float(row[-1]) <= 1 for row in (*quality, *loss))
    once = replace(complete, trainings=pd.DataFrame(), training_runs=pd.DataFrame())
    assert all(set(row[3:7]) == {"–"} for row in trainings.trainings(once).tables[0].rows)
    assert all(check.chance is None for check in models.performance(once).checks)
    assert all(check.chance is not None for check in models.performance(complete).checks)


def test_several_processes_make_what_one_makes() -> None:
    items, results = ITEMS[:3], frames.results()
    one, two = (make_all(items, results, processes) for processes in (1, 2))
    assert list(one) == list(two) == list(items)
    assert [product.tables for product in one.values()] == [p.tables for p in two.values()]


def test_an_item_that_fails_in_another_process_says_so() -> None:
    broken = replace(frames.results(), runs=None)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="could not be made"):
        make_all(ITEMS[:3], broken, 2)
