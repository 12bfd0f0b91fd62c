"""Compiled once: a second specification must not wait for the compiler again."""

from __future__ import annotations

import subprocess
import sys

import fairshield as fs
from fairshield.runtime import compiled
from fairshield.synthesis.exact import kernels


def test_the_kernel_is_compiled_once_for_policies_of_one_kind(even: fs.InputModel) -> None:
    # Compilation takes seconds, a synthesis of this size a thousandth of one.
    # A kind is: with or without outcomes, with or without checkpoints.
    policies = []
    for prop in (fs.DemographicParity("0.1"), fs.EqualOpportunity("0.1")):
        for checkpoints in ((), (2,)):
            fs.synthesize(prop, even, horizon=5, checkpoints=checkpoints)
        fs.synthesize(prop, even, horizon=5, spread=2.0)  # also computes values without decisions
    before = len(kernels.back_up.signatures)
    schedule = fs.InputSchedule([(even, 2), (even, 3)])
    for prop in (fs.DemographicParity("0.2"), fs.EqualOpportunity("0.2"), fs.ShareParity(0)):
        policies += [
            fs.synthesize(prop, even, horizon=6),
            fs.synthesize(prop, even, horizon=9, checkpoints=(4,)),
            fs.synthesize(prop, schedule, horizon=7),
            fs.synthesize(prop, even, horizon=7, start=fs.Counts({"a": (2, 1), "b": (2, 1)})),
            fs.synthesize(prop, even, horizon=7, spread=2.0),
        ]
    assert len(kernels.back_up.signatures) == before
    fs.Shield(policies[0]).decide_many(["a"], [True])
    before = len(compiled.decide_stream.signatures)
    for policy in policies:
        fs.Shield(policy).decide_many(["a", "b"], [True, False], [1, 0.5], outcomes=[1, 0])
    assert len(compiled.decide_stream.signatures) == before


def test_one_process_needs_one_signature_for_each_kind() -> None:
    code = """
import fairshield as fs
from fairshield.synthesis.exact import kernels
even = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
rates = fs.BoundedRates(0, "0.9", min_support=1)
for prop in (fs.DemographicParity("0.1"), fs.EqualOpportunity("0.1"), rates):
    for horizon in (3, 8):
        fs.synthesize(prop, even, horizon=horizon)
assert len(kernels.back_up.signatures) == 2, kernels.back_up.signatures
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
