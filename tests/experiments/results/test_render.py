"""Tables say the same in every format, whatever is in their cells."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairshield_experiments.results import cells
from fairshield_experiments.results.parts import ReportTable
from fairshield_experiments.results.render import latex_text
from fairshield_experiments.results.statistics import Estimate

text = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)


@st.composite
def tables(draw: st.DrawFn) -> ReportTable:
    width = draw(st.integers(1, 4))
    row = st.tuples(*[text] * width)
    return ReportTable(
        name="table-x",
        title=draw(text),
        columns=draw(row),
        rows=tuple(draw(st.lists(row, max_size=4))),
        n_keys=draw(st.integers(0, width)),
        note=draw(text),
    )


@given(tables())
def test_csv_gives_the_cells_back(table: ReportTable) -> None:
    rows = list(csv.reader(io.StringIO(table.csv())))
    assert [tuple(row) for row in rows] == [table.columns, *table.rows]


class Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self.inside = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside &= tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.rows[-1][-1] += data


@given(tables())
def test_html_gives_the_cells_back_and_has_no_other_tags(table: ReportTable) -> None:
    parser = Cells()
    parser.feed(table.html())
    parser.close()
    assert [tuple(row) for row in parser.rows] == [table.columns, *table.rows]
    assert parser.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}


@given(tables())
def test_markdown_has_one_line_per_row_and_as_many_bars_in_each(table: ReportTable) -> None:
    lines = table.markdown().split("\n")[2 : 4 + len(table.rows)]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(table.columns) + 1}


@given(text)
def test_latex_leaves_no_special_character_unescaped(words: str) -> None:
    escaped = latex_text(words)
    plain = re.sub(
        r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater)\{\}|"
        r"\\[&%$#_{}]|\$[^$]*\$",
        "",
        escaped,
    )
    assert not re.search(r"[&%$#_{}~^\\]", plain)


@given(tables())
def test_latex_has_as_many_cells_in_each_row(table: ReportTable) -> None:
    body = re.search(r"\\toprule\n(.*)\n\\bottomrule", table.latex(), re.DOTALL)
    assert body is not None
    lines = [line for line in body[1].split("\n") if line != r"\midrule"]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {len(table.columns) - 1}


def test_estimates_are_set_as_mathematics() -> None:
    table = ReportTable("t", "50 % of κ", ("name", "loss"), (("a_b", "-1.23 ± 0.11"), ("c", "–")))
    assert r"a\_b & $-1.23 \pm 0.11$ \\" in table.latex()
    assert r"c & -- \\" in table.latex()
    assert r"\begin{tabular}{lr}" in table.latex()
    assert r"\caption{50 \% of $\kappa$}" in table.latex()
    assert "| a_b | -1.23 ± 0.11 |" in table.markdown()
    assert '<td class="number">-1.23 ± 0.11</td>' in table.html()


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_what_is_missing_is_a_dash(value: float | None) -> None:
    assert cells.number(value) == cells.ratio(value) == "–"
    found = None if value is None else Estimate(value, 0.1, 1)
    assert cells.estimate(found) == cells.share(found) == "–"
