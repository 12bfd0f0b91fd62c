"""Files that are not whole policies are refused, whatever happened to them."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path

import pytest

import fairshield as fs
from fairshield.policy.artifact import FORMAT_VERSION, MAGIC

PREFIX = 48


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "loans.shield"


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A policy with rows of every form: three cost levels, checkpoint, irregular rows."""
    table = {(g, r, c): 1 / 12 for g in "ab" for r in (False, True) for c in (0.5, 1.0, 2.0)}
    inputs = fs.InputModel.from_table(table)
    policy = fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=6, checkpoints=(3,))
    file = tmp_path_factory.mktemp("whole") / "whole.shield"
    policy.save(file)
    return file.read_bytes()


def header_length(content: bytes) -> int:
    return int(struct.unpack_from("<I", content, 12)[0])


def refused(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(fs.ArtifactError) as caught:
        fs.Policy.load(path)
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


def test_the_whole_file_is_accepted(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert fs.Policy.load(path).horizon == 6


def test_an_empty_file(path: Path) -> None:
    assert "is empty (0 bytes" in refused(path, b"")


def test_a_picture_with_another_name(path: Path) -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + bytes(200)
    assert "not a fairshield policy" in refused(path, png)


@pytest.mark.parametrize("junk", [b"a", b"{}", b"group,proposed\na,1\n" * 10, bytes(1000)])
def test_files_of_other_kinds(path: Path, junk: bytes) -> None:
    assert "not a fairshield policy" in refused(path, junk)


def test_a_missing_file_is_a_missing_file(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        fs.Policy.load(path)


def test_files_cut_short_anywhere(path: Path, content: bytes) -> None:
    body = PREFIX + header_length(content)
    lengths = {
        *range(PREFIX + 3), body - 64, body - 1, body, body + 1, body + 63, body + 64,
        len(content) // 2, len(content) - 64, len(content) - 1, *range(100, len(content), 97),
    }  # fmt: skip
    for length in sorted(lengths):
        message = refused(path, content[:length])
        assert any(w in message for w in ("truncated", "not a fairshield", "empty")), length


@pytest.mark.parametrize("more", [b"\0", b" " * 64, b"FSHIELD\n"])
def test_files_with_something_behind_them(path: Path, content: bytes, more: bytes) -> None:
    assert "does not match its SHA-256 digest" in refused(path, content + more)


def test_every_flipped_bit_of_the_prefix_is_noticed(path: Path, content: bytes) -> None:
    for at in range(PREFIX):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[at] ^= 1 << bit
            refused(path, bytes(damaged))


def test_flipped_bits_behind_the_prefix_are_noticed(path: Path, content: bytes) -> None:
    for at in range(PREFIX, len(content), 13):
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        assert "does not match its SHA-256 digest" in refused(path, bytes(damaged))


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 99, 2**32 - 1])
def test_newer_formats_ask_for_a_newer_library(path: Path, content: bytes, version: int) -> None:
    newer = content[:8] + struct.pack("<I", version) + content[12:]
    message = refused(path, newer)
    assert f"format version {version}" in message
    assert f"reads up to {FORMAT_VERSION}" in message
    assert "upgrade fairshield" in message


def test_the_prefix_is_what_is_documented(content: bytes) -> None:
    assert content[:8] == MAGIC == b"FSHIELD\n"
    assert struct.unpack_from("<I", content, 8) == (FORMAT_VERSION,)
    length = header_length(content)
    assert (PREFIX + length) % 64 == 0
    header = json.loads(content[PREFIX : PREFIX + length])
    assert header["horizon"] == 6
    assert header["property"]["kind"] == "demographic-parity"
    assert header["library"] == fs.__version__
    assert all(entry["offset"] % 64 == 0 for entry in header["arrays"])


def test_a_key_that_stands_twice_is_refused(path: Path, content: bytes) -> None:
    length = header_length(content)
    header = content[PREFIX : PREFIX + length].rstrip()
    twice = header[:-1] + b', "horizon": 7}'
    padded = twice + b" " * (-(len(twice) + PREFIX) % 64)
    body = padded + content[PREFIX + length :]
    head = content[:12] + struct.pack("<I", len(padded))
    digest = hashlib.sha256(head + body).digest()
    assert "a key stands twice" in refused(path, head + digest + body)
