"""What a property says of a pair: the widest first, in the property's own words."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import THREE, Branching, Quota, properties, starts

import fairshield as fs

own = st.one_of(
    *(st.builds(k, st.integers(0, 4), min_support=st.integers(0, 3)) for k in (Quota, Branching))
)
unsupported = st.builds(
    lambda prop, support: type(prop)(prop.bound, min_support=support),
    st.sampled_from([fs.DemographicParity("0.1"), fs.DisparateImpact("0.8"), fs.ShareParity("0")]),
    st.integers(0, 4),
)


@given(properties | own | unsupported, starts())
def test_the_finding_has_the_verdict_of_the_counters(prop, counts):
    assert prop.finding(counts).verdict == prop.verdict(counts)


@given(unsupported | own, starts(groups=THREE))
def test_of_three_groups_the_widest_pair_decides(prop, counts):
    found = prop.findings(counts)
    assert found[0] == prop.finding(counts)
    assert {frozenset(f.pair) for f in found} == {frozenset(p) for p in combinations(THREE, 2)}
    order = ["unfair", "fair", "exempt"]
    assert [f.verdict for f in found] == sorted((f.verdict for f in found), key=order.index)
    for finding in found:
        pair = fs.Counts({g: counts[g] for g in counts if g in finding.pair})
        assert finding.verdict == prop.verdict(pair)
    if not prop.holds(counts):
        widest = fs.Counts({g: counts[g] for g in counts if g in found[0].pair})
        assert prop.bias_of(widest) == prop.bias_of(counts)


@given(unsupported, starts())
def test_a_value_is_the_bias_on_the_scale_of_its_measure(prop, counts):
    finding, bias = prop.finding(counts), prop.measured_bias_of(counts)
    assert finding.limit == float(prop.bound)
    if finding.value is None:
        assert any(count.seen == 0 for count in counts.values())
        assert bias == 0
    else:
        of_ratio = isinstance(prop, fs.DisparateImpact)
        assert finding.value == pytest.approx(1 - bias if of_ratio else bias)


@given(unsupported, starts())
def test_the_group_behind_is_named_first(prop, counts):
    behind, ahead = (counts[group] for group in prop.finding(counts).pair)
    if isinstance(prop, fs.ShareParity):
        assert behind.accepted <= ahead.accepted
    else:
        assert behind.accepted * ahead.seen <= ahead.accepted * behind.seen


@given(st.integers(2, 400), st.integers(0, 400), st.integers(0, 400))
def test_what_is_shown_of_an_unfair_pair_is_not_fair(n, k_a, k_b):
    prop = fs.DemographicParity("1/3")
    counts = fs.Counts({"a": (n, min(k_a, n)), "b": (n + 1, min(k_b, n))})
    finding = prop.finding(counts)
    if finding.verdict == "unfair":
        assert Fraction(finding.shown) > prop.bound


def test_sentences():
    counts = fs.Counts({"m": (60, 40), "w": (20, 5)})
    say = {
        fs.DemographicParity("0.1"): "gap 0.4167 between w and m where at most 0.1 is asked",
        fs.DisparateImpact("0.8"): "impact ratio 0.375 of w to m where at least 0.8 is asked",
        fs.DisparateImpact("1.2", two_sided=False): "impact ratio 2.667 of m to w where at most "
        "1.2 is asked",
        fs.ShareParity("1/3"): "gap 0.7778 between w and m where at most 1/3 of those accepted "
        "is asked",
        fs.BoundedRates("0.3", "0.7"): "rate 0.25 of w where 0.3 to 0.7 is asked",
        Quota(4): "bias 1 between m and w where at most 0 is asked",
        fs.spec.Sustained(fs.DemographicParity("0.1")): "gap 0.4167 between w and m where at most "
        "0.1 is asked",
    }
    assert {prop: str(prop.finding(counts)) for prop in say} == say


@pytest.mark.parametrize(
    ("prop", "counts", "why"),
    [
        (fs.DemographicParity("0", min_support=30), {"m": (60, 1), "w": (20, 0)},
         "20 of w, below the support of 30"),
        (fs.DemographicParity("0", min_support=30), {"m": (9, 1), "w": (0, 0)},
         "9 of m and nobody of w, below the support of 30"),
        (fs.DisparateImpact("0.8"), {"m": (60, 1), "w": (0, 0)}, "nobody of w"),
        (fs.DemographicParity("1"), {"m": (6, 1), "w": (2, 2)},
         "no decisions about these people could exceed it"),
    ],
)  # fmt: skip
def test_it_says_why_nothing_bound(prop, counts, why):
    finding = prop.finding(fs.Counts(counts))
    assert (finding.verdict, finding.why, finding.bound) == ("exempt", why, False)
    assert str(finding).endswith(f"; exempt: {why}")


def test_a_group_of_which_nobody_was_seen_has_no_measure():
    finding = fs.DisparateImpact("0.8").finding(fs.Counts({"m": (60, 40), "w": (0, 0)}))
    assert finding.value is None
    assert finding.shown == "unknown"
    assert json.loads(json.dumps(finding.to_dict()))["value"] is None


def test_a_rate_against_nothing_is_infinitely_many_times_it():
    prop = fs.DisparateImpact("1.2", two_sided=False)
    assert prop.finding(fs.Counts({"m": (6, 1), "w": (6, 0)})).shown == "infinite"
    assert prop.finding(fs.Counts({"m": (6, 0), "w": (6, 0)})).verdict == "fair"


def test_bounded_rates_name_each_group_once():
    counts = fs.Counts({g: (50, k) for g, k in zip("abcd", (4, 45, 20, 25), strict=True)})
    found = fs.BoundedRates("0.3", "0.7").findings(counts)
    assert [(f.pair[0], f.verdict) for f in found[:2]] == [("a", "unfair"), ("b", "unfair")]
    assert len({f.pair[0] for f in found}) == len(found)


def test_a_property_of_ones_own_may_say_what_it_measures():
    class Within(Quota, kind=""):
        def measured(self, a, b):
            gap = abs(a.accepted - b.accepted)
            return fs.Measured("people", gap, f"at most {self.most}", self.most)

    finding = Within(4).finding(fs.Counts({"m": (60, 40), "w": (20, 5)}))
    assert str(finding) == "people 35 between m and w where at most 4 is asked"


def test_as_data():
    finding = fs.DisparateImpact("0.8").finding(fs.Counts({"m": (60, 40), "w": (20, 5)}))
    assert finding.to_dict() == {
        "pair": ["w", "m"],
        "measure": "impact ratio",
        "value": 0.375,
        "asked": "at least 0.8",
        "limit": 0.8,
        "bias": 0.625,
        "verdict": "unfair",
        "why": "",
        "text": "impact ratio 0.375 of w to m where at least 0.8 is asked",
    }
