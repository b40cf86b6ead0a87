"""The temporal part of a spec, resolved against two schemas: order columns, tolerances, bounds, windows."""

from __future__ import annotations

from decimal import Decimal

from weft.core.duration import Duration
from weft.core.findings import ErrorCollector
from weft.core.names import is_keyword_name, parse_name
from weft.core.types import BOOLEAN, DATE, STRING, DType, Field, Schema, common_type
from weft.errors import JoinSpecError, JoinTypeError
from weft.joins.resolve.axis import DAY
from weft.joins.resolve.resolved import Amount, AsOf, Match, Overlap, SameWindow, Side, Within
from weft.joins.spec.asof import ALL, UNBOUNDED, AsofOrder, AsofSpec, TemporalSpec
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.joins.spec.values import Distance, is_number, parse_distance


def resolve_match(spec: TemporalSpec, left: Schema, right: Schema) -> Match:
    """Return the match of a temporal spec, with column positions and distances in units of the axis."""
    i, j, a, b = _pair(spec.order, left, right)
    if isinstance(spec, AsofSpec):
        # "unbounded" is required where None would be accepted by mistake; both mean any distance.
        tolerance = None if spec.tolerance == UNBOUNDED else spec.tolerance
        return AsOf(
            left=i,
            right=j,
            direction=spec.direction,
            allow_exact=spec.allow_exact_matches,
            tolerance=measure(tolerance, a, b, "tolerance"),
            nearest_tie=spec.nearest_tie,
            tie_break=tuple(_tie_break(name, right) for name in spec.tie_break),
            known=None if spec.known is None else _pair(spec.known, left, right)[:2],
            tombstone=None if spec.tombstone is None else _flag(spec.tombstone, right),
            until=None if spec.until is None else _end(spec.until, right, "right", a, "until"),
            skip_nulls=_skipping(spec, right, j),
        )
    if isinstance(spec, IntervalSpec) and spec.has_ranges:
        return Overlap(
            left=i,
            right=j,
            left_end=None if spec.left_end is None else _end(spec.left_end, left, "left", a, "left_end"),
            right_end=None if spec.right_end is None else _end(spec.right_end, right, "right", b, "right_end"),
            closed=spec.closed,
            open_start=spec.open_start,
        )
    if isinstance(spec, IntervalSpec):
        return Within(
            left=i, right=j, lower=measure(spec.lower, a, b, "lower"), upper=measure(spec.upper, a, b, "upper")
        )
    if isinstance(spec, WindowSpec):
        return _window(spec, i, j, a, b)
    raise JoinSpecError(f"{type(spec).__name__} has no match", help="use an AsofSpec, an IntervalSpec or a WindowSpec")


def find_columns(left: Schema, right: Schema, names: tuple[str, str]) -> tuple[int, int]:
    """Return the positions of a left and a right column; the errors of both names are raised at once."""
    mistakes, indices = ErrorCollector(), []
    for schema, name, side in ((left, names[0], "left"), (right, names[1], "right")):
        with mistakes.collect():
            indices.append(schema.index(parse_name(name), side=f"{side} relation"))
    mistakes.raise_all()
    return indices[0], indices[1]


def _pair(order: AsofOrder, left: Schema, right: Schema) -> tuple[int, int, Field, Field]:
    i, j = find_columns(left, right, (order.left, order.right))
    a, b = left.fields[i], right.fields[j]
    _check_order_types(a, b)
    return i, j, a, b


def _skipping(spec: AsofSpec, right: Schema, order: int) -> tuple[int, ...]:
    """Return the right columns that skip NULLs, for ``"all"`` those that are neither a key nor a time."""
    if spec.skip_nulls != ALL:
        return tuple(right.index(parse_name(n), side="right relation") for n in spec.skip_nulls)
    known = () if spec.known is None else (spec.known.right,)
    # An unknown key is reported with the keys.
    decides = {right.find(parse_name(name)) for name in (*(b for _, b in spec.equal_keys), *known)} | {order}
    return tuple(i for i in range(len(right)) if i not in decides)


