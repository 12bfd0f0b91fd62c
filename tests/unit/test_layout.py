"""Rows, layers and blocks: every state has its place, and no two share one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import positions

from fairshield.base.counts import At
from fairshield.policy.layout import GAP, Layout, layer_rows, place
from fairshield.synthesis.reference import Position

families = pytest.mark.parametrize("labelled", [False, True], ids=["plain", "labelled"])


def short_and_long(s: Position) -> tuple[int, int]:
    """Acceptances in the group with fewer people, and in that with more."""
    n_a, k_a, n_b, k_b = s.at
    return (k_a, k_b) if n_a <= n_b else (k_b, k_a)


def place_in(layout: Layout, t: int, at: At) -> tuple[int, int]:
    """The row of a state, and its position in the row."""
    return place(layout.rows_before(t), layout.labelled, *at)


@families
@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 12])
def test_rows_are_numbered_without_gaps_in_order_of_time(labelled: bool, horizon: int) -> None:
    layout = Layout(horizon, labelled)
    rows: dict[int, tuple[int, ...]] = {}
    for s in positions(horizon, labelled):
        row, along = place_in(layout, *s)
        short, long = short_and_long(s)
        assert along == long
        n_a, _, n_b, _ = s.at
        key = (s.t, n_a + n_b, n_a, short)
        assert rows.setdefault(row, key) == key
    assert sorted(rows) == list(range(layout.n_rows))
    assert [rows[i] for i in range(layout.n_rows)] == sorted(rows.values())


@families
@pytest.mark.parametrize("horizon", [1, 2, 5, 9])
def test_sizes_are_what_is_counted(labelled: bool, horizon: int) -> None:
    layout = Layout(horizon, labelled)
    states = list(positions(horizon, labelled))
    assert layout.n_states == len(states)
    for t in range(horizon + 1):
        here = [s for s in states if s.t == t]
        rows = {place_in(layout, *s)[0] for s in here}
        assert layout.states_of(t) == len(here)
        assert layout.rows_of(t) == len(rows)
        assert layout.rows_before(t) == layout.layer_starts[t] == min(rows)
    assert layout.layer_starts[-1] == layout.n_rows


@families
@pytest.mark.parametrize("t", [0, 1, 2, 5, 8])
def test_the_rows_of_a_layer_are_listed_in_their_order(labelled: bool, t: int) -> None:
    layout, rows = Layout(t, labelled), layer_rows(t, labelled)
    numbers = []
    for n_a, n_b, short in zip(*(x.tolist() for x in rows), strict=True):
        k_a, k_b = (short, 0) if n_a <= n_b else (0, short)
        numbers.append(place_in(layout, t, (n_a, k_a, n_b, k_b))[0])
    assert numbers == list(range(layout.rows_before(t), layout.n_rows))
    assert rows.states.sum() == layout.states_of(t)
    assert rows.turned.tolist() == (rows.n_a > rows.n_b).tolist()


@families
@given(st.integers(1, 9), st.data())
def test_blocks_hold_every_row_of_a_layer_apart(
    labelled: bool, horizon: int, data: st.DataObject
) -> None:
    layout, t = Layout(horizon, labelled), data.draw(st.integers(0, horizon))
    rows, at = layout.stored_rows(t)
    assert len(at) == layout.block_row_starts[-1]
    needed = set(zip(*(x.tolist() for x in layer_rows(t, labelled)), strict=True))
    taken: set[int] = set()
    for i, row in enumerate(zip(*(x.tolist() for x in rows), strict=True)):
        if row in needed:
            needed.remove(row)
            # A row and the gap after it lie in the block of its n_a, and meet no other row.
            cells = range(int(at[i]), int(at[i] + rows.states[i]) + GAP)
            assert layout.block_starts[row[0]] <= cells[0]
            assert cells[-1] < layout.block_starts[row[0] + 1]
            assert taken.isdisjoint(cells)
            taken.update(cells)
            first = layout.block_row_starts[row[0]]
            assert first <= i < layout.block_row_starts[row[0] + 1]
    assert not needed


@families
@pytest.mark.parametrize("horizon", [1, 2, 5, 9])
def test_blocks_are_no_larger_than_the_largest_layer_needs(labelled: bool, horizon: int) -> None:
    layout = Layout(horizon, labelled)
    room = layout.states_of(horizon) + GAP * layout.rows_of(horizon)
    assert layout.block_starts[-1] == layout.block_states.sum() == room
    assert layout.block_row_starts[-1] == layout.block_rows.sum() == layout.rows_of(horizon)
    assert np.all(np.diff(layout.block_starts) > 0)


@families
def test_numbers_do_not_wrap_at_long_horizons(labelled: bool) -> None:
    layout = Layout(10**6, labelled)
    last, along = place_in(layout, 10**6, (10**6, 10**6, 0, 0))
    assert along == 10**6
    assert last == layout.rows_before(10**6 + 1) - 1 == layout.n_rows - 1
    assert layout.n_rows > 2**56
