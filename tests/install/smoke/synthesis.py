"""Synthesise, verify, decide and save."""

import sys
from importlib.resources import files

import fairshield as fs

assert "site-packages" in fs.__file__, fs.__file__
assert files("fairshield").joinpath("py.typed").is_file()
inputs = fs.InputModel.agnostic({"a": 0.4, "b": 0.6})
policy = fs.synthesize(fs.DemographicParity("0.2"), inputs, horizon=20)
assert fs.verify(policy).holds
shield = fs.Shield(policy)
for i in range(20):
    shield.decide("ab"[i % 3 > 0], proposed=i % 2 > 0)
assert policy.prop.holds(shield.counts)
policy.save("loans.shield")
assert fs.Shield(policy).decide_many(["a", "b"] * 10, [True, False] * 10).accepted.any()
sys.stdout.write(f"fairshield {fs.__version__} makes, verifies and uses a policy")
