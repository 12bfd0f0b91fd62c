"""Dask computes tasks on other machines: the workers of a running Dask scheduler.

Start them with ``dask scheduler`` and, on each machine, ``dask worker ADDRESS``, in environments
with the same packages.  The package distributed is imported when the first task is computed.
"""

from __future__ import annotations

import asyncio
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import fairshield as fs
from fairshield_experiments.sweep.call import Failure, answer_alone, opened
from fairshield_experiments.sweep.task import Function, Task
from fairshield_experiments.sweep.workers import Result, Results, keep_busy

_TRAVEL = ("dask", "distributed")
_SAME = ("fairshield", "numpy", "pandas", "pyarrow", "cloudpickle", *_TRAVEL)
"""Packages whose versions must be the same here and on all workers."""


class ClusterError(fs.FairshieldError, ConnectionError):
    """ClusterError says that a cluster cannot compute.

    The message names its address, the reason and the remedy.
    """


@dataclass(frozen=True)
class Dask:
    """Dask computes tasks on all workers of a scheduler, also on those that join or leave.

    A task whose worker dies is given to another; the scheduler's setting ``allowed-failures``
    (3 by default) says how often.  As the scheduler blames all tasks that a dead worker had, those
    it gives up are tried once more, alone, before they are failures.  Arguments are sent for two
    tasks per thread of the cluster at a time.

    Attributes
    ----------
    address
        Of the scheduler, as ``tcp://host:8786``.
    timeout
        Seconds to wait for the scheduler, and then for the first worker.
    """

    address: str
    timeout: float = 30.0

    def results(self, function: Function, tasks: Sequence[Task]) -> Results:
        """Keep the workers busy; closing the generator cancels tasks that have not begun."""
        if not tasks:
            return
        with self._client() as client:
            yield from keep_busy(_DaskCrew(client, self.address), function, tasks)

    @contextmanager
    def _client(self) -> Iterator[Any]:
        distributed = _distributed()
        self._knock()
        with warnings.catch_warnings():
            # Versions are compared in _check, where a difference is an error.
            warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)
            client = distributed.Client(self.address, timeout=self.timeout, set_as_default=False)
        try:
            self._check(client)
            yield client
        finally:
            client.close()

    def _knock(self) -> None:
        """Raise unless a scheduler answers: a client without one leaves threads that never end."""
        try:
            with ThreadPoolExecutor(1) as thread:  # this thread may have a running event loop
                kind = thread.submit(asyncio.run, _kind(self.address, self.timeout)).result()
            reason = f"a {kind} does"
        except Exception as error:  # another program may listen there, and answer anything
            kind, reason = "", str(error) or type(error).__name__
        if kind != "Scheduler":
            raise ClusterError(
                f"no scheduler answers at {self.address!r} ({reason}). Start one with "
                "'dask scheduler', or check the address and the network."
            )

    def _check(self, client: Any) -> None:
        """Raise unless there are workers, and their packages have our versions."""
        try:
            client.wait_for_workers(1, timeout=self.timeout)
        except TimeoutError:
            raise ClusterError(
                f"the scheduler at {self.address} has had no workers for {self.timeout:g} seconds."
                f" Start some with 'dask worker {self.address}'."
            ) from None
        versions = client.get_versions(packages=list(_SAME))
        others = {"the scheduler": _versions(versions["scheduler"], _TRAVEL)}
        others |= {name: _versions(found, _SAME) for name, found in versions["workers"].items()}
        ours = _versions(versions["client"], _SAME)
        differences = [
            f"{package} {version} at {name}, {ours[package]} here"
            for name, theirs in others.items()
            for package, version in theirs.items()
            if version != ours[package]
        ]
        if differences:
            raise ClusterError(
                f"versions at {self.address} differ from those of this process: "
                f"{'; '.join(differences)}. Install the same ones everywhere."
            )


class _DaskCrew:
    """_DaskCrew keeps the tasks that the scheduler is computing."""

    def __init__(self, client: Any, address: str) -> None:
        distributed = _distributed()
        self._client, self._address = client, address
        self._killed = distributed.scheduler.KilledWorker
        self._running: dict[Any, tuple[Task, bytes]] = {}
        self._suspects: deque[tuple[Task, bytes]] = deque()
        self._tried_alone: set[Task] = set()
        self._completed = distributed.as_completed(loop=client.loop)

    def room(self) -> int:
        with self._reachable():
            threads = sum(self._client.nthreads().values())
        # If all workers have left, one task is submitted, and waits for new workers.
        least = 0 if self._running else 1
        return max(2 * int(threads) - len(self._running), least)

    def busy(self) -> bool:
        return bool(self._running or self._suspects)

    def give(self, task: Task, call: bytes) -> None:
        with self._reachable():
            future = self._client.submit(answer_alone, call, pure=False)
        self._running[future] = task, call
        self._completed.add(future)

    def ended(self) -> list[Result]:
        if not self._running:
            task, call = self._suspects.popleft()
            self._tried_alone.add(task)
            self.give(task, call)
        results = [self._result(future) for future in self._completed.next_batch()]
        return [result for result in results if result is not None]

    def _result(self, future: Any) -> Result | None:
        """The result of a task; ``None`` if it is to be tried once more."""
        task, call = self._running.pop(future)
        try:
            # Waits for another worker if the one that had the answer died with it.
            return Result(task, *opened(future.result()))
        except Exception as error:
            if future.status != "error":  # cancelled, as the scheduler is gone
                raise self._gone() from error
            if isinstance(error, self._killed) and task not in self._tried_alone:
                self._suspects.append((task, call))
                return None
            return Result(task, Failure.of(error), 0.0)

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, RuntimeError) as error:
            raise self._gone() from error

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"the connection to the scheduler at {self._address} was lost. What was finished is "
            "recorded: see to the scheduler and run the sweep again."
        )


async def _kind(address: str, timeout: float) -> str:
    """The kind of server at an address: ``"Scheduler"`` or ``"Worker"``."""
    async with asyncio.timeout(timeout), _distributed().rpc(address, timeout=timeout) as server:
        return str((await server.identity())["type"])


def _versions(found: Mapping[str, Any], packages: Sequence[str]) -> dict[str, str]:
    """Versions of Python, without its patch level, and of the packages."""
    installed = found["packages"]
    python = ".".join(installed["python"].split(".")[:2])
    return {"python": python} | {name: installed[name] or "(none)" for name in packages}


def _distributed() -> Any:
    """The module; if it is missing, an error that says how to get it."""
    try:
        import distributed
    except ImportError:
        raise fs.MissingExtraError(
            "a Dask cluster needs distributed, which is not installed: "
            "pip install 'fairshield[experiments]'"
        ) from None
    return distributed