def _flag(name: str, right: Schema) -> int:
    index = right.index(parse_name(name), side="right relation")
    field = right.fields[index]
    if field.dtype != BOOLEAN:
        raise JoinTypeError(
            f"tombstone right.{field.name} must be boolean, not {field.dtype}",
            help="add a boolean column: right.with_columns(gone=\"... = 1\") and tombstone='gone'",
        )
    return index


def _end(name: str, schema: Schema, side: Side, start: Field, what: str) -> int:
    index = schema.index(parse_name(name), side=f"{side} relation")
    end = schema.fields[index]
    if start.dtype.is_temporal != end.dtype.is_temporal or start.dtype.is_numeric != end.dtype.is_numeric:
        raise JoinTypeError(
            f"{what} {side}.{end.name} ({end.dtype}) cannot be compared with {start.name} ({start.dtype})",
            help="cast one of them first",
        )
    return index


def _window(spec: WindowSpec, i: int, j: int, a: Field, b: Field) -> SameWindow:
    if not a.dtype.is_temporal:
        raise JoinTypeError(
            f"a window join needs times, but left.{a.name} is {a.dtype}", help="use an interval join for numbers"
        )
    sizes = {n: measure(getattr(spec, n), a, b, n) for n in ("size", "slide", "gap")}
    whole = {n: None if v is None else int(v) for n, v in sizes.items()}
    return SameWindow(left=i, right=j, kind=spec.window, per_window=spec.per_window, **whole)


def _check_order_types(a: Field, b: Field) -> None:
    def family(dtype: DType) -> str | None:
        return "time" if dtype.is_temporal else "number" if dtype.is_numeric else None

    if family(a.dtype) is None or family(a.dtype) != family(b.dtype):
        raise JoinTypeError(
            f"order columns left.{a.name} ({a.dtype}) and right.{b.name} ({b.dtype}) cannot be compared in order",
            help=_order_help(a, b),
        )
    # Two decimals may need more than 38 digits together, although each of them can be sorted.
    if common_type(a.dtype, b.dtype) is None:
        raise JoinTypeError(
            f"no type holds the values of both order columns exactly: left.{a.name} is {a.dtype}, "
            f"right.{b.name} is {b.dtype}",
            help="cast both to one type with fewer digits",
        )


def _order_help(a: Field, b: Field) -> str:
    """Return how to cast an order column that is neither a time nor a number."""
    needed = "both must be times (timestamp, timestamp_ntz, date) or both numbers"
    for side, field in (("left", a), ("right", b)):
        if field.dtype == STRING and is_keyword_name(field.name):
            return f'{needed}; for example {side}.with_columns({field.name}="CAST({field.name} AS timestamp)")'
    return f"{needed}; cast one side first"


def _tie_break(name: str, right: Schema) -> int:
    index = right.index(parse_name(name), side="right relation")
    field = right.fields[index]
    if not field.dtype.is_orderable:
        raise JoinTypeError(
            f"tie_break column right.{field.name} of type {field.dtype} has no order",
            help="name columns of numbers, strings, dates or times",
        )
    return index


def measure(
    distance: Distance | None, a: Field, b: Field, what: str, *, sides: tuple[Side, Side] = ("left", "right")
) -> Amount | None:
    """Return a distance in the unit of column `a`: microseconds or a number."""
    if distance is None:
        return None
    column = f"{sides[0]}.{a.name}"
    size = parse_distance(distance, what, signed=True)
    if a.dtype.is_temporal:
        if is_number(distance):
            raise JoinTypeError(
                f"{what} {distance!r} is a number but {column} is {a.dtype}",
                help=f"write a duration, for example {what}='5 seconds'",
            )
        # Between a date and a timestamp every length of time means something, between two dates only days do.
        if {a.dtype, b.dtype} == {DATE} and size % DAY:
            raise JoinTypeError(
                f"{what} {distance!r} is not whole days but {column} and {sides[1]}.{b.name} are dates",
                help=f"write for example {what}='2 days'",
            )
        return int(size)
    if not is_number(distance):
        duration = Duration(int(size))
        raise JoinTypeError(
            f"{what} {duration} is a duration but {column} is {a.dtype}", help=f"write a number, for example {what}=5"
        )
    return Decimal(size)
