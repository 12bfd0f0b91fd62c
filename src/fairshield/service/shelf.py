"""Policies in use: files by digest, loaded once and shared by their streams."""

from __future__ import annotations

import tempfile
import threading

from fairshield.artifact import digest_of
from fairshield.errors import ArtifactError
from fairshield.periodic import load_policy
from fairshield.service.live import AnyPolicy
from fairshield.service.store import Connection


class Shelf:
    """Policies in use, each loaded once; the database has their files."""

    def __init__(self) -> None:
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

        Tables are mapped from a file without a name, which ends with its last reader, and whose
        place the content does not choose.
        """
        with tempfile.NamedTemporaryFile(prefix="fairshield-", suffix=".shield") as file:
            file.write(content)
            file.flush()
            try:
                return digest_of(file.name), load_policy(file.name)
            except ArtifactError as error:
                raise ArtifactError(str(error).replace(file.name, "the policy file")) from None
            except Exception as error:  # a header can lie in ways that nobody has thought of
                raise ArtifactError(
                    f"the policy file is not understood ({type(error).__name__}): synthesise it "
                    "again"
                ) from None
