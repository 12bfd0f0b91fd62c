"""A sweep as a program that tests kill: ``journal log processes tasks pause``."""

from __future__ import annotations

import sys

from sweep_work import simulate, simulations

from fairshield_experiments.sweep.journal import Journal
from fairshield_experiments.sweep.run import run_sweep
from fairshield_experiments.sweep.workers import InProcess, Processes, Workers


def main(journal: str, log: str, processes: str, tasks: str, pause: str) -> None:
    workers: Workers = Processes(int(processes)) if int(processes) else InProcess()
    todo = simulations(range(int(tasks)), log=log, pause=float(pause))
    with Journal(journal) as opened:
        run_sweep(
            simulate,
            todo,
            opened,
            workers,
            progress=lambda done, *_: print(done, flush=True),  # noqa: T201
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
