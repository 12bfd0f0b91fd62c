"""Bytes of a file, or of standard input, as lines of text."""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from fairshield.base.errors import InvalidValueError, argument

_WIDE = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",  # of which the first of UTF-32 is an extension
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Marks that no UTF-8 text begins with, and what follows them."""


@contextlib.contextmanager
def open_lines(
    path: str | Path, trace: Trace | None = None, encoding: str | None = None
) -> Iterator[Iterator[str]]:
    """Open a file, or standard input for ``-``; ``trace`` counts and digests the bytes read."""
    if str(path) == "-":
        if sys.stdin is None:
            raise InvalidValueError("nothing to read: standard input is closed")
        yield decoded(_followed(sys.stdin.buffer, trace), encoding)
        return
    with Path(path).open("rb") as lines:
        yield decoded(_followed(lines, trace), encoding)


class Trace:
    """Trace computes the digest of the bytes that were read, and counts bytes and lines."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.size = self.lines = 0

    def follow(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines unchanged; the digest is complete once the last line has been taken."""
        for line in lines:
            self._digest.update(line)
            self.size += len(line)
            self.lines += 1
            yield line

    @property
    def sha256(self) -> str:
        """The digest in hexadecimal."""
        return self._digest.hexdigest()


def _followed(lines: Iterable[bytes], trace: Trace | None) -> Iterable[bytes]:
    return lines if trace is None else trace.follow(lines)


def decoded(lines: Iterable[bytes], encoding: str | None = None) -> Iterator[str]:
    r"""Decode lines, each as soon as it is complete; an error names the line that is not text.

    Without an encoding the text is UTF-8, or UTF-16 where its byte-order mark says so; a mark is
    dropped.

    >>> list(decoded([b"caf\xe9\n"], "cp1252"))
    ['café\n']
    """
    pieces, rest, name = iter(lines), "", ""
    for number, piece in enumerate(pieces, start=1):
        if number == 1:
            name = _checked(encoding, piece)
            decoder = codecs.getincrementaldecoder(name)()
        try:
            rest += decoder.decode(piece)
        except UnicodeError as error:
            raise _not_text(number, name, error) from None
        # Lines are split after decoding: in UTF-16 the byte of a line end may be half a character.
        *whole, rest = rest.split("\n")
        yield from (f"{line}\n" for line in whole)
    if name:
        try:
            rest += decoder.decode(b"", final=True)
        except UnicodeError as error:
            raise _not_text(number, name, error) from None
    if rest:
        yield rest


def check_encoding(name: str) -> str:
    """Return ``name``, or raise if Python knows no text encoding of this name."""
    try:
        "a".encode(name)
    except (LookupError, ValueError):
        raise InvalidValueError(
            f"unknown encoding {name!r}: known are utf-8, utf-16, cp1252 (Windows), latin-1, "
            "mac-roman and the others of Python"
        ) from None
    return name


def _wide(first: bytes) -> str | None:
    return next((name for mark, name in _WIDE.items() if first.startswith(mark)), None)


def _checked(encoding: str | None, first: bytes) -> str:
    """The name of the codec to use, given the encoding asked for and how the bytes begin."""
    marked = first.startswith(codecs.BOM_UTF8)
    if encoding is None:
        return "utf-8-sig" if marked else _wide(first) or "utf-8"
    known = codecs.lookup(check_encoding(encoding)).name
    if not marked:
        wide = _wide(first)
        # A codec with a fixed byte order would return the byte-order mark as a character.
        return wide if wide is not None and known.startswith(wide) else known
    if known not in ("utf-8", "utf-8-sig"):
        raise InvalidValueError(
            f"the text begins with the mark of UTF-8, so it is not {encoding}: leave out "
            f"{argument('encoding')}"
        )
    return "utf-8-sig"


def _not_text(line: int, name: str, error: UnicodeError) -> InvalidValueError:
    called = "UTF-8" if name.startswith("utf-8") else name
    why = (
        f" ({error.reason} at byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
    )
    return InvalidValueError(
        f"line {line}: not {called} text{why}: say what it is, as in "
        f"{argument('encoding', 'cp1252')} for files of Excel on Windows, or save it as UTF-8"
    )
