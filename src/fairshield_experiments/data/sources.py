"""FILES lists the raw public files; ``locate`` finds or downloads them.

A file is known by its SHA-256, never by its name alone.  :func:`locate` looks in the directory
that ``FAIRSHIELD_DATA`` names; if the variable is not set, in a cache that it fills by downloading.
This module does not know what the bytes mean; the modules that read them do.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import fairshield as fs
from fairshield_experiments.errors import DataError

VARIABLE = "FAIRSHIELD_DATA"
"""The environment variable that names a directory with the raw files."""

TIMEOUT = 30.0
"""Seconds without a byte after which a download is given up."""

LIMIT = 64 * 2**20
"""Bytes after which a download is given up: the largest file has 6 million."""

Progress = Callable[[str, int, int | None], None]
"""Called with the address, the bytes received so far, and their total (``None``: unknown)."""


@dataclass(frozen=True)
class Address:
    """Address says where a file can be downloaded.

    ``members`` leads into a zip file: the last is the file, those before it are zip files, each
    inside the one before.
    """

    url: str
    members: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " inside ".join((*reversed(self.members), self.url))


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """RawFile is a published file: its path in a data directory, its digest, its addresses."""

    path: str
    size: int
    sha256: str
    addresses: tuple[Address, ...]

    def describe(self) -> str:
        """The file as a message names it to somebody who has to find it."""
        places = " or ".join(str(address) for address in self.addresses)
        return f"{self.path} ({self.size:,} bytes, sha256 {self.sha256}) from {places}"


_UCI = "https://archive.ics.uci.edu/static/public"
_UCI_OLD = "https://archive.ics.uci.edu/ml/machine-learning-databases"

ADULT_TRAIN = RawFile(
    path="adult/adult.data",
    size=3_974_305,
    sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    addresses=(
        Address(f"{_UCI}/2/adult.zip", ("adult.data",)),
        Address(f"{_UCI_OLD}/adult/adult.data"),
    ),
)
ADULT_TEST = RawFile(
    path="adult/adult.test",
    size=2_003_153,
    sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    addresses=(
        Address(f"{_UCI}/2/adult.zip", ("adult.test",)),
        Address(f"{_UCI_OLD}/adult/adult.test"),
    ),
)
BANK = RawFile(
    path="bank/bank-additional-full.csv",
    size=5_834_924,
    sha256="74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8",
    addresses=(
        Address(
            f"{_UCI}/222/bank+marketing.zip",
            ("bank-additional.zip", "bank-additional/bank-additional-full.csv"),
        ),
        Address(
            f"{_UCI_OLD}/00222/bank-additional.zip",
            ("bank-additional/bank-additional-full.csv",),
        ),
    ),
)
COMPAS = RawFile(
    path="compas/compas-scores-two-years.csv",
    size=2_546_489,
    sha256="c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    addresses=(
        Address(
            "https://raw.githubusercontent.com/propublica/compas-analysis/master/"
            "compas-scores-two-years.csv"
        ),
    ),
)
GERMAN = RawFile(
    path="german/german.data",
    size=79_793,
    sha256="b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    addresses=(
        Address(f"{_UCI}/144/statlog+german+credit+data.zip", ("german.data",)),
        Address(f"{_UCI_OLD}/statlog/german/german.data"),
    ),
)
FILES = (ADULT_TRAIN, ADULT_TEST, BANK, COMPAS, GERMAN)


def cache_directory() -> Path:
    """Where downloads are kept: ``fairshield/data`` below the user's cache directory."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fairshield" / "data"


def locate(file: RawFile, *, progress: Progress | None = None) -> Path:
    """The path of ``file`` on this machine; its checksum has been verified.

    Parameters
    ----------
    file
        One of :data:`FILES`.
    progress
        Called while the file is downloaded.

    Raises
    ------
    DataError
        The file is missing from the directory that ``FAIRSHIELD_DATA`` names, or is another one
        there; or, where the variable is not set, no address gave the published bytes.
    """
    directory = os.environ.get(VARIABLE)
    if directory:
        return _given(file, Path(directory).expanduser())
    path = cache_directory() / file.path
    # A damaged file in the cache is replaced, not reported.
    if not path.is_file() or _difference(file, path.read_bytes()):
        _store(_download(file, path, progress), path)
    return path


def _given(file: RawFile, directory: Path) -> Path:
    path = directory / file.path
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(
            f"{path} does not exist, and the data sets are looked for in {directory} "
            f"({VARIABLE}). Put there {file.describe()}; or name no directory to have it "
            "downloaded."
        ) from None
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}. The data sets are looked for in {directory} "
            f"({VARIABLE}); it must hold {file.describe()}."
        ) from error
    difference = _difference(file, content)
    if difference:
        raise DataError(
            f"{path} is not the published file: {difference}. Replace it with {file.describe()}; "
            "or name no directory to have it downloaded."
        )
    return path


def _difference(file: RawFile, content: bytes) -> str:
    """How ``content`` differs from the published bytes, in words; empty if it does not."""
    found = hashlib.sha256(content).hexdigest()
    if found == file.sha256:
        return ""
    return (
        f"expected {file.size:,} bytes with sha256 {file.sha256}, "
        f"found {len(content):,} bytes with sha256 {found}"
    )


def _download(file: RawFile, path: Path, progress: Progress | None) -> bytes:
    failures = []
    for address in file.addresses:
        try:
            content = _member(_fetch(address.url, progress), address.members)
        except _BROKEN as error:
            failures.append(f"{address}: {error or type(error).__name__}")
            continue
        difference = _difference(file, content)
        if not difference:
            return content
        failures.append(f"{address}: {difference}")
    raise DataError(
        f"{file.path} is not in the cache and cannot be downloaded ({'; '.join(failures)}). "
        f"Save as {path}, or in the directory that {VARIABLE} names, {file.describe()}."
    )


_BROKEN = (
    OSError,  # no network, time-outs and answers such as 404
    http.client.HTTPException,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,  # no such member
    NotImplementedError,  # a way of compressing that this Python does not know
)


def _fetch(url: str, progress: Progress | None) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": f"fairshield/{fs.__version__}"})
    parts, received = [], 0
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        announced = response.headers.get("Content-Length")
        total = int(announced) if announced and announced.isdecimal() else None
        while part := response.read(2**16):
            parts.append(part)
            received += len(part)
            if received > LIMIT:
                raise OSError(f"more than {LIMIT:,} bytes")
            if progress:
                progress(url, received, total)
    if total is not None and received < total:
        raise OSError(f"the connection ended after {received:,} of {total:,} bytes")
    return b"".join(parts)


def _member(content: bytes, members: tuple[str, ...]) -> bytes:
    for member in members:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if archive.getinfo(member).file_size > LIMIT:
                raise OSError(f"{member} has more than {LIMIT:,} bytes")
            content = archive.read(member)
    return content


def _store(content: bytes, path: Path) -> None:
    """Write all of ``content`` to ``path``, or nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise DataError(
            f"{path} cannot be written: {error.strerror}. Set XDG_CACHE_HOME to a directory that "
            f"can be, or {VARIABLE} to one that holds the data sets."
        ) from error
