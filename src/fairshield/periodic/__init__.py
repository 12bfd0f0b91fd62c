"""Fairness at the end of every period, measured from the beginning of the run.

Five shields behind one interface.  Three are the paper's, fair under conditions that are checked
and reported; two need no condition.
"""

from fairshield.periodic.guarantee import Guarantee as Guarantee
from fairshield.periodic.policies import Dynamic as Dynamic
from fairshield.periodic.policies import ExactPeriodic as ExactPeriodic
from fairshield.periodic.policies import PeriodicPolicy as PeriodicPolicy
from fairshield.periodic.policies import Perpetual as Perpetual
from fairshield.periodic.policies import StaticBounded as StaticBounded
from fairshield.periodic.policies import StaticFair as StaticFair
from fairshield.periodic.policies import load_policy as load_policy
from fairshield.periodic.shield import DynamicShield as DynamicShield
from fairshield.periodic.shield import ExactPeriodicShield as ExactPeriodicShield
from fairshield.periodic.shield import PeriodicExplanation as PeriodicExplanation
from fairshield.periodic.shield import PeriodicShield as PeriodicShield
from fairshield.periodic.shield import PerpetualShield as PerpetualShield
from fairshield.periodic.shield import StaticBoundedShield as StaticBoundedShield
from fairshield.periodic.shield import StaticFairShield as StaticFairShield
from fairshield.periodic.state import PeriodicState as PeriodicState
