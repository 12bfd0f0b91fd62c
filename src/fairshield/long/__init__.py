"""Windows too long for a table: certificates for the guarantee, prices for the cost.

A window of a million decisions has more counter states than could ever be stored.  Guarantee and
cost are therefore parted: a **certificate**, a formula in the counters, says which decisions keep
the property within reach on every input sequence (:mod:`fairshield.long.certificates`); a
**price** of the expected final excess says which of them is worth its money
(:mod:`fairshield.long.prices`); and the last decisions are solved exactly from the counters at
hand (:mod:`fairshield.long.endgame`).
"""

from fairshield.long.policy import LongPolicy as LongPolicy
