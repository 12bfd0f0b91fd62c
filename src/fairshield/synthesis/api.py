"""synthesize: the public function of the synthesis, its arguments and its one warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from fairshield.base.counts import Counts, so_far
from fairshield.base.errors import VacuousWarning, called
from fairshield.base.types import Progress
from fairshield.inputs import Inputs
from fairshield.policy import Policy, Specification
from fairshield.spec import Property
from fairshield.synthesis.making import make_policy
from fairshield.synthesis.method import Method
from fairshield.synthesis.options import Backend, Options


def synthesize(
    prop: Property,
    inputs: Inputs,
    *,
    horizon: int,
    start: Counts | None = None,
    checkpoints: Iterable[int] = (),
    further: int = 0,
    terminal: Property | None = None,
    spread: float = 1.0,
    best_effort: bool = False,
    trust_support: bool = False,
    method: Method = "auto",
    endgame: int | None = None,
    backend: Backend = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Policy:
    r"""The cheapest policy under which ``prop`` holds after ``horizon`` decisions, always.

    Parameters
    ----------
    prop
        What must hold.
    inputs
        What to expect; decides the cost, never the guarantee.
    horizon
        Number of decisions in the window.
    start
        Counters before the first decision, which the property counts in; default: nobody seen.
    checkpoints
        Other numbers of decisions after which the property must hold as well.
    further
        Plan for so many more decisions than ``horizon``: the policy is the beginning of the
        cheapest plan under which checkpoints beyond the horizon are met, too, and ``terminal``
        holds at its end.  Expected costs are those of the whole plan.
    terminal
        What must hold at the end of the plan besides ``prop``; the end of the plan is the horizon,
        or ``further`` decisions after it.
    spread
        Above 1, interventions are planned as if their price rose linearly over the window to
        ``spread`` times itself, so that they do not all fall on the last arrivals.  What that
        costs is ``policy.expected_cost - policy.least_cost``.
    best_effort
        Where no shield can guarantee the property from ``start``, make the policy that violates it
        with the least probability (``policy.risk``), at the least expected cost among those
        that give up no guarantee, instead of raising :class:`InfeasibleError`.  It changes nothing
        where one can.
    trust_support
        Take requests and outcomes of probability 0 in ``inputs`` for impossible, as the paper's
        definition does.  The property then holds on every sequence to which the model gives a
        positive probability, at no more than the cost of the default.  Of other sequences nothing
        is guaranteed, so ``guaranteed`` is never true before the end of a window; a :class:`Run`
        reports whether only possible requests have come.  It changes nothing where everybody who
        matters to fairness has a positive probability.  Exact tables of two groups only.
    method
        ``"exact"`` makes a table of all decisions, of least expected cost.  ``"long"`` works
        decisions out as they come, in memory and time that do not depend on the horizon: the same
        guarantee, at nearly the least cost; see docs/long.md.  ``"auto"`` makes a table if that
        is a matter of seconds; ``policy.method`` and ``policy.reason`` say what it chose and why.
    endgame
        How many decisions before each check a long policy solves exactly, from the counters at
        hand; default: as many as take a few milliseconds.
    backend
        ``"cpu"`` is compiled, ``"cuda"`` runs on a CUDA device, ``"reference"`` is the paper's
        recursion for small horizons.  ``"auto"`` takes a device if there is one and the problem is
        large enough to be worth it.  Decisions are the same.
    threads
        Default: the processors this process may use.
    progress
        Called with the share of work done, between 0 and 1, some times per second.

    Raises
    ------
    InfeasibleError
        If no shield can guarantee the property from ``start``, unless ``best_effort``.
    MemoryLimitError
        If the tables would not fit into memory.
    MissingExtraError
        If the extra ``synthesis`` is not installed, unless ``backend`` is ``"reference"``; if
        ``backend`` is ``"cuda"`` and CuPy or a device is missing.

    Warns
    -----
    VacuousWarning
        If the property can never bind in such a window, as where ``min_support`` cannot be
        reached: the policy then promises nothing (``policy.can_bind``).

    Examples
    --------
    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> policy = fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=20)
    >>> round(policy.expected_cost, 6)
    2.587138
    """
    spec = Specification.of(
        prop, inputs, horizon=horizon, start=start, checkpoints=checkpoints, further=further,
        terminal=terminal, spread=spread, trust_support=trust_support,
    )  # fmt: skip
    options = Options(
        best_effort=best_effort, method=method, endgame=endgame, backend=backend, threads=threads,
        progress=progress,
    )  # fmt: skip
    policy = make_policy(spec, options)
    if not policy.can_bind:
        warnings.warn(
            f"{policy.prop} can never bind in {policy.horizon} decisions starting from "
            f"{so_far(policy.start, policy.prop.counting.taken)}, so the policy promises nothing: "
            f"lower {called('min_support')}, lengthen the horizon, or tighten the bound",
            VacuousWarning,
            stacklevel=2,
        )
    return policy
