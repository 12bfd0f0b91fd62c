"""Policies for properties that count decisions, with a weight for each decision and outcome.

What a person adds to the counters is known only after the decision, and depends on it.  So both
outcomes must leave fairness possible, and what is worth overruling depends on how probable they
are, which differs from cost level to cost level.
"""

from fairshield.policy.counted.decisions import CountedDecisions as CountedDecisions
from fairshield.policy.counted.layout import CountedLayout as CountedLayout
