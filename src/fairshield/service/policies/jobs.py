"""PolicyJobs accepts policies, has them made and verified, and records their progress.

Streams use verified policies only.  Making and verifying a policy is a job in another process.  The
database records the job; if the service ends before the job does, the next start takes it up again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from fairshield.adapters.specfile import known_keys, parse_periodic, parse_spec
from fairshield.base.counts import Group, in_words
from fairshield.base.errors import ArtifactError, FairshieldError, InvalidValueError
from fairshield.periodic import PeriodicPolicy
from fairshield.policy.layout import layout_of
from fairshield.service.engine.engine import Engine
from fairshield.service.policies.status import JobStatus
from fairshield.service.store import Connection, PolicyRow, UnstorableError
from fairshield.service.store.policies import LoadedPolicies
from fairshield.spec import Property
from fairshield.synthesis import MOST_STATES as EXACT_STATES
from fairshield.synthesis.memory import check_memory
from fairshield.wire.problems import Refusal

logger = logging.getLogger("fairshield.service")
_BETWEEN_NOTES = 0.5
"""Seconds between two notes of the progress of a job."""
MOST_STATES, MOST_DECISIONS = 10**11, 10**8
"""Limits on policies that the service makes on request: some minutes of work."""


class _Stopped(Exception):
    """_Stopped says that the service is stopping; the next start does the job."""


class PolicyJobs:
    """PolicyJobs has policies made and verified, one after the other, in other processes."""

    def __init__(self, engine: Engine, policies: LoadedPolicies) -> None:
        self._engine, self._policies = engine, policies
        self._thread = ThreadPoolExecutor(1, "fairshield-policies")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Take up the jobs that an earlier process left."""
        self._loop = asyncio.get_running_loop()
        for row in await self._engine.read(lambda connection: connection.policies()):
            if row.status in ("synthesising", "verifying"):
                self._thread.submit(self._work, row)

    def stop(self) -> None:
        """Abandon the job under way; the next start takes it up again."""
        self._stopping.set()
        child = self._process
        if child is not None:
            child.kill()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def upload(self, content: bytes, now: str) -> tuple[PolicyRow, bool]:
        """Take in a policy file; whether it is new."""
        digest, policy = await asyncio.to_thread(self._policies.read, content)
        check_groups(policy.groups)
        check_people(policy.prop)
        _check_plans(policy)
        row = PolicyRow(
            id=digest, status="verifying", progress=0.0, digest=digest, words=str(policy),
            verification=None, error=None, size=len(content), spec=None, created=now,
        )  # fmt: skip
        return await self._begin(row, lambda connection: connection.put_artifact(digest, content))

    async def specify(self, spec: Mapping[str, Any], now: str) -> tuple[PolicyRow, bool]:
        """Have the policy made that a specification describes; whether it is a new job."""
        check_spec(spec)
        text = json.dumps(spec)  # in the order received: which group comes first matters
        words = await asyncio.to_thread(_described, spec)
        row = PolicyRow(
            id="spec-" + hashlib.sha256(text.encode()).hexdigest()[:32], status="synthesising",
            progress=0.0, digest=None, words=words, verification=None, error=None, size=None,
            spec=text, created=now,
        )  # fmt: skip
        return await self._begin(row, lambda connection: None)

    async def _begin(
        self, row: PolicyRow, keep: Callable[[Connection], None]
    ) -> tuple[PolicyRow, bool]:
        def begin(connection: Connection) -> tuple[PolicyRow, bool]:
            there = connection.policy(row.id)
            if there is not None and there.status != "refused":
                return there, False
            keep(connection)
            connection.put_policy(row)
            return row, True

        found, new = await self._engine.write(begin)
        if new:
            self._thread.submit(self._work, found)
        return found, new

    # In the thread of the jobs ----------------------------------------------------------------

    def _work(self, row: PolicyRow) -> None:
        try:
            with tempfile.TemporaryDirectory() as folder:
                self._note(self._made(row, Path(folder) / "made.shield"))
        except UnstorableError as error:
            with contextlib.suppress(_Stopped):
                self._note(row._replace(status="refused", error=str(error)))
        except _Stopped:
            logger.info("policy %s is left to the next start", row.id)
        except Exception:
            logger.exception("policy %s could not be made", row.id)
            with contextlib.suppress(_Stopped):
                why = "the service failed to make it, which is in its log"
                self._note(row._replace(status="refused", error=why))

    def _made(self, row: PolicyRow, path: Path) -> PolicyRow:
        """The row of a policy that has been made and verified, or was refused."""
        if row.status == "verifying":
            path.write_bytes(self._content(str(row.digest)))
        noted = time.monotonic()
        for status in self._child(path, row.spec if row.status == "synthesising" else None):
            if status.error is not None:
                return row._replace(status="refused", error=status.error)
            if status.verification is not None:
                return row._replace(status="ready", progress=1.0, verification=status.verification)
            if status.digest is not None:
                row = self._keep(row, status, path.read_bytes())
            elif status.progress is not None and time.monotonic() - noted > _BETWEEN_NOTES:
                noted = time.monotonic()
                self._note(row._replace(progress=status.progress))
        if self._stopping.is_set():
            raise _Stopped
        return row._replace(
            status="refused", error="the process that made it was ended, perhaps for its memory"
        )

    def _child(self, path: Path, spec: str | None) -> Iterator[JobStatus]:
        """Statuses that the process doing the job prints, as they come."""
        # -P: do not import modules from the folder in which the service was started.
        command = [sys.executable, "-P", "-m", "fairshield.service.policies.making", str(path)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl+C reaches the service alone, which ends the child
        ) as child:  # fmt: skip
            self._process = child
            try:
                if self._stopping.is_set():
                    return
                assert child.stdin is not None
                assert child.stdout is not None
                with contextlib.suppress(BrokenPipeError), child.stdin:
                    child.stdin.write((spec or "").encode())
                for line in child.stdout:
                    yield msgspec.json.decode(line, type=JobStatus)
            finally:
                self._process = None
                child.kill()

    def _content(self, digest: str) -> bytes:
        content = self._engine.readers.run(lambda connection: connection.artifact(digest))
        if content is None:
            raise ArtifactError(f"the database has no policy {digest}")
        return content

    def _keep(self, row: PolicyRow, status: JobStatus, content: bytes) -> PolicyRow:
        """Store a policy that was made, to be verified."""
        digest = str(status.digest)
        made = row._replace(
            status="verifying", progress=0.0, digest=digest, words=status.words, size=len(content)
        )

        def keep(connection: Connection) -> None:
            connection.put_artifact(digest, content)
            connection.put_policy(made)

        self._write(keep)
        return made

    def _note(self, row: PolicyRow) -> None:
        self._write(lambda connection: connection.put_policy(row))

    def _write(self, change: Callable[[Connection], None]) -> None:
        assert self._loop is not None
        while not self._stopping.is_set():
            try:
                asyncio.run_coroutine_threadsafe(self._engine.write(change), self._loop).result()
                return
            except Refusal as why:
                if why.kind != "unavailable":
                    raise
                self._stopping.wait(_BETWEEN_NOTES)  # until the store works again
        raise _Stopped


