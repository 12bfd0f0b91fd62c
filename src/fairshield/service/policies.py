"""Policies that the service holds: files by digest, loaded once and shared by their streams.

Only a policy that has been verified decides.  Making and verifying one takes a while: it is a job
in another thread, noted in the database, and taken up again by the next start if this one ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import json
import logging
import math
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairshield.artifact import digest_of
from fairshield.errors import ArtifactError, FairshieldError, InvalidValueError
from fairshield.layout import layout_of
from fairshield.periodic import PeriodicPolicy, load_policy
from fairshield.policy import Policy
from fairshield.service.live import AnyPolicy
from fairshield.service.problems import Refusal
from fairshield.service.store import Connection, PolicyRow
from fairshield.specfile import known_keys, parse_periodic, parse_spec
from fairshield.synthesis import synthesize
from fairshield.synthesis.memory import check_memory
from fairshield.verify import Verification

if TYPE_CHECKING:
    from fairshield.service.engine import Engine

logger = logging.getLogger("fairshield.service")
Progress = Callable[[float], None]
_BETWEEN_NOTES = 0.5
"""Seconds between two notes of the progress of a job."""
MOST_STATES = 10**11
"""Of a policy that is made for others: some minutes' work."""


def keep_what_is_there() -> None:
    """Leave everything that is in memory now out of later searches for garbage.

    Tables and modules are many objects that stay; to search them each time takes longer than a
    client should wait.
    """
    gc.collect()
    gc.freeze()


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


class _Stopped(Exception):
    """The service ends; the job is left to the next one."""


class Workshop:
    """Makes and verifies policies, one after the other, in a thread of its own."""

    def __init__(self, engine: Engine, shelf: Shelf) -> None:
        self._engine, self._shelf = engine, shelf
        self._thread = ThreadPoolExecutor(1, "fairshield-policies")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = threading.Event()

    async def start(self) -> None:
        """Take up the jobs that an earlier process left."""
        self._loop = asyncio.get_running_loop()
        for row in await self._engine.read(lambda connection: connection.policies()):
            if row.status in ("synthesising", "verifying"):
                self._thread.submit(self._work, row)

    def stop(self) -> None:
        """Give up; the next start takes the jobs up again."""
        self._stopping.set()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def upload(self, content: bytes, now: str) -> tuple[PolicyRow, bool]:
        """Take in a policy file; whether it is new."""
        digest, policy = await asyncio.to_thread(self._shelf.read, content)
        row = PolicyRow(
            id=digest, status="verifying", progress=0.0, digest=digest, words=str(policy),
            verification=None, error=None, size=len(content), spec=None, created=now,
        )  # fmt: skip
        return await self._begin(row, lambda connection: connection.put_artifact(digest, content))

    async def specify(self, spec: Mapping[str, Any], now: str) -> tuple[PolicyRow, bool]:
        """Have the policy made that a specification describes; whether it is a new job."""
        check_spec(spec)
        text = json.dumps(spec, sort_keys=True)
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

    # In the other thread ----------------------------------------------------------------------

    def _work(self, row: PolicyRow) -> None:
        try:
            self._make(row)
        finally:
            keep_what_is_there()  # the compiler, if this was the first policy

    def _make(self, row: PolicyRow) -> None:
        try:
            if row.status == "synthesising":
                row = self._synthesise(row)
            self._note(self._verified(row))
        except _Stopped:
            return
        except FairshieldError as error:
            self._refuse(row, str(error))
        except Exception as error:
            logger.exception("policy %s could not be made", row.id)
            self._refuse(row, f"the service failed to make it ({type(error).__name__})")

    def _refuse(self, row: PolicyRow, why: str) -> None:
        with contextlib.suppress(_Stopped):
            self._note(row._replace(status="refused", error=why))

    def _synthesise(self, row: PolicyRow) -> PolicyRow:
        spec = json.loads(row.spec or "{}")
        with tempfile.TemporaryDirectory() as folder:
            path, tell = Path(folder) / "made.shield", self._telling(row)
            if "periodic" in spec:
                periodic = parse_periodic(spec)
                periodic.outlook()
                policy: AnyPolicy = periodic
            else:
                policy = parse_spec(spec).synthesize(progress=tell)
            digest = policy.save(path)
            content = path.read_bytes()
        made = row._replace(
            status="verifying", progress=0.0, digest=digest, words=str(policy), size=len(content)
        )

        def keep(connection: Connection) -> None:
            connection.put_artifact(digest, content)
            connection.put_policy(made)

        self._write(keep)
        return made

    def _verified(self, row: PolicyRow) -> PolicyRow:
        assert row.digest is not None
        digest = row.digest
        policy = self._engine.reading(lambda connection: self._shelf.policy(digest, connection))
        return row._replace(
            status="ready", progress=1.0, verification=verified(policy, self._telling(row))
        )

    def _telling(self, row: PolicyRow) -> Progress:
        last = time.monotonic()

        def tell(share: float) -> None:
            nonlocal last
            if self._stopping.is_set():
                raise _Stopped
            if time.monotonic() - last > _BETWEEN_NOTES:
                last = time.monotonic()
                self._note(row._replace(progress=share))

        return tell

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
                self._stopping.wait(_BETWEEN_NOTES)  # the store will work again
        raise _Stopped


