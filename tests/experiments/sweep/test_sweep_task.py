"""Keys say what a task is, and nothing else."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import fairshield as fs
from fairshield_experiments.sweep.task import Task, digest

values = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
json_values = st.recursive(
    values, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5
)
arrays = npst.arrays(
    st.sampled_from([np.dtype(kind) for kind in ("?", "i1", "<i8", ">u4", "f4", "<f8", "<U3")]),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


@given(json_values, json_values)
def test_digests_are_equal_exactly_where_json_is(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (digest(one) == digest(other)) == same


@given(json_values)
def test_a_value_written_and_read_has_the_same_digest(value: Any) -> None:
    assert digest(json.loads(json.dumps(value))) == digest(value)


@given(st.dictionaries(st.text(), values))
def test_the_order_of_a_mapping_does_not_matter(mapping: dict[str, Any]) -> None:
    assert digest(dict(reversed(mapping.items()))) == digest(mapping)


@given(arrays)
def test_layout_and_byte_order_do_not_matter(array: np.ndarray[Any, Any]) -> None:
    swapped = array.astype(array.dtype.newbyteorder())
    spread = np.stack([array, array], axis=-1)[..., 0]
    for same in (array.copy(order="F"), spread, swapped):
        assert digest(same) == digest(array)


@given(arrays)
def test_dtype_shape_and_content_matter(array: np.ndarray[Any, Any]) -> None:
    others: list[Any] = [array[np.newaxis], array.tolist(), array.astype("U40"), [array]]
    if array.size:
        changed = array.copy()
        # Bits, as adding 1 leaves large and infinite floats as they are.
        changed.reshape(-1).view(np.uint8)[-4:] ^= np.uint8(1)
        others.append(changed)
    assert all(digest(other) != digest(array) for other in others)


def test_kinds_of_values_differ() -> None:
    parts: list[tuple[Any, ...]] = [
        (1,), (1.0,), (True,), ("1",), ([1],), ({"1": 1},), (None,), (), (1, 1), ([1, 1],),
        (np.array(1),), (np.array([1]),), (["array", 1],), ([["value", 1]],), ("",), (0.0,),
        (-0.0,),
    ]  # fmt: skip
    assert len({digest(*part) for part in parts}) == len(parts)


def test_numpy_scalars_are_the_numbers_they_hold() -> None:
    assert digest(np.int8(3), np.float32(0.5), np.bool_(True), (1,)) == digest(3, 0.5, True, [1])


def test_digests_are_the_same_in_every_process() -> None:
    program = (
        "import numpy as np; from fairshield_experiments.sweep.task import digest;"
        "print(digest({'b': [1, 2.5, None], 'a': 'ä'}, np.arange(6.).reshape(2, 3)), end='')"
    )
    path = os.pathsep.join(filter(None, sys.path))
    there = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert there == digest({"a": "ä", "b": (1, 2.5, None)}, np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize(
    "part",
    [
        b"bytes",
        {1: "one"},
        {1, 2},
        Path(),
        np.array([object()]),
        np.ma.masked_array([1, 2], mask=[True, False]),
        np.zeros(2, dtype=[("x", "i4")]),
        np.zeros(2, dtype=np.longdouble),
    ],
    ids=["bytes", "number-as-key", "set", "path", "objects", "masked", "records", "extended"],
)
def test_what_has_no_plain_form_has_no_digest(part: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match="Turn it into"):
        digest("nested", [{"deep": part}])


def test_a_task_is_its_key() -> None:
    one, same = Task("k", "one", {"x": np.zeros(2)}), Task("k", "same", {}, 3.0)
    assert one == same
    assert len({one, same, Task("l", "one", {})}) == 2


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan])
def test_weights_are_positive(weight: float) -> None:
    with pytest.raises(fs.InvalidValueError, match="'heavy' must be positive and finite"):
        Task("k", "heavy", {}, weight)
