"""The policies that ``make_fixtures`` writes to files."""

from __future__ import annotations

from old_files import AcceptedApart

import fairshield as fs


def window_policies() -> dict[str, fs.Policy]:
    """One for each argument of the synthesis, each property and each method."""
    even = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    uneven = fs.InputModel.agnostic({"a": 0.4, "b": 0.6}, outcomes={"a": 0.3, "b": 0.6})
    prices = fs.InputModel.from_table(
        {
            ("a", True, 0.5): 0.1, ("a", True, 2.0): 0.1, ("a", False, 1.0): 0.2,
            ("b", True, 0.5): 0.3, ("b", False, 1.0): 0.1, ("b", False, 3.0): 0.2,
        }
    )  # fmt: skip
    three = fs.InputModel.agnostic({"x": 0.25, "y": 0.25, "z": 0.5})
    numbered = fs.InputModel.agnostic({0: 0.5, 1: 0.5})
    schedule = fs.InputSchedule([(even, 5), (uneven, 7)])
    parity, opportunity = fs.DemographicParity("0.2"), fs.EqualOpportunity("0.25")
    apart = fs.Counts({"a": (6, 2), "b": (6, 5)})
    make = fs.synthesize
    return {
        "plain": make(parity, uneven, horizon=12),
        "labelled": make(opportunity, uneven, horizon=8),
        "numbered": make(parity, numbered, horizon=10),
        "support": make(fs.DemographicParity("1/7", min_support=3), even, horizon=10),
        "predictive-equality": make(fs.PredictiveEquality("0.3"), uneven, horizon=8),
        "disparate-impact": make(fs.DisparateImpact("0.7"), even, horizon=10),
        "one-sided": make(fs.DisparateImpact("0.2", two_sided=False), even, horizon=10),
        "share-parity": make(fs.ShareParity("0.5"), even, horizon=10),
        "bounded-rates": make(fs.BoundedRates("0.3", "0.7"), even, horizon=12),
        "bounded-opportunity": make(
            fs.BoundedRates("0.3", "0.8", outcome=True), uneven, horizon=9
        ),
        "own": make(AcceptedApart(2), even, horizon=10),
        "checkpoints": make(fs.DemographicParity("0.34"), even, horizon=12, checkpoints=[4, 8]),
        "labelled-checkpoints": make(
            fs.EqualOpportunity("0.5"), uneven, horizon=8, checkpoints=[4]
        ),
        "spread": make(parity, uneven, horizon=12, spread=3.0),
        "start": make(
            fs.DemographicParity("0.25"), even, horizon=10,
            start=fs.Counts({"a": (5, 1), "b": (6, 3)}),
        ),
        "best-effort": make(
            fs.DemographicParity("0.1"), even, horizon=8, start=apart, best_effort=True
        ),
        "labelled-best-effort": make(
            fs.EqualOpportunity("0.1"), uneven, horizon=6, start=apart, best_effort=True
        ),
        "further": make(
            fs.DemographicParity("0.3"), even, horizon=6, further=6, checkpoints=[3, 9],
            terminal=fs.DemographicParity("0.2"),
        ),
        "sustained": make(
            parity, even, horizon=6, further=6, terminal=fs.spec.Sustained(parity)
        ),
        "schedule": make(parity, schedule, horizon=12),
        "prices": make(parity, prices, horizon=12),
        "three-groups": make(fs.DemographicParity("0.4"), three, horizon=7),
        "long": make(parity, uneven, horizon=45, method="long", endgame=8),
        "long-labelled": make(opportunity, uneven, horizon=40, method="long", endgame=6),
        "long-checkpoints": make(
            fs.DemographicParity("0.25"), even, horizon=40, checkpoints=[15, 30], method="long",
            endgame=6,
        ),
        "long-prices": make(parity, prices, horizon=40, method="long", endgame=6),
    }  # fmt: skip


def periodic_policies() -> dict[str, fs.PeriodicPolicy]:
    """Each kind, plain and with outcomes, and some with options and a start."""
    inputs = fs.InputModel.agnostic({"a": 0.4, "b": 0.6}, outcomes={"a": 0.6, "b": 0.7})
    start = fs.Counts({"a": (4, 2), "b": (5, 3)})
    found: dict[str, fs.PeriodicPolicy] = {}
    for suffix, prop, period in (
        ("", fs.DemographicParity("0.25"), 8),
        ("-labelled", fs.EqualOpportunity("0.34"), 6),
    ):
        found |= {
            f"static-fair{suffix}": fs.StaticFairShield(prop, inputs, period=period).policy,
            f"static-bounded{suffix}": fs.StaticBoundedShield(prop, inputs, period=period).policy,
            f"dynamic{suffix}": fs.DynamicShield(prop, inputs, period=period).policy,
            f"exact{suffix}": fs.ExactPeriodicShield(prop, inputs, period=period, periods=3).policy,
            f"perpetual{suffix}": fs.PerpetualShield(prop, inputs, period=period - 2).policy,
        }
    prop = fs.DemographicParity("0.25")
    found |= {
        "inactive": fs.DynamicShield(prop, inputs, period=8, fallback="inactive").policy,
        "bounds": fs.StaticBoundedShield(prop, inputs, period=12, bounds=("0.4", "0.6")).policy,
        "lookahead": fs.PerpetualShield(
            prop, inputs, period=5, lookahead=3, start=start
        ).policy,
    }  # fmt: skip
    return {f"periodic-{name}": policy for name, policy in found.items()}
