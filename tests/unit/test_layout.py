"""Rows, layers and blocks: every state has its place, and no two share one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import positions

from fairshield.layout import Layout

families = pytest.mark.parametrize("labelled", [False, True], ids=["plain", "labelled"])


@families
@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 12])
def test_rows_are_numbered_without_gaps_in_order_of_time(labelled: bool, horizon: int) -> None:
    layout = Layout(horizon, labelled)
    rows = [layout.row(s.t, s.n_a, s.k_a, s.n_b) for s in positions(horizon, labelled) if not s.k_b]
    order = [
        (s.t, s.n_a, s.n_b if labelled else 0, s.k_a)
        for s in positions(horizon, labelled)
        if not s.k_b
    ]
    assert sorted(rows) == list(range(layout.n_rows))
    assert [row for _, row in sorted(zip(order, rows, strict=True))] == sorted(rows)


@families
@pytest.mark.parametrize("horizon", [1, 2, 5, 9])
def test_sizes_are_what_is_counted(labelled: bool, horizon: int) -> None:
    layout = Layout(horizon, labelled)
    states = list(positions(horizon, labelled))
    assert layout.n_states == len(states)
    assert layout.layer_states == sum(s.t == horizon for s in states)
    for t in range(horizon + 1):
        first = min(layout.row(s.t, s.n_a, s.k_a, s.n_b) for s in states if s.t == t)
        assert layout.rows_before(t) == layout.layer_starts[t] == first
    assert layout.layer_starts[-1] == layout.n_rows


@families
@pytest.mark.parametrize("horizon", [1, 2, 5, 9])
def test_blocks_hold_the_largest_layer(labelled: bool, horizon: int) -> None:
    layout = Layout(horizon, labelled)
    last = [s for s in positions(horizon, labelled) if s.t == horizon]
    for n_a in range(horizon + 1):
        inside = [s for s in last if s.n_a == n_a]
        assert layout.block_states(n_a) == len(inside)
        assert layout.block_rows(n_a) == len({(s.k_a, s.n_b) for s in inside})
    assert layout.block_starts[-1] == layout.layer_states
    assert np.all(np.diff(layout.block_starts) > 0)
    assert len(layout.block_row_starts) == horizon + 2


@families
@given(st.integers(1, 9), st.data())
def test_stored_rows_name_each_row_once(labelled: bool, horizon: int, data: st.DataObject) -> None:
    layout, t = Layout(horizon, labelled), data.draw(st.integers(0, horizon))
    n_a, k_a, n_b = layout.stored_rows(t)
    rows = list(zip(n_a.tolist(), k_a.tolist(), n_b.tolist(), strict=True))
    assert len(rows) == layout.block_row_starts[-1]
    assert len(set(rows)) == len(rows)
    needed = {(s.n_a, s.k_a, s.n_b) for s in positions(horizon, labelled) if s.t == t}
    assert needed <= set(rows)


@families
def test_numbers_do_not_wrap_at_long_horizons(labelled: bool) -> None:
    layout = Layout(10**6, labelled)
    last = layout.row(10**6, 10**6, 10**6, 0)
    assert last == layout.n_rows - 1
    assert layout.n_rows > 2**57
