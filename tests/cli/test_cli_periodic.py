"""Periodic policies on the command line: made, shown, run, judged and explained."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairshield as fs
from fairshield.periodic import PeriodicPolicy, Run
from fairshield.periodic.compare import compare
from fairshield.periodic.runs import Streams
from fairshield.policy.artifact import read_artifact, write_artifact

PERIOD = 5
OPTIONS = {
    "static-fair": [],
    "static-bounded": ["--bounds", "0.4,0.6"],
    "dynamic": [],
    "exact": ["--periods", "8"],
    "optimal": ["--periods", "8"],
    "perpetual": ["--lookahead", "2"],
}
KINDS = list(OPTIONS)
FIRST = next(iter(PeriodicPolicy.kinds()))
PARITY = ["--property", "demographic-parity", "--bound", "0.25"]
SHARES = ["--groups", "a=0.4,b=0.6"]


@pytest.fixture(scope="session")
def periodic(command: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Periodic policies by kind, for forty decisions or more; ``labelled`` counts by outcome."""
    folder = tmp_path_factory.mktemp("periodic")
    for kind, options in OPTIONS.items():
        spec = [*PARITY, *SHARES, "--periodic", kind, "--period", PERIOD, *options]
        done = command("synthesize", *spec, "-o", folder / f"{kind}.shield")
        assert done.exit_code == 0, done.output
    opportunity = ["--property", "equal-opportunity", "--bound", "0.25", *SHARES]
    spec = [*opportunity, "--periodic", "dynamic", "--period", PERIOD]
    assert command("synthesize", *spec, "-o", folder / "labelled.shield").exit_code == 0
    return lambda kind: folder / f"{kind}.shield"


@pytest.fixture(scope="session")
def log(
    command: Any, periodic: Callable[[str], Path], jsonl: str, tmp_path_factory: Any
) -> Callable[[str], Path]:
    """Forty decisions of each periodic policy."""
    folder = tmp_path_factory.mktemp("logs")
    for kind in (*KINDS, "labelled"):
        result = command("run", periodic(kind), stdin=jsonl)
        assert result.exit_code == 0, result.output
        (folder / f"{kind}.jsonl").write_text(result.stdout)
    return lambda kind: folder / f"{kind}.jsonl"


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# synthesize and inspect ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_periodic_policy_is_made_from_options_or_from_a_file(
    command: Any, folder: Path, kind: str
) -> None:
    options = [*PARITY, *SHARES, "--periodic", kind, "--period", PERIOD, *OPTIONS[kind]]
    by_options = json.loads(command("synthesize", *options, "--json").stdout)
    (folder / "periods.toml").write_text(
        'property = "demographic-parity"\nbound = "0.25"\ngroups = {a = 0.4, b = 0.6}\n'
        f'periodic = "{kind}"\nperiod = {PERIOD}\n'
        + ("periods = 8\n" if kind in ("exact", "optimal") else "")
        + ("lookahead = 2\n" if kind == "perpetual" else "")
        + ("bounds = ['0.4', '0.6']\n" if kind == "static-bounded" else "")
    )
    by_file = json.loads(command("synthesize", "periods.toml", "--json").stdout)
    assert by_file["sha256"] == by_options["sha256"]
    assert (by_file["periodic"], by_file["period"]) == (kind, PERIOD)
    assert by_file["path"] == "periods.shield"
    assert PeriodicPolicy.load(folder / "periods.shield").kind == kind


