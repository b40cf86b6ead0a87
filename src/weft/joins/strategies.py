"""The as-of plans by name, and which join each one refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.core.types import Array, Decimal, DType, Map, Scalar, Struct, common_type
from weft.joins.resolve.conditions import split
from weft.joins.resolve.resolved import AsOf, ResolvedJoin

_NO_KEY = frozenset({"variant", "interval_ym", "time", "null"})
_NO_ARROW = frozenset({"variant", "interval_ym", "time", "null"})
_LONG_DIGITS = 18
_COMPILED = 48  # with more, the method that holds the search is too long for the JVM to compile


def _union_refuses(join: ResolvedJoin) -> str | None:
    match = join.match
    if not isinstance(match, AsOf):
        return "the union plan refuses joins that are not as-of joins"
    if split(join).pair:
        return "the union plan refuses predicates that compare a left with a right column"
    if match.known is None:
        return None
    if match.direction != "backward":
        return f"the union plan refuses a second time axis with direction {match.direction!r}"
    if match.known[0] != match.left:
        return "the union plan refuses two independent cut-offs: no one order serves both axes"
    left, right = join.left.fields[match.left].dtype, join.right.fields[match.right].dtype
    known = join.right.fields[match.known[1]].dtype
    if len({left, right, known}) > 1:
        return f"the union plan refuses a knowledge time of type {known} beside {left} and {right}"
    return None


def _kernel_refuses(join: ResolvedJoin) -> str | None:
    match = join.match
    if not isinstance(match, AsOf):
        return "the kernel refuses joins that are not as-of joins"
    if split(join).pair:
        return "the kernel refuses predicates that compare a left with a right column"
    if match.known is not None:
        return "the kernel refuses a second time axis"
    if not join.keys:
        return "the kernel refuses joins without a key: all rows would be one group"
    for key in join.keys:
        if key.dtype.is_nested or (
            isinstance(key.dtype, Scalar) and (key.dtype.collation or key.dtype.name in _NO_KEY)
        ):
            return f"the kernel refuses keys of type {key.dtype}"
    left, right = join.left.fields[match.left].dtype, join.right.fields[match.right].dtype
    axis = common_type(left, right) or left
    if axis.is_fraction and (match.tolerance is not None or match.direction == "nearest"):
        return f"the kernel refuses distances between values of type {axis}"
    if isinstance(axis, Decimal) and axis.precision > _LONG_DIGITS:
        return f"the kernel refuses order values of type {axis}: they do not fit 64 bits"
    for field in (*join.left.fields, *join.right.fields):
        if not _travels(field.dtype):
            return f"the kernel refuses columns of type {field.dtype}: they do not travel by Arrow"
    return None


def _travels(dtype: DType) -> bool:
    if isinstance(dtype, Array):
        return _travels(dtype.element)
    if isinstance(dtype, Map):
        return _travels(dtype.key) and _travels(dtype.value)
    if isinstance(dtype, Struct):
        return all(_travels(f.dtype) for f in dtype.fields)
    return not (isinstance(dtype, Scalar) and (dtype.collation or dtype.name in _NO_ARROW))


def _slices_refuses(join: ResolvedJoin) -> str | None:
    match = join.match
    if not isinstance(match, AsOf):
        return "the slices plan refuses joins that are not as-of joins"
    if split(join).pair:
        return "the slices plan refuses predicates that compare a left with a right column"
    if match.known is not None:
        return "the slices plan refuses a second time axis: a row known late is about an earlier slice"
    return None


def _broadcast_refuses(join: ResolvedJoin) -> str | None:
    match = join.match
    if not isinstance(match, AsOf):
        return "the broadcast plan refuses joins that are not as-of joins"
    if split(join).pair:
        return "the broadcast plan refuses predicates that compare a left with a right column"
    if match.known is not None:
        return "the broadcast plan refuses a second time axis"
    if match.skip_nulls:
        return "the broadcast plan refuses skip_nulls: it finds one row for all columns"
    width = sum(_columns_in(f.dtype) for f in (*join.left.fields, *join.right.fields))
    if width > _COMPILED:
        return (
            f"the broadcast plan refuses {width} columns, nested ones counted: Spark compiles its search for "
            f"up to {_COMPILED}, and otherwise copies the right rows of a key for each left row"
        )
    return None


def _columns_in(dtype: DType) -> int:
    """Return how many columns a type counts for when Spark decides whether to compile."""
    if isinstance(dtype, Struct):
        return sum(_columns_in(f.dtype) for f in dtype.fields)
    if isinstance(dtype, Map):
        return _columns_in(dtype.key) + _columns_in(dtype.value)
    return _columns_in(dtype.element) if isinstance(dtype, Array) else 1


def _tiny_left_refuses(join: ResolvedJoin) -> str | None:
    match = join.match
    if not isinstance(match, AsOf):
        return "the tiny_left plan refuses joins that are not as-of joins"
    if split(join).pair:
        return "the tiny_left plan refuses predicates that compare a left with a right column"
    if match.known is not None:
        return "the tiny_left plan refuses a second time axis"
    return None


def _rank_refuses(join: ResolvedJoin) -> str | None:
    if not isinstance(join.match, AsOf):
        return "the rank plan refuses joins that are not as-of joins"
    return None


ASOF: Mapping[str, Callable[[ResolvedJoin], str | None]] = {
    "kernel": _kernel_refuses,
    "union": _union_refuses,
    "slices": _slices_refuses,
    "broadcast": _broadcast_refuses,
    "tiny_left": _tiny_left_refuses,
    "rank": _rank_refuses,
}
"""Plan names and what each refuses: a sentence, or None when it serves the join."""


def asof_strategies() -> tuple[str, ...]:
    """Return the names that ``strategy=`` of an as-of join takes, besides ``"auto"``."""
    return tuple(ASOF)
