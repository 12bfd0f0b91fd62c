"""Figures: drawn from whatever rows there are, the same for the same rows."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import frames
import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.text import Text

from fairshield_experiments.results.figures import FIGURES, finite, look, render, rows, save
from fairshield_experiments.results.parts import Figure, Item, Results
from fairshield_experiments.results.statistics import Estimate

pytestmark = pytest.mark.slow

ITEMS = {item.name: item for item in FIGURES}
every_item = pytest.mark.parametrize("item", FIGURES, ids=list(ITEMS))


@cache
def complete() -> Results:
    """Every experiment, under one convention."""
    results = frames.results()
    runs = results.runs[results.runs["undefined"] == "rate-0"]
    return dataclasses.replace(results, runs=runs)


@cache
def partial() -> Results:
    """A learner failed, an environment is missing, one property of most, biases undefined."""
    results = complete()
    runs = results.runs
    kept = (runs["learner"] != "LAFTR") & (runs["environment"] != "german-age")
    kept &= (runs["property"] == "demographic-parity") | (runs["learner"] == "ERM")
    kept &= ~((runs["shield"] == "dynamic") & (runs["bound"] == 0.1))
    runs = runs[kept].reset_index(drop=True)
    runs["bias"] = runs["bias"].where(runs.index % 5 > 0)
    runs["correct"] = runs["correct"].astype(float).where(runs.index % 7 > 0)
    runs["correct_unshielded"] = runs["correct_unshielded"].where(runs.index % 11 > 0, 0)
    runs["condition"] = runs["condition"].where(runs["shield"] != "static-fair", False)
    nothing = results.paths.iloc[:0]
    return dataclasses.replace(
        results, runs=runs, paths=nothing, resources=results.resources.assign(megabytes=np.nan)
    )


@cache
def resources() -> Figure:
    return ITEMS["figure-resources"].make(complete()).figures[0]


def texts(figure: Figure) -> list[Text]:
    found = figure.drawing.findobj(Text)
    return [text for text in found if isinstance(text, Text) and text.get_text()]


@every_item
def test_every_text_is_readable_in_print_and_every_name_its_own(item: Item) -> None:
    figures = item.make(complete()).figures
    for figure in figures:
        assert figure.drawing.get_figwidth() == look.WIDTH
        assert min(text.get_fontsize() for text in texts(figure)) >= 8
        assert figure.title
        assert figure.caption.endswith(".")
        assert figure.name.startswith(item.name)
    assert len({figure.name for figure in figures}) == len(figures)
    assert render(figures[0], "svg") == render(figures[0], "svg")


@pytest.mark.parametrize("name", ["figure-bias-distribution", "figure-learners", "figure-inputs"])
def test_the_same_rows_make_the_same_picture(name: str) -> None:
    once, again = (ITEMS[name].make(partial()).figures[0] for _ in range(2))
    assert render(once, "svg") == render(again, "svg")


@every_item
def test_without_rows_a_figure_says_that_nothing_was_run(item: Item) -> None:
    for figure in item.make(frames.empty()).figures:
        words = [text.get_text() for text in texts(figure)]
        assert any("not run" in word for word in [*words, figure.caption])


@every_item
def test_what_is_missing_leaves_the_rest(item: Item) -> None:
    assert render(item.make(partial()).figures[-1], "svg")


def test_items_have_names_of_their_own() -> None:
    assert len(ITEMS) == len(FIGURES)


def test_both_conventions_have_figures_of_their_own() -> None:
    names = [figure.name for figure in ITEMS["figure-learners"].make(frames.results()).figures]
    assert names == ["figure-learners-rate-0", "figure-learners-bias-0"]


def test_a_figure_is_written_twice(tmp_path: Path) -> None:
    svg, png = save(resources(), tmp_path / "new")
    assert (svg.name, png.name) == ("figure-resources.svg", "figure-resources.png")
    assert ElementTree.fromstring(svg.read_text()).tag.endswith("svg")
    assert "dc:date" not in svg.read_text()
    assert png.read_bytes().startswith(b"\x89PNG")


def test_the_picture_does_not_depend_on_the_settings_of_matplotlib() -> None:
    before = render(resources(), "svg")
    with mpl.rc_context({"font.size": 20, "svg.fonttype": "none", "axes.facecolor": "red"}):
        again = ITEMS["figure-resources"].make(complete()).figures[0]
        assert render(again, "svg") == before


def test_a_panel_whose_condition_nobody_met_says_so() -> None:
    figure = ITEMS["figure-period-bias-condition"].make(partial()).figures[0]
    assert any("met the condition" in text.get_text() for text in texts(figure))


def test_runs_without_any_loss_are_left_out_and_counted() -> None:
    results = complete()
    runs = results.runs.assign(correct=results.runs["correct_unshielded"])
    figure = ITEMS["figure-period-utility"].make(dataclasses.replace(results, runs=runs)).figures[0]
    n = len(rows.periodic(results)[rows.RUN].drop_duplicates())
    assert f"{n:,} of {n:,} runs without any loss" in figure.caption
    assert any(text.get_text() == "no run lost utility" for text in texts(figure))


def test_a_slope_and_its_error_are_those_of_least_squares() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 40)
    y = 3 * x + rng.normal(0, 2, 40)
    line = finite.fit(x, np.where(np.arange(40) == 7, np.nan, y))
    known = np.arange(40) != 7
    (slope, start), covariance = np.polyfit(x[known], y[known], 1, cov=True)
    assert line is not None
    assert line.n == 39
    assert (line.slope, line.start) == pytest.approx((slope, start))
    assert line.error == pytest.approx(np.sqrt(covariance[0, 0]))


def test_one_cost_has_no_slope() -> None:
    assert finite.fit(np.full(5, 2.0), np.arange(5.0)) is None


def test_an_interval_holds_its_share_and_knows_how_many_clusters_there_are() -> None:
    assert rows.interval(None) is None
    for value in (0.0, 37.0, 100.0):
        share, low, high = rows.interval(Estimate(value, 4.0, 900, clusters=30)) or (0, 1, 0)
        assert 0 <= low <= share <= high <= 100
    few = rows.interval(Estimate(0.0, 0.0, 900, clusters=30))
    many = rows.interval(Estimate(0.0, 0.0, 900, clusters=900))
    assert few is not None
    assert many is not None
    assert few[2] > many[2]
