r"""The least ceiling: the least worst expected cost from one checkpoint to the next.

A sweep with ceiling C sets the values at each checkpoint to 0 where they are at most C and to
:math:`\infty` elsewhere.  Let v(C) be its value at the start.  A higher ceiling leaves more states
to end in, so v falls as C rises; C can be kept from the start iff v(C) ≤ C.  Nothing changes
between two ceilings unless a value at some checkpoint lies between them, hence

* C is kept: so is the larger one of v(C) and the largest value up to C, which are no larger;
* C is not kept: no ceiling below the lesser one of v(C) and the least value above C is kept.

A search between the two, which jumps to these bounds, ends at the least ceiling itself, not near
it.  It begins from below, with steps that double, because more periods cost little more than fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from fairshield.base.types import Progress
from fairshield.policy import Specification
from fairshield.synthesis.options import Options
from fairshield.synthesis.problem import Dearest, Solution, make_problem
from fairshield.synthesis.solving import solve

_FIRST_STEP = 1 / 64
_PACE = 0.85
"""Share of the work taken to be left after each sweep; how many there will be is not known."""


def least_ceiling(spec: Specification, options: Options, *, at_least: float = 0.0) -> float:
    """The least ceiling that can be kept from the start; infinite if the property cannot be.

    ``at_least`` is a bound from below, such as the least ceiling for fewer checkpoints.
    """
    sweep = _counted(spec, options)
    lower, upper = at_least, math.inf
    if lower == 0.0:
        found = sweep(math.inf)
        lower, upper = found.value, _kept(found)
    dearest = float(spec.inputs.table(1).levels.max())
    ceiling, step = lower, max(lower, dearest) * _FIRST_STEP
    while lower < upper:
        found = sweep(ceiling)
        if found.value <= ceiling:
            upper = _kept(found)
        else:
            lower = max(lower, min(found.value, _dearest(found).struck))
        ceiling, step = lower + min(step, (upper - lower) / 2), 2 * step
        if ceiling >= upper:
            # Nothing lies between the two but rounding.
            ceiling = lower
    return lower


def solved(spec: Specification, options: Options) -> Solution:
    """The values of ``spec``; its decisions are not collected."""
    return solve(make_problem(spec), options)


def _counted(spec: Specification, options: Options) -> Callable[[float], Solution]:
    """A function that makes the sweep with a ceiling, and reports the progress of them all."""
    left = 1.0

    def sweep(ceiling: float) -> Solution:
        nonlocal left
        before, left = left, left * _PACE
        own = part_of(options.progress, 1.0 - before, 1.0 - left)
        return solved(replace(spec, ceiling=ceiling), replace(options, progress=own))

    return sweep


def part_of(progress: Progress | None, begin: float, end: float) -> Progress | None:
    """A callback for work that is this part of the whole."""
    if progress is None:
        return None
    return lambda share: progress(begin + share * (end - begin))


def _kept(found: Solution) -> float:
    """The ceiling that a sweep kept: the largest value that it did not strike out."""
    return max(found.value, _dearest(found).kept)


def _dearest(found: Solution) -> Dearest:
    assert found.dearest is not None  # there was a ceiling
    return found.dearest
