r"""Decisions as a table: for each row of states what is feasible, and what is worth overruling.

What a shield does in a state depends on :math:`D = v(\text{accept}) - v(\text{reject})` alone:
overrule an accept iff :math:`D > c`, a reject iff :math:`-D > c`.  A policy therefore stores, for
each row of states (see :mod:`fairshield.policy.layout`),

* the interval of states from which fairness can be guaranteed; a decision that would leave it is
  never taken, whatever it costs;
* for each group a *code*: how many of the cost levels are worth overruling, positive for accepts
  that become rejects, negative for rejects that become accepts.

A row runs along the acceptances of the long group.  With one cost level the codes along it are
nearly always ``+1 … 0 … -1`` for the short group and ``-1 … 0 … +1`` for the long one, so two
*cuts* per group describe them.  Rows of another shape, and all rows of policies with several cost
levels, are stored state by state (*dense*).  Both forms are exact: the decisions are those of the
full table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Ints = NDArray[np.int64]
CUTS_WIDTH, BARE_WIDTH = 6, 2
FORCED = 1 << 40
"""The code of a decision that no cost can change."""


@dataclass(frozen=True, eq=False)
class RowTable:
    """RowTable holds the feasible intervals and codes of every row.

    Attributes
    ----------
    cuts
        ``(rows, 6)`` or ``(rows, 2)``, uint8 or uint16: ``lo, hi`` of the feasible states; then,
        with one cost level, ``s1, s2, l1, l2``: in the short group reject below ``s1`` and accept
        from ``s2`` on, in the long group accept below ``l1`` and reject from ``l2`` on, follow in
        between.  ``s1`` at its largest value marks a dense row.
    dense_rows, dense_starts, dense_codes
        Rows stored state by state: their numbers, rising; where each begins in the codes; and the
        codes, those of the short group for ``lo … hi-1``, then those of the long one.  The least
        value of the code type marks a state inside the interval that is not feasible.  If
        ``cuts`` has two columns, nearly every row is dense: ``dense_rows`` is empty and
        ``dense_starts`` has an entry for each row, -1 where all of ``lo … hi-1`` is feasible and
        nothing is decided.
    """

    cuts: Array
    dense_rows: Ints
    dense_starts: Ints
    dense_codes: Array

    def __post_init__(self) -> None:
        for array in (self.cuts, self.dense_rows, self.dense_starts, self.dense_codes):
            array.flags.writeable = False

    @property
    def n_dense(self) -> int:
        """Rows stored state by state."""
        return int((self.dense_starts >= 0).sum())

    @property
    def nbytes(self) -> int:
        """Size of all tables."""
        arrays = (self.cuts, self.dense_rows, self.dense_starts, self.dense_codes)
        return int(sum(a.nbytes for a in arrays))


def code_type(n_levels: int) -> type[np.signedinteger[Any]]:
    """The smallest type for codes up to ``n_levels`` of either sign, and one value to spare."""
    types: tuple[type[np.signedinteger[Any]], ...] = (np.int8, np.int16, np.int32)
    return next(t for t in types if n_levels <= np.iinfo(t).max)
