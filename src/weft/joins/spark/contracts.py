"""Promises of a join, checked inside the plan; `weft.joins.spark.failures` turns a broken one into an error.

Before::

    l JOIN r ON l.k = r.k                         relationship="m:1"

After::

    l JOIN (SELECT *, count(*) OVER (PARTITION BY k) AS n FROM r) r ON l.k = r.k
    WHERE CASE WHEN n > 1 THEN raise_error(...) ELSE spark_partition_id() >= 0 END

The check is a filter because a filter survives column pruning.  It is non-deterministic because
Spark would push a deterministic one below the join, or a filter of the user below the check: a
promise is about every row of the join, whatever part of the result is read.  Spark folds
``rand() >= 0`` to true, so the check uses the partition id.  With predicates, the rows of a key
are more than the matches of a row, so matches are counted per row of the joined result.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from weft.core.names import quote
from weft.core.types import BINARY, Scalar
from weft.expr.spark.frames import window_of
from weft.joins.resolve.resolved import AsOf, Exact, Side
from weft.joins.spark.sides import LEFT_HERE, OTHER, RIGHT_HERE, SIDES, Sides

PREFIX = "[JOIN_CONTRACT]"
_KEY_CHARACTERS = 100  # a key may be a whole document
_COUNT = {"left": "__weft_left_count", "right": "__weft_right_count"}
ROW = {"left": "__weft_left_row", "right": "__weft_right_row"}
"""The column that identifies a row of a side, if its matches are counted after the join."""
# Which side must be single for each relationship: "m:1" allows one right row per left row.
SINGLE: dict[str, tuple[Side, ...]] = {"m:m": (), "m:1": ("right",), "1:m": ("left",), "1:1": ("left", "right")}


def needs_markers(sides: Sides) -> bool:
    """Whether the joined rows need a marker for each side they come from."""
    join = sides.join
    return bool(join.unmatched or single_sides(sides)) or any(c.source == "indicator" for c in join.output)


def single_sides(sides: Sides) -> tuple[Side, ...]:
    """Return the sides of which a row of the other side may match one row only."""
    single = SINGLE[sides.join.relationship or "m:m"]
    # A left row of an as-of join never has two matches.
    return tuple(side for side in single if side == "left") if isinstance(sides.join.match, AsOf) else single


def add_markers(sides: Sides) -> Sides:
    """Add a column to each side that is NULL in joined rows without a row of that side."""
    for side, marker in zip(SIDES, (LEFT_HERE, RIGHT_HERE), strict=True):
        sides = sides.with_frame(side, sides.frame(side).withColumn(marker, sides.F.lit(True)))
    return sides


def add_check_columns(sides: Sides) -> Sides:
    """Add the columns that the checks read: markers, and a count or a row number for each single side."""
    marked = add_markers(sides)
    for side in single_sides(sides):
        if _by_key(sides):
            marked = marked.with_frame(side, _count_per_key(marked.frame(side), sides, side))
        else:  # number the rows of the other side, whose matches are counted after the join
            other = OTHER[side]
            row = sides.F.monotonically_increasing_id()
            marked = marked.with_frame(other, marked.frame(other).withColumn(ROW[other], row))
    return marked


def _by_key(sides: Sides) -> bool:
    """Whether only keys decide, so that the matches of a row are the rows of its key."""
    join = sides.join
    return bool(join.keys) and not join.conditions and isinstance(join.match, Exact)


def _count_per_key(frame: DataFrame, sides: Sides, side: Side) -> DataFrame:
    count = sides.F.count(sides.F.lit(1)).over(window_of(frame).partitionBy(*sides.keys(side)))
    return frame.withColumn(_COUNT[side], count)


def guard_promises(joined: DataFrame, sides: Sides) -> DataFrame:
    """Add a filter for each promise that fails the job when the promise is broken."""
    F = sides.F
    here = {"left": F.col(LEFT_HERE), "right": F.col(RIGHT_HERE)}
    for side in sides.join.unmatched:
        other = OTHER[side]
        unmatched = here[side].isNotNull() & here[other].isNull()
        text = f"W0502 a {side} row matches no {other} row: "
        joined = joined.filter(passes_unless(unmatched, sides, text, side))
    for side in single_sides(sides):
        other = OTHER[side]
        both = here["left"].isNotNull() & here["right"].isNotNull()
        if not _by_key(sides):
            # Unmatched rows of a full join have a NULL number; they are one partition, and only pairs are counted.
            window = window_of(joined).partitionBy(F.col(ROW[other]))
            joined = joined.withColumn(_COUNT[side], F.count(F.when(both, F.lit(1))).over(window))
        text = f"W0501 relationship {sides.join.relationship!r} is broken: a {other} row matches several {side} rows: "
        joined = joined.filter(passes_unless(both & (F.col(_COUNT[side]) > 1), sides, text, other))
    return joined


def passes_unless(broken: Column, sides: Sides, text: str, side: Side) -> Column:
    """Return a filter that is true, and raises an error with the key of the row where `broken` is true."""
    F, join = sides.F, sides.join
    end = F.lit(f" (spec {join.spec_fingerprint[:12]}, join {join.fingerprint[:12]})")
    message = F.concat(F.lit(f"{PREFIX} {text}"), _key_text(sides, side), end)
    return F.when(broken, F.raise_error(message).cast("boolean")).otherwise(F.spark_partition_id() >= 0)


def _key_text(sides: Sides, side: Side) -> Column:
    """Return the key of a row as a string, ``order_id = 7, region = 'EU'``."""
    F = sides.F
    schema = sides.join.schema_of(side)
    # Without a key all columns of the row are printed.
    indices = dict.fromkeys(k.index(side) for k in sides.join.keys)
    parts = []
    for i in tuple(indices) or range(len(schema)):
        column = sides.column_of(side, i)
        name, dtype = schema.fields[i].name, schema.fields[i].dtype
        label = name if name.isidentifier() else quote(name)
        value = F.hex(column) if dtype == BINARY else F.substring(column.cast("string"), 1, _KEY_CHARACTERS)
        if isinstance(dtype, Scalar) and dtype.name == "string":
            value = F.concat(F.lit("'"), value, F.lit("'"))
        parts.append(F.concat(F.lit(f"{label} = "), F.coalesce(value, F.lit("null"))))
    return F.concat_ws(", ", *parts)
