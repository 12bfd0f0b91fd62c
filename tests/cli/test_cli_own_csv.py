"""Everybody's own CSV: every command reads it, with the same options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fairshield as fs

OURS = ["--column", "group=Geschlecht", "--column", "cost=Preis", "--column", "outcome=bezahlt"]
SAID = ["--column", "proposed=Vorschlag", "--column", "accepted=Bescheid"]
WORDS = ["--yes-word", "genehmigt,ja", "--no-word", "abgelehnt,nein"]
REQUEST = [*OURS, "--column", "proposed=Vorschlag", *WORDS, "--encoding", "cp1252"]
OPTIONS = [*REQUEST, "--column", "accepted=Bescheid"]
READERS = ("run", "audit", "monitor", "explain", "synthesize", "pareto", "simulate", "compare")


@pytest.fixture
def export(folder: Path, requests: list[dict[str, Any]]) -> Path:
    """The forty requests as a spreadsheet would write them."""
    rows = ["sep=;", "Fall;Geschlecht;Vorschlag;Bescheid;Preis;bezahlt;Gewähr;;"]
    for request in requests:
        said = "genehmigt" if request["proposed"] else "Abgelehnt"
        paid = "ja" if request["outcome"] else "nein"
        cost = str(request["cost"]).replace(".", ",")
        rows.append(f"{request['id']};{request['group']};{said};{said};{cost};{paid};ü;;")
    path = folder / "export.csv"
    path.write_bytes("\r\n".join([*rows, ";;;;;;;;", ""]).encode("cp1252"))
    return path


@pytest.fixture
def clean(folder: Path, requests: list[dict[str, Any]]) -> Path:
    """The same in the words of this library."""
    path = folder / "clean.jsonl"
    lines = [json.dumps(request | {"accepted": request["proposed"]}) for request in requests]
    path.write_text("\n".join(lines))
    return path


def test_requests_are_decided_alike(
    command: Any, plain: Path, export: Path, jsonl: str, folder: Path
) -> None:
    done = command("run", plain, export, *REQUEST, "-o", folder / "decided.csv")
    assert (done.exit_code, done.stderr) == (0, "")
    audited = command("audit", folder / "decided.csv", "--policy", plain, "--json")
    expected = command("run", plain, stdin=jsonl)
    again = command("audit", "-", "--policy", plain, "--json", stdin=expected.stdout)
    ours, theirs = json.loads(audited.stdout), json.loads(again.stdout)
    for key in ("overruled", "cost_paid", "decisions", "difference", "holds"):
        assert ours[key] == theirs[key]


def test_an_interrupted_run_goes_on(command: Any, plain: Path, export: Path, folder: Path) -> None:
    whole, part = folder / "whole.csv", folder / "part.csv"
    assert command("run", plain, export, *REQUEST, "-o", whole).exit_code == 0
    part.write_bytes(whole.read_bytes()[:900])
    done = command("run", plain, export, *REQUEST, "-o", part, "--resume", part)
    assert done.exit_code == 0
    assert part.read_bytes() == whole.read_bytes()


JUDGING = {
    "audit": ["--property", "demographic-parity", "--bound", "0.1", "--horizon", "10"],
    "monitor": ["--property", "equal-opportunity", "--bound", "0.1", "--horizon", "10"],
}


@pytest.mark.parametrize("name", JUDGING)
def test_logs_are_judged_alike(command: Any, export: Path, clean: Path, name: str) -> None:
    found = [
        json.loads(command(name, log, *JUDGING[name], *options, "--json").stdout)
        for log, options in ((export, OPTIONS), (clean, []))
    ]
    for report in found:
        for window in [*report["windows"], *report["violations"]] if name == "audit" else ():
            for line in window.keys() & {"line", "first_line", "last_line"}:
                del window[line]
    assert found[0] == found[1]


PARITY = ["--property", "demographic-parity", "--bound", "0.2"]
ESTIMATING = {
    "synthesize": ["--property", "equal-opportunity", "--bound", "0.2", "--horizon", "5"],
    "pareto": ["--bounds", "0.1,0.2", "--horizon", "4"],
    "compare": ["--property", "demographic-parity", "--bound", "0.2", "--period", "5",
                "--periods", "2", "--shields", "dynamic"],
}  # fmt: skip


@pytest.mark.parametrize("name", ESTIMATING)
def test_input_models_are_estimated_alike(
    command: Any, export: Path, clean: Path, name: str
) -> None:
    found = []
    for file, options in ((export, OPTIONS), (clean, [])):
        log = ["--log", file] if name == "compare" else []
        done = command(name, *ESTIMATING[name], *log, "--inputs", file, *options, "--json")
        assert done.exit_code == 0, done.stderr
        data = json.loads(done.stdout)
        found.append({k: v for k, v in data.items() if k not in ("log", "sha256", "path")})
    assert found[0] == found[1]


def test_a_spec_says_how_its_records_are_written(
    command: Any, export: Path, clean: Path, folder: Path
) -> None:
    rule = 'property = "equal-opportunity"\nbound = "0.2"\nhorizon = 5\n'
    (folder / "clean.toml").write_text(f'{rule}inputs = "clean.jsonl"\n')
    (folder / "export.toml").write_text(
        f'{rule}inputs = "export.csv"\nencoding = "cp1252"\nyes_words = ["genehmigt", "ja"]\n'
        'no_words = {proposed = "abgelehnt", outcome = ["nein"]}\n'
        'columns = {group = "Geschlecht", proposed = "Vorschlag", cost = "Preis", '
        'outcome = ["bezahlt"]}\n'
    )
    costs = [
        json.loads(command("synthesize", f"{name}.toml", "--json").stdout)["expected_cost"]
        for name in ("clean", "export")
    ]
    assert costs[0] == costs[1]


def test_the_page_shows_the_command_that_makes_it_again(command: Any, export: Path) -> None:
    judged = ["--property", "demographic-parity", "--bound", "0.9", "--separator", ";"]
    done = command("audit", export, *judged, *OPTIONS, "--html", "page.html")
    assert done.exit_code == 0, done.stderr
    page = Path("page.html").read_text("utf-8")
    for words in ("--yes-word genehmigt,ja", "--encoding cp1252", "--separator &#39;;&#39;"):
        assert words in page


MISTAKES = {
    "encoding": (["--column", "group=Geschlecht"], "say what it is, as in --encoding cp1252"),
    "words": (
        [*OURS, *SAID, "--encoding", "cp1252"],
        "got 'Abgelehnt'; say what your own words mean with --yes-word and --no-word",
    ),
    "one word": (
        [*OURS, *SAID, "--encoding", "cp1252", "--yes-word", "genehmigt"],
        "'Abgelehnt' means neither yes (genehmigt) nor no (0, false, no, reject, rejected): say "
        "which with --yes-word or --no-word",
    ),
    "column": (
        ["--encoding", "cp1252", "--column", "group=Sex"],
        "no column 'Sex', from which group was to be read: the columns are 'Fall', 'Geschlecht'",
    ),
    "separator": (["--separator", "ab"], "cannot separate columns by 'ab'"),
    "unknown encoding": (["--encoding", "ebcdic-x"], "unknown encoding 'ebcdic-x'"),
    "a field": (["--yes-word", "group=a"], "FIELD is one of proposed, accepted, outcome"),
    "no field": ([*SAID, "--encoding", "cp1252"], "no 'group', the fields are 'Fall', "),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_name_the_option_that_helps(command: Any, export: Path, name: str) -> None:
    options, sentence = MISTAKES[name]
    done = command("audit", export, "--property", "demographic-parity", "--bound", "0.1", *options)
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert "p0" not in done.stderr


@pytest.mark.parametrize("name", READERS)
def test_every_command_that_reads_records_has_the_same_options(command: Any, name: str) -> None:
    page = command(name, "--help").stdout
    for option in ("column", "format", "separator", "decimal", "encoding", "yes-word", "no-word"):
        assert f"--{option} " in page
    assert "--threshold " in page


@pytest.mark.parametrize("options", [[], ["--threshold", "600"]])
def test_scores_that_are_no_probabilities_need_a_threshold(
    command: Any, folder: Path, options: list[str]
) -> None:
    (folder / "scores.csv").write_text("group;score\na;640\nb;580,5\nb;701\na;520\n")
    done = command("synthesize", *PARITY, "--horizon", "4", "--inputs", "scores.csv", *options)
    if options:
        assert done.exit_code == 0, done.stderr
    else:
        assert done.exit_code == 2
        assert "line 2: the score 640 lies outside 0 to 1" in done.stderr
        assert "say from which score on with --threshold" in done.stderr


PUNKTE = ["--column", "group=Geschlecht", "--column", "score=Punkte", "--threshold", "640,0"]


@pytest.fixture
def scored(folder: Path, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Requests with scores of a bank, in a German spreadsheet, and what they propose."""
    scores = [640 + (1 if r["proposed"] else -1) * (r["cost"] * 40 + 0.5) for r in requests]
    rows = [
        f"{r['group']};{score}".replace(".", ",") for r, score in zip(requests, scores, strict=True)
    ]
    (folder / "punkte.csv").write_text("\n".join(["Geschlecht;Punkte", *rows, ""]))
    return [
        {"group": r["group"], "proposed": score >= 640, "cost": abs(score - 640)}
        for r, score in zip(requests, scores, strict=True)
    ]


