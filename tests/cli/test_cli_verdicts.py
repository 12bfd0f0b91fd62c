"""What ``audit`` says and returns where nothing bound, of ratios, and of many groups."""

from __future__ import annotations

import json
import random
import re
import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import fairshield as fs
from fairshield.periodic import Dynamic, ExactPeriodic, OptimalPeriodic, Perpetual

EXEMPT = ("--property", "demographic-parity", "--bound", "0.1", "--min-support", "60")
IMPACT = ("--property", "disparate-impact", "--bound", "0.8")


def log_of(*rates: float, people: int = 40) -> str:
    """A log in which so many people of each group came by turns, accepted at these rates."""
    lines = []
    for i in range(people):
        lines += [
            json.dumps({"group": f"group {chr(97 + g)}", "accepted": int(i < rate * people)})
            for g, rate in enumerate(rates)
        ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns."""
    monkeypatch.setattr("fairshield.cli.output._UNWRAPPED", 80)


def test_nothing_bound_is_not_held(command: Any) -> None:
    text = log_of(0.75, 0.25)
    result = command("audit", "-", *EXEMPT, "--horizon", "40", stdin=text)
    assert result.exit_code == 3
    assert (
        "EXEMPT: demographic parity ≤ 1/10 for groups of at least 60 bound nothing in any of 2"
        in (result.stdout)
    )
    assert "bound in 0, exempt in 2" in result.stdout
    assert "held" not in result.stdout
    report = json.loads(
        command("audit", "-", *EXEMPT, "--horizon", "80", "--json", stdin=text).stdout
    )
    assert (report["verdict"], report["bound"], report["exempt"]) == ("exempt", 0, 1)
    assert report["windows"][0]["finding"]["value"] == 0.5


def test_what_was_measured_is_told_all_the_same(command: Any) -> None:
    said = command("audit", "-", *EXEMPT, stdin=log_of(0.75, 0.25)).stdout
    assert (
        "window 0: gap 0.5 between group b and group a where at most 0.1 is asked; exempt: 40 of "
        "group a and 40 of group b, below the support of 60"
    ) in said


def test_windows_that_bound_are_counted_beside_exempt_ones(command: Any) -> None:
    alone = '{"group": "group a", "accepted": 1}\n' * 80
    result = command("audit", "-", *IMPACT, "--horizon", "80", stdin=log_of(0.5, 0.5) + alone)
    assert result.exit_code == 0
    assert "held in 1 of 2 windows; 1 exempt: it bound nothing there" in result.stdout
    unfair = command("audit", "-", *IMPACT, "--horizon", "80", stdin=log_of(0.5, 0.2) + alone)
    assert unfair.exit_code == 1
    assert "did not hold in 1 of 2 windows; 1 exempt" in unfair.stdout


def test_periods_that_bound_nothing_are_called_so(command: Any) -> None:
    options = ("--property", "demographic-parity", "--bound", "0.1", "--min-support", "30")
    result = command("audit", "-", *options, "--period", "40", stdin=log_of(0.5, 0.5))
    assert result.exit_code == 0
    ends = [line.split() for line in result.stdout.splitlines() if line.startswith("period ")]
    assert [row[-1] for row in ends] == ["exempt", "fair"]


def test_disparate_impact_is_told_as_a_ratio_of_a_pair(command: Any) -> None:
    said = command("audit", "-", *IMPACT, stdin=log_of(0.9, 0.25)).stdout
    assert "impact ratio 0.2778 of group b to group a where at least 0.8 is asked" in said
    assert "bias" not in said
    header, row = said.split("Violations\n")[1].splitlines()[:2]
    assert header.split()[:4] == ["line", "decided", "impact", "ratio"]
    assert "0.2778" in row


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("groups", [3, 5, 14])
def test_many_groups_fit_a_terminal_widest_pair_first(command: Any, groups: int) -> None:
    rates = [random.Random(groups).uniform(0.1, 0.9) for _ in range(groups)]
    result = command("audit", "-", *IMPACT, "--horizon", 20 * groups, stdin=log_of(*rates))
    assert max(map(len, result.stdout.splitlines())) <= 80
    pairs = result.stdout.split("Widest pairs")[1].split("\n\n")[0].splitlines()[2:]
    shown = [line for line in pairs if not line.startswith("...")]
    ratios = [float(line.split()[-2]) for line in shown]
    assert ratios == sorted(ratios)
    all_pairs = len(list(combinations(range(groups), 2)))
    assert len(shown) == min(all_pairs, 5)
    if groups > 3:
        assert f"... and {all_pairs - 5} more pairs: " in pairs[-1]


def table_of(text: str, title: str) -> list[list[str]]:
    """The cells of a printed table below its headings."""
    rows = text.split(f"{title}")[1].split("\n\n")[0].splitlines()[2:]
    return [re.split(r"  +", row) for row in rows]


def test_every_group_is_told_with_its_ratio_to_the_highest_rate(command: Any) -> None:
    said = command("audit", "-", *IMPACT, stdin=log_of(0.5, 0.9, 0.45)).stdout
    assert table_of(said, "Groups of the whole log") == [
        ["group b", "40", "36", "0.9000", "1.0000"],
        ["group a", "40", "20", "0.5000", "0.5556"],
        ["group c", "40", "18", "0.4500", "0.5000"],
    ]
    data = json.loads(command("audit", "-", *IMPACT, "--json", stdin=log_of(0.5, 0.9, 0.45)).stdout)
    assert data["groups_window"] == 0
    assert data["groups"][2] == {
        "group": "group c", "people": 40, "accepted": 18, "rate": 0.45, "ratio": 0.5,
    }  # fmt: skip


def test_other_properties_have_no_ratio_and_later_windows_come_later(command: Any) -> None:
    log = log_of(0.5, 0.9, 0.45) + log_of(0.1, 0.2, 0.3)
    parity = ("--property", "demographic-parity", "--bound", "0.1", "--horizon", "120")
    rows = table_of(command("audit", "-", *parity, stdin=log).stdout, "Groups at the end of window")
    assert rows[0] == ["group c", "40", "12", "0.3000"]
    assert [row[0] for row in rows] == ["group c", "group b", "group a"]


FEW = '{"group": "few", "accepted": 1}\n' * 6


@pytest.mark.parametrize("ask", ["audit", "monitor"])
def test_a_verdict_says_how_many_pairs_were_bound(command: Any, ask: str) -> None:
    done = command(ask, "-", *IMPACT, "--min-support", "30", stdin=log_of(0.5, 0.5) + FEW)
    assert done.exit_code == 0, done.output
    verdict = done.stdout.splitlines()[0]
    assert verdict.endswith(
        "; 1 of 3 pairs of groups was bound; 1 of 3 groups had fewer than 30 people and was "
        "compared with nobody"
    )
    all_bound = command(ask, "-", *IMPACT, "--min-support", "30", stdin=log_of(0.5, 0.5, 0.5))
    assert "pairs of groups" not in all_bound.stdout.splitlines()[0]
    data = json.loads(
        command(
            ask, "-", *IMPACT, "--min-support", "30", "--json", stdin=log_of(0.5, 0.5) + FEW
        ).stdout
    )
    assert (data["reach"]["bound"], data["reach"]["alone"]) == (1, ["few"])


def test_the_pairs_are_those_of_the_property(command: Any) -> None:
    said = command("audit", "-", *IMPACT, stdin=log_of(0.9, 0.5, 0.45)).stdout
    counts = fs.Counts({"group a": (40, 36), "group b": (40, 20), "group c": (40, 18)})
    widest = fs.DisparateImpact("0.8").findings(counts)
    rows = said.split("Widest pairs at the end of window 0\n")[1].splitlines()[1:4]
    for row, finding in zip(rows, widest, strict=True):
        assert row.startswith(", ".join(map(str, finding.pair)))
        assert row.split()[-2:] == [
            finding.shown,
            {"unfair": "UNFAIR"}.get(finding.verdict, "fair"),
        ]


# The page -----------------------------------------------------------------------------------


def page_of(command: Any, tmp_path: Path, text: str, *options: Any) -> str:
    """The page of an audit of this log."""
    (tmp_path / "log.jsonl").write_text(text)
    target = tmp_path / "page.html"
    command("audit", tmp_path / "log.jsonl", *options, "--html", target)
    return target.read_text("utf-8")


def badge(page: str) -> tuple[str, str]:
    """Colour and heading of the verdict."""
    found = re.search(r'<div class="verdict (\w+)" id="verdict">\s*<strong>(.*?)</strong>', page)
    assert found is not None
    return found[1], found[2]


def test_a_page_is_never_green_where_nothing_bound(command: Any, tmp_path: Path) -> None:
    page = page_of(command, tmp_path, log_of(0.75, 0.25), *EXEMPT, "--horizon", "40")
    assert badge(page) == ("care", "! Exempt: nothing was bound")
    body = page.split("</style>")[1]
    assert "is-good" not in body
    assert '<circle class="fair" cx="13"' in body  # the legend's, and no other
    assert body.count('class="fair"') == 1
    assert body.count('<circle class="exempt"') == 2 + 1
    assert body.count('<span class="is-exempt">exempt</span>') == 2
    assert "gap 0.5 between group b and group a where at most 0.1 is asked; exempt: " in body


def test_a_page_counts_exempt_windows_beside_fair_ones(command: Any, tmp_path: Path) -> None:
    alone = '{"group": "group a", "accepted": 1}\n' * 80
    page = page_of(command, tmp_path, log_of(0.5, 0.5) + alone, *IMPACT, "--horizon", "80")
    assert badge(page) == ("good", "✓ Held")
    assert "held at the end of 1 of 2 windows. 1 window was exempt: the property bound" in page


@pytest.mark.parametrize("groups", [2, 5, 14])
def test_tables_of_a_page_do_not_widen_with_the_groups(
    command: Any, tmp_path: Path, groups: int
) -> None:
    rates = [0.2 + 0.6 * g / groups for g in range(groups)]
    lines = log_of(*rates).replace('"accepted"', '"proposed": 1, "accepted"')
    page = page_of(command, tmp_path, lines, *IMPACT, "--horizon", 20 * groups)
    widths = [row.count("<th") for row in re.findall(r"<thead><tr>.*?</tr></thead>", page)]
    assert max(widths) <= 13
    # In the second window nobody is accepted any more, of two groups in neither.
    assert f"impact ratio {0.4 if groups == 2 else 0} of group a" in page
    pairs = re.findall(r'<table id="widest-pairs">.*?</table>', page, re.DOTALL)
    assert len(pairs) == (groups > 2)
    if groups == 14:
        assert pairs[0].count("<tr>") == 1 + 8
        assert "And 83 more pairs: " in page


def test_a_page_shows_a_ratio_for_disparate_impact(command: Any, tmp_path: Path) -> None:
    page = page_of(command, tmp_path, log_of(0.9, 0.25), *IMPACT)
    body = page.split("</style>")[1]
    assert "impact ratio 0.2778 of group b to group a where at least 0.8 is asked" in body
    assert "allowed: 0.8 to 1" in body
    assert "0.7222" not in body


EVEN = fs.InputModel.agnostic({"group a": 0.5, "group b": 0.5})
RARE, LOOSE = fs.DemographicParity("0.1", min_support=60), fs.DemographicParity(1)
CANNOT_BIND: dict[str, Callable[[], Any]] = {
    "window": lambda: fs.synthesize(RARE, EVEN, horizon=8),
    "exact": lambda: ExactPeriodic(RARE, EVEN, 4, periods=2),
    "optimal": lambda: OptimalPeriodic(RARE, EVEN, 4, periods=2),
    "perpetual": lambda: Perpetual(LOOSE, EVEN, 4),
    "dynamic": lambda: Dynamic(LOOSE, EVEN, 4),
}


@pytest.mark.parametrize("kind", CANNOT_BIND)
def test_a_page_does_not_promise_what_cannot_bind(command: Any, tmp_path: Path, kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.VacuousWarning)
        CANNOT_BIND[kind]().save(tmp_path / "p.shield")
    lines = log_of(0.5, 0.5, people=4).replace('"accepted": 1', '"proposed": 1, "accepted": 1')
    lines = lines.replace('"accepted": 0', '"proposed": 0, "accepted": 0')
    page = page_of(command, tmp_path, lines, "--policy", tmp_path / "p.shield")
    assert "Nothing is promised: the property can never bind" in page
    assert "Guaranteed on every sequence" not in page
    assert not re.search(r'class="[^"]*\bgood\b', page.split("</style>")[1])


def test_a_page_asks_the_policy_whether_what_must_hold_at_the_end_binds(
    command: Any, tmp_path: Path
) -> None:
    end = fs.DemographicParity("0.1", min_support=4)
    fs.synthesize(RARE, EVEN, horizon=8, terminal=end).save(tmp_path / "p.shield")
    lines = log_of(0.5, 0.5, people=4).replace('"accepted": 1', '"proposed": 1, "accepted": 1')
    lines = lines.replace('"accepted": 0', '"proposed": 0, "accepted": 0')
    page = page_of(command, tmp_path, lines, "--policy", tmp_path / "p.shield")
    assert "can never bind" not in page


def test_a_page_is_amber_where_a_group_was_compared_with_nobody(
    command: Any, tmp_path: Path
) -> None:
    page = page_of(command, tmp_path, log_of(0.5, 0.5) + FEW, *IMPACT, "--min-support", "30")
    assert badge(page) == ("care", "! Held, but not every group was compared")
    assert "1 of 3 groups had fewer than 30 people and was compared with nobody." in page
    page = page_of(command, tmp_path, log_of(0.5, 0.5, 0.5), *IMPACT, "--min-support", "30")
    assert badge(page) == ("good", "✓ Held")


def test_a_page_has_one_table_of_all_groups_and_names_them_once(
    command: Any, tmp_path: Path
) -> None:
    rates = [0.2 + 0.05 * g for g in range(14)]
    page = page_of(command, tmp_path, log_of(*rates), *IMPACT).split("</style>")[1]
    assert "Groups in the whole log</h2>" in page
    table = re.findall(r'<table id="all-groups">.*?</table>', page, re.DOTALL)
    assert len(table) == 1
    cells = [re.sub("<[^>]+>", "|", row) for row in re.findall(r"<tr>.*?</tr>", table[0])]
    assert [cell.strip("|").split("||")[-1] for cell in cells][:2] == ["impact ratio", "1.0000"]
    assert len(cells) == 1 + 14
    assert page.count("group a, group b, group c") == 1


def test_a_page_by_the_calendar_speaks_of_quarters(command: Any, tmp_path: Path) -> None:
    log = "".join(
        line.replace("}", f', "date": "2024-{month:02}-15"}}') + "\n"
        for month in (2, 5, 7, 10)
        for line in log_of(0.5, 0.5, 0.5).splitlines()
    )
    body = page_of(command, tmp_path, log, *IMPACT, "--by", "quarter").split("</style>")[1]
    text = re.sub(r"<[^>]+>", "", body)
    assert not re.search(r"\bwindows?\b", text)
    assert "4 quarters, the last as far as 2024-10-15" in text
    (tmp_path / "dated.jsonl").write_text(log)
    said = command("audit", tmp_path / "dated.jsonl", *IMPACT, "--by", "quarter").stdout
    assert "4, the last as far as 2024-10-15" in said
    assert "complete" not in said


def test_a_fair_end_is_drawn_inside_the_band(command: Any, tmp_path: Path) -> None:
    """What small groups measured is drawn where nothing binds, in grey; then the pair that does."""
    none = '{"group": "few", "accepted": 0}\n' * 6
    page = page_of(command, tmp_path, none + log_of(0.5, 0.5), *IMPACT, "--min-support", "30")
    chart = re.findall(r'<svg viewBox="0 0 960 300".*?</svg>', page, re.DOTALL)[0]
    band = re.search(r'class="band" x="\S+" y="(\S+)" width="\S+" height="(\S+)"', chart)
    dots = re.findall(r'<circle class="fair" cx="\S+" cy="(\S+)"', chart)
    assert band is not None
    assert len(dots) == 1
    assert float(band[1]) <= float(dots[0]) <= float(band[1]) + float(band[2])
    assert 'class="run unbound"' in chart
    assert "measured where nothing is bound" in page


def test_without_support_nothing_is_drawn_in_grey(command: Any, tmp_path: Path) -> None:
    page = page_of(command, tmp_path, log_of(0.5, 0.5), *IMPACT)
    assert 'class="run unbound"' not in page
    assert "measured where nothing is bound" not in page
