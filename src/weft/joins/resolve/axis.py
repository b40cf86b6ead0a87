"""The line on which the times or numbers of both sides lie, and distances in its steps.

Whole axes (times, dates, integers) are counted in longs: microseconds, days or ones.  A
distance that is no whole number of steps is rounded inwards, which changes no answer: no
value lies between two steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from decimal import Decimal as Number
from functools import reduce
from typing import Literal

from weft.core.types import DATE, DOUBLE, LONG, Decimal, DType, common_type
from weft.errors import JoinTypeError
from weft.joins.resolve.resolved import Amount, Overlap, ResolvedJoin, SameWindow, Within

AxisKind = Literal["whole", "decimal", "double"]
Step = int | Number | float
"""A distance on an axis: steps of a whole axis, a Decimal or a double."""

DAY = 86_400_000_000
_WHOLE_END = 1 << 64
_ROOMY = Context(prec=2200)


@dataclass(frozen=True, slots=True)
class Axis:
    """The type in which values are compared, and how they are counted."""

    dtype: DType

    @property
    def kind(self) -> AxisKind:
        """Whether values are whole steps, exact decimals or binary fractions."""
        if isinstance(self.dtype, Decimal):
            return "decimal"
        return "double" if self.dtype == DOUBLE else "whole"

    @property
    def unit(self) -> int:
        """How many microseconds a step is, 1 for numbers."""
        return DAY if self.dtype == DATE else 1

    def steps(self, distance: Amount, *, up: bool) -> Step:
        """Return a distance in steps, rounded up or down to a step.

        >>> Axis(LONG).steps(Number("-1.5"), up=True), Axis(DATE).steps(2 * DAY, up=False)
        (-1, 2)
        """
        exact = _ROOMY.divide(Number(distance), Number(self.unit))
        if self.kind == "double":
            return float(exact)
        scale = self.dtype.scale if isinstance(self.dtype, Decimal) else 0
        rounding = ROUND_CEILING if up else ROUND_FLOOR
        rounded = exact.quantize(Number(1).scaleb(-scale), rounding=rounding, context=_ROOMY)
        return rounded if isinstance(self.dtype, Decimal) else int(rounded)

    @property
    def longest(self) -> Number | None:
        """A distance that is longer than that of any two values; None where infinity is a value."""
        if isinstance(self.dtype, Decimal):
            return 2 * Number(10) ** (self.dtype.precision - self.dtype.scale)
        return Number(_WHOLE_END) if self.kind == "whole" else None


def axis_of(join: ResolvedJoin) -> Axis:
    """Return the axis of a join by time or by ranges.

    All columns that are compared meet in one type; decimals that no type holds exactly are
    refused, because rounding would move the ends of ranges.
    """
    found = reduce(_met, _compared(join))
    if found.is_temporal or isinstance(found, Decimal):
        return Axis(found)
    return Axis(LONG if found.is_integer else DOUBLE)


def _compared(join: ResolvedJoin) -> tuple[DType, ...]:
    match = join.match
    assert isinstance(match, Within | Overlap | SameWindow)  # noqa: S101  # the callers' own branch
    left, right = [match.left], [match.right]
    if isinstance(match, Overlap):
        left += [i for i in (match.left_end,) if i is not None]
        right += [i for i in (match.right_end,) if i is not None]
    return (*(join.left.fields[i].dtype for i in left), *(join.right.fields[i].dtype for i in right))


def _met(a: DType, b: DType) -> DType:
    found = common_type(a, b)
    if found is None:
        raise JoinTypeError(
            f"no type holds the values of both {a} and {b} exactly", help="cast the order columns to one type"
        )
    return found
