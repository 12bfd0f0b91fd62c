"""Tests that all kinds of workers must pass; a test class inherits them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from sweep_work import (
    Fixed,
    Luggage,
    carry,
    misbehave,
    misbehaviours,
    simulate,
    simulations,
    threads,
)

from fairshield_experiments.sweep.call import Failure
from fairshield_experiments.sweep.journal import Journal
from fairshield_experiments.sweep.run import run_sweep
from fairshield_experiments.sweep.task import Task, digest
from fairshield_experiments.sweep.workers import InProcess, Workers

BACK = misbehaviours("lambda", "oneway")


def frame(result: object) -> pd.DataFrame:
    assert not isinstance(result, Failure), result
    return result["rows"]  # type: ignore[index]


class WorkersConformance:
    def test_frames_are_those_of_a_plain_loop(self, workers: Workers) -> None:
        tasks = simulations(range(12))
        results = list(workers.results(simulate, tasks))
        assert {result.task for result in results} == set(tasks)
        assert len(results) == len(tasks)
        for task, outcome, seconds in results:
            pd.testing.assert_frame_equal(frame(outcome), simulate(**task.arguments)["rows"])
            assert seconds >= 0

    def test_no_tasks_no_results(self, workers: Workers) -> None:
        assert list(workers.results(simulate, [])) == []

    def test_the_final_frame_is_the_same_whoever_computes_and_in_whatever_order(
        self, workers: Workers, tmp_path: Path
    ) -> None:
        tasks = simulations(range(10))
        keys = [task.key for task in tasks]
        with Journal(tmp_path / "expected") as plain, Journal(tmp_path / "tested") as tested:
            run_sweep(simulate, tasks, plain, InProcess())
            run_sweep(simulate, tasks[7:] + tasks[:7][::-1], tested, workers)
            for name in ("rows", "even"):
                expected, got = plain.collect(name, keys), tested.collect(name, keys)
                pd.testing.assert_frame_equal(got, expected)

    def test_a_task_that_raises_is_a_failure_and_the_others_go_on(self, workers: Workers) -> None:
        tasks = misbehaviours("", "raise", "", "exit", "none", "")
        outcomes = {task.title: outcome for task, outcome, _ in workers.results(misbehave, tasks)}
        errors = {t: str(o) for t, o in outcomes.items() if isinstance(o, Failure)}
        assert set(errors) == {"1: raise", "3: exit", "4: none"}
        assert errors["1: raise"].endswith("ZeroDivisionError: task 1 divides by zero")
        assert "in misbehave" in errors["1: raise"]
        assert "must return frames by name, got NoneType" in errors["4: none"]
        assert len(outcomes) == 6


class RemoteWorkersConformance(WorkersConformance):
    def test_few_arguments_are_pickled_at_a_time(self, workers: Workers) -> None:
        tasks = [Task(digest(n), "", {"number": n, "luggage": Luggage()}) for n in range(20)]
        Luggage.packed = 0
        results = workers.results(carry, tasks)
        next(results)
        assert 1 <= Luggage.packed <= 10
        results.close()

    def test_what_cannot_travel_is_a_failure(self, workers: Workers) -> None:
        bags: list[object] = [Fixed(), Fixed(), Fixed(), Luggage(), Fixed()]
        tasks = [Task(str(n), "", {"number": n, "luggage": bag}) for n, bag in enumerate(bags)]
        outcomes = {task.key: outcome for task, outcome, _ in workers.results(carry, tasks)}
        failed = {key for key, outcome in outcomes.items() if isinstance(outcome, Failure)}
        assert failed == {"0", "1", "2", "4"}
        assert outcomes["0"].error == "RuntimeError: not to be moved"

        back = {r.task.title: r.outcome for r in workers.results(misbehave, BACK)}
        assert "lambda" in back["0: lambda"].error
        assert back["1: oneway"].error == "EOFError: not to be opened"

    def test_a_worker_killed_in_the_middle_costs_nothing(
        self, workers: Workers, tmp_path: Path
    ) -> None:
        tasks = misbehaviours(*["", "", "kill", "", "", ""], once=str(tmp_path / "killed"))
        results = list(workers.results(misbehave, tasks))
        assert (tmp_path / "killed").exists()
        assert {result.task for result in results} == set(tasks)
        assert len(results) == len(tasks)
        assert all(not isinstance(result.outcome, Failure) for result in results)

    def test_a_task_that_always_kills_its_worker_fails_alone(self, workers: Workers) -> None:
        tasks = misbehaviours("", "kill", "", "", "", "")
        results = list(workers.results(misbehave, tasks))
        assert len(results) == len(tasks)
        (failed,) = [result for result in results if isinstance(result.outcome, Failure)]
        assert failed.task.title == "1: kill"
        assert "died" in str(failed.outcome)

    def test_tasks_use_one_thread(self, workers: Workers) -> None:
        (result,) = workers.results(threads, [Task("", "", {"name": "numba"})])
        assert frame(result.outcome)["threads"].tolist() == [1]
