"""Checks that the tables of a policy fit together, so that no look-up reads outside them.

They do not show that the decisions are right; verification does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.errors import ArtifactError
from fairshield.policy.layout import Layout, layer_rows
from fairshield.policy.rows import BARE_WIDTH, CUTS_WIDTH, RowTable

Ints = NDArray[np.int64]


def check_tables(
    layout: Layout,
    rows: RowTable,
    edges: NDArray[np.float64],
    ranks: Ints,
    salvage: RowTable | None = None,
) -> None:
    """Refuse tables that do not fit the horizon, the cost levels or each other."""
    for table in (rows,) if salvage is None else (rows, salvage):
        _check_arrays(layout, table)
        check_costs(layout.horizon, 2, edges, ranks)
        _check_rows(layout, table)
        _check_dense_rows(table)
    if salvage is not None and salvage.cuts.shape[1] != BARE_WIDTH:
        raise broken(
            f"cuts of the salvage table have {salvage.cuts.shape[1]} columns, expected {BARE_WIDTH}"
        )


def _check_arrays(layout: Layout, rows: RowTable) -> None:
    n_rows = layout.n_rows
    arrays: tuple[tuple[str, NDArray[Any], tuple[str, ...]], ...] = (
        ("cuts", rows.cuts, ("uint8", "uint16")),
        ("dense_codes", rows.dense_codes, ("int8", "int16", "int32")),
        ("dense_rows", rows.dense_rows, ("int64",)),
        ("dense_starts", rows.dense_starts, ("int64",)),
    )
    for name, array, types in arrays:
        _check_type(name, array, types)
        if name != "cuts":
            _check_flat(name, array)
    shape = rows.cuts.shape
    if shape not in ((n_rows, BARE_WIDTH), (n_rows, CUTS_WIDTH)):
        raise broken(
            f"cuts has shape {shape}, a horizon of {layout.horizon} needs {n_rows} rows of "
            f"{BARE_WIDTH} or {CUTS_WIDTH}"
        )


def _check_type(name: str, array: NDArray[Any], types: tuple[str, ...]) -> None:
    if array.dtype.name not in types:
        raise broken(f"{name} has type {array.dtype}, expected {' or '.join(types)}")


def _check_flat(name: str, array: NDArray[Any]) -> None:
    if array.ndim != 1:
        raise broken(f"{name} has {array.ndim} dimensions, expected 1")


def check_costs(horizon: int, n_groups: int, edges: NDArray[np.float64], ranks: Ints) -> None:
    """Refuse cost levels that do not rise, or ranks of other groups or steps."""
    _check_type("edges", edges, ("float64",))
    _check_type("ranks", ranks, ("int64",))
    _check_flat("edges", edges)
    shape = ranks.shape
    fitting = [(steps, n_groups, 2, len(edges)) for steps in (1, horizon)]
    if shape not in fitting:
        raise broken(f"ranks has shape {shape}, expected {fitting[0]} or {fitting[1]}")
    # Two levels of a schedule may share an edge; the second is then never used.
    if not len(edges) or not edges[0] >= 0.0 or not (edges[1:] >= edges[:-1]).all():
        raise broken(f"edges of cost levels must rise from at least 0, got {edges.tolist()}")


def _check_rows(layout: Layout, rows: RowTable) -> None:
    starts, cuts = layout.layer_starts, rows.cuts
    mark = np.iinfo(cuts.dtype).max
    for t in range(layout.horizon + 1):
        layer = cuts[starts[t] : starts[t + 1]]
        most = layer_rows(t, layout.labelled).states
        lo, hi = layer[:, 0], layer[:, 1]
        bad = (lo > hi) | (hi > most)
        if layer.shape[1] == CUTS_WIDTH:
            # Cuts of empty and of dense rows are never read, so they may be anything.
            read = (lo < hi) & (layer[:, 2] != mark)
            bad |= read & (layer[:, 2:].max(axis=1) > most)
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise broken(
                f"row {starts[t] + i} (after {t} decisions) reads {layer[i].tolist()}, which does "
                f"not fit its {most[i]} states"
            )


def _check_dense_rows(table: RowTable) -> None:
    rows, starts, codes = table.dense_rows, table.dense_starts, table.dense_codes
    if table.cuts.shape[1] == BARE_WIDTH:
        # Where ``cuts`` has two columns, every row has a start, which is -1 if it has no codes.
        if len(rows) or len(starts) != len(table.cuts):
            raise broken(f"{len(starts)} dense starts for {len(table.cuts)} rows")
        rows = np.flatnonzero(starts != -1)
        starts = starts[rows]
    if len(rows) != len(starts):
        raise broken(f"{len(rows)} dense rows, but {len(starts)} starts")
    if not len(rows):
        return
    if rows[0] < 0 or rows[-1] >= len(table.cuts) or not (rows[1:] > rows[:-1]).all():
        raise broken("the numbers of dense rows must rise and be rows of the table")
    cuts = table.cuts[rows].astype(np.int64)
    room = len(codes) - 2 * (cuts[:, 1] - cuts[:, 0])
    bad = np.flatnonzero((starts < 0) | (starts > room))
    if len(bad):
        i = bad[0]
        raise broken(f"dense row {rows[i]} begins at {starts[i]} of {len(codes)} codes, too late")


def broken(what: str) -> ArtifactError:
    """The error for tables that are not those of a policy."""
    return ArtifactError(f"not the tables of a policy: {what}; synthesise the policy again")