@pytest.fixture
def bank(command: Any, folder: Path, scored: list[dict[str, Any]]) -> Path:
    """A policy that is made from the scores."""
    made = ["--horizon", "10", "--inputs", "punkte.csv", *PUNKTE, "-o", "bank.shield"]
    done = command("synthesize", *PARITY, *made)
    assert done.exit_code == 0, done.stderr
    return folder / "bank.shield"


def test_scores_are_decided_as_what_they_propose(
    command: Any, bank: Path, scored: list[dict[str, Any]], folder: Path
) -> None:
    done = command("run", bank, "punkte.csv", *PUNKTE, "-o", "decided.csv")
    assert (done.exit_code, done.stderr) == (0, "")
    stdin = "".join(json.dumps(record) + "\n" for record in scored)
    expected = [json.loads(line) for line in command("run", bank, stdin=stdin).stdout.splitlines()]
    with fs.Reading().open(folder / "decided.csv") as records:
        found = [(r.flag("proposed"), r.cost(), r.flag("accepted")) for r in records]
    assert found == [(e["proposed"], e["cost"], e["accepted"]) for e in expected]
    assert command("audit", "decided.csv", "--policy", bank).exit_code == 0


def test_a_log_with_scores_is_audited_explained_and_watched(
    command: Any, bank: Path, scored: list[dict[str, Any]], folder: Path
) -> None:
    command("run", bank, "punkte.csv", *PUNKTE, "-o", "decided.csv")
    with fs.Reading().open(folder / "decided.csv") as records:
        rows = [f"{r.fields['group']},{r.fields['Punkte']},{r.flag('accepted')}" for r in records]
    whole = "\n".join(["group;score;accepted", *(row.replace(",T", ";T").replace(",F", ";F")
                       .replace(",", ";", 1) for row in rows)])  # fmt: skip
    (folder / "log.csv").write_text(whole + "\n")
    for asked in (["audit", "LOG", "--policy", bank, "--json"], ["explain", bank, "LOG", "--json"],
                  ["monitor", "LOG", "--shadow", bank, "--json"]):  # fmt: skip
        ours, theirs = (
            command(*(log if part == "LOG" else part for part in asked), *options)
            for log, options in (("log.csv", ["--threshold", "640"]), ("decided.csv", []))
        )
        assert ours.exit_code == theirs.exit_code
        assert ours.stdout == theirs.stdout, ours.stderr


