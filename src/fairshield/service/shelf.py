"""Policies in use: files by digest, loaded once and shared by their streams."""

from __future__ import annotations

import hashlib
import tempfile
import threading
from pathlib import Path

from fairshield.artifact import digest_of
from fairshield.errors import ArtifactError
from fairshield.periodic import load_policy
from fairshield.service.live import AnyPolicy
from fairshield.service.store import Connection


class Shelf:
    """Policies in use; their files lie in ``folder``, so that tables are mapped, not read.

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
                found, policy = self.read(content)
                if found != digest:
                    raise ArtifactError(f"the policy filed under {digest} has digest {found}")
                self._loaded[digest] = policy
            return self._loaded[digest]

    def read(self, content: bytes) -> tuple[str, AnyPolicy]:
        """Digest and policy of a file's content, of which digest, format and tables are checked.

        The file is named by a hash of its content, whatever the content says of itself.
        """
        path = self._folder / f"{hashlib.sha256(content).hexdigest()}.shield"
        if not path.exists():
            with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as part:
                part.write(content)
            Path(part.name).replace(path)
        try:
            return digest_of(path), load_policy(path)
        except ArtifactError as error:
            path.unlink(missing_ok=True)
            raise ArtifactError(str(error).replace(str(path), "the policy file")) from None
        except Exception as error:  # a header can lie in ways that nobody has thought of
            path.unlink(missing_ok=True)
            raise ArtifactError(
                f"the policy file is not understood ({type(error).__name__}): synthesise it again"
            ) from None
