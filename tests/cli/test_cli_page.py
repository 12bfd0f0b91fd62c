"""The page of an audit: everything is on it, once, and nothing is fetched."""

from __future__ import annotations

import hashlib
import json
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import fairshield as fs

HOSTILE = '<script>alert("x")</script>'
GROUPS = ("a & b", HOSTILE)


class Page(HTMLParser):
    """Text by element, tables by class or id, and every address."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.rows: dict[str, list[list[str]]] = {}
        self.words: list[str] = []
        self._table, self._cell, self._head, self._quiet = "", False, False, False
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.addresses += [str(given[key]) for key in ("src", "href") if key in given]
        if tag == "table":
            self._table = str(given.get("id") or given.get("class") or "")
        elif tag in ("thead", "tbody"):
            self._head = tag == "thead"
        elif tag == "tr" and not self._head:
            self.rows.setdefault(self._table, []).append([])
        elif tag in ("td", "th") and not self._head:
            self.rows[self._table][-1].append("")
            self._cell = True
        self._quiet = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._cell = False
        self._quiet = False

    def handle_data(self, data: str) -> None:
        if self._quiet:
            return
        self.words.append(data)
        if self._cell:
            self.rows[self._table][-1][-1] += data


def made(kind: str) -> Any:
    even = fs.InputModel.agnostic(dict.fromkeys(GROUPS, 0.5))
    parity, start = fs.DemographicParity("0.25"), {GROUPS[0]: (9, 9), GROUPS[1]: (9, 0)}
    return {
        "plain": lambda: fs.synthesize(parity, even, horizon=8, checkpoints=(6,)),
        "labelled": lambda: fs.synthesize(fs.EqualOpportunity("0.25"), even, horizon=6),
        "long": lambda: fs.synthesize(parity, even, horizon=60, method="long"),
        "best effort": lambda: fs.synthesize(
            parity, even, horizon=6, start=fs.Counts(start), best_effort=True
        ),
        "perpetual": lambda: fs.PerpetualShield(parity, even, period=8).policy,
        "dynamic": lambda: fs.DynamicShield(parity, even, period=8).policy,
        "static-fair": lambda: fs.StaticFairShield(parity, even, period=8).policy,
        "impact": lambda: fs.synthesize(fs.DisparateImpact("0.5"), even, horizon=8),
        "rates": lambda: fs.synthesize(fs.BoundedRates("0.2", "0.8"), even, horizon=12),
        "three groups": lambda: fs.synthesize(
            parity, fs.InputModel.agnostic(dict.fromkeys((*GROUPS, "c"), 1 / 3)), horizon=8
        ),
        "shares": lambda: fs.synthesize(fs.ShareParity("0.5"), even, horizon=8),
    }[kind]()


PROMISES = {
    "plain": "Guaranteed on every sequence of requests",
    "labelled": "Guaranteed on every sequence of requests",
    "long": "Guaranteed on every sequence of requests",
    "best effort": "NOT guaranteed: the policy is a best effort",
    "perpetual": "Guaranteed on every sequence of requests",
    "dynamic": "condition",
    "static-fair": "condition",
    "impact": "Guaranteed on every sequence of requests",
    "rates": "Guaranteed on every sequence of requests",
    "three groups": "Guaranteed on every sequence of requests",
    "shares": "Guaranteed on every sequence of requests",
}


def requests(n: int = 70) -> str:
    rng = random.Random(11)
    return "".join(
        json.dumps(
            {
                "id": f"p{i}",
                "group": (group := rng.choice(GROUPS)),
                "proposed": rng.random() < (0.2 if group == GROUPS[0] else 0.8),
                "cost": rng.choice([0.5, 1, 2]),
                "outcome": rng.random() < 0.5,
            }
        )
        + "\n"
        for i in range(n)
    )


@pytest.fixture(scope="module")
def pages(command: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function from a kind of policy to its folder, the result of the audit, and the page."""
    done: dict[str, tuple[Path, Any, Page]] = {}

    def page(kind: str) -> tuple[Path, Any, Page]:
        if kind not in done:
            folder = tmp_path_factory.mktemp("page")
            made(kind).save(folder / "p.shield")
            log = command("run", folder / "p.shield", stdin=requests()).stdout
            (folder / "log.jsonl").write_text(log)
            result = command(
                "audit", folder / "log.jsonl", "--policy", folder / "p.shield", "--json",
                "--html", folder / "page.html",
            )  # fmt: skip
            assert result.exit_code in (0, 1), result.output
            text = (folder / "page.html").read_text("utf-8")
            done[kind] = folder, json.loads(result.stdout), Page(text)
        return done[kind]

    return page