def test_scores_are_compared_as_what_they_propose(
    command: Any, scored: list[dict[str, Any]], folder: Path
) -> None:
    (folder / "said.jsonl").write_text("".join(json.dumps(record) + "\n" for record in scored))
    shared = ["compare", *PARITY, "--period", "10", "--periods", "2", "--groups", "a=0.25,b=0.75",
              "--shields", "static-fair", "--json"]  # fmt: skip
    ours = json.loads(command(*shared, "--log", "punkte.csv", *PUNKTE).stdout)
    theirs = json.loads(command(*shared, "--log", "said.jsonl").stdout)
    assert ours | {"log": ""} == theirs | {"log": ""}


def test_a_log_of_decisions_may_have_a_score_that_nobody_asks_for(
    command: Any, folder: Path
) -> None:
    (folder / "log.csv").write_text("group,score,accepted\na,640,1\nb,580,1\n")
    done = command("audit", "log.csv", *PARITY, "--json")
    assert (done.exit_code, json.loads(done.stdout)["told"]) == (0, 0)


def test_a_policy_is_made_with_the_costs_that_run_will_read(command: Any, folder: Path) -> None:
    (folder / "priced.csv").write_text("group,score,cost\na,0.9,3\nb,0.2,3\na,0.3,3\nb,0.7,3\n")
    made = command(
        "synthesize", *PARITY, "--horizon", "4", "--inputs", "priced.csv", "-o", "p.shield"
    )
    assert made.exit_code == 0, made.stderr
    assert fs.Policy.load(folder / "p.shield").inputs.levels.tolist() == [3.0]


