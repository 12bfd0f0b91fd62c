r"""Who comes: exact probabilities of how many people of two groups a window has.

A person is of group a and relevant, of group b and relevant, or not relevant.  Who comes does not
depend on what is decided, so that no simulation is needed: the distribution of the counters is
carried forward step by step, :math:`p_{t+1} = \omega_t\, p_t + \alpha_t\, p_t(\cdot - e_a) +
\beta_t\, p_t(\cdot - e_b)`.  Only sums of products of probabilities are taken, none of which is
subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import in_words, is_whole
from fairshield.base.errors import InvalidValueError
from fairshield.inputs.schedule import Inputs

_Floats = NDArray[np.float64]
_Move = Callable[[_Floats], _Floats]


def chance_of_both(inputs: Inputs, outcome: bool | None, length: int, least: int) -> float:
    """Probability that ``length`` people have at least ``least`` relevant ones of both groups.

    ``outcome`` says who is relevant; ``None``: everybody.

    >>> from fairshield.inputs import InputModel
    >>> chance_of_both(InputModel.agnostic({"a": 0.5, "b": 0.5}), None, 4, 2)
    0.375
    """
    _check(inputs, length)
    if 2 * least > length:
        return 0.0
    # More than ``least`` people are as good as ``least``: the last cell of each axis holds them.
    people = np.zeros((least + 1, least + 1))
    people[0, 0] = 1.0
    people = _carried(inputs, outcome, length, people, _one_more, lambda p: _one_more(p.T).T)
    return _probability(people[least, least])


def chance_of_equal(inputs: Inputs, outcome: bool | None, length: int, least: int) -> float:
    """Probability that ``length`` people have equally many relevant ones of both groups.

    These must be at least ``least`` of each, or none.

    >>> from fairshield.inputs import InputModel
    >>> chance_of_equal(InputModel.agnostic({"a": 0.5, "b": 0.5}), None, 4, 1)
    0.375
    """
    _check(inputs, length)
    least = max(least, 1)
    # By people of group a, ``least`` or more in the last cell, and how many more they are.
    people = np.zeros((least + 1, 2 * length + 1))
    people[0, length] = 1.0
    people = _carried(
        inputs, outcome, length, people,
        lambda p: np.roll(_one_more(p), 1, axis=1), lambda p: np.roll(p, -1, axis=1),
    )  # fmt: skip
    return _probability(people[0, length] + people[least, length])


def _carried(
    inputs: Inputs, outcome: bool | None, length: int, people: _Floats, of_a: _Move, of_b: _Move
) -> _Floats:
    for a, b in _chances(inputs, outcome, length):
        people = max(1.0 - a - b, 0.0) * people + a * of_a(people) + b * of_b(people)
    return people


def _chances(inputs: Inputs, outcome: bool | None, length: int) -> Iterator[tuple[float, float]]:
    """Yield the probabilities of a relevant person of either group, step by step."""
    table = inputs.table(length)
    relevant = (table.probs * table.relevance(outcome)).sum(axis=(2, 3))
    if outcome is None:
        # Everybody counts: what rounding leaves of 1 is nobody.
        relevant = relevant / relevant.sum(axis=1, keepdims=True)
    for step in range(length):
        a, b = relevant[step if len(relevant) > 1 else 0].tolist()
        yield a, b


def _check(inputs: Inputs, length: int) -> None:
    if not is_whole(length) or length < 1:
        raise InvalidValueError(
            f"a period has a whole number of decisions, at least 1, got {length!r}"
        )
    if len(inputs.groups) != 2:
        raise InvalidValueError(
            f"who comes is counted for two groups, and {len(inputs.groups)} are declared: "
            f"{in_words(inputs.groups)}; join groups"
        )


def _one_more(people: _Floats) -> _Floats:
    """The distribution after one more person, counted along the first axis up to its end."""
    moved = np.zeros_like(people)
    moved[1:] = people[:-1]
    moved[-1] += people[-1]
    return moved


def _probability(sum_: float) -> float:
    """``sum_``, which rounding may leave a little above 1."""
    return min(float(sum_), 1.0)
