"""Rows and their matches before a join is used: counts of both sides, and the rows that a picture shows.

Both run the join once more on frames that carry a few columns of their own through it::

    left                      right                     joined, all other columns left out
    ... | row                 ... | row                 left row | right row
    ... |   1                 ... |   7                        1 |         7
    ... |   2                 ... |   8                        2 |      NULL      no match
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame

from weft.core.names import format_name
from weft.core.types import DATE, DOUBLE, LONG, STRING, TIMESTAMP, DType, Field
from weft.expr.spark.frames import window_of
from weft.joins.choose import choose
from weft.joins.facts import MatchCounts
from weft.joins.resolve.axis import DAY, Axis
from weft.joins.resolve.resolved import Amount, AsOf, Exact, Overlap, ResolvedJoin, SameWindow, Side, Within
from weft.joins.sketch import find_sessions, match_marks, refuse_picture
from weft.joins.spark.axis import value
from weft.joins.spark.facts import read_session_facts
from weft.joins.spark.lowering import lower
from weft.joins.spark.order import axis_type
from weft.joins.spark.sides import SIDES, Sides
from weft.joins.timeline import Lane, Mark, Scale, Span, Timeline, is_zone

_NEARBY = 3  # per left row, this many unmatched right rows are drawn at most
_MOST_WINDOWS = 40


@dataclass(frozen=True, slots=True)
class _Carried:
    """A join whose result is only the columns that both frames carry through it."""

    left: DataFrame
    right: DataFrame
    join: ResolvedJoin

    @classmethod
    def of(cls, sides: Sides, columns: Mapping[Side, Mapping[str, tuple[Column, DType]]]) -> _Carried:
        """Add columns by name to both frames, with their types."""
        frames, fields = {}, {}
        for side in SIDES:
            added = columns[side]
            frames[side] = sides.frame(side).select("*", *(c.alias(n) for n, (c, _) in added.items()))
            fields[side] = [Field(n, dtype, nullable=True) for n, (_, dtype) in added.items()]
        # Promises are for results that are used; here, rows that break them are what the user looks for.
        bare = replace(
            sides.join, how="left", output=(), relationship=None, unmatched=(), computed_left=(), computed_right=()
        )
        return cls(frames["left"], frames["right"], bare.carrying(fields["left"], fields["right"]))

    def lower(self) -> DataFrame:
        """Return the joined frame; the strategy is chosen as for the join itself."""
        choice = choose(self.join)
        if isinstance(self.join.match, AsOf):
            choice = choose(self.join, session_facts=read_session_facts(self.left, self.right))
        return lower(self.left, self.right, self.join, choice)


def count_matches(left: DataFrame, right: DataFrame, join: ResolvedJoin) -> MatchCounts:
    """Run the join and count the rows of both sides that have a match, and the most that one has."""
    sides = Sides.of(left, right, join)
    F = sides.F
    row = F.monotonically_increasing_id(), LONG
    pairs = _Carried.of(sides, {"left": {"l": row}, "right": {"r": row}}).lower().where(F.col("r").isNotNull())
    if isinstance(join.match, SameWindow) and join.match.per_window:
        pairs = pairs.distinct()

    def summarise(side: str) -> tuple[int, int, int]:
        each = pairs.groupBy(side).agg(F.count(F.lit(1)).alias("n"))
        rows, most, total = each.agg(F.count(F.lit(1)), F.max("n"), F.sum("n")).collect()[0]
        return rows, most or 0, total or 0

    left_matched, most_for_left, found = summarise("l")
    right_matched, most_for_right, _ = summarise("r")
    return MatchCounts(
        left_rows=left.count(),
        right_rows=right.count(),
        pairs=found,
        left_matched=left_matched,
        right_matched=right_matched,
        most_for_left=most_for_left,
        most_for_right=most_for_right,
    )


def collect_timeline(
    left: DataFrame, right: DataFrame, join: ResolvedJoin, title: str, *, keys: int, rows: int
) -> Timeline:
    """Return the first left rows of the first keys, their matches, and right rows near them."""
    drawing = _Drawing.of(Sides.of(left, right, join))
    left_of, right_of, pairs_of = drawing.collect(keys, rows)
    lanes = tuple(drawing.build_lane(key, left_of[key], right_of.get(key, {}), pairs_of[key]) for key in left_of)
    match = join.match
    notes = [f"The first {keys} keys and the first {rows} left rows of each; right rows near them."]
    if isinstance(match, AsOf) and match.skip_nulls:
        notes.append("Columns that skip NULLs may come from another right row than the one drawn.")
    return Timeline(
        title=title,
        left_name=drawing.name("left"),
        right_name=drawing.name("right"),
        scale=drawing.scale(),
        lanes=lanes,
        reach_name="may match a left row" if drawing.reach_of(0.0) else "",
        notes=tuple(notes),
    )


Key = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class _Drawing:
    """The order columns of both sides as numbers on one axis, which a picture can place."""

    sides: Sides
    axis: Axis
    order: Mapping[Side, int]
    ends: Mapping[Side, int | None]

    @classmethod
    def of(cls, sides: Sides) -> _Drawing:
        match = sides.join.match
        if isinstance(match, Exact):
            raise refuse_picture("plot_matches")
        dtype = axis_type(sides.join, match.left, match.right)
        if not (dtype.is_temporal or dtype.is_numeric):
            raise refuse_picture(f"plot_matches: order columns of type {dtype} have no distances")
        ends: dict[Side, int | None] = {"left": None, "right": None}
        if isinstance(match, Overlap):
            ends = {"left": match.left_end, "right": match.right_end}
        return cls(sides, Axis(dtype), {"left": match.left, "right": match.right}, ends)

    def name(self, side: Side) -> str:
        return f"{side}.{format_name(self.sides.join.schema_of(side).fields[self.order[side]].name)}"

    def scale(self) -> Scale:
        if not self.axis.dtype.is_temporal:
            return Scale("number")
        zone = "UTC"
        if self.axis.dtype == TIMESTAMP:
            zone = str(self.sides.left.sparkSession.conf.get("spark.sql.session.timeZone", "UTC"))
        return Scale("time", zone if is_zone(zone) else "UTC", DAY if self.axis.dtype == DATE else 0)

    def place(self, side: Side, index: int) -> Column:
        """Return an order column as microseconds, or as a double."""
        own = self.sides.join.schema_of(side).fields[index].dtype
        exact = value(self.sides.F, self.sides.column_of(side, index), own, self.axis)
        if self.axis.dtype == DATE:
            exact = exact * self.sides.F.lit(DAY)
        return exact.cast("double")

    def marks(self, side: Side) -> dict[str, tuple[Column, DType]]:
        """Return the start and the end of a row; an open start or end is infinite."""
        end = self.ends[side]
        start = self.place(side, self.order[side])
        match = self.sides.join.match
        if isinstance(match, Overlap) and match.opens(side):
            start = self.sides.F.coalesce(start, self.sides.F.lit(-math.inf))
        columns = {"start": start, "end": self.sides.F.lit(None).cast("double")}
        if end is not None:
            columns["end"] = self.sides.F.coalesce(self.place(side, end), self.sides.F.lit(math.inf))
        return {f"{side}_{name}": (column, DOUBLE) for name, column in columns.items()}

    def collect(self, keys: int, rows: int) -> Any:
        """Run the jobs: left rows and pairs of the first keys, then right rows near the left ones."""
        sides, F = self.sides, self.sides.F
        count = len(sides.join.keys)
        names = [f"key{n}" for n in range(count)]
        both = {side: [k.alias(n) for k, n in zip(sides.keys(side), names, strict=True)] for side in SIDES}
        placed = {side: self.marks(side)[f"{side}_start"][0].isNotNull() for side in SIDES}
        ours, theirs = sides.left.where(placed["left"]), sides.right.where(placed["right"])
        if count:
            chosen = ours.select(*both["left"]).distinct().orderBy(*names).limit(keys)

            def of_keys(frame: DataFrame, side: Side) -> DataFrame:
                equal = [k.eqNullSafe(F.col(n)) for k, n in zip(sides.keys(side), names, strict=True)]
                return frame.join(F.broadcast(chosen), reduce(lambda a, b: a & b, equal), "left_semi")

            ours, theirs = of_keys(ours, "left"), of_keys(theirs, "right")
        labels = {n: (k.cast("string"), STRING) for k, n in zip(sides.keys("left"), names, strict=True)}
        window = window_of(ours).partitionBy(*(sides.keys("left") or [F.lit(0)]))
        number = F.row_number().over(window.orderBy(self.place("left", self.order["left"])))
        numbered = ours.withColumn("number", number)
        # A session depends on all rows of its key, so its rows are chosen after the join.
        if not (isinstance(sides.join.match, SameWindow) and sides.join.match.kind == "session"):
            numbered = numbered.where(F.col("number") <= rows)
        narrowed = replace(sides, left=numbered.drop("number"), right=theirs)
        row = {"row": (F.monotonically_increasing_id(), LONG)}
        of_left = {**row, **labels, **self.marks("left")}
        joined = _Carried.of(narrowed, {"left": of_left, "right": self.marks("right")}).lower()
        left_of: dict[Key, dict[int, Mark]] = {}
        pairs_of: dict[Key, set[tuple[int, Mark]]] = {}
        for row_id, *rest in joined.orderBy(*names, "left_start").collect():
            key, (start, end, other_start, other_end) = tuple(rest[:count]), rest[count:]
            mine = left_of.setdefault(key, {})
            pairs = pairs_of.setdefault(key, set())
            if row_id not in mine and len(mine) == rows:
                continue
            mine[row_id] = Mark(start, end)
            if other_start is not None:
                pairs.add((row_id, Mark(other_start, other_end)))
        return left_of, self._collect_right(theirs, left_of, names, rows), pairs_of

    def _collect_right(
        self, theirs: DataFrame, left_of: Mapping[Key, Mapping[int, Mark]], names: Sequence[str], rows: int
    ) -> dict[Key, dict[Mark, None]]:
        F = self.sides.F
        near = None
        finite = {key: [p for m in of.values() for p in (m.start, m.end) if p is not None and math.isfinite(p)]
                  for key, of in left_of.items()}  # fmt: skip
        start, end = (column for column, _ in self.marks("right").values())
        for places in (p for p in finite.values() if p):
            margin = (max(places) - min(places)) * 0.1
            here = (start <= max(places) + margin) & (F.coalesce(end, start) >= min(places) - margin)
            near = here if near is None else near | here
        if near is None:
            return {}
        keys = [k.cast("string").alias(n) for k, n in zip(self.sides.keys("right"), names, strict=True)]
        marks = theirs.where(near).select(*keys, start.alias("start"), end.alias("end")).distinct()
        by: list[Any] = [*names] or [F.lit(0)]
        window = window_of(theirs).partitionBy(*by).orderBy("start", "end")
        few = marks.withColumn("n", F.row_number().over(window)).where(F.col("n") <= rows * _NEARBY).drop("n")
        right_of: dict[Key, dict[Mark, None]] = {}
        for *key, first, last in few.orderBy("start", "end").collect():
            right_of.setdefault(tuple(key), {})[Mark(first, last)] = None
        return right_of

    def build_lane(
        self, key: Key, left: Mapping[int, Mark], right: Mapping[Mark, None], pairs: set[tuple[int, Mark]]
    ) -> Lane:
        matched = sorted({mark for _, mark in pairs}, key=lambda m: (m.start, m.end or 0))
        theirs = list(dict.fromkeys([*matched, *right]))
        place, number = {mark: j for j, mark in enumerate(theirs)}, {row: i for i, row in enumerate(left)}
        ours, others, kept = match_marks(
            list(left.values()), theirs, sorted((number[row], place[mark]) for row, mark in pairs)
        )
        names = [self.sides.join.left.fields[k.left].name for k in self.sides.join.keys]
        reach = [self.reach_of(mark.start) for mark in ours]
        return Lane(
            name=", ".join(f"{name} {'NULL' if text is None else text}" for name, text in zip(names, key, strict=True)),
            left=ours,
            right=others,
            pairs=kept,
            reach=tuple(span for span in reach if span is not None),
            windows=self._windows([*ours, *others]),
        )

    def reach_of(self, place: float) -> Span | None:
        """Return the part of the axis that a left row may match; None where the rule has no limit to draw."""
        match = self.sides.join.match
        if isinstance(match, Within):
            return place + _or_infinite(match.lower, -1), place + _or_infinite(match.upper, 1)
        if isinstance(match, AsOf) and match.tolerance is not None:
            limit = float(match.tolerance)
            back, ahead = match.direction != "forward", match.direction != "backward"
            return place - limit * back, place + limit * ahead
        return None

    def _windows(self, marks: Sequence[Mark]) -> tuple[Span, ...]:
        match = self.sides.join.match
        if not isinstance(match, SameWindow) or not marks:
            return ()
        places = [mark.start for mark in marks]
        if match.kind == "session":
            return find_sessions(places, float(match.gap or 0))
        size = float(match.size or 0)
        slide = float(match.slide or match.size or 0)
        first, last = math.floor((min(places) - size) / slide) + 1, math.floor(max(places) / slide)
        # More would be a grey surface.
        return (
            tuple((n * slide, n * slide + size) for n in range(first, last + 1)) if last - first < _MOST_WINDOWS else ()
        )


def _or_infinite(amount: Amount | None, sign: int) -> float:
    return sign * math.inf if amount is None else float(amount)
