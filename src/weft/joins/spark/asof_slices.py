"""As-of with the rows of heavy keys cut by time: tasks are even, whatever the keys are.

Before::

    left ASOF right  keys k, order (t, u), backward; most rows have one k, or there is no k

After::

    left' ASOF right'  keys k, slice
    left'  = SELECT *, slice(k, t) FROM left
    right' = SELECT *, slice(k, u) FROM right

Cuts are times of right rows, so that every slice has the row that its first left row needs.
Where that is not possible, the last right row before a slice is carried into it::

    right' = SELECT *, slice(k, u) FROM right
             UNION ALL  the rows that are carried into a slice

This is the case for a key with few right rows, and for a column of `skip_nulls`, which has its own last
row.  Forward carries the first row of the next slice that has one, nearest carries both.  A carried row
is a copy of a right row, so it changes nothing in a slice that has the original.

The kernel or union plan joins the slices, with the slice as one more key.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame

from weft.core.names import LEFT, RIGHT, internal_name
from weft.core.types import INTEGER
from weft.expr.spark.frames import window_of
from weft.joins.choose import ASOF
from weft.joins.facts import Facts
from weft.joins.resolve.resolved import AsOf, ResolvedJoin, ResolvedKey, Side, append_column
from weft.joins.spark import asof_kernel, asof_union
from weft.joins.spark.chosen import pack_right
from weft.joins.spark.heavy_keys import CARRIED, CUTS, KEY, Survey
from weft.joins.spark.order import tie_slots
from weft.joins.spark.sides import SIDES, Sides, rank

_BASE = "__weft_cut_base"
SLICE, LAST = "__weft_slice", "__weft_last_slice"


@dataclass(frozen=True, slots=True)
class Slicing:
    """How the rows of a join are cut by time; `heavy` is the table of its heavy keys.

    The number of the slice that a row of a heavy key is in::

        cuts of key A:            2     6     9
        time of a row:      1  2  2  5  6  7  9  9
        slice, cut before:  0  1  1  1  2  2  3  3
        slice, cut after:   0  0  0  1  1  2  2  2

    Rows of one side with equal times are in one slice.  If every cut is the time of a right row, a slice
    has the right row that its first left row needs: backward, rows at a cut start a slice, so that row
    is there for all later ones; forward, they end a slice.  A left row that must not match an equal
    time goes to the other side of the cut.  Nearest needs both, so right rows at a cut are copied into
    the slice before it.
    """

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
        stride = math.isqrt(survey.slices) + 1
        begins = begins_a_slice(survey.match, side)

        def passed(place: Column) -> Column:
            cut = F.get(cuts, place)
            return F.when(cut <= time if begins else cut < time, F.lit(1)).otherwise(F.lit(0))

        # Two short sequences of comparisons: every stride-th cut first, then the cuts between two of those.
        strides = [passed(F.lit(stride * (i + 1) - 1)) for i in range(survey.slices // stride + 1)]
        base = reduce(lambda a, b: a + b, strides) * F.lit(stride)
        between = [passed(F.col(_BASE) + F.lit(i)) for i in range(stride - 1)]
        number = reduce(lambda a, b: a + b, between, F.col(_BASE))
        return joined.withColumn(_BASE, base).withColumn(SLICE, number)

    def equal(self, side: Side, prefix: str) -> Column:
        """Return the condition that the keys of a side equal the columns with a prefix; true without keys."""
        sides, F = self.survey.sides, self.survey.sides.F
        equal = [sides.equal(key, F.col(f"{prefix}{i}")) for i, key in enumerate(sides.keys(side))]
        return reduce(lambda a, b: a & b, equal, F.lit(True))


def begins_a_slice(match: AsOf, side: Side) -> bool:
    """Whether a row at a cut belongs to the slice after it.

    Backward, right rows do, and left rows that may match an equal time; forward, it is the other way round.
    """
    if match.direction == "nearest":
        return True
    after = match.direction == "backward"
    return after if side == "right" or match.allow_exact else not after


_KEY, _AT, _END = "__weft_end_key", "__weft_end_slice", "__weft_end"
_FROM, _TO, _ROW = "__weft_from", "__weft_to", "__weft_carried"
INNER: tuple[tuple[str, Callable[[Sides, AsOf], DataFrame]], ...] = (
    ("kernel", asof_kernel.lower),
    ("union", asof_union.lower),
)
"""The plans that may join the slices; the first one that supports the join is used."""


def lower(sides: Sides, match: AsOf, facts: Facts | None = None, *, kernel: bool = True) -> DataFrame:
    """Return the joined rows under positional names; no job runs.

    With `facts` the cuts are known and the plan needs no sample; `kernel` is whether workers can run it.
    """
    inside = sliced_sides(sides, match, facts)
    plans = [(name, plan) for name, plan in INNER if kernel or name != "kernel"]
    # The union supports every join that slices do.
    plan = next(plan for name, plan in plans if ASOF[name](inside.join) is None)
    return plan(inside, match)


def sliced_sides(sides: Sides, match: AsOf, facts: Facts | None = None) -> Sides:
    """Return the sides with the slice as one more key, and with the carried rows."""
    F, survey = sides.F, Survey.of(sides, match)
    # Facts went through Python: key values that do not survive that are sampled again inside the plan.
    known = facts if facts is not None and survey.can_be_sent() else None
    slicing = Slicing(survey, survey.table() if known is None else survey.table_of(known))
    lefts, rights = sides.names("left"), sides.names("right")
    right = slicing.whole("right").select(*rights, F.col(SLICE).alias(internal_name(RIGHT, len(rights))))
    if known is None or any(key.carried for key in known.heavy):
        right = right.unionAll(_carried(slicing))
    left = slicing.whole("left").select(*lefts, F.col(SLICE).alias(internal_name(LEFT, len(lefts))))
    return Sides(_keyed_by_slice(sides.join), left, right, F, sliced=True)


def _keyed_by_slice(join: ResolvedJoin) -> ResolvedJoin:
    slices = ResolvedKey(left=len(join.left), right=len(join.right), dtype=INTEGER, origin="spec")
    left, right = (append_column(join.schema_of(side), SLICE, INTEGER) for side in SIDES)
    return replace(join, left=left, right=right, keys=(*join.keys, slices))


@dataclass(frozen=True, slots=True)
class _Lane:
    """One kind of carried row: the last or the first row of a slice, of those that have a value in `column`."""

    number: int
    ahead: bool
    column: int | None

    def named(self, prefix: str) -> str:
        return f"{prefix}{self.number}"


def _lanes(match: AsOf) -> list[_Lane]:
    ways = [way for way in (False, True) if match.direction in ("nearest", ("backward", "forward")[way])]
    kinds = [(ahead, column) for ahead in ways for column in (None, *match.skip_nulls)]
    return [_Lane(number, ahead, column) for number, (ahead, column) in enumerate(kinds)]


def _carried(slicing: Slicing) -> DataFrame:
    """Return copies of right rows, each with the number of a slice that needs it.

    If no key needs them, which is known when the job runs, Spark skips all of this.
    """
    survey = slicing.survey
    sides, F = survey.sides, survey.sides.F
    lanes = _lanes(survey.match)
    heavy = slicing.of_keys(slicing.heavy.filter(F.col(CARRIED)))
    ends = _ends(heavy, survey, lanes)
    time = survey.time("right")
    at_end = {lane: _counts(sides, lane) & (time == F.col(lane.named(_END))) for lane in lanes}
    here = reduce(lambda a, b: a | b, at_end.values())
    same = slicing.equal("right", _KEY) & (F.col(SLICE) == F.col(_AT)) & here
    ties = [sides.column(s) for s in tie_slots(sides.join, survey.match)] or [F.lit(0)]
    best = rank(F, ties)
    picked = (
        heavy.join(F.broadcast(ends), same)
        .groupBy(*_end_keys(survey), F.col(_AT))
        .agg(
            *(F.max_by(pack_right(sides), F.when(hit, best)).alias(lane.named(_ROW)) for lane, hit in at_end.items()),
            *(F.any_value(lane.named(p)).alias(lane.named(p)) for lane in lanes for p in (_FROM, _TO)),
        )
    )
    copies = F.array(*(_copies(sides, lane) for lane in lanes))
    carried = picked.select(F.explode(copies).alias("lane")).select(
        F.col("lane.row").alias("row"), F.explode("lane.slices").alias(SLICE)
    )
    names = sides.names("right")
    fields = [F.col("row").getField(name).alias(name) for name in names]
    number = F.col(SLICE).alias(internal_name(RIGHT, len(names)))
    return carried.filter(F.col("row").isNotNull()).select(*fields, number)


def _counts(sides: Sides, lane: _Lane) -> Column:
    if lane.column is None:
        return sides.F.lit(True)
    return sides.right_column(lane.column).isNotNull()


def _end_keys(survey: Survey) -> list[Column]:
    return [survey.sides.F.col(f"{_KEY}{i}") for i in range(len(survey.sides.join.keys))]


def _ends(heavy: DataFrame, survey: Survey, lanes: list[_Lane]) -> DataFrame:
    """Return for each slice and lane the time at its end, and the slices that need the row at that time."""
    F, time = survey.sides.F, survey.time("right")
    keys = [key.alias(f"{_KEY}{i}") for i, key in enumerate(survey.sides.keys("right"))]
    # Times have a fixed width, so this is a hash aggregation; whole rows would have to be sorted.
    ends = heavy.groupBy(*keys, F.col(SLICE).alias(_AT)).agg(
        F.max(LAST).alias(LAST),
        *(
            (F.min if lane.ahead else F.max)(F.when(_counts(survey.sides, lane), time)).alias(lane.named(_END))
            for lane in lanes
        ),
    )
    window = window_of(ends)
    order = window.partitionBy(*(_end_keys(survey) or [F.lit(0)])).orderBy(_AT)
    after = order.rowsBetween(1, window.unboundedFollowing)
    before = order.rowsBetween(window.unboundedPreceding, -1)
    columns: dict[str, Column] = {}
    for lane in lanes:
        here = F.when(F.col(lane.named(_END)).isNotNull(), F.col(_AT))
        if lane.ahead:
            first = F.coalesce(F.last(here, ignorenulls=True).over(before), F.lit(0))
            last = F.col(_AT) - F.lit(1)
        else:
            first = F.col(_AT) + F.lit(1)
            last = F.coalesce(F.first(here, ignorenulls=True).over(after), F.col(LAST))
        columns |= {lane.named(_FROM): first, lane.named(_TO): last}
    return ends.withColumns(columns).drop(LAST)


def _copies(sides: Sides, lane: _Lane) -> Column:
    F = sides.F
    first, last = F.col(lane.named(_FROM)), F.col(lane.named(_TO))
    slices = F.when(first <= last, F.sequence(first, last))
    return F.struct(F.col(lane.named(_ROW)).alias("row"), slices.alias("slices"))
