"""Load a policy and decide: neither the compiler nor anything else is loaded."""

import sys

sys.modules["numba"] = None  # as if it were not installed

import fairshield as fs  # noqa: E402

policy = fs.Policy.load("loans.shield")
shield = fs.Shield(policy)
assert shield.decide("a", proposed=True).guaranteed
assert not {"llvmlite", "click", "rich"} & set(sys.modules)