def check_spec(spec: Mapping[str, Any]) -> None:
    """Refuse unknown keys, and ``inputs``: a client must not name files of the service."""
    for key in spec:
        if key not in known_keys():
            raise InvalidValueError(f"unknown key {key!r}: known are {', '.join(known_keys())}")
    if "inputs" in spec:
        raise InvalidValueError(
            "inputs names a file, which the service does not read for others: give groups, or "
            "synthesise the policy where the records are and upload it"
        )


def _described(spec: Mapping[str, Any]) -> str:
    """The policy in words; raises the error of a wrong specification."""
    try:
        if "periodic" in spec:
            periodic = parse_periodic(spec)
            check_groups(periodic.groups)
            check_people(periodic.prop)
            _check_plans(periodic)
            return str(periodic)
        parsed = parse_spec(spec)
        check_groups(parsed.inputs.groups)
        check_people(parsed.prop)
        plain = parsed.spread == 1.0 and parsed.method != "exact" and not parsed.trust_support
        _check_size(parsed.horizon, parsed.prop, plain=plain)
        return f"{parsed.prop} over {parsed.horizon} decisions"
    except FairshieldError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:
        raise InvalidValueError(f"the specification is not understood: {error}") from None


def check_groups(groups: tuple[Group, ...]) -> None:
    """Refuse names that requests or databases cannot contain, and more than two groups."""
    if len(groups) > 2:
        raise InvalidValueError(
            f"streams are for two groups, the policy has {len(groups)}: {in_words(groups)}; decide "
            "with the library (fairshield.Shield) or the command line, or join groups"
        )
    for group in groups:
        if not str(group).isprintable() or len(str(group)) > 200:
            raise InvalidValueError(
                f"group {str(group)[:40]!r} cannot be served: names are up to 200 printable "
                "characters"
            )


def check_people(prop: Property) -> None:
    """Refuse a property that counts decisions: the log of a stream counts people."""
    if not prop.counting.of_people:
        raise InvalidValueError(
            f"streams count people, and {prop} counts decisions: decide with the library "
            "(fairshield.Shield, fairshield.Run) or the command line, or serve a property of the "
            "share of people accepted, such as equal opportunity"
        )


def _check_plans(policy: PeriodicPolicy) -> None:
    """Refuse a policy whose plans the service could not make in time."""
    if policy.largest_plan:
        _check_size(policy.largest_plan, policy.enforced, plain=not policy.plans_in_tables)


def _check_size(horizon: int, prop: Property, *, plain: bool) -> None:
    """Refuse a policy that would take hours, or all memory, to make."""
    if isinstance(horizon, bool) or not isinstance(horizon, int) or not 1 <= horizon <= 2**31:
        raise InvalidValueError(f"horizon must be a whole number of at least 1, got {horizon!r}")
    layout = layout_of(horizon, prop.relevant_outcome is not None)
    long = plain and horizon <= MOST_DECISIONS and prop.uncertified is None
    if long and layout.n_states > EXACT_STATES:
        return  # solved while decisions are made
    if layout.n_states > MOST_STATES:
        raise Refusal(
            "too-costly",
            f"{horizon} decisions at once are more than this service plans for others: shorten "
            "them, or synthesise the policy where there is time for it and upload the file",
        )
    check_memory(layout, 1, record=horizon, spread=False)
