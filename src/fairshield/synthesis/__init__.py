"""Synthesis: makes the cheapest policy that always meets a specification.

``api`` has the public function.  ``making`` chooses the module that makes a policy:
``exact.making`` for two groups, ``exact.many`` for more, ``long.plan`` for long windows.
``solving`` chooses the backend that solves a problem.  ``reference`` defines what all of them
compute.  Nothing here knows how a policy is used.
"""

from fairshield.policy.long.endgames import provide_solver
from fairshield.synthesis.api import synthesize as synthesize
from fairshield.synthesis.going import cost_to_go as cost_to_go
from fairshield.synthesis.going import least_cost as least_cost
from fairshield.synthesis.making import make_again as make_again
from fairshield.synthesis.making import make_policy as make_policy
from fairshield.synthesis.method import MOST_STATES as MOST_STATES
from fairshield.synthesis.method import Method as Method
from fairshield.synthesis.options import Backend as Backend
from fairshield.synthesis.options import Options as Options
from fairshield.synthesis.options import processors as processors

provide_solver(lambda spec: make_policy(spec, Options(best_effort=True, method="exact")))