@pytest.mark.parametrize("kind", KINDS)
def test_inspect_tells_the_promise_and_its_condition(
    command: Any, periodic: Callable[[str], Path], kind: str
) -> None:
    policy = PeriodicPolicy.load(periodic(kind))
    facts = json.loads(command("inspect", periodic(kind), "--json").stdout)
    text = command("inspect", periodic(kind)).stdout
    cost, periods = policy.outlook()
    assert facts["expected_cost"] == pytest.approx(cost)
    assert (facts["expected_cost_of_periods"], facts["risk"]) == (periods, 0.0)
    assert facts["unconditional"] == policy.unconditional == ("none: fair on every" in text)
    assert "demographic parity ≤ 1/4 after every 5 decisions" in text
    if policy.condition is not None:
        assert facts["condition"] == policy.condition.words
        assert policy.condition.words in text
    known = facts["condition_probability"]
    assert (known is None) != (kind in ("static-fair", "static-bounded"))
    assert (known is not None) == ("is met" in text)
    if known is not None:
        assert known == policy.condition_probability()
        assert f"in a period with probability {known:.4g}" in text


def test_a_start_that_cannot_be_mended_is_told(command: Any, folder: Path) -> None:
    spec = [*PARITY, *SHARES, "--period", "5", "--start", "a=10:0,b=10:10", "-o", "x.shield"]
    made = command("synthesize", *spec, "--periodic", "dynamic")
    assert made.exit_code == 0
    assert "which ends unfair with probability 1" in made.stdout
    assert "the first period ends unfair" in command("inspect", "x.shield").stdout
    assert command("synthesize", *spec, "--periodic", "perpetual").exit_code == 1


@pytest.mark.parametrize("kind", ["static-fair", "dynamic"])
def test_options_replace_a_window_by_periods(command: Any, folder: Path, kind: str) -> None:
    result = command("synthesize", "loans.toml", "--periodic", kind, "--period", "4", "--json")
    assert json.loads(result.stdout)["period"] == 4


