"""Policies for three groups or more: a table of all decisions, by counters of every group.

The property binds every pair of groups, so the counters of all of them make up the state, and
there are many more states than for two groups; docs/groups.md says how far that goes.
"""

from fairshield.many.layout import ManyLayout as ManyLayout
from fairshield.many.policy import ManyPolicy as ManyPolicy
