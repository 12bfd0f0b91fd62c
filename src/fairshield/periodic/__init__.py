"""Fairness at the end of every period, measured from the beginning of the run.

Five shields behind one interface.  Three are the paper's, fair under conditions that are checked
and reported; two need no condition.
"""

from fairshield.periodic.dynamic import Dynamic as Dynamic
from fairshield.periodic.dynamic import DynamicShield as DynamicShield
from fairshield.periodic.exact import ExactPeriodic as ExactPeriodic
from fairshield.periodic.exact import ExactPeriodicShield as ExactPeriodicShield
from fairshield.periodic.guarantee import Guarantee as Guarantee
from fairshield.periodic.perpetual import Perpetual as Perpetual
from fairshield.periodic.perpetual import PerpetualShield as PerpetualShield
from fairshield.periodic.policy import PeriodicPolicy as PeriodicPolicy
from fairshield.periodic.policy import load_policy as load_policy
from fairshield.periodic.runs import Outcome as Outcome
from fairshield.periodic.runs import Streams as Streams
from fairshield.periodic.runs import decide_runs as decide_runs
from fairshield.periodic.shield import PeriodicExplanation as PeriodicExplanation
from fairshield.periodic.shield import PeriodicShield as PeriodicShield
from fairshield.periodic.state import PeriodicState as PeriodicState
from fairshield.periodic.static import StaticBounded as StaticBounded
from fairshield.periodic.static import StaticBoundedShield as StaticBoundedShield
from fairshield.periodic.static import StaticFair as StaticFair
from fairshield.periodic.static import StaticFairShield as StaticFairShield
