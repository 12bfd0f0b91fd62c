"""The last decisions before a check, solved exactly from the counters they begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairshield.counts import At
from fairshield.inputs import InputModel, InputSchedule
from fairshield.policy import Policy
from fairshield.spec import Sustained

if TYPE_CHECKING:
    from fairshield.long.policy import LongPolicy


def solve(policy: LongPolicy, t: int, at: At) -> Policy:
    """The cheapest policy from here to the next check.

    If the window goes on, it ends with a certificate that the property can be kept.
    """
    from fairshield.synthesis import make_policy

    check, terminal = policy.next_check(t), policy.terminal
    if check < policy.horizon or isinstance(terminal, Sustained):
        terminal = policy.certificates.sustained
    return make_policy(
        policy.prop, _ahead(policy.inputs, t, check - t), horizon=check - t,
        start=policy.start.plus(at), terminal=terminal, best_effort=True, method="exact",
    )  # fmt: skip


def _ahead(inputs: InputModel | InputSchedule, t: int, steps: int) -> InputModel | InputSchedule:
    """What to expect in the next ``steps``, by the cost levels of the whole window."""
    from fairshield.synthesis import remaining_inputs

    if isinstance(inputs, InputModel):
        return inputs
    ahead = remaining_inputs(inputs, t)
    assert isinstance(ahead, InputSchedule)
    *parts, (last, _) = ahead.parts
    levels = ((model, 1) for model, _ in inputs.parts)
    return InputSchedule([*parts, (last, steps), *levels])
