"""The report: one file, nothing fetched, nothing hidden, nothing believed."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import frames
import pandas as pd
import pytest

from fairshield_experiments.results import report
from fairshield_experiments.results.figures import FIGURES
from fairshield_experiments.results.items import TABLES
from fairshield_experiments.results.parts import Check, Item, Product, Results

HOSTILE = "<script>alert(1)</script>\"'&"
VOID = {"meta", "img", "br", "hr", "link", "input"}
COMPARED = [item for item in TABLES if item.name in ("table-datasets", "table-periodic")]
DRAWN = [item for item in FIGURES if item.name in ("figure-resources", "figure-guaranteed")]


class Page(HTMLParser):
    """Tags, ids and texts; fails on a tag that is closed out of turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def values(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.tags if name in attrs]


def products(results: Results) -> dict[Item, Product]:
    return {item: item.make(results) for item in (*COMPARED, *DRAWN)}


@cache
def complete() -> tuple[Mapping[Item, Product], Results]:
    failures = pd.DataFrame({"title": ["LAFTR on German age"], "error": ["loss was <NaN>"]})
    facts = {"seed": 7, "versions": {"torch": "2.13.0"}, "seconds": 12.5, "command": "reproduce"}
    results = dataclasses.replace(frames.results(), failures=failures, facts=facts)
    return products(results), results


@cache
def text() -> str:
    return report.render_report(*complete())


@cache
def page() -> Page:
    return Page(text())


def a_check(**changes: object) -> Check:
    check = Check(item="t", what="x", published=1.0, ours=2.0, error=0.1, verdict="differs")
    return dataclasses.replace(check, **changes)  # type: ignore[arg-type]


def an_item(*checks: Check, name: str = "t") -> dict[Item, Product]:
    item = Item(name=name, title=name, needs=(), make=lambda results: Product())
    return {item: Product(checks=checks)}


def test_nothing_is_fetched() -> None:
    assert not {"script", "link", "iframe", "object", "embed"} & {tag for tag, _ in page().tags}
    assert all(source.startswith("data:image/") for source in page().values("src"))
    assert all(target.startswith("#") for target in page().values("href"))
    assert "@import" not in text()
    assert "url(" not in text()
    assert not re.search(r"https?://", text())


def test_every_link_leads_somewhere_and_ids_are_unique() -> None:
    ids = page().values("id")
    assert len(set(ids)) == len(ids)
    assert {target[1:] for target in page().values("href")} <= set(ids)


def test_headings_are_in_order() -> None:
    levels = [int(tag[1]) for tag, _ in page().tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_picture_and_every_scrolling_box_has_a_name() -> None:
    pictures = [attrs for tag, attrs in page().tags if tag == "img"]
    assert pictures
    assert all(attrs.get("alt") for attrs in pictures)
    regions = [attrs for _, attrs in page().tags if attrs.get("role") == "region"]
    assert all(attrs.get("aria-label") and attrs.get("tabindex") == "0" for attrs in regions)
    boxes = [tag for tag, attrs in page().tags if attrs.get("class") in ("scroll", "picture")]
    assert len(boxes) == len(regions)


def test_every_check_stands_in_the_table_of_its_item() -> None:
    made, _ = complete()
    for item, product in made.items():
        section = text().split(f'<section class="item" id="{item.name}">')[1].split("</section>")[0]
        assert section.count('class="v v-') == len(product.checks)
    checks = [check for product in made.values() for check in product.checks]
    like = [check for check in checks if check.like_for_like]
    assert 0 < len(like) < len(checks)
    assert f"Of {len(like)} published numbers" in text()


def test_a_verdict_is_a_word_and_a_sign_besides_its_colour() -> None:
    words = {word.strip() for word in page().texts}
    assert {"✓", "≈", "✗", "agrees", "close", "differs"} <= words


def test_failures_are_named() -> None:
    words = {word.strip() for word in page().texts}
    assert {"LAFTR on German age", "loss was <NaN>"} <= words


def test_facts_are_told() -> None:
    words = {word.strip() for word in page().texts}
    assert {"seed", "7", "torch 2.13.0", "12.5", "reproduce"} <= words


def test_hostile_text_stays_text() -> None:
    results = frames.results()
    runs = results.runs.assign(learner=results.runs["learner"].replace("LAFTR", HOSTILE))
    metrics = results.metrics.assign(learner=results.metrics["learner"].replace("LAFTR", HOSTILE))
    failures = pd.DataFrame({"title": [HOSTILE], "error": [HOSTILE]})
    bad = dataclasses.replace(
        results, runs=runs, metrics=metrics, failures=failures, facts={HOSTILE: HOSTILE}
    )
    learners = next(item for item in FIGURES if item.name == "figure-learners")
    made = {learners: learners.make(bad), TABLES[1]: TABLES[1].make(bad)}
    made |= an_item(a_check(what=HOSTILE, account=HOSTILE, source=HOSTILE, unit=HOSTILE))
    html = report.render_report(made, bad)
    assert "<script" not in html
    assert HOSTILE in " ".join(Page(html).texts)


def test_without_results_the_report_says_so() -> None:
    empty = frames.empty()
    html = report.render_report(products(empty), empty)
    Page(html)
    assert "The FinHzn experiment was not run" in html
    assert "Nothing that could be compared was run." in html


def test_without_products_there_is_a_report() -> None:
    assert "No published number was compared." in report.render_report({}, frames.empty())


def test_large_pictures_become_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = complete()[0][DRAWN[0]].figures[0]
    assert report.picture_uri(figure).startswith("data:image/svg+xml;base64,")
    monkeypatch.setattr(report, "LARGE", 1000)
    assert report.picture_uri(figure).startswith("data:image/png;base64,")


def test_sentences_that_return_are_told_once() -> None:
    long = "Runs were drawn from other people than ours, and " + 20 * "very " + "many: {} of them."
    own = "With the other convention we get {}."
    checks = [
        a_check(what=f"number {i}", account=f"{own.format(i)} Always so. {long.format(i + 10)}")
        for i in range(4)
    ]
    (account,) = report.accounts(an_item(*checks, a_check(verdict="agrees", account="Always so.")))
    assert [(letter, n) for letter, _, n in account.reasons] == [("A", 4), ("B", 4)]
    assert {told for _, told, _ in account.reasons} == {"Always so.", long.format("…")}
    assert [mine for _, _, mine in account.checks] == [own.format(i) for i in range(4)]


@pytest.mark.parametrize(
    ("ours", "published", "told"),
    [(1000, 43131, "\N{MINUS SIGN}42,131"), (0.3, 0.1, "+0.2"), (2.0, 2.0, "0"), (None, 1.0, "–")],
)
def test_a_difference_has_its_sign_and_no_rounding_of_floats(
    ours: float | None, published: float, told: str
) -> None:
    assert report.difference_text(a_check(ours=ours, published=published)) == told


def test_what_nobody_explained_says_so() -> None:
    html = report.render_report(an_item(a_check()), frames.empty())
    assert "Not explained yet." in html


def test_the_report_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.html"
    report.write_report({}, frames.empty(), path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