MISTAKES = {
    "no period": (["--periodic", "perpetual"], "no period: say after every how many"),
    "period 0": (["--periodic", "dynamic", "--period", "0"], "at least 1, got 0"),
    "horizon": (
        ["--periodic", "dynamic", "--period", "4", "--horizon", "8"],
        "horizon goes with one window, not with periods",
    ),
    "checkpoint": (
        ["--periodic", "dynamic", "--period", "4", "--checkpoint", "2"],
        "--checkpoint goes with one window, not with periods",
    ),
    "no kind": (["--period", "4"], f"--period goes with --periodic: say which, of {FIRST}"),
    "unknown kind": (["--periodic", "eternal", "--period", "4"], "'eternal' is not one of"),
    "lookahead": (
        ["--periodic", "dynamic", "--period", "4", "--lookahead", "2"],
        "--lookahead does not go with --periodic dynamic, which takes --period and --fallback",
    ),
    "fallback": (
        ["--periodic", "perpetual", "--period", "4", "--fallback", "inactive"],
        "--fallback does not go with --periodic perpetual",
    ),
    "no periods": (["--periodic", "exact", "--period", "4"], "--periodic exact needs --periods"),
    "periods 0": (
        ["--periodic", "exact", "--period", "4", "--periods", "0"],
        "periods must be a whole number of at least 1, got 0",
    ),
    "too long": (
        ["--property", "share-parity", "--periodic", "exact", "--period", "300", "--periods", "9"],
        "horizon 2700 needs about",
    ),
    "lookahead 0": (["--periodic", "perpetual", "--period", "4", "--lookahead", "0"], "got 0"),
    "far apart": (
        ["--periodic", "static-bounded", "--period", "4", "--bounds", "0.1,0.9"],
        "bounds must rise by more than 0 and at most 1/5",
    ),
    "one bound": (
        ["--periodic", "static-bounded", "--period", "4", "--bounds", "0.4"],
        "bounds must be two rates, as in --bounds 0.4,0.6, or 'centred' or 'cheapest'",
    ),
    "another property": (
        ["--periodic", "static-fair", "--period", "4", "--property", "disparate-impact"],
        "Use a Dynamic or an exact periodic shield",
    ),
    "start of one group": (
        ["--periodic", "dynamic", "--period", "4", "--start", "a=1:1"],
        "start says nothing about group 'b'",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence_and_writes_nothing(
    command: Any, folder: Path, name: str
) -> None:
    options, sentence = MISTAKES[name]
    spec = ["--property", "demographic-parity", "--bound", "0.2", *SHARES]
    result = command("synthesize", *spec, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert isinstance(result.exception, SystemExit)
    assert [path.name for path in folder.iterdir()] == ["loans.toml"]


BAD_WORDS = {
    "kind a list": ('periodic = ["exact"]\nperiod = 4', "got ['exact']"),
    "kind a table": ("periodic = {}\nperiod = 4", f"periodic must be one of {FIRST}"),
    "period in quotes": ('periodic = "dynamic"\nperiod = "4"', "at least 1, got '4'"),
    "half a decision": ('periodic = "dynamic"\nperiod = 4.5', "at least 1, got 4.5"),
    "fallback a number": ('periodic = "dynamic"\nperiod = 4\nfallback = 3', "got 3"),
    "one bound": ('periodic = "static-bounded"\nperiod = 4\nbounds = 3', "two rates"),
    "bounds in words": ('periodic = "static-bounded"\nperiod = 4\nbounds = "near"', "got 'near'"),
    "bounds of words": (
        'periodic = "static-bounded"\nperiod = 4\nbounds = ["l", "u"]',
        "a welfare bound must be a number such as '0.1'",
    ),
    "a window, too": ('periodic = "dynamic"\nperiod = 4\nhorizon = 8', "leave out one of the two"),
}


@pytest.mark.parametrize("name", BAD_WORDS)
def test_a_mistake_in_a_file_is_one_sentence(command: Any, folder: Path, name: str) -> None:
    text, sentence = BAD_WORDS[name]
    rest = 'property = "demographic-parity"\nbound = "0.2"\ngroups = {a = 0.4, b = 0.6}\n'
    (folder / "bad.toml").write_text(f"{text}\n{rest}")
    result = command("synthesize", "bad.toml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert isinstance(result.exception, SystemExit)


# run ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "labelled"])
def test_run_decides_as_the_shield_does(
    periodic: Callable[[str], Path],
    log: Callable[[str], Path],
    requests: list[dict[str, Any]],
    kind: str,
) -> None:
    shield = Run(PeriodicPolicy.load(periodic(kind)))
    for i, (request, line) in enumerate(zip(requests, lines_of(log(kind)), strict=True)):
        made = shield.decide(request["group"], proposed=request["proposed"], cost=request["cost"])
        if shield.policy.labelled:
            shield.observe(made, outcome=request["outcome"])
        assert (line["window"], line["position"]) == divmod(i, PERIOD)
        assert (line["accepted"], line["reason"]) == (made.accepted, made.reason)
        assert {key: line[key] for key in request} == request


def test_the_last_period_of_an_exact_policy_ends_the_run(
    command: Any, periodic: Callable[[str], Path], jsonl: str
) -> None:
    result = command("run", periodic("exact"), stdin=jsonl + jsonl)
    assert result.exit_code == 2
    assert len(result.stdout.splitlines()) == 40
    assert "line 41: this run is over after its last period, number 8" in result.stderr
    assert "use a perpetual shield" in result.stderr


def test_a_request_without_outcome_is_refused_where_it_counts(
    command: Any, periodic: Callable[[str], Path]
) -> None:
    result = command("run", periodic("labelled"), stdin='{"group": "a", "proposed": true}\n')
    assert result.exit_code == 2
    assert "line 1: no 'outcome', and equal opportunity ≤ 1/4 counts people" in result.stderr


@pytest.mark.parametrize("kind", [*KINDS, "labelled"])
def test_resuming_in_any_period_gives_the_whole(
    command: Any,
    periodic: Callable[[str], Path],
    log: Callable[[str], Path],
    jsonl: str,
    tmp_path: Path,
    kind: str,
) -> None:
    whole, part = log(kind).read_bytes(), tmp_path / "log.jsonl"
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    # At the end of a period, one decision later, and in the middle of a line.
    for cut in (ends[PERIOD - 1], ends[PERIOD], ends[17] + 30, ends[3 * PERIOD - 1] - 1, 0):
        part.write_bytes(whole[:cut])
        result = command("run", periodic(kind), "--resume", part, "-o", part, stdin=jsonl)
        assert result.exit_code == 0, result.output
        assert part.read_bytes() == whole


def test_a_run_killed_in_its_third_period_is_resumed_exactly(
    command: Any,
    process: Callable[..., Any],
    periodic: Callable[[str], Path],
    log: Callable[[str], Path],
    jsonl: str,
    tmp_path: Path,
) -> None:
    part = tmp_path / "log.jsonl"
    with process("run", periodic("perpetual"), "-o", part) as running:
        running.stdin.write("".join(jsonl.splitlines(keepends=True)[:13]).encode())
        running.stdin.write(b'{"group": "a", "pro')
        running.stdin.flush()
        deadline = time.monotonic() + 50.0
        while not part.exists() or part.read_bytes().count(b"\n") < 13:
            assert time.monotonic() < deadline, "nothing happened"
            time.sleep(0.01)
        running.send_signal(signal.SIGKILL)
    assert running.returncode == -signal.SIGKILL
    result = command("run", periodic("perpetual"), "--resume", part, "-o", part, stdin=jsonl)
    assert result.exit_code == 0
    assert part.read_bytes() == log("perpetual").read_bytes()


def test_the_log_of_another_kind_is_not_resumed(
    command: Any, periodic: Callable[[str], Path], log: Callable[[str], Path], jsonl: str
) -> None:
    result = command("run", periodic("perpetual"), "--resume", log("static-fair"), stdin=jsonl)
    assert result.exit_code == 2
    assert "which is not this policy's decision" in result.stderr


# audit --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "labelled"])
def test_the_audit_finds_what_the_shield_reports(
    command: Any,
    periodic: Callable[[str], Path],
    log: Callable[[str], Path],
    requests: list[dict[str, Any]],
    kind: str,
) -> None:
    shield = Run(PeriodicPolicy.load(periodic(kind)))
    for request in requests:
        made = shield.decide(request["group"], proposed=request["proposed"], cost=request["cost"])
        if shield.policy.labelled:
            shield.observe(made, outcome=request["outcome"])
    result = command("audit", log(kind), "--policy", periodic(kind), "--json")
    report, own = json.loads(result.stdout), shield.guarantee
    assert report["difference"] is None
    assert report["guarantee"]["fair_ends"] == own.fair + own.exempt
    assert len(report["windows"]) == own.completed == 8
    assert report["holds"] == (own.unfair == 0) == (result.exit_code == 0)
    assert max(window["bias"] for window in report["windows"]) == own.largest_bias
    text = command("audit", log(kind), "--policy", periodic(kind)).stdout
    assert "periods " in text
    assert f"{own.fair} of 8 periods ended fair" in " ".join(text.split())


def test_an_audit_by_period_needs_no_policy(command: Any, log: Callable[[str], Path]) -> None:
    options = [*PARITY, "--period", PERIOD]
    for kind in ("exact", "perpetual"):
        report = json.loads(command("audit", log(kind), *options, "--json").stdout)
        assert report["holds"]
        assert "guarantee" not in report
        seen = [sum(n for _, n, _ in window["counts"]) for window in report["windows"]]
        assert seen == list(range(PERIOD, 41, PERIOD)), "counters go on from period to period"
    text = command("audit", log("exact"), *options).stdout
    assert "held at the end of every period" in text


def test_a_changed_decision_is_found(
    command: Any, periodic: Callable[[str], Path], log: Callable[[str], Path]
) -> None:
    lines = lines_of(log("perpetual"))
    lines[16] |= {key: not lines[16][key] for key in ("accepted", "overruled")}
    text = "".join(json.dumps(line) + "\n" for line in lines)
    result = command("audit", "-", "--policy", periodic("perpetual"), stdin=text)
    assert "line 17" in result.stdout
    assert "the policy would have" in result.stdout
    result = command("audit", "-", "--policy", periodic("perpetual"), "--json", stdin=text)
    found = json.loads(result.stdout)
    assert (found["difference"]["line"], found["guarantee"]) == (17, None)


def test_audits_that_contradict_themselves_are_refused(
    command: Any, periodic: Callable[[str], Path], plain: Path, log: Callable[[str], Path]
) -> None:
    own = ["--policy", periodic("dynamic")]
    for options, sentence in (
        ([*PARITY, "--period", "5", "--horizon", "5"], "neither a horizon nor checkpoints"),
        ([*PARITY, "--period", "5", "--checkpoint", "2"], "neither a horizon nor checkpoints"),
        ([*PARITY, "--period", "0"], "period must be a whole number of at least 1, got 0"),
        (["--period", "5"], "--policy POLICY, or --property and --bound"),
        ([*own, "--period", "6"], "period 6 is not the policy's 5"),
        ([*own, "--horizon", "5"], "--horizon 5 is not the policy's none: leave it out"),
        (["--policy", plain, "--period", "5"], "--period 5 is not the policy's none"),
    ):
        result = command("audit", log("dynamic"), *options)
        assert (result.exit_code, result.stdout) == (2, "")
        assert sentence in result.stderr


def test_a_log_longer_than_the_plan_names_its_line(
    command: Any, periodic: Callable[[str], Path], log: Callable[[str], Path]
) -> None:
    text = log("exact").read_text() * 2
    result = command("audit", "-", "--policy", periodic("exact"), stdin=text)
    assert result.exit_code == 2
    assert "line 41: this run is over after its last period, number 8" in result.stderr


# verify -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "scope"),
    [("exact", "all that can be reached"), ("perpetual", "later periods rest on a theorem")],
)
def test_a_promise_without_condition_is_confirmed(
    command: Any, periodic: Callable[[str], Path], kind: str, scope: str
) -> None:
    result = command("verify", periodic(kind))
    assert (result.exit_code, result.stderr) == (0, "")
    assert scope in result.stdout
    facts = json.loads(command("verify", periodic(kind), "--json").stdout)
    assert facts["holds"]
    assert facts["counterexample"] is None


@pytest.mark.parametrize("kind", ["static-fair", "static-bounded"])
def test_the_audit_reproduces_a_counterexample(
    command: Any, periodic: Callable[[str], Path], tmp_path: Path, kind: str
) -> None:
    found = command("verify", periodic(kind))
    assert found.exit_code == 1
    assert "guarantee violated: " in found.stderr
    assert "assumes that in every period" in found.stderr
    assert "broken at decision" in found.stderr or "of 5 decisions can meet it" in found.stderr
    audited = command("audit", "-", "--policy", periodic(kind), "--json", stdin=found.stdout)
    report = json.loads(audited.stdout)
    assert (audited.exit_code, report["difference"]) == (1, None)
    assert report["violations"][0]["line"] == report["decisions"]
    log = tmp_path / "broken.jsonl"
    again = command("verify", periodic(kind), "--counterexample", log)
    assert (again.exit_code, again.stderr) == (1, "")
    assert log.read_text() == found.stdout
    facts = json.loads(command("verify", periodic(kind), "--json").stdout)
    assert not facts["guarantee"]["held"]
    assert facts["guarantee"]["unfair_at"] == len(facts["counterexample"]["decisions"])


def test_one_period_of_a_dynamic_policy_holds(
    command: Any, periodic: Callable[[str], Path]
) -> None:
    result = command("verify", periodic("dynamic"), "--periods", "1")
    assert result.exit_code == 0
    assert "no violation in 1 period (" in result.stdout
    assert "nothing is shown about later periods" in result.stdout


def test_periods_nobody_asked_about_are_not_enough(command: Any, tmp_path: Path) -> None:
    path = tmp_path / "p.shield"
    spec = ["--property", "demographic-parity", "--bound", "0.5", *SHARES]
    command("synthesize", *spec, "--periodic", "dynamic", "--period", 4, "-o", path)
    for options, status in (([], 3), (["--periods", "2"], 0)):
        result = command("verify", path, *options)
        assert (result.exit_code, result.stderr) == (status, "")
        assert "no violation in 2 periods (" in result.stdout
        assert "nothing is shown about later periods" in result.stdout


# explain ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "labelled"])
def test_every_overruled_line_gets_one_sentence(
    command: Any, periodic: Callable[[str], Path], log: Callable[[str], Path], kind: str
) -> None:
    lines = lines_of(log(kind))
    overruled = [(n, line) for n, line in enumerate(lines, start=1) if line["overruled"]]
    sentences = command("explain", periodic(kind), log(kind)).stdout.splitlines()
    assert len(sentences) == len(overruled)
    for sentence, (n, line) in zip(sentences, overruled, strict=True):
        assert sentence.startswith(f"line {n}: Period {line['window'] + 1}. Decision ")
        assert "although" in sentence
    result = command("explain", periodic(kind), log(kind), "--all", "--json")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(a["window"], a["position"]) for a in answers] == [
        divmod(i, PERIOD) for i in range(len(lines))
    ]


def test_what_run_explains_is_what_explain_explains(
    command: Any, periodic: Callable[[str], Path], log: Callable[[str], Path], jsonl: str
) -> None:
    kind = "perpetual"
    result = command("run", periodic(kind), "--explain", stdin=jsonl)
    told = [json.loads(line)["explanation"] for line in result.stdout.splitlines()]
    for n, line in enumerate(lines_of(log(kind)), start=1):
        if line["overruled"]:
            asked = command("explain", periodic(kind), log(kind), "--line", n).stdout
            assert asked == f"line {n}: {told[n - 1]}\n"
        else:
            assert told[n - 1] is None


def test_mistakes_in_asking_are_told(
    command: Any, periodic: Callable[[str], Path], jsonl: str
) -> None:
    policy = periodic("dynamic")
    result = command("explain", policy, "--group", "a", "--proposed", "accept")
    assert result.exit_code == 2
    assert "depends on the whole run, so explain a log that run has written" in result.stderr
    result = command("explain", policy, "-", stdin=jsonl)
    assert result.exit_code == 2
    assert "Error: -: line 1: no 'accepted', the fields are 'id'," in result.stderr


# simulate -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_simulate_gives_the_librarys_numbers(
    command: Any, periodic: Callable[[str], Path], kind: str
) -> None:
    policy = PeriodicPolicy.load(periodic(kind))
    options = ["--runs", "7", "--periods", "3", "--seed", "5"]
    facts = json.loads(command("simulate", periodic(kind), *options, "--json").stdout)
    streams = Streams.drawn(
        policy.prop, policy.inputs, period=PERIOD, periods=3, runs=7, rng=np.random.default_rng(5)
    )
    expected = json.loads(json.dumps(compare({kind: policy}, streams).to_dict()))
    assert facts == expected | {"seed": 5}
    text = command("simulate", periodic(kind), *options).stdout
    assert "3 periods, 7 runs, seed 5" in text
    assert f"\n{kind}" in text


def test_an_exact_policy_is_simulated_to_its_end(
    command: Any, periodic: Callable[[str], Path]
) -> None:
    facts = json.loads(command("simulate", periodic("exact"), "--runs", "2", "--json").stdout)
    assert facts["periods"] == 8
    assert facts["shields"][1]["fair"]["value"] == 1.0


def test_other_inputs_change_the_cost_but_not_the_promise(
    command: Any, periodic: Callable[[str], Path]
) -> None:
    options = ["--runs", "5", "--periods", "2", "--groups", "b=0.9,a=0.1", "--json"]
    facts = json.loads(command("simulate", periodic("perpetual"), *options).stdout)
    assert facts["shields"][1]["fair"]["value"] == 1.0


def test_mistakes_in_simulating_and_verifying_are_told(
    command: Any, periodic: Callable[[str], Path], plain: Path, folder: Path
) -> None:
    (folder / "bare.csv").write_text("group,proposed\na,1\nb,0\n")
    for arguments, sentence in (
        (["simulate", plain, "--periods", "3"], "leave out --periods"),
        (["verify", plain, "--periods", "3"], "leave out --periods"),
        (["simulate", periodic("exact"), "--periods", "9"], "for 8 periods cannot decide 9"),
        (["simulate", periodic("dynamic"), "--groups", "x=0.5,y=0.5"], "name them as the policy"),
        (["simulate", periodic("labelled"), "--inputs", "bare.csv"], "no outcome probabilities"),
        (["verify", periodic("dynamic"), "--periods", "0"], "not in the range"),
    ):
        result = command(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert sentence in result.stderr


# Files that are something else --------------------------------------------------------------


def test_either_kind_of_file_says_how_to_load_it(
    periodic: Callable[[str], Path], plain: Path
) -> None:
    with pytest.raises(fs.ArtifactError, match=r"load it with PeriodicPolicy\.load"):
        fs.Policy.load(periodic("exact"))
    with pytest.raises(fs.ArtifactError, match=r"load it with Policy\.load"):
        PeriodicPolicy.load(plain)


READERS = ("inspect", "run", "verify", "explain", "simulate")


@pytest.mark.parametrize("reader", READERS)
def test_a_damaged_file_is_refused(
    command: Any, periodic: Callable[[str], Path], folder: Path, reader: str
) -> None:
    whole = periodic("exact").read_bytes()
    for damaged in (b"", whole[:40], whole[:200], whole[:-1], whole[:300] + b"!" + whole[301:]):
        (folder / "damaged.shield").write_bytes(damaged)
        more = ["-"] if reader == "explain" else []
        result = command(reader, "damaged.shield", *more, stdin="")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "damaged.shield" in result.stderr
        assert isinstance(result.exception, SystemExit)


TWISTS = {
    "an unknown kind": {"kind": "eternal"},
    "a period of letters": {"period": "x"},
    "an option of another kind": {"options": {"lookahead": 3}},
    "no options": {"options": None},
    "impossible counters": {"start": [[1, 2], [0, 0]]},
}


@pytest.mark.parametrize("name", TWISTS)
def test_a_header_that_makes_no_sense_is_refused(
    command: Any, periodic: Callable[[str], Path], folder: Path, name: str
) -> None:
    data, arrays = read_artifact(periodic("dynamic"))
    write_artifact("odd.shield", data | {"periodic": data["periodic"] | TWISTS[name]}, arrays)
    result = command("inspect", "odd.shield")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "odd.shield: not a policy" in result.stderr


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("exact", {"period": 4}),
        ("exact", {"options": {"periods": 9}}),
        ("exact", {"property": fs.DemographicParity("0.1").to_dict()}),
        ("exact", {"start": [[4, 2], [4, 2]]}),
        ("static-fair", {"period": 6}),
    ],
)
def test_tables_of_another_promise_prove_nothing(
    command: Any, periodic: Callable[[str], Path], folder: Path, kind: str, change: Any
) -> None:
    data, arrays = read_artifact(periodic(kind))
    write_artifact("odd.shield", data | {"periodic": data["periodic"] | change}, arrays)
    result = command("verify", "odd.shield")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "odd.shield" in result.stderr
