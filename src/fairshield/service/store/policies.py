"""LoadedPolicies loads policies by digest, once each, for all streams that use them."""

from __future__ import annotations

import tempfile
import threading

from fairshield.base.errors import ArtifactError
from fairshield.periodic import PeriodicPolicy, kind_of, load_policy
from fairshield.policy.artifact import digest_of
from fairshield.service.store import Connection


class LoadedPolicies:
    """LoadedPolicies loads policies from the database, once each."""

    def __init__(self) -> None:
        self._loaded: dict[str, PeriodicPolicy] = {}
        self._lock = threading.Lock()

    def policy(self, digest: str, connection: Connection) -> PeriodicPolicy:
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

    def read(self, content: bytes) -> tuple[str, PeriodicPolicy]:
        """Digest and policy of a file's content, of which digest, format and tables are checked.

        Tables are mapped from a temporary file, which the system deletes once nobody maps it.  The
        content has no influence on the path of that file.
        """
        with tempfile.NamedTemporaryFile(prefix="fairshield-", suffix=".shield") as file:
            file.write(content)
            file.flush()
            try:
                return digest_of(file.name), kind_of(load_policy(file.name))
            except ArtifactError as error:
                raise ArtifactError(str(error).replace(file.name, "the policy file")) from None
            except Exception as error:  # a forged header may raise any error
                raise ArtifactError(
                    f"the policy file is not understood ({type(error).__name__}): synthesise it "
                    "again"
                ) from None
