"""Windows too long for a table: certificates for the guarantee, prices for the cost.

A window of a million decisions has more counter states than can be stored.  Guarantee and cost are
therefore computed apart.  A **certificate**, a formula in the counters, says which decisions keep
the property within reach on every input sequence (:mod:`fairshield.policy.long.certificates`).  A
**price** of the expected final excess says which of them is worth its cost
(:mod:`fairshield.policy.long.prices`).  The last decisions are solved exactly, from the counters
reached by then (:mod:`fairshield.policy.long.endgames`).
"""

from fairshield.policy.long.decisions import PriceDecisions as PriceDecisions
