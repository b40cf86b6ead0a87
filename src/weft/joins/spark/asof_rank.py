"""As-of by joining every candidate and keeping the best: any predicate, any direction.

Before::

    left ASOF right  keys k, order (t, u), backward, any predicate p

After::

    SELECT any_value(l), max_by(r, (u, ties..))
    FROM (SELECT *, row_id() FROM left) l LEFT JOIN right r ON l.k = r.k AND u <= t AND p
    GROUP BY row_id

The join produces every candidate pair, so a dense key costs the product of its rows; no
other plan can test a predicate over both sides before the choice.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame

from weft.core.names import RIGHT, internal_name
from weft.joins.resolve.resolved import AsOf
from weft.joins.spark.chosen import CHOSEN, can_match, finish, pack_left, pack_right
from weft.joins.spark.order import Axis, is_known_in_time, tie_slots
from weft.joins.spark.sides import Sides, rank

_ROW = "__weft_row"
_CANDIDATE = "__weft_candidate"


def lower(sides: Sides, match: AsOf) -> DataFrame:
    """Return the joined rows under positional names; no job runs."""
    F = sides.F
    # Left rows may be equal in all columns, so each one gets a number to group its candidates by.
    numbered = sides.left.withColumn(_ROW, F.monotonically_increasing_id())
    candidates = sides.right.filter(can_match(sides, match, "right")).withColumn(_CANDIDATE, F.lit(True))
    reach = [sides.condition(), Axis.of(sides, match).in_reach(), is_known_in_time(sides, match)]
    reach.append(can_match(sides, match, "left"))
    pairs = numbered.join(candidates, reduce(lambda a, b: a & b, (c for c in reach if c is not None)), "left_outer")
    # A marker, because every column of a candidate may be NULL.
    matches = F.col(_CANDIDATE).isNotNull()
    pairs = pairs.select(
        _ROW,
        pack_left(sides).alias("l"),
        F.when(matches, pack_right(sides)).alias("r"),
        F.when(matches, _rank(sides, match)).alias("b"),
    )
    best = {i: _nearest_value(sides, i) for i in match.skip_nulls}
    grouped = pairs.groupBy(_ROW).agg(
        F.any_value("l").alias("l"),
        F.max_by("r", "b").alias(CHOSEN),
        *(value.alias(f"s{i}") for i, value in best.items()),
    )
    chosen = F.col(CHOSEN)
    for i in best:
        chosen = F.when(chosen.isNotNull(), chosen.withField(internal_name(RIGHT, i), F.col(f"s{i}")))
    lefts = [F.col("l").getField(name).alias(name) for name in sides.names("left")]
    return finish(grouped.select(*lefts, chosen.alias(CHOSEN)), sides, match)


def _nearest_value(sides: Sides, index: int) -> Column:
    """Return the value of a column of `skip_nulls`: that of the best candidate that has one."""
    F = sides.F
    value = F.col("r").getField(internal_name(RIGHT, index))
    return F.max_by(value, F.when(value.isNotNull(), F.col("b")))


def _rank(sides: Sides, match: AsOf) -> Column:
    """Return what the best candidate has the greatest of: nearness, then ties."""
    F = sides.F
    axis = Axis.of(sides, match)
    left, right = axis.left, axis.right
    parts = axis.nearness(left, right)
    if match.direction == "backward":
        parts.append(right)  # decides between infinitely far values; others differ in nearness already
    else:
        earlier = right <= left
        parts.append(earlier if match.nearest_tie == "backward" else ~earlier)
        if axis.dtype.is_fraction:
            parts.append(~F.isnan(right))
    parts.extend(sides.column(slot) for slot in tie_slots(sides.join, match))
    return rank(F, parts)
