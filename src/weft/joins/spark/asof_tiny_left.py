"""As-of with a tiny left side that is broadcast: it filters the right side down to possible matches.

Before::

    left ASOF right  keys k, order (t, u), backward

After::

    left ASOF (
        right SEMI JOIN (
            SELECT k, max(u) AS u
            FROM right r JOIN (SELECT k, array(DISTINCT t) AS times FROM left GROUP BY k) l ON r.k = l.k
            GROUP BY k, count(times < u)
        ) ON k, u
    )  -- by union

Between two neighbouring left times only the latest right time can be a backward match, and only the
earliest a forward match.  Those times come from a search in the left times and an aggregate, in
which each task sends at most one row per left time.  The union plan gets only the right rows at
those times, ties included, and does the rest.  A right row that cannot match is not shuffled.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from weft.core.names import RIGHT, internal_name
from weft.joins.resolve.resolved import AsOf
from weft.joins.spark import asof_union
from weft.joins.spark.asof_broadcast import count_before, key_names, look_up
from weft.joins.spark.chosen import can_match
from weft.joins.spark.order import Axis
from weft.joins.spark.sides import Sides

_TIME, _TIMES, _COUNT, _PLACE = "__weft_time", "__weft_times", "__weft_count", "__weft_place"
_KEPT, _HELD, _ANSWER = "__weft_kept", "__weft_held", "__weft_answer"


def lower(sides: Sides, match: AsOf) -> DataFrame:
    """Return the joined rows under positional names; no job runs."""
    return asof_union.lower(replace(sides, right=_answers(sides, match)), match)


def _answers(sides: Sides, match: AsOf) -> DataFrame:
    """Return the right rows whose key and time can be a match of a left row."""
    F = sides.F
    right = sides.right.filter(can_match(sides, match, "right"))
    times = F.broadcast(_answer_times(sides, match, right))
    met = Axis.of(sides, match).right == F.col(_ANSWER)
    for name, key in zip(key_names(len(sides.join.keys)), sides.keys("right"), strict=True):
        met = met & sides.equal(key, F.col(name))
    return right.join(times, met, "left_semi")


def _answer_times(sides: Sides, match: AsOf, right: DataFrame) -> DataFrame:
    """Return key and time of every possible match: the latest or earliest between two left times."""
    F = sides.F
    kept = [f"{_KEPT}{n}" for n in range(len(sides.join.keys))]
    held = [f"{_HELD}{n}" for n in range(len(match.skip_nulls))]
    rows = right.select(
        *(key.alias(name) for key, name in zip(sides.keys("right"), kept, strict=True)),
        Axis.of(sides, match).right.alias(_TIME),
        *(
            F.col(internal_name(RIGHT, i)).isNotNull().alias(name)
            for i, name in zip(match.skip_nulls, held, strict=True)
        ),
    )
    placed = look_up(
        F, rows, [F.col(name) for name in kept], _left_times(sides, match), nulls_equal=sides.join.nulls_equal
    )
    placed = count_before(F, placed, _COUNT, values=_TIMES, at=_TIME, inclusive=False)
    following = F.get(F.col(_TIMES), F.col(_COUNT))
    exact = F.coalesce(following == F.col(_TIME), F.lit(False))
    # Right rows after the last left time, or before the first one, match nothing.
    if match.direction == "backward":
        placed = placed.filter(following.isNotNull())
    if match.direction == "forward":
        placed = placed.filter((F.col(_COUNT) > F.lit(0)) | exact)
    # Even numbers are the stretches between left times, odd ones the left times themselves.
    place = F.col(_COUNT) * F.lit(2) + exact.cast("int")
    times = [F.col(_TIME), *(F.when(F.col(name), F.col(_TIME)) for name in held)]
    best = [F.max(value) for value in times] if match.direction != "forward" else []
    best += [F.min(value) for value in times] if match.direction != "backward" else []
    answers = placed.withColumn(_PLACE, place).groupBy(*kept, _PLACE).agg(F.array(*best).alias(_ANSWER))
    names = zip(kept, key_names(len(kept)), strict=True)
    return answers.select(*(F.col(a).alias(b) for a, b in names), F.explode(_ANSWER).alias(_ANSWER))


def _left_times(sides: Sides, match: AsOf) -> DataFrame:
    """Return for each key the times of its left rows, ascending."""
    F = sides.F
    names = key_names(len(sides.join.keys))
    rows = sides.left.filter(can_match(sides, match, "left")).select(
        *(key.alias(name) for key, name in zip(sides.keys("left"), names, strict=True)),
        Axis.of(sides, match).left.alias(_TIME),
    )
    # A set: equal times have equal answers, and a search needs each of them once.
    return rows.groupBy(*names).agg(F.sort_array(F.collect_set(_TIME)).alias(_TIMES))