def verified(policy: AnyPolicy, progress: Progress | None = None) -> str:
    """What a verification found, in words.

    Raises
    ------
    ArtifactError
        If the policy does not keep what it promises.
    """
    from fairshield.periodic.verify import verify_periodic
    from fairshield.verify import verify

    if isinstance(policy, PeriodicPolicy) and policy.unconditional:
        return _kept(verify_periodic(policy, progress=progress))
    if isinstance(policy, PeriodicPolicy):
        policy.check_stored()
        condition = f"promises fairness under a condition only ({policy.theorem or 'no theorem'})"
        tables = policy.tables
        return condition if tables is None else f"{verified(tables, progress)}; {condition}"
    if policy.salvage is not None:
        _check_made_anew(policy)
        return f"best effort: violated with probability {policy.risk:.3g}, if the input model holds"
    return _kept(verify(policy, progress=progress))


def _kept(found: Verification) -> str:
    if not found:
        raise ArtifactError(f"the policy does not keep its promise: {found}")
    return str(found)


def _check_made_anew(policy: Policy) -> None:
    """Whether a policy that promises nothing is at least the one of its specification.

    There is no promise to verify, but synthesis makes the same tables every time.
    """
    again = synthesize(
        policy.prop, policy.inputs, horizon=policy.horizon, start=policy.start,
        checkpoints=policy.checkpoints, further=policy.further, terminal=policy.terminal,
        spread=policy.spread, best_effort=True,
    )  # fmt: skip
    _, ours = again.to_artifact()
    _, theirs = policy.to_artifact()
    same = ours.keys() == theirs.keys() and all(
        np.array_equal(array, theirs[name]) for name, array in ours.items()
    )
    if not same or not math.isclose(again.risk, policy.risk, rel_tol=1e-6):
        raise ArtifactError(
            "the tables are not what this version of fairshield makes of the policy's "
            "specification: synthesise it again"
        )


def check_spec(spec: Mapping[str, Any]) -> None:
    """Refuse what a specification may say on a command line, but not over a network."""
    for key in spec:
        if key not in known_keys():
            raise InvalidValueError(f"unknown key {key!r}: known are {', '.join(known_keys())}")
    if "inputs" in spec:
        raise InvalidValueError(
            "inputs names a file, which the service does not read for others: give groups, or "
            "synthesise the policy where the records are and upload it"
        )


def _described(spec: Mapping[str, Any]) -> str:
    """The policy in words; raises what is wrong with the specification."""
    try:
        if "periodic" in spec:
            periodic = parse_periodic(spec)
            at_once: int = getattr(periodic, "periods", 0) or getattr(periodic, "lookahead", 1)
            _check_size(periodic.period * at_once, periodic.labelled)
            return str(periodic)
        parsed = parse_spec(spec)
        _check_size(parsed.horizon, parsed.prop.relevant_outcome is not None)
        return f"{parsed.prop} over {parsed.horizon} decisions"
    except FairshieldError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:
        raise InvalidValueError(f"the specification is not understood: {error}") from None


def _check_size(horizon: int, labelled: bool) -> None:
    """Refuse what would keep the service busy for hours, or take all of its memory."""
    if isinstance(horizon, bool) or not isinstance(horizon, int) or not 1 <= horizon <= 2**31:
        raise InvalidValueError(f"horizon must be a whole number of at least 1, got {horizon!r}")
    layout = layout_of(horizon, labelled)
    if layout.n_states > MOST_STATES:
        raise Refusal(
            "too-costly",
            f"{horizon} decisions at once are more than this service plans for others: shorten "
            "them, or synthesise the policy where there is time for it and upload the file",
        )
    check_memory(layout, 1, record=horizon, spread=False)
