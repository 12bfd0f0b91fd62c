"""Policies: the decisions for every state of a window, their specification, and their file.

This folder does not know how decisions are made, nor who asks for them.
"""

from fairshield.policy.policy import Policy as Policy
from fairshield.policy.policy import reading as reading
from fairshield.policy.specification import Specification as Specification