@pytest.mark.parametrize("kind", PROMISES)
def test_every_overruled_decision_is_on_the_page_exactly_once(pages: Any, kind: str) -> None:
    folder, report, page = pages(kind)
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    wanted = [
        (str(i), entry["id"], str(entry["group"]), entry["reason"])
        for i, entry in enumerate(log, 1)
        if entry["overruled"]
    ]
    rows = page.rows.get("overruled", [])
    assert len(rows) == report["overruled"]
    assert [(row[0], row[1], row[3], row[-1]) for row in rows] == wanted


@pytest.mark.parametrize("kind", PROMISES)
def test_the_page_says_what_is_guaranteed_and_what_was_found(pages: Any, kind: str) -> None:
    _, report, page = pages(kind)
    assert PROMISES[kind] in page.text
    assert ("Held" if report["holds"] else "Violated") in page.text
    assert f"{report['decisions']} decisions" in page.text
    assert len(page.rows["windows"]) == len(report["windows"])
    assert len(page.rows.get("violations", [])) == len(report["violations"])
    total = sum(int(row[6]) for row in page.rows["groups"])
    assert total == report["overruled"]


@pytest.mark.parametrize("kind", PROMISES)
def test_the_page_fetches_and_runs_nothing_and_escapes_names(pages: Any, kind: str) -> None:
    folder, _, page = pages(kind)
    text = (folder / "page.html").read_text("utf-8")
    assert "script" not in page.tags
    assert not [address for address in page.addresses if not address.startswith("#")]
    assert not re.search(r"https?:|url\(|@import", text)
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    assert not re.search(r"\b[A-Z]\w+\(\w+=|<[A-Z]\w+:| object at 0x", page.text)  # reprs


