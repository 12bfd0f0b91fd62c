r"""What must hold at the horizon: a predicate of the counters, decided in integers.

A property is data.  It never looks at inputs, costs or policies, nor does it know its horizon;
every other layer asks it one question, :meth:`Property.holds`.  With group rates
:math:`r_g = k_g / n_g` (accepted over seen) and a bound :math:`\kappa = p/q`, demographic parity

.. math:: |k_a / n_a - k_b / n_b| \le p / q \iff q\,|k_a n_b - k_b n_a| \le p\, n_a n_b

is a comparison of integers, because ``0.8 - 0.7 <= 0.1`` is false in floating point and every
misjudged tie overrules somebody for nothing.  Of three groups or more it must hold for every pair.

A property of your own is a frozen dataclass with one method::

    @dataclass(frozen=True)
    class Quota(Property, kind="quota"):
        most: int

        def fair(self, a, b):
            return abs(a.accepted - b.accepted) <= self.most
"""

from fairshield.spec.base import Count as Count
from fairshield.spec.base import Property as Property
from fairshield.spec.base import Undefined as Undefined
from fairshield.spec.base import both as both
from fairshield.spec.binding import can_bind as can_bind
from fairshield.spec.binding import can_ever_bind as can_ever_bind
from fairshield.spec.compared import GroupRate as GroupRate
from fairshield.spec.compared import Reach as Reach
from fairshield.spec.compared import rates_of as rates_of
from fairshield.spec.compared import reach_of as reach_of
from fairshield.spec.corridors import Corridor as Corridor
from fairshield.spec.counting import Counting as Counting
from fairshield.spec.counting import Weights as Weights
from fairshield.spec.described import Axis as Axis
from fairshield.spec.differences import DemographicParity as DemographicParity
from fairshield.spec.differences import DifferenceOfRates as DifferenceOfRates
from fairshield.spec.differences import EqualOpportunity as EqualOpportunity
from fairshield.spec.differences import PredictiveEquality as PredictiveEquality
from fairshield.spec.finding import AT_LAST as AT_LAST
from fairshield.spec.finding import UNTOLD as UNTOLD
from fairshield.spec.finding import VERDICTS as VERDICTS
from fairshield.spec.finding import Finding as Finding
from fairshield.spec.finding import Measured as Measured
from fairshield.spec.finding import Verdict as Verdict
from fairshield.spec.finding import tally as tally
from fairshield.spec.finding import verdict_of as verdict_of
from fairshield.spec.finding import worst as worst
from fairshield.spec.impact import DisparateImpact as DisparateImpact
from fairshield.spec.intervals import Interval as Interval
from fairshield.spec.linear import LinearProperty as LinearProperty
from fairshield.spec.no_requirement import NoRequirement as NoRequirement
from fairshield.spec.rate_difference import RateDifference as RateDifference
from fairshield.spec.rationals import Number as Number
from fairshield.spec.rationals import decimal as decimal
from fairshield.spec.rationals import exact as exact
from fairshield.spec.registry import KINDS as KINDS
from fairshield.spec.registry import offered_kinds as offered_kinds
from fairshield.spec.registry import parameters_of as parameters_of
from fairshield.spec.registry import property_from_dict as property_from_dict
from fairshield.spec.shares import ShareParity as ShareParity
from fairshield.spec.sustained import Certificate as Certificate
from fairshield.spec.sustained import Sustained as Sustained
from fairshield.spec.welfare import BoundedRates as BoundedRates
from fairshield.spec.widest import widest_finding as widest_finding
