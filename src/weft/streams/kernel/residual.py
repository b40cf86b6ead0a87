"""Residual: the condition of a join beside keys and time, over pairs of rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from weft.streams.kernel.segments import Longs, Segment
from weft.streams.kernel.spec import KernelProblem, Residual

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "and": pc.and_kleene,
    "or": pc.or_kleene,
}
_TYPES: dict[str, Any] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "null": pa.null(),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def arrow_type(said: str) -> Any:
    """Return the Arrow type of a type as Weft writes it.

    >>> arrow_type("decimal(10,2)")
    Decimal128Type(decimal128(10, 2))
    """
    exact = _DECIMAL.fullmatch(said)
    if exact:
        return pa.decimal128(int(exact[1]), int(exact[2]))
    if said not in _TYPES:
        raise KernelProblem(
            "W2201",
            f"a condition of the join compares values of type {said}, which the kernel has no columns for",
            "keep the checkpoint and report it as a defect of Weft",
        )
    return _TYPES[said]


def holds(
    residual: Residual, left: Segment, left_places: Longs, right: Segment, right_places: Longs
) -> NDArray[np.bool_]:
    """Return for which pairs of rows the condition is true; unknown is not true."""
    if residual.program is not None:
        known: dict[tuple[str, str], Any] = {}

        def child(side: str, name: str) -> Any:
            if (side, name) not in known:
                segment, places = (left, left_places) if side == "left" else (right, right_places)
                known[side, name] = segment.child(name, places)
            return known[side, name]

        answer = _answer(residual.program, child)
        if isinstance(answer, pa.Scalar):
            return np.full(len(left_places), answer.as_py() is True, dtype=np.bool_)
        return np.asarray(answer.fill_null(fill_value=False).to_numpy(zero_copy_only=False), dtype=np.bool_)
    if residual.rows is None:
        return np.ones(len(left_places), dtype=np.bool_)
    told = residual.rows(_dicts(left, left_places), _dicts(right, right_places))
    return np.fromiter((one is True for one in told), dtype=np.bool_, count=len(left_places))


def refs(code: tuple[Any, ...] | None, side: str) -> Iterator[str]:
    """Yield the children of a side that prefix code names.

    >>> list(refs(("<", ("ref", "left", "v"), ("ref", "right", "w")), "left"))
    ['v']
    """
    if not code:
        return
    if code[0] == "ref":
        if code[1] == side:
            yield code[2]
    elif code[0] != "lit":
        for operand in code[1:]:
            yield from refs(operand, side)


def _dicts(segment: Segment, places: Longs) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = segment.rows.take(pa.array(segment.places(places))).to_pylist()
    return found


def _answer(code: tuple[Any, ...], child: Callable[[str, str], Any]) -> Any:
    """Run prefix code and return a column or a scalar."""
    word = code[0]
    if word == "ref":
        return child(code[1], code[2])
    if word == "lit":
        return pa.scalar(code[1], arrow_type(code[2]))
    operands = [_answer(operand, child) for operand in code[1:]]
    if word == "isnull":
        return pc.is_null(operands[0])
    if word in ("and", "or", "not"):  # a bare NULL is an unknown truth
        operands = [o.cast(pa.bool_()) if pa.types.is_null(o.type) else o for o in operands]
    elif all(pa.types.is_null(o.type) for o in operands):
        return pa.scalar(None, pa.bool_())
    return pc.invert(operands[0]) if word == "not" else _OPERATIONS[word](*operands)