@pytest.mark.parametrize("said", ["640,000", "1.000,5", "viel", "nan"])
def test_a_threshold_that_is_no_number_is_told(command: Any, plain: Path, said: str) -> None:
    done = command("run", plain, "--threshold", said, stdin="")
    assert done.exit_code == 2
    assert f"expected a number as in 640 or 640.5, got {said!r}" in done.stderr


# By calendar --------------------------------------------------------------------------------

DATED = """Geschlecht;Bescheid;am
f;ja;30.06.2025
m;nein;01.04.2025
f;nein;02.07.2025
m;nein;30.09.2025
f;ja;15.05.2025
"""
BY = ["--column", "group=Geschlecht", "--column", "accepted=Bescheid", "--column", "date=am",
      "--yes-word", "ja", "--no-word", "nein", "--property", "demographic-parity",
      "--bound", "0.1"]  # fmt: skip
WRITTEN = ["--by", "quarter", "--date-format", "%d.%m.%Y"]


def test_every_quarter_is_judged(command: Any, folder: Path) -> None:
    (folder / "log.csv").write_text(DATED)
    done = command("audit", "log.csv", *BY, *WRITTEN)
    assert done.exit_code == 1
    assert "did not hold in 1 of 2 quarters" in done.stdout
    assert [line.split()[:2] for line in done.stdout.splitlines() if line.startswith("2025 Q")] == [
        ["2025", "Q2"],  # among the violations
        ["2025", "Q2"],
        ["2025", "Q3"],
    ]
    windows = json.loads(command("audit", "log.csv", *BY, *WRITTEN, "--json").stdout)["windows"]
    assert [(w["name"], w["first_date"], w["last_date"]) for w in windows] == [
        ("2025 Q2", "2025-04-01", "2025-06-30"),
        ("2025 Q3", "2025-07-02", "2025-09-30"),
    ]


def test_the_page_names_quarters_and_dates(command: Any, folder: Path) -> None:
    (folder / "log.csv").write_text(DATED)
    command("audit", "log.csv", *BY, *WRITTEN, "--html", "page.html")
    page = (folder / "page.html").read_text("utf-8")
    assert "did not hold in 1 of 2 quarters: 2025 Q2." in page
    assert "at the end of every calendar quarter" in page
    for words in (
        "<span>2025-04-01 to</span> <span>2025-06-30</span>",
        "--by quarter --date-format %d.%m.%Y",
    ):
        assert words in page
    command(
        "audit", "log.csv", *BY, "--date-format", "%d.%m.%Y", "--horizon", "3", "--html", "p.html"
    )
    assert "<span>2025-04-01 to</span> <span>2025-07-02</span>" in (folder / "p.html").read_text(
        "utf-8"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--by", "quarter"], "with --date-format %d.%m.%Y"),
        ([*WRITTEN, "--horizon", "5"], "--by quarter makes a window of each quarter, --horizon 5"),
        ([*WRITTEN, "--timezone", "Middle Earth"], "unknown time zone 'Middle Earth'"),
        ([*WRITTEN, "--policy", "plain.shield"], "check the property alone, without --policy"),
    ],
)
def test_mistakes_in_dates_name_the_option(
    command: Any, folder: Path, plain: Path, options: list[str], said: str
) -> None:
    (folder / "log.csv").write_text(DATED.replace("f;", "a;").replace("m;", "b;"))
    (folder / "plain.shield").write_bytes(plain.read_bytes())
    done = command("audit", "log.csv", *BY, *options)
    assert done.exit_code == 2
    assert said in done.stderr


def test_no_date_names_the_column_to_give(command: Any, folder: Path) -> None:
    (folder / "log.csv").write_text(DATED)
    asked = [*BY[:4], *BY[6:]]
    assert "--column date=COLUMN" in command("audit", "log.csv", *asked, *WRITTEN).stderr
