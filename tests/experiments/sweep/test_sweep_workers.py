"""Workers of this machine."""

from __future__ import annotations

import pytest
from sweep_conformance import RemoteWorkersConformance, WorkersConformance, frame
from sweep_work import misbehave, misbehaviours, threads

import fairshield as fs
from fairshield_experiments.sweep.task import Task
from fairshield_experiments.sweep.workers import InProcess, Processes, Workers

pytestmark = pytest.mark.slow


class TestInProcess(WorkersConformance):
    @pytest.fixture
    def workers(self) -> Workers:
        return InProcess()

    def test_an_interrupt_is_not_a_failure(self) -> None:
        def interrupted(**_: object) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            list(InProcess().results(interrupted, misbehaviours("")))  # type: ignore[arg-type]


class TestProcesses(RemoteWorkersConformance):
    @pytest.fixture
    def workers(self) -> Workers:
        return Processes(2)

    def test_the_failure_says_how_the_process_died(self) -> None:
        (result,) = Processes(1).results(misbehave, misbehaviours("kill"))
        assert "its process died 3 times without an answer" in str(result.outcome)
        assert "SIGKILL" in str(result.outcome)

    def test_torch_uses_one_thread(self) -> None:
        pytest.importorskip("torch")
        (result,) = Processes(1).results(threads, [Task("", "", {"name": "torch"})])
        assert frame(result.outcome)["threads"].tolist() == [1]

    def test_there_must_be_one(self) -> None:
        with pytest.raises(fs.InvalidValueError, match="at least 1, got 0"):
            Processes(0)
