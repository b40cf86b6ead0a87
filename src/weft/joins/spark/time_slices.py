"""The number of the slice that a row of a heavy key lies in.

::

    cuts of key A:            2     6     9
    time of a row:      1  2  2  5  6  7  9  9
    slice, cut before:  0  1  1  1  2  2  3  3
    slice, cut after:   0  0  0  1  1  2  2  2

Rows of one side and time are never parted.  Where every cut is the time of a right row, a slice
has the right row that its first left row needs: backward, rows at a cut begin a slice, so the row
at the cut is there for all that follow; forward, they end it.  A left row that may not take an
equal time goes to the other side of the cut.  Nearest needs both, so right rows at a cut are
copied into the slice before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from weft.joins.resolve.resolved import AsOf, Side
from weft.joins.spark.heavy_keys import CUTS, KEY, Survey

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BASE = "__weft_cut_base"
SLICE, LAST = "__weft_slice", "__weft_last_slice"


@dataclass(frozen=True, slots=True)
class Slicing:
    """How the rows of a join are cut by time; `heavy` is the table of its heavy keys."""

    survey: Survey
    heavy: DataFrame

    def whole(self, side: Side) -> DataFrame:
        """Return all rows of a side with the number of their slice, 0 where the key is not heavy."""
        rows = self._numbered(side, self.heavy, "left_outer")
        if side == "left" or self.survey.match.direction != "nearest":
            return rows
        F = self.survey.sides.F
        names = [n for n in rows.columns if n != SLICE]
        at_cut = F.get(F.col(CUTS), F.col(SLICE) - F.lit(1)) == self.survey.time(side)
        both = F.when(at_cut, F.array(F.col(SLICE) - F.lit(1), F.col(SLICE))).otherwise(F.array(SLICE))
        return rows.select(*names, F.explode(both).alias(SLICE))

    def of_keys(self, heavy: DataFrame) -> DataFrame:
        """Return the right rows of some heavy keys with the number of their slice and of the last one."""
        return self._numbered("right", heavy, "inner").withColumn(LAST, self.survey.sides.F.size(CUTS))

    def _numbered(self, side: Side, heavy: DataFrame, how: str) -> DataFrame:
        F, survey = self.survey.sides.F, self.survey
        joined = survey.rows(side).join(F.broadcast(heavy), self.equal(side, KEY), how)
        cuts, time = F.col(CUTS), survey.time(side)
        stride = math.isqrt(survey.wanted) + 1
        begins = begins_a_slice(survey.match, side)

        def passed(place: Column) -> Column:
            cut = F.get(cuts, place)
            here: Column = F.when(cut <= time if begins else cut < time, F.lit(1)).otherwise(F.lit(0))
            return here

        # Two short rows of comparisons: first every stride-th cut, then the cuts between two of those.
        strides = [passed(F.lit(stride * (i + 1) - 1)) for i in range(survey.wanted // stride + 1)]
        base = reduce(lambda a, b: a + b, strides) * F.lit(stride)
        between = [passed(F.col(_BASE) + F.lit(i)) for i in range(stride - 1)]
        number = reduce(lambda a, b: a + b, between, F.col(_BASE))
        return joined.withColumn(_BASE, base).withColumn(SLICE, number)

    def equal(self, side: Side, prefix: str) -> Column:
        """Return that the keys of a side equal the columns of that prefix; true without keys."""
        F, join = self.survey.sides.F, self.survey.sides.join
        pairs = [(key, F.col(f"{prefix}{i}")) for i, key in enumerate(self.survey.keys(side))]
        same: Column = reduce(
            lambda whole, p: whole & (p[0].eqNullSafe(p[1]) if join.nulls_equal else p[0] == p[1]),
            pairs,
            F.lit(True),
        )
        return same


def begins_a_slice(match: AsOf, side: Side) -> bool:
    """Whether a row at a cut lies in the slice after it.

    Backward right rows do, and left rows that may take an equal time; forward it is the other way.
    """
    if match.direction == "nearest":
        return True
    after = match.direction == "backward"
    return after if side == "right" or match.allow_exact else not after
