"""Whether the tables of a policy can be read at all, so that no look-up leaves them.

Nothing here says that decisions are right, only that there are decisions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import is_whole
from fairshield.errors import ArtifactError
from fairshield.policy import BARE_WIDTH, CUTS_WIDTH, Policy

Ints = NDArray[np.int64]


def layer_rows(t: int, labelled: bool) -> tuple[Ints, Ints, Ints]:
    """``n_a``, ``k_a``, ``n_b`` of every row after ``t`` decisions, in the order of a policy."""
    n_a = np.arange(t + 1)
    if labelled:
        first = n_a.copy()
        n_a = np.repeat(first, t + 1 - first)
        n_b = _count_up(t + 1 - first)
    else:
        n_b = t - n_a
    return np.repeat(n_a, n_a + 1), _count_up(n_a + 1), np.repeat(n_b, n_a + 1)


def _count_up(lengths: Ints) -> Ints:
    """``0 … n-1`` for each ``n`` in ``lengths``, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)


def check_structure(policy: Policy) -> None:
    """Refuse tables that do not fit the policy's horizon, its cost levels or each other."""
    _check_window(policy)
    _check_arrays(policy)
    _check_costs(policy)
    _check_rows(policy)
    _check_dense_rows(policy)


def _check_window(policy: Policy) -> None:
    if not is_whole(policy.horizon) or policy.horizon < 1:
        raise _broken(f"the horizon is {policy.horizon!r}, not a whole number of at least 1")
    for point in policy.checkpoints:
        if not is_whole(point) or not 1 <= point <= policy.horizon:
            raise _broken(f"checkpoint {point!r} does not lie in 1 … {policy.horizon}")
    if tuple(policy.start) != policy.groups:
        raise _broken(f"counters start for groups {tuple(policy.start)}, not {policy.groups}")


def _check_arrays(policy: Policy) -> None:
    rows, n_rows = policy.rows, policy.layout.n_rows
    for name, array, types in (
        ("cuts", rows.cuts, ("uint8", "uint16")),
        ("dense_codes", rows.dense_codes, ("int8", "int16", "int32")),
        ("dense_rows", rows.dense_rows, ("int64",)),
        ("dense_starts", rows.dense_starts, ("int64",)),
        ("edges", policy.edges, ("float64",)),
        ("ranks", policy.ranks, ("int64",)),
    ):
        if array.dtype.name not in types:
            raise _broken(f"{name} has type {array.dtype}, expected {' or '.join(types)}")
        flat = name not in ("cuts", "ranks")
        if flat and array.ndim != 1:
            raise _broken(f"{name} has {array.ndim} dimensions, expected 1")
    shape = rows.cuts.shape
    if shape not in ((n_rows, BARE_WIDTH), (n_rows, CUTS_WIDTH)):
        raise _broken(
            f"cuts has shape {shape}, a horizon of {policy.horizon} needs {n_rows} rows of "
            f"{BARE_WIDTH} or {CUTS_WIDTH}"
        )


def _check_costs(policy: Policy) -> None:
    edges, shape = policy.edges, policy.ranks.shape
    fitting = [(steps, 2, 2, len(edges)) for steps in (1, policy.horizon)]
    if shape not in fitting:
        raise _broken(f"ranks has shape {shape}, expected {fitting[0]} or {fitting[1]}")
    # Two levels of a schedule may share an edge; the second is then never used.
    if not len(edges) or not edges[0] >= 0.0 or not (edges[1:] >= edges[:-1]).all():
        raise _broken(f"edges of cost levels must rise from at least 0, got {edges.tolist()}")


def _check_rows(policy: Policy) -> None:
    starts, cuts = policy.layout.layer_starts, policy.rows.cuts
    mark = np.iinfo(cuts.dtype).max
    for t in range(policy.horizon + 1):
        layer = cuts[starts[t] : starts[t + 1]]
        most = layer_rows(t, policy.labelled)[2] + 1
        lo, hi = layer[:, 0], layer[:, 1]
        bad = (lo > hi) | (hi > most)
        if layer.shape[1] == CUTS_WIDTH:
            # Cuts of an empty row and of a dense one are never read.
            read = (lo < hi) & (layer[:, 2] != mark)
            bad |= read & (layer[:, 2:].max(axis=1) > most)
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise _broken(
                f"row {starts[t] + i} (after {t} decisions) reads {layer[i].tolist()}, which does "
                f"not fit its {most[i]} states"
            )


def _check_dense_rows(policy: Policy) -> None:
    rows, starts, codes = (
        policy.rows.dense_rows,
        policy.rows.dense_starts,
        policy.rows.dense_codes,
    )
    if policy.rows.cuts.shape[1] == BARE_WIDTH:
        # Without cuts every row has a start, -1 for none.
        if len(rows) or len(starts) != len(policy.rows.cuts):
            raise _broken(f"{len(starts)} dense starts for {len(policy.rows.cuts)} rows")
        rows = np.flatnonzero(starts != -1)
        starts = starts[rows]
    if len(rows) != len(starts):
        raise _broken(f"{len(rows)} dense rows, but {len(starts)} starts")
    if not len(rows):
        return
    if rows[0] < 0 or rows[-1] >= len(policy.rows.cuts) or not (rows[1:] > rows[:-1]).all():
        raise _broken("the numbers of dense rows must rise and be rows of the table")
    cuts = policy.rows.cuts[rows].astype(np.int64)
    room = len(codes) - 2 * (cuts[:, 1] - cuts[:, 0])
    bad = np.flatnonzero((starts < 0) | (starts > room))
    if len(bad):
        i = bad[0]
        raise _broken(f"dense row {rows[i]} begins at {starts[i]} of {len(codes)} codes, too late")


def _broken(what: str) -> ArtifactError:
    return ArtifactError(f"not the tables of a policy: {what}; synthesise the policy again")
