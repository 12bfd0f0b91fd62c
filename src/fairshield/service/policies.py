"""Policies that the service holds: files by digest, loaded once and shared by their streams."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

from fairshield.artifact import digest_of
from fairshield.errors import ArtifactError
from fairshield.periodic import load_policy
from fairshield.service.live import AnyPolicy
from fairshield.service.store import Connection


class Shelf:
    """Policies in use; their files lie in ``folder``, named by digest, so that tables are mapped.

    The database has every file; what is in the folder can be made again from it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: dict[str, AnyPolicy] = {}
        self._lock = threading.Lock()

    def policy(self, digest: str, connection: Connection) -> AnyPolicy:
        """The policy with this digest."""
        with self._lock:
            if digest not in self._loaded:
                content = connection.artifact(digest)
                if content is None:
                    raise ArtifactError(f"the database has no policy {digest}")
                self._loaded[digest] = self.read(content, digest)
            return self._loaded[digest]

    def read(self, content: bytes, digest: str | None = None) -> AnyPolicy:
        """The policy in a file; its digest, format and tables are checked.

        The name of the file is the hash of its content, whatever the content says of itself.
        """
        path = self._folder / f"{hashlib.sha256(content).hexdigest()}.shield"
        if not path.exists():
            part = path.with_suffix(".part")
            part.write_bytes(content)
            part.replace(path)
        if digest is not None and digest_of(path) != digest:
            raise ArtifactError(f"{path.name} has digest {digest_of(path)}, not {digest}")
        return load_policy(path)
