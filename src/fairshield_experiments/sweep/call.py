"""``serve`` computes tasks in a worker process; ``answer`` computes one.

This module imports only the standard library, so that a new process can limit its threads before
any numeric library has counted the cores.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


@dataclass(frozen=True)
class Failure:
    """Failure is a task that ended without frames: what went wrong, and where."""

    error: str
    traceback: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """The failure that an exception describes; its traceback becomes text to be pickled."""
        line = "".join(traceback.format_exception_only(error)).strip()
        return cls(line, "".join(traceback.format_exception(error)).strip())

    def __str__(self) -> str:
        return self.traceback or self.error


def attempt(function: Callable[..., Any], arguments: Mapping[str, Any]) -> tuple[Any, float]:
    """The frames that the function returns, or a :class:`Failure`; and the seconds it took."""
    start = time.perf_counter()
    outcome: Any
    try:
        outcome = function(**arguments)
        if not isinstance(outcome, Mapping):
            raise TypeError(f"a task must return frames by name, got {type(outcome).__name__}")
        outcome = dict(outcome)
    # SystemExit is a failure of the task; KeyboardInterrupt passes, because it is for the sweep.
    except (Exception, SystemExit) as error:
        outcome = Failure.of(error)
    return outcome, time.perf_counter() - start


def packed(function: Callable[..., Any], arguments: Mapping[str, Any]) -> bytes:
    """A call as bytes, to be sent to another process."""
    return pickle.dumps((function, dict(arguments)), protocol=pickle.HIGHEST_PROTOCOL)


def answer(call: bytes) -> bytes:
    """The pickled result of :func:`attempt` for a packed call."""
    try:
        outcome = attempt(*pickle.loads(call))
        return pickle.dumps(outcome, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # not importable here, or a result that cannot be pickled
        return pickle.dumps((Failure.of(error), 0.0))


def opened(answered: bytes) -> tuple[Any, float]:
    """The result that :func:`answer` pickled."""
    try:
        outcome, seconds = pickle.loads(answered)
    except Exception as error:  # a result that cannot be unpickled
        return Failure.of(error), 0.0
    return outcome, seconds


def answer_alone(call: bytes) -> bytes:
    """:func:`answer` on one thread."""
    use_one_thread()
    return answer(call)


def use_one_thread() -> None:
    """Limit numeric libraries to one thread: other tasks use the other cores."""
    for name in _THREADS:
        os.environ[name] = "1"
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)
    if (numba := sys.modules.get("numba")) is not None:
        numba.set_num_threads(1)
    else:
        # Once loaded, numba refuses to compile if the number changed after its threads started.
        os.environ["NUMBA_NUM_THREADS"] = "1"


def serve(connection: Connection) -> None:
    """Answer calls until the pipe is closed.  The main function of a worker process."""
    # Ctrl-C reaches every process of a terminal; the parent decides what becomes of this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    use_one_thread()
    while True:
        try:
            connection.send_bytes(answer(connection.recv_bytes()))
        except (EOFError, OSError):
            return


def _end_with_parent() -> None:
    """End this process when its parent ends, because nobody would read the result."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
