"""A raw file is the published one, or there is an error that says what to do."""

from __future__ import annotations

import hashlib
import io
import os
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import fairshield as fs
from fairshield_experiments.data import FILES, Address, DataError, RawFile, load, locate, sources

CONTENT = b"age,sex\n39,Male\n" * 10_000


def raw(*addresses: Address, path: str = "people/people.csv") -> RawFile:
    return RawFile(
        path=path,
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        addresses=addresses,
    )


def zipped(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return stream.getvalue()


INNER = zipped("folder/people.csv", CONTENT)
PAGES = {
    "/people.csv": CONTENT,
    "/other.csv": b"<html>moved</html>",
    "/people.zip": zipped("people.csv", CONTENT),
    "/nested.zip": zipped("inner.zip", INNER),
    "/damaged.zip": INNER[:200] + bytes(100) + INNER[300:],
    "/cut.zip": INNER[:-50],
}


class Handler(BaseHTTPRequestHandler):
    def __init__(self, requests: list[str], *args: object) -> None:
        self.requests = requests
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.requests.append(self.path)
        if self.path == "/truncated.csv":
            self.answer(CONTENT[:-1000], announced=len(CONTENT))
        elif self.path in PAGES:
            self.answer(PAGES[self.path], announced=len(PAGES[self.path]))
        else:
            self.send_error(503)

    def answer(self, content: bytes, *, announced: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(announced))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Nothing is printed."""


class Server:
    """Pages on this machine, and which of them were asked for."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, self.requests))

    def address(self, page: str, *members: str) -> Address:
        return Address(f"http://127.0.0.1:{self.http.server_port}/{page}", members)


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.http.shutdown()
    thread.join()
    server.http.server_close()


@pytest.fixture
def server(running: Server) -> Server:
    running.requests.clear()
    return running


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; no directory is given."""
    monkeypatch.delenv("FAIRSHIELD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "fairshield" / "data"


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that FAIRSHIELD_DATA names."""
    monkeypatch.setenv("FAIRSHIELD_DATA", str(tmp_path))
    return tmp_path


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def files_below(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


class TestGivenDirectory:
    def test_the_published_file_is_found(self, given: Path) -> None:
        path = put(given / "people/people.csv", CONTENT)
        assert locate(raw()) == path

    def test_a_missing_file_is_named_with_its_address_and_never_downloaded(
        self, given: Path, server: Server
    ) -> None:
        address = server.address("people.csv")
        with pytest.raises(DataError) as caught:
            locate(raw(address))
        for words in (str(given / "people/people.csv"), raw().sha256, "160,000", address.url):
            assert words in str(caught.value)
        assert server.requests == []

    @pytest.mark.parametrize(
        "content",
        [CONTENT[:-1], CONTENT.replace(b"Male", b"MALE", 1), b""],
        ids=["truncated", "altered", "empty"],
    )
    def test_another_file_is_refused_with_both_checksums_and_sizes(
        self, given: Path, server: Server, content: bytes
    ) -> None:
        path = put(given / "people/people.csv", content)
        with pytest.raises(DataError) as caught:
            locate(raw(server.address("people.csv")))
        found = hashlib.sha256(content).hexdigest()
        for words in (str(path), raw().sha256, "160,000", found, f"{len(content):,} bytes"):
            assert words in str(caught.value)
        assert server.requests == []
        assert path.read_bytes() == content

    def test_a_directory_in_place_of_the_file_is_refused(self, given: Path) -> None:
        (given / "people/people.csv").mkdir(parents=True)
        with pytest.raises(DataError, match="cannot be read"):
            locate(raw())

    def test_a_file_changed_after_it_was_found_is_refused_the_next_time(self, given: Path) -> None:
        path = put(given / "people/people.csv", CONTENT)
        locate(raw())
        path.write_bytes(CONTENT[::-1])
        with pytest.raises(DataError):
            locate(raw())

    def test_the_error_is_the_librarys_and_the_builtin(self, given: Path) -> None:
        for kind in (fs.FairshieldError, OSError):
            with pytest.raises(kind, match=r"german\.data does not exist"):
                load("german-age")


class TestCache:
    def test_the_cache_saves_the_download(self, cache: Path, server: Server) -> None:
        path = put(cache / "people/people.csv", CONTENT)
        assert locate(raw(server.address("people.csv"))) == path
        assert server.requests == []

    def test_a_damaged_file_in_the_cache_is_replaced(self, cache: Path, server: Server) -> None:
        path = put(cache / "people/people.csv", CONTENT[:-1])
        assert locate(raw(server.address("people.csv"))) == path
        assert path.read_bytes() == CONTENT

    def test_an_empty_variable_is_not_set(
        self, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FAIRSHIELD_DATA", "")
        path = put(cache / "people/people.csv", CONTENT)
        assert locate(raw()) == path

    def test_it_lies_in_the_home_directory_unless_told_otherwise(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setattr(Path, "home", lambda: tmp_path)
        assert sources.cache_directory() == tmp_path / ".cache/fairshield/data"


class TestDownload:
    @pytest.mark.parametrize(
        "where",
        [
            ("people.csv",),
            ("people.zip", "people.csv"),
            ("nested.zip", "inner.zip", "folder/people.csv"),
        ],
        ids=["plain", "zip", "nested zip"],
    )
    def test_it_leaves_the_file_in_the_cache_and_nothing_else(
        self, cache: Path, server: Server, where: tuple[str, ...]
    ) -> None:
        path = locate(raw(server.address(*where)))
        assert path == cache / "people/people.csv"
        assert path.read_bytes() == CONTENT
        assert files_below(cache) == [path]
        locate(raw(server.address(*where)))
        assert len(server.requests) == 1

    @pytest.mark.parametrize(
        ("where", "reason"),
        [
            (("truncated.csv",), "ended after 159,000 of 160,000 bytes"),
            (("other.csv",), hashlib.sha256(PAGES["/other.csv"]).hexdigest()),
            (("gone.csv",), "503"),
            (("other.csv", "people.csv"), "not a zip file"),
            (("people.zip", "nobody.csv"), "nobody.csv"),
            (("damaged.zip", "folder/people.csv"), "damaged.zip"),
            (("cut.zip", "folder/people.csv"), "cut.zip"),
        ],
        ids=lambda value: value if isinstance(value, str) else value[0],
    )
    def test_a_broken_one_says_why_and_leaves_nothing_behind(
        self, cache: Path, server: Server, where: tuple[str, ...], reason: str
    ) -> None:
        with pytest.raises(DataError) as caught:
            locate(raw(server.address(*where)))
        for words in (reason, str(cache / "people/people.csv"), "FAIRSHIELD_DATA", raw().sha256):
            assert words in str(caught.value)
        assert not files_below(cache)

    def test_without_a_network_the_message_says_which_file_to_put_where(self, cache: Path) -> None:
        # Nobody listens on port 9 of this machine.
        address = Address("http://127.0.0.1:9/people.csv")
        with pytest.raises(DataError) as caught:
            locate(raw(address))
        for words in (address.url, str(cache / "people/people.csv"), "FAIRSHIELD_DATA"):
            assert words in str(caught.value)

    def test_the_next_address_is_tried_when_one_fails(self, cache: Path, server: Server) -> None:
        file = raw(
            server.address("gone.csv"), server.address("other.csv"), server.address("people.csv")
        )
        assert locate(file).read_bytes() == CONTENT
        assert server.requests == ["/gone.csv", "/other.csv", "/people.csv"]

    def test_progress_rises_to_the_announced_size(self, cache: Path, server: Server) -> None:
        told: list[tuple[str, int, int | None]] = []
        address = server.address("people.csv")
        locate(raw(address), progress=lambda *news: told.append(news))
        received = [bytes_so_far for _, bytes_so_far, _ in told]
        assert received == sorted(received)
        assert told[-1] == (address.url, len(CONTENT), len(CONTENT))
        assert len(told) > 1

    def test_one_that_is_interrupted_leaves_nothing_behind(
        self, cache: Path, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            locate(raw(server.address("people.csv")))
        assert not files_below(cache)

    def test_one_that_does_not_end_is_given_up(
        self, cache: Path, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sources, "LIMIT", 100_000)
        with pytest.raises(DataError, match="more than 100,000 bytes"):
            locate(raw(server.address("people.csv")))
        with pytest.raises(DataError, match=r"people\.csv has more than 100,000 bytes"):
            locate(raw(server.address("people.zip", "people.csv")))

    def test_a_cache_that_cannot_be_written_is_named(self, cache: Path, server: Server) -> None:
        put(cache / "people", b"a file where the directory should be")
        with pytest.raises(DataError, match=r"people\.csv cannot be written"):
            locate(raw(server.address("people.csv")))


def test_the_real_files_are_where_they_should_be(data_directory: Path) -> None:
    for file in FILES:
        assert locate(file) == data_directory / file.path
        assert (data_directory / file.path).stat().st_size == file.size


def test_every_real_file_has_an_address_that_is_secure() -> None:
    for file in FILES:
        assert file.addresses
        assert all(address.url.startswith("https://") for address in file.addresses)
