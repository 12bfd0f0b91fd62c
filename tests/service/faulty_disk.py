"""Disk is a VFS for SQLite that loses power, fills up and fails.

Files are real ones, so that whatever is written can be read.  Beside them the disk remembers what
has been synced: after a power cut (:meth:`Disk.after_power_cut`) only that is certain to be there.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import apsw

SECTOR = 512
Loss = Literal["all", "tail", "sectors"]
"""What a power cut does to what was not synced: all is lost, the last of it, or any sectors."""

_names = itertools.count()
_JOURNALS = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
Change = tuple[int, bytes | None]
"""Bytes written at an offset; ``None``: the file was cut off there."""


@dataclass
class _Content:
    """A file: what is on disk, and what has been changed since."""

    synced: bytearray = field(default_factory=bytearray)
    changes: list[Change] = field(default_factory=list)


class Disk(apsw.VFS):
    """A VFS of its own name.

    Parameters
    ----------
    cut_at
        The power is cut before the write, sync, truncation or deletion of this number; from then
        on everything fails.
    """

    def __init__(self, cut_at: int | None = None) -> None:
        self.name = f"faulty-{next(_names)}"
        self.cut_at, self.steps, self.dead = cut_at, 0, False
        self.writing: Callable[[], None] = lambda: None
        self.syncing: Callable[[DiskFile], None] = lambda file: None
        self.lock = threading.RLock()
        self.files: dict[str, _Content] = {}
        self.synced_names: dict[str, _Content] = {}
        super().__init__(self.name, "")

    def step(self) -> None:
        """Count one more change on disk; raises if the power is off."""
        self.steps += 1
        if self.cut_at is not None and self.steps >= self.cut_at:
            self.dead = True
        self.check()

    def check(self) -> None:
        if self.dead:
            raise apsw.IOError("the power is off")

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        with self.lock:
            self.check()
            path = name.filename() if isinstance(name, apsw.URIFilename) else name
            content = _Content()
            if path is not None:
                if path not in self.files and Path(path).exists():
                    there = _Content(bytearray(Path(path).read_bytes()))
                    self.files[path] = self.synced_names[path] = there
                content = self.files.setdefault(path, content)
            return DiskFile(self, content, name, flags)

    def xDelete(self, path: str, sync: bool) -> None:  # noqa: N802
        with self.lock:
            self.step()
            self.files.pop(path, None)
            if sync:
                self.synced_names.pop(path, None)
            super().xDelete(path, sync)

    def xAccess(self, path: str, flags: int) -> bool:  # noqa: N802
        self.check()
        return super().xAccess(path, flags)

    def excepthook(self, *error: Any) -> None:
        """Errors while a connection is closed are expected."""

    def after_power_cut(self, folder: Path, loss: Loss, rng: random.Random) -> None:
        """Write what is left of all files into a new folder."""
        folder.mkdir()
        with self.lock:
            self.dead = True
            for path in {**self.files, **self.synced_names}:
                # A file that was created or deleted since its folder was synced may exist or not.
                content = rng.choice([self.files.get(path), self.synced_names.get(path)])
                if content is not None:
                    left = _left_of(content, loss, rng)
                    (folder / Path(path).name).write_bytes(left)


class DiskFile(apsw.VFSFile):
    """An open file."""

    def __init__(self, disk: Disk, content: _Content, name: Any, flags: list[int]) -> None:
        self.disk, self.content = disk, content
        self.journal = bool(flags[0] & _JOURNALS)
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self.disk.check()
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        with self.disk.lock:
            self.disk.step()
            self.disk.writing()
            self.content.changes.append((offset, bytes(data)))
            super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        with self.disk.lock:
            self.disk.step()
            self.content.changes.append((size, None))
            super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        with self.disk.lock:
            self.disk.step()
            self.disk.syncing(self)
            for change in self.content.changes:
                _apply(self.content.synced, *change)
            self.content.changes.clear()
            if self.journal:  # with a new journal its folder is synced
                self.disk.synced_names = dict(self.disk.files)

    def forget(self) -> None:
        """Mark unwritten pages as written, as a system does after a failed sync."""
        self.content.changes.clear()

    def excepthook(self, *error: Any) -> None:
        """Errors while a connection is closed are expected."""


def _left_of(content: _Content, loss: Loss, rng: random.Random) -> bytes:
    left, changes = bytearray(content.synced), content.changes
    if loss == "tail":
        changes = changes[: rng.randint(0, len(changes))]
        if changes and changes[-1][1] is not None:  # the last one is torn
            offset, data = changes[-1]
            assert data is not None
            kept = rng.randint(0, len(data)) // SECTOR * SECTOR
            changes = [*changes[:-1], (offset, data[:kept])]
    if loss != "all":
        for offset, data in changes:
            if loss == "tail":
                _apply(left, offset, data)
            elif data is None:
                if rng.random() < 0.5:
                    _apply(left, offset, None)
            else:
                for at, sector in _sectors(offset, data):
                    if rng.random() < 0.5:
                        _apply(left, at, sector)
    return bytes(left)


def _sectors(offset: int, data: bytes) -> list[tuple[int, bytes]]:
    end = offset + len(data)
    edges = [offset, *range((offset // SECTOR + 1) * SECTOR, end, SECTOR), end]
    return [(a, data[a - offset : b - offset]) for a, b in itertools.pairwise(edges)]


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data
