"""Records as other programs write them: every way to write the same gives the same values."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fairshield as fs
from fairshield.records.lines import Trace, decoded
from fairshield.records.reading import FIELDS
from fairshield.records.tables import Table

HEADER = ["group", "accepted", "cost"]


def read(text: str, **options: Any) -> list[dict[str, Any]]:
    reading = fs.Reading(**{"format": "csv", **options})
    return [record.fields for record in reading.read(io.StringIO(text, newline=""))]


def lines_of(text: str, **options: Any) -> list[int]:
    reading = fs.Reading(**{"format": "csv", **options})
    return [record.line for record in reading.read(io.StringIO(text, newline=""))]


# Separators ---------------------------------------------------------------------------------

cells = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=8)


@given(
    rows=st.lists(st.tuples(cells, cells).filter(lambda row: any(c.strip() for c in row))),
    separator=st.sampled_from([",", ";", "\t", "|"]),
    declared=st.booleans(),
    empty=st.integers(0, 3),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_a_table_is_read_the_same_however_its_cells_are_separated(
    rows: list[tuple[str, str]], separator: str, declared: bool, empty: int, end: str
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator=end)
    if declared:
        text.write(f"sep={separator}{end}")
    writer.writerow(["id", "note", *[""] * empty])
    for row in rows:
        writer.writerow([*row, *[""] * empty])
        text.write(end)  # a blank line after each
    table = Table(io.StringIO(text.getvalue(), newline=""))
    assert table.separator == separator
    assert [tuple(fields.values()) for _, fields in table] == rows


@pytest.mark.parametrize(
    ("header", "separator"),
    [
        ("group", ","),
        ("a,b;c;d", ";"),
        ('"a;b;c",d', ","),
        ("a b\tc,\td", "\t"),
        ('"x\ny";z', ";"),
        ('5" pipe;group', ";"),
        ('"a ""b"", c";d', ";"),
    ],
)
def test_the_sign_that_makes_most_columns_separates_them(header: str, separator: str) -> None:
    assert Table(io.StringIO(header + "\n")).separator == separator


def test_a_header_that_two_signs_part_alike_needs_an_answer() -> None:
    with pytest.raises(fs.InvalidValueError, match=r"by ',' or ';'.*separator=';'"):
        read("a,b;c\n")
    assert read("a,b;c\n1;2\n", separator=";") == [{"a,b": "1", "c": "2"}]


def test_lines_are_counted_as_an_editor_counts_them() -> None:
    text = 'sep=;\n\n"gro\nup";accepted\na;1\n\n;\n"b\nc";0\n'
    assert lines_of(text) == [5, 9]
    with pytest.raises(fs.InvalidValueError, match="line 10: 3 fields where the header has 2"):
        lines_of(text + "d;1;x\n")


def test_a_quotation_mark_within_a_name_opens_nothing() -> None:
    def endless() -> Any:
        yield '5" pipe;group\n'
        yield "1;a\n"
        raise AssertionError("read further than asked")

    (name, group) = next(fs.Reading(format="csv").read(endless())).fields.values()
    assert (name, group) == ("1", "a")


@pytest.mark.parametrize("text", ["comma,", "", "ab", '"', "\n", "a", "1"])
def test_what_cannot_separate_is_refused(text: str) -> None:
    with pytest.raises(fs.InvalidValueError, match="cannot separate columns by"):
        fs.Reading(separator=text)


def test_a_value_beyond_the_named_columns_is_refused() -> None:
    assert read("group,accepted,,\na,1\nb,0,,\nc,1,,,\n")[2] == {"group": "c", "accepted": "1"}
    with pytest.raises(fs.InvalidValueError, match="line 2: 3 fields where the header has 2"):
        read("group,accepted,\na,1,Miller\n")


def test_names_are_those_that_people_read() -> None:
    (record,) = read("Net\N{NO-BREAK SPACE}income ;group\n5;\N{NO-BREAK SPACE}f \n")
    assert record["Net income"] == "5"
    assert record["group"] == "f"


# Numbers ------------------------------------------------------------------------------------


@given(st.floats(0, 1e9), st.sampled_from([",", ";", "\t", None]))
@example(1.125, ";")
@example(1e-7, "\t")
def test_no_number_is_read_as_another(number: float, separator: str | None) -> None:
    """Whatever is declared or seen: the number itself, or an error."""
    for sign in ".,":
        written = repr(number).replace(".", sign)
        for decimal in (".", ",", None):
            if separator is None:
                text, options = json.dumps({"cost": written}), {"format": "jsonl"}
            else:
                text, options = f'x{separator}cost\n1{separator}"{written}"\n', {}
            reading = fs.Reading(**{"format": "csv", "decimal": decimal, **options})
            try:
                (record,) = reading.read(io.StringIO(text))
                found: Any = record.cost()
            except fs.InvalidValueError as error:
                found = str(error)
            assert found == number or (repr(written) in str(found) and decimal != sign)


@pytest.mark.parametrize("decimal", [".", ",", None])
@pytest.mark.parametrize(
    "written",
    [
        "1.000,5",
        "1,000.5",
        "1 000",
        "1\N{NO-BREAK SPACE}000,5",
        "1'000",
        "1_000",
        "5 %",
        "1.2.3",
        "1,2,3",
    ],
)
def test_thousands_are_refused(written: str, decimal: Any) -> None:
    reading = fs.Reading(format="csv", decimal=decimal)
    with pytest.raises(fs.InvalidValueError, match="line 2: cost: "):
        [record.cost() for record in reading.read(["id;cost\n", f"1;{written}\n"])]


@pytest.mark.parametrize("written", ["1.000", "12,500", "999.999"])
def test_what_may_be_thousands_or_decimals_needs_an_answer(written: str) -> None:
    for separator in (";", "\t", "|"):
        with pytest.raises(fs.InvalidValueError, match=r"decimal='\.' or decimal=','"):
            read(f"group{separator}cost\na{separator}{written}\n")
    assert read("group,cost\na,1.000\n") == [{"group": "a", "cost": "1.000"}]
    assert read("group;cost\na;1.000\n", decimal=".") == [{"group": "a", "cost": "1.000"}]
    assert read("group;cost\na;1,000\n", decimal=",") == [{"group": "a", "cost": 1.0}]


def test_other_columns_stay_as_they_are() -> None:
    (record,) = read(
        "betrag;am;preis;note\n1.000,5;31.12.2025;0,35; x \n", columns={"cost": ("preis",)}
    )
    assert record == {
        "betrag": "1.000,5", "am": "31.12.2025", "preis": "0,35", "note": " x ", "cost": 0.35,
    }  # fmt: skip


# Words --------------------------------------------------------------------------------------

OWN = {"yes_words": {"": ("Approved", "genehmigt")}, "no_words": {"": ("declined",)}}


@pytest.mark.parametrize(
    ("word", "flag"),
    [("approved", True), (" GENEHMIGT ", True), ("Declined", False), ("declined\xa0", False)],
)
def test_own_words_mean_what_was_said(word: str, flag: bool) -> None:
    for field in ("proposed", "accepted", "outcome"):
        assert read(f"id;{field}\n1;{word}\n", **OWN)[0][field] is flag


@pytest.mark.parametrize("word", ["1", "0", "true", "pending", "approve", "x"])
def test_own_words_take_the_place_of_ours(word: str) -> None:
    with pytest.raises(fs.InvalidValueError) as caught:
        read(f"id;accepted\n1;{word}\n", **OWN)
    told = str(caught.value)
    assert (
        f"line 2: accepted: '{word}' means neither yes (approved, genehmigt) nor no (decl" in told
    )
    assert "yes_words= or no_words=" in told


def test_words_of_one_field_leave_others_alone() -> None:
    words = {"yes_words": {"outcome": ("1",)}, "no_words": {"outcome": ("2",)}}
    (record,) = read("accepted;outcome\n0;2\n", **words)
    assert (record["accepted"], record["outcome"]) == ("0", False)
    with pytest.raises(fs.InvalidValueError, match="outcome: '0' means neither"):
        read("accepted;outcome\n0;0\n", **words)


def test_what_is_said_of_one_side_leaves_the_other() -> None:
    turned = {"yes_words": {"outcome": ("0",)}, "no_words": {"outcome": ("1",)}}
    for number in (0, 0.0, "0"):
        lines = [json.dumps({"outcome": number})]
        (record,) = fs.Reading(**turned).read(lines)
        assert record.flag("outcome") is True
    (record,) = fs.Reading(yes_words={"": ("ok",)}).read(['{"accepted": "no"}'])
    assert record.flag("accepted") is False
    with pytest.raises(fs.InvalidValueError, match="'1' means neither"):
        list(fs.Reading(yes_words={"": ("ok",)}).read(['{"accepted": "1"}']))


def test_truth_values_of_json_mean_what_was_said() -> None:
    inverted = fs.Reading(
        columns={"accepted": ("denied",)},
        yes_words={"accepted": ("false",)},
        no_words={"accepted": ("true",)},
    )
    for text in ('{"group": "a", "denied": true}\n', '{"group": "a", "denied": "true"}\n'):
        (record,) = inverted.read([text], "log.jsonl")
        assert record.flag("accepted") is False
    approved = fs.Reading(yes_words={"": ("approved",)}, no_words={"": ("denied",)})
    with pytest.raises(fs.InvalidValueError, match="True means neither yes"):
        list(approved.read(['{"group": "a", "accepted": true}\n'], "log.jsonl"))


def test_a_word_has_one_meaning() -> None:
    with pytest.raises(fs.InvalidValueError, match="'ok' means both yes and no in proposed"):
        fs.Reading(yes_words={"": ("OK",)}, no_words={"": ("ok",)})
    with pytest.raises(fs.InvalidValueError, match="'group' has no words"):
        fs.Reading(yes_words={"group": ("a",)})


# Encodings ----------------------------------------------------------------------------------


@given(st.text(st.characters(codec="cp1252", exclude_characters="\r\n\0\x1a\ufeff")))
def test_text_is_the_same_in_every_encoding(text: str) -> None:
    whole = f"{text}\ngrüße\n"
    for encoding in ("utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le"):
        content = io.BytesIO(whole.encode(encoding))
        said = None if encoding in ("utf-8", "utf-8-sig", "utf-16") else encoding
        if said == "cp1252" and content.getvalue().startswith(b"\xef\xbb\xbf"):
            continue
        assert "".join(decoded(content, said)) == whole


def test_bytes_that_are_not_utf_8_name_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_bytes("group;accepted\nweiß;1\nmöglich;0\n".encode("cp1252"))
    with (
        pytest.raises(fs.InvalidValueError, match=r"line 2: not UTF-8 text.*encoding='cp1252'"),
        fs.Reading().open(path) as records,
    ):
        list(records)
    with fs.Reading(encoding="cp1252").open(path) as records:
        assert [record.group() for record in records] == ["weiß", "möglich"]


def test_a_text_that_ends_within_a_character_is_refused() -> None:
    with pytest.raises(fs.InvalidValueError, match="line 2: not UTF-8 text"):
        list(decoded([b"group,accepted\n", b"b,0\xc3"]))


@pytest.mark.parametrize("said", [None, "utf-16", "utf-16-le", "utf-32", "utf-32-le"])
def test_the_mark_of_wide_text_is_no_part_of_it(said: str | None) -> None:
    for wide in ("utf-16", "utf-32"):
        if said is None or said.startswith(wide):
            content = io.BytesIO("group,accepted\na,1\n".encode(wide))
            assert list(decoded(content, said)) == ["group,accepted\n", "a,1\n"]


def test_what_is_no_encoding_is_refused(tmp_path: Path) -> None:
    for name in ("klingon", "base64", ""):
        with pytest.raises(fs.InvalidValueError, match="unknown encoding"):
            fs.Reading(encoding=name)
    with pytest.raises(fs.InvalidValueError, match="begins with the mark of UTF-8"):
        list(decoded([b"\xef\xbb\xbfgroup\n"], "cp1252"))


def test_the_trace_is_that_of_the_bytes(tmp_path: Path) -> None:
    path, trace = tmp_path / "x.csv", Trace()
    path.write_bytes("sep=;\ngroup;accepted\nä;1\n".encode("utf-16"))
    with fs.Reading().open(path, trace) as records:
        assert [record.group() for record in records] == ["ä"]
    assert trace.size == path.stat().st_size


# What is refused, and what is said ----------------------------------------------------------

SECRET = "Erika Mustermann"
SPOILT = {
    "a flag": f"name;group;accepted\n{SECRET};a;vielleicht\n",
    "an empty flag": f"name;group;accepted\n{SECRET};a;\n",
    "no such field": f"name;group\n{SECRET};a\n",
    "too many cells": f"name;group;accepted\n{SECRET};a;1;2;3\n",
    "too few cells": f"name;group;accepted\n{SECRET};a\n",
    "a cost": f"name;group;accepted;cost\n{SECRET};a;1;x\n",
    "an empty group": f"name;group;accepted\n{SECRET};;1\n",
    "not JSON": f"{SECRET}",
    "not an object": json.dumps([SECRET]),
    "half an object": json.dumps({"name": SECRET})[:-1],
}


@pytest.mark.parametrize("name", SPOILT)
def test_no_message_tells_a_persons_record(name: str) -> None:
    options = {"format": "csv" if ";" in SPOILT[name] else "jsonl"}
    with pytest.raises(fs.InvalidValueError) as caught:
        fs.audit(
            fs.DemographicParity("0.1"),
            fs.Reading(**options).read(io.StringIO(SPOILT[name])),
            groups=("a", "b"),
        )
    assert "line " in str(caught.value)
    assert SECRET not in str(caught.value)


def test_mistakes_in_how_to_read_are_found_before_reading() -> None:
    for wrong, said in (
        ({"decimal": "'"}, "decimal must be"),
        ({"columns": {"sex": ("group",)}}, "'sex' is no field"),
        ({"columns": "sex"}, r"columns must say which.*columns=\{'group': 'COLUMN'\}, got 'sex'"),
        ({"columns": {"group": 3}}, "columns must be a name or a list of names, got 3"),
        ({"yes_words": 3}, "yes_words must be a name or a list of names, got 3"),
        ({"format": "jsonl", "separator": ";"}, "separator= is for CSV"),
    ):
        with pytest.raises(fs.InvalidValueError, match=said):
            fs.Reading(**wrong)
    assert "score" in FIELDS


def test_what_a_message_advises_can_be_written_as_it_says() -> None:
    """Of columns and words the remedy shows one name, which need not stand in a tuple."""
    lines, columns = ["sex;urteil\n", "f;ja\n"], {"group": "sex", "accepted": "urteil"}
    advised: dict[str, str] = {}
    for field, theirs in columns.items():
        (record,) = fs.Reading(format="csv", columns=advised).read(lines)
        read = record.group if field == "group" else record.flag
        with pytest.raises(fs.InvalidValueError) as caught:
            read(field)
        remedy = f"columns={{{field!r}: 'COLUMN'}}"
        assert remedy in str(caught.value)
        advised |= eval(remedy.removeprefix("columns=").replace("COLUMN", theirs))
    for words in ("ja", ["ja"], ("ja",), {"": "ja"}, {"accepted": ["ja"]}):
        reading = fs.Reading(format="csv", columns=advised, yes_words=words)
        (record,) = reading.read(lines)
        assert (record.group(), record.flag("accepted")) == ("f", True)
    assert fs.Reading(columns=advised) == fs.Reading(
        columns={field: (theirs,) for field, theirs in columns.items()}
    )


def test_an_input_model_is_estimated_from_any_csv(tmp_path: Path) -> None:
    plain, theirs = tmp_path / "plain.csv", tmp_path / "theirs.csv"
    plain.write_text("group,proposed,cost\na,1,0.5\nb,0,1.25\nb,1,0.5\n")
    theirs.write_bytes(
        "sep=;\nsex;urteil;preis\na;ja;0,5\nb;nein;1,25\nb;ja;0,5\n".encode("cp1252")
    )
    reading = fs.Reading(
        columns={"group": ("sex",), "proposed": ("urteil",), "cost": ("preis",)},
        yes_words={"": ("ja",)},
        no_words={"": ("nein",)},
        encoding="cp1252",
    )
    ours = fs.InputModel.from_csv(plain)
    assert fs.InputModel.from_csv(theirs, reading=reading).to_dict() == ours.to_dict()


def test_words_may_be_a_set_and_columns_are_in_order() -> None:
    reading = fs.Reading(format="csv", yes_words={"accepted": {"ja", "oui"}}, no_words={"non"})
    assert sorted(reading.yes_words["accepted"]) == ["ja", "oui"]
    with pytest.raises(fs.InvalidValueError, match="columns must be a name or a list of names"):
        fs.Reading(columns={"group": {"sex", "age"}})
