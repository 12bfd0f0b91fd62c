"""Workers on a Dask cluster: a scheduler and workers, all processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from socket import create_server

import pytest
from sweep_conformance import RemoteWorkersConformance
from sweep_work import simulate, simulations

from fairshield.base.errors import MissingExtraError
from fairshield_experiments.sweep.cluster import ClusterError, Dask
from fairshield_experiments.sweep.journal import Journal
from fairshield_experiments.sweep.run import run_sweep
from fairshield_experiments.sweep.workers import Workers

pytestmark = pytest.mark.slow

versions = pytest.importorskip("distributed.versions")

FEW = simulations(range(3))
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)]),
    # How long the scheduler tries to fetch a result from a worker that has been killed.
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "2s",
}


class Cluster:
    """Processes that are ended with the test."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._file = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self._file)
        )
        while not (self._file.exists() and self._file.read_text().endswith("}")):
            assert self.scheduler.poll() is None, (folder / "scheduler.log").read_text()
            time.sleep(0.05)
        self.address: str = json.loads(self._file.read_text())["address"]

    def add_workers(self, count: int) -> None:
        options = ("--nthreads", "1", "--memory-limit", "0", "--local-directory", self._folder)
        self._start("worker", self.address, "--nworkers", str(count), *map(str, options))

    def _start(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", what, "--no-dashboard", *options]
        log = self._stack.enter_context((self._folder / f"{what}.log").open("wb"))
        process = subprocess.Popen(command, stdout=log, stderr=log, env=ENVIRONMENT)
        self._stack.callback(_end, process)
        return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()  # so that a nanny takes its workers with it
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def running(folder: Path, workers: int) -> Iterator[Cluster]:
    with ExitStack() as stack:
        cluster = Cluster(folder, stack)
        if workers:
            cluster.add_workers(workers)
        yield cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster


class TestDask(RemoteWorkersConformance):
    @pytest.fixture
    def workers(self, cluster: Cluster) -> Workers:
        return Dask(cluster.address)

    def test_versions_must_be_the_same_everywhere(
        self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real: Callable[[str], str] = versions._version_cached
        ours = {"pandas": "0.1", "distributed": "0.2"}
        monkeypatch.setattr(versions, "_version_cached", lambda name: ours.get(name) or real(name))
        with pytest.raises(ClusterError) as caught:
            list(Dask(cluster.address).results(simulate, FEW))
        message = str(caught.value)
        assert f"pandas {real('pandas')} at tcp://" in message
        assert "0.1 here" in message
        assert f"distributed {real('distributed')} at the scheduler, 0.2 here" in message
        assert message.endswith("Install the same ones everywhere.")

    def test_a_worker_is_not_a_scheduler(self, cluster: Cluster) -> None:
        async def address() -> str:
            distributed = sys.modules["distributed"]
            async with distributed.rpc(cluster.address) as scheduler:
                while not (workers := (await scheduler.identity())["workers"]):
                    await asyncio.sleep(0.05)
                return str(next(iter(workers)))

        with pytest.raises(ClusterError, match=r"a Worker does"):
            list(Dask(asyncio.run(address())).results(simulate, FEW))


def test_a_lost_scheduler_is_an_error_and_what_is_recorded_stays(tmp_path: Path) -> None:
    tasks = simulations(range(20), pause=0.1)
    with running(tmp_path, workers=0) as cluster, Journal(tmp_path / "journal") as journal:
        with pytest.raises(ClusterError, match=r"no workers for 3 seconds.*'dask worker tcp:"):
            list(Dask(cluster.address, timeout=3).results(simulate, FEW))
        cluster.add_workers(1)

        def kill(done: int, *_: object) -> None:
            if done == 3:
                cluster.scheduler.kill()

        with pytest.raises(ClusterError, match="run the sweep again"):
            run_sweep(simulate, tasks, journal, Dask(cluster.address), progress=kill)
        assert 3 <= len(journal.finished()) < len(tasks)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "http://127.0.0.1:1", ""])
def test_an_address_without_a_scheduler_is_named(address: str) -> None:
    with pytest.raises(ClusterError) as caught:
        list(Dask(address, timeout=0.5).results(simulate, FEW))
    assert repr(address) in str(caught.value)
    assert "dask scheduler" in str(caught.value)


def test_something_else_at_the_address_is_not_a_scheduler() -> None:
    with create_server(("127.0.0.1", 0)) as server:

        def reply() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=reply)
        thread.start()
        with pytest.raises(ClusterError, match="no scheduler answers"):
            list(Dask(f"tcp://127.0.0.1:{server.getsockname()[1]}", 2).results(simulate, FEW))
        thread.join()


def test_distributed_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fairshield\[experiments\]'"):
        list(Dask("tcp://127.0.0.1:1").results(simulate, FEW))
