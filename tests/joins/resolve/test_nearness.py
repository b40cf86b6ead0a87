"""The axis of a join by time, bounds in its steps, and the plan that follows from them."""

from __future__ import annotations

from decimal import Decimal as Number
from typing import Any

import pytest

from weft.core.types import DATE, DOUBLE, LONG, TIMESTAMP, Decimal, Schema
from weft.errors import JoinTypeError
from weft.joins.resolve.axis import DAY, Axis, find_axis, measure_reach
from weft.joins.resolve.resolved import Overlap, ResolvedJoin, Within
from weft.joins.spec.asof import AsofOrder

TIMES = Schema.of(k="long", t="timestamp", e="timestamp")


def within(lower: Any, upper: Any) -> Within:
    return Within(left=0, right=0, lower=lower, upper=upper)


def join_of(left: str, right: str, left_end: str | None = None, right_end: str | None = None) -> ResolvedJoin:
    sides = [Schema.of(t=a, **({} if b is None else {"e": b})) for a, b in ((left, left_end), (right, right_end))]
    match = Overlap(
        left=0,
        right=0,
        left_end=None if left_end is None else 1,
        right_end=None if right_end is None else 1,
        closed=False,
    )
    return ResolvedJoin(how="inner", left=sides[0], right=sides[1], keys=(), match=match, output=())


@pytest.mark.parametrize(
    ("axis", "lower", "upper", "steps"),
    [
        (TIMESTAMP, -5, 7, (-5, 7)),
        (DATE, -2 * DAY, DAY, (-2, 1)),
        (LONG, Number("-1.5"), Number("1.5"), (-1, 1)),
        (Decimal(10, 2), Number("-0.019"), Number("0.019"), (Number("-0.01"), Number("0.01"))),
        (DOUBLE, Number("-0.1"), Number("0.1"), (-0.1, 0.1)),
    ],
)
def test_bounds_are_rounded_inwards_to_steps_of_the_axis(axis: Any, lower: Any, upper: Any, steps: Any) -> None:
    reach = measure_reach(within(lower, upper), Axis(axis))
    assert (reach.lower, reach.upper) == steps
    assert type(reach.lower) is type(steps[0])
    assert reach.way == "bins"


@pytest.mark.parametrize(
    ("axis", "lower", "upper", "way"),
    [
        (LONG, 3, 3, "equal"),
        (LONG, Number("0.2"), Number("0.8"), "never"),
        (LONG, None, 3, "open"),
        (LONG, -(10**30), 3, "open"),
        (LONG, -3, 10**30, "open"),
        (LONG, 10**30, None, "never"),
        (LONG, None, -(10**30), "never"),
        (LONG, 2**64, None, "never"),
        (LONG, None, -(2**64), "never"),
        (LONG, -(2**64), 3, "open"),
        (LONG, -3, 2**64, "open"),
        (LONG, -(2**63), 2**63, "bins"),
        (Decimal(4, 2), 200, None, "never"),
        (Decimal(4, 2), -200, 1, "open"),
        (DOUBLE, Number(10) ** 300 * -1, 0, "open"),
        (DOUBLE, Number(10) ** 400 * -1, 0, "open"),
        (DATE, Number("0.5") * DAY, Number("0.6") * DAY, "never"),
        (DATE, -(2**64), 3 * DAY, "bins"),
        (DATE, -(2**64) * DAY, 3 * DAY, "open"),
    ],
)
def test_far_bounds_are_open_or_never_met(axis: Any, lower: Any, upper: Any, way: str) -> None:
    assert measure_reach(within(lower, upper), Axis(axis)).way == way


def test_a_long_distance_keeps_every_digit() -> None:
    reach = measure_reach(within(Number(-1) / 10**18, 10**19), Axis(Decimal(38, 18)))
    assert reach.lower == Number("-0.000000000000000001")
    assert reach.upper == Number(10) ** 19


@pytest.mark.parametrize(
    ("types", "axis"),
    [
        (("timestamp", "date"), "timestamp"),
        (("date", "date"), "date"),
        (("timestamp_ntz", "date", None, "timestamp_ntz"), "timestamp_ntz"),
        (("date", "date", None, "timestamp"), "timestamp"),
        (("integer", "short"), "long"),
        (("integer", "short", None, "decimal(4,2)"), "decimal(12,2)"),
        (("float", "float"), "double"),
        (("long", "long", "double"), "double"),
    ],
)
def test_all_compared_columns_meet_on_one_axis(types: tuple[Any, ...], axis: str) -> None:
    assert str(find_axis(join_of(*types)).dtype) == axis


def test_decimals_that_no_type_holds_have_no_axis() -> None:
    with pytest.raises(JoinTypeError, match="exactly"):
        find_axis(join_of("decimal(38,0)", "long", None, "decimal(38,18)"))


ORDER = AsofOrder("t", "t")
_ALL = ("inner", "left", "right", "full", "semi", "anti")
