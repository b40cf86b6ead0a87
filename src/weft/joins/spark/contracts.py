"""Promises of a join, checked inside the plan; `weft.joins.spark.failures` turns a broken one into an error.

Before::

    l JOIN r ON l.k = r.k                         relationship="m:1"

After::

    l JOIN (SELECT *, count(*) OVER (PARTITION BY k) AS n FROM r) r ON l.k = r.k
    WHERE CASE WHEN n > 1 THEN raise_error(...) ELSE spark_partition_id() >= 0 END

The check is a filter because a filter survives column pruning.  It is non-deterministic
because Spark moves a deterministic one below the join, and a reader's filter below it: the
promise is about every row of the join and no other, whatever part of it is read.  Spark
folds ``rand() >= 0`` to true, so the id of the partition is asked instead.  With predicates
a count per key says too much, so matches are counted per row of the joined result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weft.core.names import quote
from weft.core.types import BINARY, Scalar
from weft.expr.spark.frames import window_of
from weft.joins.resolve.resolved import Exact, Side
from weft.joins.spark.sides import LEFT_HERE, RIGHT_HERE, Sides

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


PREFIX = "[JOIN_CONTRACT]"
_SHOWN = 100
_COUNT = {"left": "__weft_left_count", "right": "__weft_right_count"}
_ROW = {"left": "__weft_left_row", "right": "__weft_right_row"}
# Which side must be single for each relationship: "m:1" allows one right row per left row.
SINGLE: dict[str, tuple[Side, ...]] = {
    "m:m": (),
    "m:1": ("right",),
    "1:m": ("left",),
    "1:1": ("left", "right"),
}


def needs_markers(sides: Sides) -> bool:
    """Whether the joined rows must tell which sides they have."""
    join = sides.join
    return bool(join.unmatched or single_sides(sides)) or any(c.source == "indicator" for c in join.output)


def single_sides(sides: Sides) -> tuple[Side, ...]:
    """Return the sides of which a row of the other side may match one row only."""
    return SINGLE[sides.join.relationship or "m:m"]


def prepared(sides: Sides) -> Sides:
    """Add the columns that the checks read: markers, and a count or a row number per side."""
    if not needs_markers(sides):
        return sides
    left = sides.left.withColumn(LEFT_HERE, sides.F.lit(True))
    right = sides.right.withColumn(RIGHT_HERE, sides.F.lit(True))
    for side in single_sides(sides):
        if _by_key(sides):
            if side == "left":
                left = _counted(left, sides, side)
            else:
                right = _counted(right, sides, side)
        elif side == "left":  # a single left side: number the right rows, count their matches
            right = right.withColumn(_ROW["right"], sides.F.monotonically_increasing_id())
        else:
            left = left.withColumn(_ROW["left"], sides.F.monotonically_increasing_id())
    return replace(sides, left=left, right=right)


def _by_key(sides: Sides) -> bool:
    """Whether keys alone decide, so that a count per key says how many matches a row has."""
    join = sides.join
    return bool(join.keys) and not join.conditions and isinstance(join.match, Exact)


def _counted(frame: DataFrame, sides: Sides, side: Side) -> DataFrame:
    keys = [
        sides.left_column(k.left, k.dtype) if side == "left" else sides.right_column(k.right, k.dtype)
        for k in sides.join.keys
    ]
    count = sides.F.count(sides.F.lit(1)).over(window_of(frame).partitionBy(*keys))
    return frame.withColumn(_COUNT[side], count)


def checked(joined: DataFrame, sides: Sides) -> DataFrame:
    """Return the joined rows behind filters that fail the job when a promise is broken."""
    F = sides.F
    here = {"left": F.col(LEFT_HERE), "right": F.col(RIGHT_HERE)}
    for side in sides.join.unmatched:
        other: Side = "right" if side == "left" else "left"
        lonely = here[side].isNotNull() & here[other].isNull()
        text = f"W0502 a {side} row matches no {other} row: "
        joined = _guarded(joined, sides, lonely, text, side)
    for side in single_sides(sides):
        other = "right" if side == "left" else "left"
        both = here["left"].isNotNull() & here["right"].isNotNull()
        if not _by_key(sides):
            window = window_of(joined).partitionBy(F.col(_ROW[other]))
            joined = joined.withColumn(_COUNT[side], F.count(F.when(both, F.lit(1))).over(window))
        text = f"W0501 relationship {sides.join.relationship!r} is broken: a {other} row matches several {side} rows: "
        joined = _guarded(joined, sides, both & (F.col(_COUNT[side]) > 1), text, other)
    return joined


def _guarded(joined: DataFrame, sides: Sides, broken: Column, text: str, side: Side) -> DataFrame:
    F = sides.F
    start = F.lit(f"{PREFIX} {text}")
    join = sides.join
    end = F.lit(f" (spec {join.spec_fingerprint[:12]}, join {join.fingerprint[:12]})")
    message = F.concat(start, key_text(sides, side), end)
    return joined.filter(
        F.when(broken, F.raise_error(message).cast("boolean")).otherwise(F.spark_partition_id() >= 0)
    )


def key_text(sides: Sides, side: Side) -> Column:
    """Return the key of a row as text, ``order_id = 7, region = 'EU'``."""
    F = sides.F
    schema = sides.join.left if side == "left" else sides.join.right
    indices = dict.fromkeys(k.left if side == "left" else k.right for k in sides.join.keys)
    parts = []
    for i in tuple(indices) or range(len(schema)):
        column = sides.left_column(i) if side == "left" else sides.right_column(i)
        name, dtype = schema.fields[i].name, schema.fields[i].dtype
        label = name if name.isidentifier() else quote(name)
        shown = F.hex(column) if dtype == BINARY else F.substring(column.cast("string"), 1, _SHOWN)
        if isinstance(dtype, Scalar) and dtype.name == "string":
            shown = F.concat(F.lit("'"), shown, F.lit("'"))
        parts.append(F.concat(F.lit(f"{label} = "), F.coalesce(shown, F.lit("null"))))
    text: Column = F.concat_ws(", ", *parts)
    return text
