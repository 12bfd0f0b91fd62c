"""Policies for three groups or more: a table of all decisions, by counters of every group.

The property binds every pair of groups, so a state has the counters of all groups, and there are
many more states than for two groups; docs/groups.md says which horizons are possible.
"""

from fairshield.policy.many.decisions import StateDecisions as StateDecisions
from fairshield.policy.many.layout import ManyLayout as ManyLayout