@pytest.mark.parametrize("kind", ["plain", "labelled", "perpetual"])
def test_the_same_files_give_the_same_bytes_by_the_command_on_the_page(
    pages: Any, command: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, report, page = pages(kind)
    before = (folder / "page.html").read_bytes()
    assert hashlib.sha256(before).hexdigest() == report["page"]["sha256"]
    assert len(before) == report["page"]["bytes"]
    monkeypatch.chdir(folder)
    assert "fairshield audit log.jsonl --policy p.shield --html page.html" in page.text
    command("audit", "log.jsonl", "--policy", "p.shield", "--html", "page.html")
    assert (folder / "page.html").read_bytes() == before


def test_the_page_bears_digests_of_policy_and_log(pages: Any) -> None:
    folder, _, page = pages("plain")
    log = hashlib.sha256((folder / "log.jsonl").read_bytes()).hexdigest()
    assert log in page.text
    assert fs.policy.artifact.digest_of(folder / "p.shield") in page.text
    assert "no clock" not in page.text
    assert not re.search(r"\b20\d\d-\d\d", page.text)


def test_a_violation_stands_first_with_its_counters(
    command: Any, decided: Path, folder: Path
) -> None:
    options = ("--property", "demographic-parity", "--bound", "0", "--horizon", "6")
    assert command("audit", decided, *options, "--html", "v.html").exit_code == 1
    report = json.loads(command("audit", decided, *options, "--json").stdout)
    page = Page((folder / "v.html").read_text("utf-8"))
    assert page.text.index("Violated") < page.text.index("What was checked")
    row, first = page.rows["violations"][0], report["violations"][0]
    assert row[:3] == [str(first["window"]), str(first["line"]), "6"]
    (_, seen_a, k_a), (_, seen_b, k_b) = first["counts"]
    assert (row[5], row[7]) == (f"{k_a} of {seen_a}", f"{k_b} of {seen_b}")
    assert "No policy was given" in page.text
    assert all(row[-1].endswith("†") for row in page.rows["overruled"])


def test_a_decision_that_is_not_the_policys_is_told_at_the_top(
    command: Any, plain: Path, decided: Path, folder: Path
) -> None:
    lines = [json.loads(line) for line in decided.read_text().splitlines()]
    flipped = next(i for i, entry in enumerate(lines) if not entry["overruled"])
    entry = lines[flipped]
    entry |= {"accepted": not entry["accepted"], "overruled": True}
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert command("audit", "log.jsonl", "--policy", plain, "--html", "d.html").exit_code == 1
    page = Page((folder / "d.html").read_text("utf-8"))
    assert f"Line {flipped + 1}" in page.text
    assert "decisions differ from the policy's" in page.text
    text = (folder / "d.html").read_text("utf-8")
    assert 'class="verdict good"' not in text
    loose = ("--property", "demographic-parity", "--bound", "1")
    command("audit", "log.jsonl", "--policy", plain, *loose, "--html", "l.html")
    assert 'class="verdict care"' in (folder / "l.html").read_text("utf-8")
    assert page.text.index("s decisions.") < page.text.index("What was checked")
    row = next(row for row in page.rows["overruled"] if row[0] == str(flipped + 1))
    assert "not the policy's decision, which would be" in row[-1]


def test_a_log_without_proposals_says_that_nobody_can_be_known_to_be_overruled(
    command: Any, folder: Path
) -> None:
    (folder / "log.csv").write_text("group,accepted\na,1\nb,1\n")
    prop = ("--property", "demographic-parity", "--bound", "0.5")
    assert command("audit", "log.csv", *prop, "--html").exit_code == 0
    page = Page((folder / "log-audit.html").read_text("utf-8"))
    assert "The log has no proposals" in page.text
    assert "unknown: no policy was given" in page.text
    assert "overruled: cannot be told, the log has no" in page.text
    assert "Nobody was overruled" not in page.text
    assert all(row[4:] == ["–"] * 5 for row in page.rows["groups"])


def test_an_empty_log_makes_a_page(command: Any, plain: Path, folder: Path) -> None:
    (folder / "log.csv").write_text("group,proposed,accepted\n")
    result = command("audit", "log.csv", "--policy", plain, "--html", "e.html")
    assert result.exit_code == 3, result.output
    assert "Nothing to check" in Page((folder / "e.html").read_text("utf-8")).text


def test_the_date_is_the_one_given(command: Any, decided: Path, plain: Path, folder: Path) -> None:
    options = ("--policy", plain, "--html", "p.html", "--date", "1 April 2031")
    command("audit", decided, *options)
    assert Page((folder / "p.html").read_text("utf-8")).text.count("1 April 2031") == 3
    assert command("audit", decided, "--policy", plain, "--date", "today").exit_code == 2


def test_no_other_file_is_overwritten(
    command: Any, decided: Path, plain: Path, folder: Path
) -> None:
    (folder / "mine.html").write_text("<p>mine</p>")
    for name, says in (
        ("mine.html", "is not a page of an audit"),
        ("log.csv", "--html writes a page"),
        ("no/such.html", "not a folder"),
    ):
        result = command("audit", decided, "--policy", plain, "--html", name)
        assert (result.exit_code, result.stdout) == (2, "")
        assert says in result.stderr
    assert (folder / "mine.html").read_text() == "<p>mine</p>"
    for _ in range(2):
        assert command("audit", decided, "--policy", plain, "--html", "ours.html").exit_code == 0


def test_a_database_is_exported_first(command: Any) -> None:
    result = command("audit", "--db", "x.db", "--html", "p.html")
    assert result.exit_code == 2
    assert "log.jsonl" in result.stderr


def test_what_the_policy_guarantees_is_told_from_what_was_checked(
    command: Any, decided: Path, plain: Path, folder: Path
) -> None:
    other = ("--property", "demographic-parity", "--bound", "1/3")
    command("audit", decided, "--policy", plain, *other, "--html", "o.html")
    text = Page((folder / "o.html").read_text("utf-8")).text
    assert "The policy guarantees nothing about demographic parity ≤ 1/3, which was checked" in text
    assert "about demographic parity ≤ 1/4 alone" in text
    assert "Guaranteed on every sequence" not in text


def test_no_difference_of_rates_is_drawn_beyond_one(command: Any, folder: Path) -> None:
    (folder / "log.csv").write_text("group,accepted\n" + "a,1\nb,0\n" * 20)
    prop = ("--property", "demographic-parity", "--bound", "0.9")
    command("audit", "log.csv", *prop, "--html", "y.html")
    svg = (folder / "y.html").read_text("utf-8").split('role="img"')[1].split("</svg>")[0]
    labels = re.findall(r'text-anchor="end">([\N{MINUS SIGN}\d.]+)</text>', svg)
    values = [float(label.replace("\N{MINUS SIGN}", "-")) for label in labels]
    assert values
    assert max(map(abs, values)) <= 1.0


@pytest.mark.parametrize(
    ("people", "says"), [("ab", "once each group has 5"), ("abc", "once both")]
)
def test_few_people_are_exempt_two_groups_at_a_time(
    command: Any, folder: Path, people: str, says: str
) -> None:
    rows = "".join(f"{group},1\n" for group in people)
    (folder / "log.csv").write_text("group,accepted\n" + rows)
    prop = ("--property", "demographic-parity", "--bound", "0.1", "--min-support", "5")
    command("audit", "log.csv", *prop, "--html", "m.html")
    text = Page((folder / "m.html").read_text("utf-8")).text
    assert says in text.split("exceptions")[1]


@pytest.mark.parametrize("mark", ["\x1b", "\u202e", "\u2067", "\u200e"])
def test_what_hides_in_a_name_is_visible_on_the_page(command: Any, folder: Path, mark: str) -> None:
    rows = [{"group": f"{mark}a", "accepted": 1, "proposed": 0, "id": mark}, {"group": "b"}]
    rows[1] |= {"accepted": 0, "proposed": 0}
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    prop = ("--property", "demographic-parity", "--bound", "0.1")
    command("audit", "log.jsonl", *prop, "--html", "h.html")
    text = (folder / "h.html").read_text("utf-8")
    assert mark not in text
    assert "\N{REPLACEMENT CHARACTER}a" in text


# Columns of other names ---------------------------------------------------------------------


def test_columns_of_other_names_are_read_as_ours(
    command: Any, plain: Path, decided: Path, folder: Path
) -> None:
    lines = [json.loads(line) for line in decided.read_text().splitlines()]
    rows = [f"{x['group']},{x['proposed']},{x['accepted']},{x['cost']}" for x in lines]
    (folder / "theirs.csv").write_text("\n".join(["sex,model,approved,price", *rows]) + "\n")
    columns = [
        word
        for pair in ("group=sex", "proposed=model", "accepted=approved", "cost=price")
        for word in ("--column", pair)
    ]
    result = command("audit", "theirs.csv", "--policy", plain, "--json", *columns)
    expected = json.loads(command("audit", decided, "--policy", plain, "--json").stdout)
    assert json.loads(result.stdout)["overruled"] == expected["overruled"]
    assert "overruled" not in command("explain", plain, "theirs.csv", *columns).stderr
    missing = command("audit", "theirs.csv", "--policy", plain, "--column", "group=gender")
    assert missing.exit_code == 2
    assert "no column 'gender'" in missing.stderr
    assert "'sex', 'model', 'approved', 'price'" in missing.stderr


def test_several_columns_make_one_group(command: Any, folder: Path) -> None:
    (folder / "log.csv").write_text("sex,race,accepted\nf,x,1\nm,y,1\nf,x,0\n")
    prop = ("--property", "demographic-parity", "--bound", "1", "--column", "group=sex,race")
    report = json.loads(command("audit", "log.csv", *prop, "--json").stdout)
    assert [group for group, _ in report["overruled_by_group"]] == ["f × x", "m × y"]


def test_what_run_reads_from_other_columns_it_writes_under_its_own_names(
    command: Any, plain: Path, folder: Path
) -> None:
    (folder / "in.csv").write_text("sex,model\na,1\nb,0\na,0\n")
    columns = ("--column", "group=sex", "--column", "proposed=model")
    assert command("run", plain, "in.csv", "-o", "out.csv", *columns).exit_code == 0
    assert "all 3 decisions are" in command("audit", "out.csv", "--policy", plain).stdout
    (folder / "own.csv").write_text("sex,group,proposed\na,7,1\n")
    result = command("run", plain, "own.csv", "--column", "group=sex")
    assert result.exit_code == 2
    assert "'group' of its own ('7')" in result.stderr


@pytest.mark.parametrize("text", ["sex", "sex=group", "cost=a,b", "group="])
def test_columns_that_cannot_be_read_are_refused(command: Any, plain: Path, text: str) -> None:
    result = command("audit", "-", "--policy", plain, "--column", text, stdin="")
    assert result.exit_code == 2


# Logs that a service has exported -----------------------------------------------------------


def test_an_exported_log_is_read_with_its_outcomes_and_overrides(
    command: Any, folder: Path
) -> None:
    entries = [
        {"kind": "created", "policy": "…"},
        {"kind": "decision", "n": 0, "group": "a", "proposed": True, "cost": 1, "accepted": True},
        {"kind": "outcome", "n": 0, "outcome": True},
        {"kind": "decision", "n": 1, "group": "b", "proposed": True, "cost": 1, "accepted": True},
        {"kind": "override", "n": 1, "accepted": False},
        {"kind": "outcome", "n": 1, "outcome": True},
        {"kind": "closed"},
    ]
    text = "".join(json.dumps(entry) + "\n" for entry in entries)
    prop = ("--property", "equal-opportunity", "--bound", "0.5")
    report = json.loads(command("audit", "-", *prop, "--json", stdin=text).stdout)
    assert report["windows"][0]["counts"] == [["a", 1, 1], ["b", 1, 0]]
    assert (report["decisions"], report["overruled"]) == (2, 1)
