"""Windows one after the other: the kinds of periods, and the run that decides by any of them.

Seven kinds implement one interface, :class:`~fairshield.PeriodicPolicy`.  ``Repeated`` begins each
window with the same counters.  The other six keep a property of all decisions since the run began.
Of these, ``StaticFair``, ``StaticBounded`` and ``Dynamic`` are the paper's, fair under conditions
that are checked and reported; ``ExactPeriodic``, ``OptimalPeriodic`` and ``Perpetual`` need no
condition.
"""

from fairshield._renamed import NAMES
from fairshield.base.renamed import old_names
from fairshield.periodic.closed import ClosedSet as ClosedSet
from fairshield.periodic.closed import ForEver as ForEver
from fairshield.periodic.closed import Region as Region
from fairshield.periodic.closed import worst_cost_for_ever as worst_cost_for_ever
from fairshield.periodic.cumulative import CumulativePolicy as CumulativePolicy
from fairshield.periodic.dynamic import Dynamic as Dynamic
from fairshield.periodic.exact import ExactPeriodic as ExactPeriodic
from fairshield.periodic.explanation import RunExplanation as RunExplanation
from fairshield.periodic.guarantee import Guarantee as Guarantee
from fairshield.periodic.optimal import DearestPeriod as DearestPeriod
from fairshield.periodic.optimal import OptimalPeriodic as OptimalPeriodic
from fairshield.periodic.optimal import least_worst_costs as least_worst_costs
from fairshield.periodic.perpetual import Perpetual as Perpetual
from fairshield.periodic.planned import Planned as Planned
from fairshield.periodic.policy import PeriodicPolicy as PeriodicPolicy
from fairshield.periodic.policy import load_policy as load_policy
from fairshield.periodic.repeated import Repeated as Repeated
from fairshield.periodic.repeated import kind_of as kind_of
from fairshield.periodic.run import Run as Run
from fairshield.periodic.runs import Outcome as Outcome
from fairshield.periodic.runs import Streams as Streams
from fairshield.periodic.runs import decide_runs as decide_runs
from fairshield.periodic.shields import DynamicShield as DynamicShield
from fairshield.periodic.shields import ExactPeriodicShield as ExactPeriodicShield
from fairshield.periodic.shields import OptimalPeriodicShield as OptimalPeriodicShield
from fairshield.periodic.shields import PerpetualShield as PerpetualShield
from fairshield.periodic.shields import StaticBoundedShield as StaticBoundedShield
from fairshield.periodic.shields import StaticFairShield as StaticFairShield
from fairshield.periodic.state import RunState as RunState
from fairshield.periodic.static import StaticBounded as StaticBounded
from fairshield.periodic.static import StaticFair as StaticFair

__getattr__ = old_names(__name__, NAMES)
