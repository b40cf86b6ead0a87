"""As-of joins by decimals of many digits: distances are exact to the last one, by every plan."""

from __future__ import annotations

import random
from decimal import Context, Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest

from join_cases import frame_of, rows_of
from weft import AsofOrder, AsofSpec, asof_strategies, relation
from weft.core.types import LONG, Field, Schema, parse_type
from weft.errors import JoinTypeError, StrategyRefusedError
from weft.joins.choose import ASOF
from weft.joins.resolve.join import resolve_join
from weft.testing import Table, assert_rows_equal, reference_join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOMY = Context(prec=80)
SHAPES = ((38, 0), (18, 8))
"""Precision and scale of the longest and of the longest that fit 64 bits: every plan joins by these."""

MORE_SHAPES = ((38, 6), (38, 10), (38, 35), (37, 37))
"""How a distance is computed depends on the type and not on the plan: one plan joins by these."""

CASES = (
    *((strategy, shape) for strategy in asof_strategies() for shape in SHAPES),
    *(("union", shape) for shape in MORE_SHAPES),
)
COLUMNS = ("spec", "k", "t", "u")


def table(name: str, precision: int, scale: int) -> Table:
    """Return one side: the ends of the type, their neighbours, and steps around zero."""
    rng = random.Random(f"{name}/{precision}/{scale}")
    end = 10**precision - 1
    near = [end, end - 1, end // 2, end // 2 + 1, 10**19, 10**19 - 1, 10**scale, 10**scale - 1, 2, 1, 0]
    units = [sign * n for n in near for sign in (1, -1) if n <= end]
    units += [rng.randrange(-end, end + 1) for _ in range(6)]
    rows = [(n % 2, Decimal(rng.choice(units)).scaleb(-scale, ROOMY)) for n in range(24)]
    # Two right rows around zero whose distances differ in the last digit alone.
    around = (0,) if name == "t" else (-(end // 2), end // 2 - 1)
    rows += [(2, Decimal(n).scaleb(-scale, ROOMY)) for n in around]
    fields = Field("k", LONG), Field(name, parse_type(f"decimal({precision},{scale})"))
    return Table(Schema(fields), tuple(rows))


def specs(precision: int, scale: int) -> dict[str, AsofSpec]:
    step, half = (Decimal(n).scaleb(-scale, ROOMY) for n in (1, 5 * 10 ** (precision - 1)))
    given: dict[str, dict[str, Any]] = {
        "nearest": {"direction": "nearest", "tolerance": "unbounded"},
        "nearest by half": {"direction": "nearest", "tolerance": half, "allow_exact_matches": False},
        "a step back": {"tolerance": step},
        "half ahead": {"direction": "forward", "tolerance": half},
        "no limit at all": {"tolerance": Decimal(10) ** 60},
    }
    return {name: AsofSpec([("k", "k")], order=AsofOrder("t", "u"), **more) for name, more in given.items()}


@pytest.mark.parametrize(("strategy", "shape"), CASES, ids=str)
def test_distances_are_exact_to_the_last_digit(spark: SparkSession, strategy: str, shape: tuple[int, int]) -> None:
    left, right = table("t", *shape), table("u", *shape)
    sides = [relation(frame_of(spark, side)) for side in (left, right)]
    # One query for the joins of one type: five are planned in a second, thirty exhaust the memory of the driver.
    frames, wanted = [], []
    for name, spec in specs(*shape).items():
        join = resolve_join(spec, left.schema, right.schema)
        if (reason := ASOF[strategy](join)) is not None:
            assert (strategy, shape[0] > 18) == ("kernel", True), reason
            with pytest.raises(StrategyRefusedError):
                sides[0].asof_join(sides[1], spec, strategy=strategy)
            continue
        result = sides[0].asof_join(sides[1], spec, strategy=strategy).df
        frames.append(result.selectExpr(f"'{name}' spec", "k", "string(t) t", "string(u) u"))
        wanted += [
            (name, row[0], *(None if v is None else f"{v:.{shape[1]}f}" for v in row[1:]))
            for row in reference_join(join, left.rows, right.rows)
        ]
    if frames:
        assert_rows_equal(rows_of(reduce(lambda a, b: a.unionAll(b), frames)), wanted, COLUMNS)


def test_decimals_without_room_for_a_distance_are_refused(spark: SparkSession) -> None:
    left, right = (relation(frame_of(spark, table(name, 38, 36))) for name in ("t", "u"))
    nearest = AsofSpec([("k", "k")], order=AsofOrder("t", "u"), direction="nearest", tolerance="unbounded")
    with pytest.raises(JoinTypeError, match=r"decimal\(38,36\) has no room for a distance"):
        left.asof_join(right, nearest)
    assert len(rows_of(left.asof_join(right, AsofSpec([("k", "k")], order=AsofOrder("t", "u"))).df)) == 25
