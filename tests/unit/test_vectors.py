"""Vectors of compiled code compute what numpy computes, lane by lane."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import njit

from fairshield.synthesis.exact.vectors import (
    LANES,
    above,
    count_bits,
    lesser,
    load,
    one_where_above,
    splat,
    store,
)

lanes = arrays(float, LANES, elements=st.floats(-1e6, 1e6) | st.just(np.inf))
U = np.uint64


@njit
def _compute(x, y, w, out, bits):
    a, b = load(x, U(0)), load(y, U(0))
    store(out, U(0), lesser(a, b))
    store(out, U(LANES), splat(w) * lesser(a, splat(1e9)) + lesser(b, splat(1e9)))
    store(out, U(2 * LANES), lesser(a, splat(1e9)) - lesser(b, splat(1e9)))
    store(out, U(3 * LANES), one_where_above(a, b))
    bits[0] = above(a, b)
    bits[1] = count_bits(bits[0])


@given(lanes, lanes, st.floats(-10, 10))
def test_lane_by_lane(x: np.ndarray, y: np.ndarray, w: float) -> None:
    out, bits = np.empty(4 * LANES), np.empty(2, np.uint64)
    _compute(x, y, w, out, bits)
    least, weighed, gap, ones = out.reshape(4, LANES)
    assert np.array_equal(least, np.minimum(x, y))
    cut_x, cut_y = np.minimum(x, 1e9), np.minimum(y, 1e9)
    np.testing.assert_allclose(weighed, w * cut_x + cut_y, rtol=1e-9, atol=1e-6)
    assert np.array_equal(gap, cut_x - cut_y)
    assert np.array_equal(ones, x > y)
    assert [bool(int(bits[0]) >> i & 1) for i in range(LANES)] == (x > y).tolist()
    assert bits[1] == (x > y).sum()


@njit
def _running_sums(v, n):
    """In place: each vector reads itself and the element after it."""
    for j in range(U(0), n, U(LANES)):
        store(v, j, load(v, j) + load(v, j + U(1)))


def test_a_row_can_be_updated_in_place() -> None:
    v = np.arange(40.0)
    _running_sums(v, U(32))
    assert np.array_equal(v[:32], 2 * np.arange(32) + 1)
    assert np.array_equal(v[32:], np.arange(32.0, 40.0))
