"""``examples`` says how many examples a law is tried on; ``HYPOTHESIS_PROFILE`` decides.

``quick``
    A fifth of the examples: ``make test``.
``full``
    All of them, the same for everybody: ``make test-all``, and pytest itself.
``search``
    Ten times as many, others every time: ``make search``.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "full")
SHARES = {"quick": Fraction(1, 5), "full": Fraction(1), "search": Fraction(10)}


def examples(full: int) -> int:
    """The number of examples in this run, of a law that has ``full`` in the full run."""
    return math.ceil(full * SHARES[PROFILE])
