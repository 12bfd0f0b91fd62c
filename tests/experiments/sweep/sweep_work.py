"""Functions and tasks for workers; other processes import them from here."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairshield_experiments.sweep.task import Frames, Task, digest


def simulate(number: int, size: int, log: str | None = None, pause: float = 0.0) -> Frames:
    """Random rows of every kind that frames hold; logs its number and process when it starts."""
    if log is not None:
        with Path(log).open("a") as file:
            file.write(f"{number} {os.getpid()}\n")
    time.sleep(pause)
    rng = np.random.default_rng(number)
    return {
        "rows": pd.DataFrame(
            {
                "number": number,
                "value": rng.normal(size=size),
                "name": rng.choice(["ä", "b", ""], size=size),
                "fair": rng.random(size) < 0.5,
                "condition": pd.array(rng.choice([True, False, None], size=size), dtype="boolean"),
            }
        ),
        **({"even": pd.DataFrame({"number": [number]})} if number % 2 == 0 else {}),
    }


def misbehave(number: int, how: str = "", once: str | None = None) -> Frames:
    """Fail in the way that the argument says: each time, or until the file exists."""
    if how and once is not None:
        how = "" if Path(once).exists() else how
        Path(once).touch()
    if how == "raise":
        raise ZeroDivisionError(f"task {number} divides by zero")
    if how == "exit":
        raise SystemExit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "none":
        return None  # type: ignore[return-value]
    if how == "list":
        return {"rows": [1, 2]}  # type: ignore[dict-item]
    if how == "mixed":
        return {"rows": pd.DataFrame({"mixed": [1, "one", b"1"]})}
    if how == "lambda":
        return {"rows": lambda: None}  # type: ignore[dict-item]
    if how == "oneway":
        return {"rows": OneWay()}  # type: ignore[dict-item]
    return simulate(number, 3)


class Luggage:
    """Luggage is an argument that counts how often this process has pickled one."""

    packed = 0

    def __getstate__(self) -> dict[str, Any]:
        Luggage.packed += 1
        return {}


class Fixed:
    """Fixed is an argument that cannot be pickled."""

    def __getstate__(self) -> dict[str, Any]:
        raise RuntimeError("not to be moved")


class OneWay:
    """OneWay is a result that can be pickled, but not unpickled."""

    def __setstate__(self, state: object) -> None:
        raise EOFError("not to be opened")

    def __getstate__(self) -> dict[str, Any]:
        return {"something": 1}


def carry(number: int, luggage: object) -> Frames:
    """Ignore the arguments."""
    return simulate(number, 1)


def threads(name: str) -> Frames:
    """How many threads a library uses."""
    library = import_module(name)
    return {"rows": pd.DataFrame({"threads": [library.get_num_threads()]})}


def simulations(numbers: Iterable[int], **arguments: Any) -> list[Task]:
    return [
        Task(digest("simulate", n), f"simulation {n}", {"number": n, "size": n % 7} | arguments)
        for n in numbers
    ]


def misbehaviours(*ways: str, **arguments: Any) -> list[Task]:
    return [
        Task(digest("misbehave", n), f"{n}: {how}", {"number": n, "how": how} | arguments)
        for n, how in enumerate(ways)
    ]
