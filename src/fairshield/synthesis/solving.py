"""solve chooses the backend that solves a problem: reference, CPU or CUDA."""

from __future__ import annotations

from fairshield.base.errors import MemoryLimitError
from fairshield.base.types import Progress
from fairshield.policy.layout import Layout
from fairshield.policy.rows import RowTable
from fairshield.synthesis import reference
from fairshield.synthesis.cuda import device
from fairshield.synthesis.memory import check_salvage_memory
from fairshield.synthesis.options import Backend, Options
from fairshield.synthesis.problem import Problem


def solve(
    problem: Problem, options: Options, *, record: int | None = None
) -> tuple[float, RowTable | None]:
    """Least expected cost, and the decisions of the first ``record`` layers if asked for."""
    if len(problem.start) > 2:
        from fairshield.synthesis.exact import many

        return many.solve(problem, options, record=False).value, None
    if options.backend == "reference":
        return reference.solve(problem, record)
    layout, n_levels, progress = problem.layout, problem.n_levels, options.progress
    if chosen_backend(options.backend, layout, n_levels, record=record) == "cuda":
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


def chosen_backend(
    backend: Backend, layout: Layout, n_levels: int, *, record: int | None
) -> Backend:
    """``backend``; for ``"auto"``, ``"cuda"`` if a device pays, else ``"cpu"``."""
    if backend == "auto":
        return "cuda" if device.pays(layout, n_levels, record=record) else "cpu"
    if backend == "cuda":
        device.require_device()
    return backend
