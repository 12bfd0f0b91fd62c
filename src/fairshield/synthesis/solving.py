"""solve chooses the backend that solves a problem: reference, CPU or CUDA."""

from __future__ import annotations

import math

from fairshield.base.errors import InvalidValueError, MemoryLimitError
from fairshield.base.types import Progress
from fairshield.policy import Specification
from fairshield.policy.layout import layout_of
from fairshield.synthesis import reference
from fairshield.synthesis.cuda import device
from fairshield.synthesis.memory import check_salvage_memory
from fairshield.synthesis.options import Backend, Options
from fairshield.synthesis.problem import Problem, Solution


def solve(problem: Problem, options: Options, *, record: int | None = None) -> Solution:
    """Least expected cost, and the decisions of the first ``record`` layers if asked for."""
    if not problem.spec.prop.counting.of_people:
        from fairshield.synthesis.exact import counted

        return Solution(counted.solve(problem, options, record=False).value, None)
    if len(problem.start) > 2:
        from fairshield.synthesis.exact import many

        return Solution(many.solve(problem, options, record=False).value, None)
    if options.backend == "reference":
        return reference.solve(problem, record)
    if problem.trusting and record is None:
        start = solve_best_effort(problem, options.backend, options.progress).start
        return Solution(math.inf if start.risk else start.cost, None)
    progress = options.progress
    if chosen_backend(options.backend, problem.spec, record=record) == "cuda":
        from fairshield.synthesis.cuda import solver as cuda

        return cuda.solve(problem, record=record, progress=progress)
    from fairshield.synthesis.exact import solver

    try:
        return solver.solve(problem, record=record, threads=options.n_threads, progress=progress)
    except MemoryError as error:
        raise MemoryLimitError(
            f"horizon {problem.horizon} needs more memory than there is ({error}): shorten "
            "the horizon, or use fewer cost levels"
        ) from None


def solve_best_effort(
    problem: Problem, backend: Backend, progress: Progress | None = None
) -> reference.BestEffort:
    """Decisions where fairness cannot be guaranteed, their risk and cost."""
    if backend == "reference":
        return reference.solve_best_effort(problem)
    from fairshield.synthesis.exact import best_effort

    check_salvage_memory(problem.layout, problem.n_levels)
    return best_effort.solve(problem, progress)


def chosen_backend(backend: Backend, spec: Specification, *, record: int | None) -> Backend:
    """``backend``; for ``"auto"``, ``"cuda"`` if a device pays, else ``"cpu"``."""
    if spec.ceiling is not None:
        if backend == "cuda":
            raise InvalidValueError(
                f"backend 'cuda' keeps no ceiling on the cost between checkpoints, and one of "
                f"{spec.ceiling!r} is asked for: use 'cpu'"
            )
        return "cpu" if backend == "auto" else backend
    if backend == "auto":
        layout = layout_of(spec.plan_length, spec.labelled)
        return "cuda" if device.pays(layout, spec.n_levels, record=record) else "cpu"
    if backend == "cuda":
        device.require_device()
    return backend
