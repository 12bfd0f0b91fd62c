"""Closed sets: counters from which every period can end among them again, at a bounded cost.

``region`` has the counters of many people of both groups, ``few`` those of few people of one,
``closed`` the property that holds of both, ``for_ever`` what follows for runs without end.
"""

from fairshield.periodic.closed.closed import ClosedSet as ClosedSet
from fairshield.periodic.closed.for_ever import ForEver as ForEver
from fairshield.periodic.closed.for_ever import worst_cost_for_ever as worst_cost_for_ever
from fairshield.periodic.closed.region import Region as Region
