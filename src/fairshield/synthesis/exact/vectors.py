"""Vectors of eight numbers, for compiled code.

The compiler turns a loop into vector instructions only after a test, at run time and again for
every short row, that no number is read after it was written.  Rows that are updated in place fail
that test.  Explicit vectors need no test: all loads of a step come before its store.  The vectors
are those of LLVM, which translates them to the instructions of any processor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model
from numba.np import arrayobj

from fairshield.policy.layout import GAP

LANES = GAP

_DOUBLES = ir.VectorType(ir.DoubleType(), LANES)
_BITS, _WORD = ir.IntType(LANES), ir.IntType(64)
# As in the kernels, "ninf" is not among the flags, because infeasible states are infinite.
_FLAGS = ("nnan", "nsz", "reassoc", "contract", "arcp")


class _VectorType(types.Type):
    """_VectorType is numba's type of a vector of :data:`LANES` doubles."""

    def __init__(self) -> None:
        super().__init__(name=f"float64x{LANES}")


@register_model(_VectorType)
class _VectorModel(models.PrimitiveModel):
    """_VectorModel says how LLVM holds a :class:`_VectorType`."""

    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _DOUBLES)


_vector = _VectorType()


def _compiled(result: Any, kinds: tuple[Any, ...], build: Callable[..., Any]) -> Any:
    """A function for compiled code; ``build(builder, *values)`` emits its instructions.

    ``kinds`` are the types of its arguments; arrays are passed as pointers to their first element.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = [
            arrayobj.make_array(kind)(context, builder, value).data
            if isinstance(kind, types.Array)
            else value
            for kind, value in zip(signature.args, args, strict=True)
        ]
        out = build(builder, *values)
        return context.get_dummy_value() if result == types.void else out

    def typed(*given: Any) -> Any:
        return result(*(kind or x for kind, x in zip(kinds, given, strict=True))), emit

    def one(typing: Any, x: Any) -> Any:
        return typed(x)

    def two(typing: Any, x: Any, y: Any) -> Any:
        return typed(x, y)

    def three(typing: Any, x: Any, y: Any, z: Any) -> Any:
        return typed(x, y, z)

    return intrinsic((one, two, three)[len(kinds) - 1])


def _address(builder: Any, data: Any, index: Any) -> Any:
    return builder.bitcast(builder.gep(data, [index]), _DOUBLES.as_pointer())


def _splat(builder: Any, value: Any) -> Any:
    zero = ir.Constant(ir.IntType(32), 0)
    first = builder.insert_element(ir.Constant(_DOUBLES, ir.Undefined), value, zero)
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(zero.type, LANES), None))


def _lesser(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", x, y), x, y)


def _above(builder: Any, x: Any, y: Any) -> Any:
    return builder.zext(builder.bitcast(builder.fcmp_ordered(">", x, y), _BITS), _WORD)


def _one_where_above(builder: Any, x: Any, y: Any) -> Any:
    one, zero = (ir.Constant(_DOUBLES, [value] * LANES) for value in (1.0, 0.0))
    return builder.select(builder.fcmp_ordered(">", x, y), one, zero)


_ANY, _TWO = None, (_vector, _vector)

load = _compiled(_vector, (_ANY, _ANY), lambda b, data, i: b.load(_address(b, data, i), align=8))
"""``load(array, i)``: the eight numbers from ``i`` on."""

store = _compiled(
    types.void,
    (_ANY, _ANY, _vector),
    lambda b, data, i, x: b.store(x, _address(b, data, i), align=8),
)
"""``store(array, i, x)``: put them there."""

splat = _compiled(_vector, (types.float64,), _splat)
"""The same number in every lane."""

lesser = _compiled(_vector, _TWO, _lesser)
"""The lesser of two vectors, lane by lane."""

above = _compiled(types.uint64, _TWO, _above)
"""A bit per lane, the first lane lowest: is the first vector above the second?"""

one_where_above = _compiled(_vector, _TWO, _one_where_above)
"""1 in the lanes where the first vector is above the second, else 0."""

count_bits = _compiled(types.uint64, (types.uint64,), lambda b, word: b.ctpop(word))
"""How many bits of a word are set."""

_add = _compiled(_vector, _TWO, lambda b, x, y: b.fadd(x, y, flags=_FLAGS))
_subtract = _compiled(_vector, _TWO, lambda b, x, y: b.fsub(x, y, flags=_FLAGS))
_multiply = _compiled(_vector, _TWO, lambda b, x, y: b.fmul(x, y, flags=_FLAGS))


def _overload(function: Any, on_vectors: Any) -> None:
    @overload(function, jit_options={"forceinline": True})
    def implementation(left: Any, right: Any) -> Any:
        def call(left: Any, right: Any) -> Any:
            return on_vectors(left, right)

        return call if isinstance(left, _VectorType) and isinstance(right, _VectorType) else None


_overload(operator.add, _add)
_overload(operator.sub, _subtract)
_overload(operator.mul, _multiply)
