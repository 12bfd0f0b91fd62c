r"""The ``.shield`` file: JSON and arrays on disk, without pickle, ready to be memory-mapped.

Byte by byte (little-endian; also in docs/format.md)::

    0   8   magic  b"FSHIELD\n"
    8   4   format version, uint32
    12  4   header length H, uint32
    16  32  SHA-256 of bytes 0 to 15 and of everything from byte 48 to the end
    48  H   header, UTF-8 JSON: provenance, and name, type, shape, offset of each array
    ..      arrays, each at a multiple of 64 bytes from the start, zero-padded between

Saving writes a temporary file in the same directory, syncs it, and renames it over the target, so
that a reader sees the old file or the new one and never half of either.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fairshield.base.errors import ArtifactError, check_kind

MAGIC = b"FSHIELD\n"
FORMAT_VERSION = 1
_HEAD = struct.Struct("<8sII")
_PREFIX = _HEAD.size + hashlib.sha256().digest_size
_ALIGN = 64
_TYPES = {"|u1", "<u2", "|i1", "<i2", "<i4", "<i8", "<f4", "<f8"}


Arrays = dict[str, NDArray[Any]]


def write_artifact(
    path: str | os.PathLike[str], data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> str:
    """Write ``data`` and ``arrays`` to ``path``, atomically; returns the SHA-256 digest (hex)."""
    header, tables = _header(data, arrays)
    head = _HEAD.pack(MAGIC, FORMAT_VERSION, len(header))
    digest = hashlib.sha256(head)
    for chunk in _body(header, tables):
        digest.update(chunk)
    with replacing(Path(path)) as file:
        file.write(head + digest.digest())
        for chunk in _body(header, tables):
            file.write(chunk)
    return digest.hexdigest()


def read_artifact(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """What :func:`write_artifact` wrote, its digest checked; the arrays are memory-mapped."""
    check_kind(path, str | os.PathLike, "a policy is loaded from the path of its file")
    source = Path(path)
    with source.open("rb") as file:
        length, digest = _read_prefix(file, source)
        if _digest_of(file) != digest:
            raise ArtifactError(
                f"{source}: the content does not match its SHA-256 digest: the file is truncated "
                "or corrupted; synthesise it again or restore a copy"
            )
        file.seek(_PREFIX)
        header = file.read(length)
        # Mapped while the file is open: another process may replace the file at this path.
        try:
            data = json.loads(header, object_pairs_hook=_each_once)
            entries = data.pop("arrays")
            return data, {e["name"]: _map_array(file, _PREFIX + length, e) for e in entries}
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"{source}: its header is not understood ({error!r})") from error


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The JSON object of these pairs; refuses a repeated key, which readers treat differently."""
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a key stands twice")
    return data


def digest_of(path: str | os.PathLike[str]) -> str:
    """The SHA-256 digest a policy file carries, in hexadecimal."""
    source = Path(path)
    with source.open("rb") as file:
        return _read_prefix(file, source)[1].hex()


# Writing ------------------------------------------------------------------------------------


def _header(
    data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> tuple[bytes, list[NDArray[Any]]]:
    tables = [np.ascontiguousarray(a, a.dtype.newbyteorder("<")) for a in arrays.values()]
    entries, offset = [], 0
    for name, table in zip(arrays, tables, strict=True):
        entries.append(
            {"name": name, "type": table.dtype.str, "shape": list(table.shape), "offset": offset}
        )
        offset += _padded(table.nbytes)
    text = json.dumps(
        {**data, "arrays": entries}, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    ).encode()
    # Spaces after the JSON put the first array at a multiple of 64.
    return text.ljust(_padded(_PREFIX + len(text)) - _PREFIX), tables


def _body(header: bytes, arrays: list[NDArray[Any]]) -> Iterator[bytes | memoryview]:
    yield header
    for array in arrays:
        yield array.reshape(-1).view(np.uint8).data
        yield b"\0" * (_padded(array.nbytes) - array.nbytes)


def _padded(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` once it is complete and on disk."""
    target = path.resolve()  # a symbolic link stays, and the file it points to is replaced
    if target.exists() and not target.is_file():
        raise ArtifactError(f"{path} is not a regular file: choose another name")
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target.parent))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        # mkstemp would make a file that other users may not read.
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(target.parent)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Reading ------------------------------------------------------------------------------------


def _read_prefix(file: BinaryIO, source: Path) -> tuple[int, bytes]:
    """Length of the header, and the digest that the file states."""
    prefix = file.read(_PREFIX)
    size = os.fstat(file.fileno()).st_size
    if prefix.startswith(MAGIC) and len(prefix) < _PREFIX:
        raise ArtifactError(f"{source} is truncated: {size} bytes, even its digest is not complete")
    if not prefix.startswith(MAGIC):
        what = "not a fairshield policy" if size else "empty"
        raise ArtifactError(
            f"{source} is {what} ({size} bytes, begins with {prefix[:8]!r}, expected {MAGIC!r}): "
            "give a file that was saved by Policy.save or made by fairshield synthesize"
        )
    _, version, length = _HEAD.unpack(prefix[: _HEAD.size])
    digest = prefix[_HEAD.size :]
    if not 1 <= version <= FORMAT_VERSION:
        raise ArtifactError(
            f"{source} has format version {version}, this library reads up to {FORMAT_VERSION}: "
            "upgrade fairshield, if the file is whole"
        )
    if _PREFIX + length > size:
        raise ArtifactError(f"{source} is truncated: {size} bytes, its header alone needs more")
    return length, digest


def _digest_of(file: BinaryIO) -> bytes:
    """The digest computed from the content."""
    file.seek(0)
    digest = hashlib.sha256(file.read(_HEAD.size))
    file.seek(_PREFIX)
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    return digest.digest()


def _map_array(file: BinaryIO, base: int, entry: dict[str, Any]) -> NDArray[Any]:
    if entry["type"] not in _TYPES:
        raise ValueError(f"array {entry['name']!r} has the unknown type {entry['type']!r}")
    shape, dtype = tuple(int(n) for n in entry["shape"]), np.dtype(entry["type"])
    if 0 in shape:
        return np.empty(shape, dtype)
    offset = base + int(entry["offset"])
    return np.memmap(file, dtype, mode="r", offset=offset, shape=shape).view(np.ndarray)
