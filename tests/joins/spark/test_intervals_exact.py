"""Interval and window joins where exactness is hard: clocks without a zone, long tails, far bounds."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any, cast

import pytest

import weft
from join_cases import frame_of, relation_of, rows_of
from near_joins import joined
from weft.expr.spark.frames import functions_of
from weft.joins.spec.asof import AsofOrder
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.testing import T, assert_rows_equal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

HOWS = ("inner", "left", "right", "full", "semi", "anti")
SPARK_HOW = dict(zip(HOWS, ("inner", "left_outer", "right_outer", "full_outer", "left_semi", "left_anti"), strict=True))


@contextmanager
def zone(session: SparkSession, name: str) -> Iterator[None]:
    """Let the session live in another zone for a while."""
    before = session.conf.get("spark.sql.session.timeZone") or "UTC"
    session.conf.set("spark.sql.session.timeZone", name)
    try:
        yield
    finally:
        session.conf.set("spark.sql.session.timeZone", before)


# On 10 March 2024 New York's clocks skip 2:00 to 3:00, on 3 November they show 1:00 to 2:00 twice.
CLOCKS = T("""
    t: timestamp_ntz
    2024-03-10T01:30
    2024-03-10T02:30
    2024-11-03T00:30
    2024-11-03T01:30
""")
LATER = T("""
    s: timestamp_ntz
    2024-03-10T02:30
    2024-03-10T03:30
    2024-11-03T01:30
    2024-11-03T02:30
    2024-11-03T02:30:00.000001
""")
ORDER = AsofOrder("t", "s")


@pytest.mark.parametrize(
    "spec",
    [
        IntervalSpec(order=ORDER, lower="1h", upper="1h"),
        IntervalSpec(order=ORDER, lower="3599999999us", upper="3600000000us"),
        IntervalSpec(order=ORDER, lower="59m", upper="61m"),
    ],
    ids=["equal", "narrow", "wide"],
)
def test_a_clock_without_zone_has_no_gaps_whatever_the_zone_of_the_session(
    any_spark: SparkSession, spec: IntervalSpec
) -> None:
    with zone(any_spark, "America/New_York"):
        found = rows_of(joined(relation_of(any_spark, CLOCKS), relation_of(any_spark, LATER), spec).df)
    hour = dt.timedelta(hours=1)
    more = dt.timedelta(microseconds=1 if spec.upper == "61m" else 0)
    wanted = [(t, s) for (t,) in CLOCKS.rows for (s,) in LATER.rows if hour <= s - t <= hour + more]
    assert len(wanted) >= 4
    assert_rows_equal(found, wanted)


def test_ranges_and_windows_of_a_clock_without_zone(any_spark: SparkSession) -> None:
    ranges = T("""
        s: timestamp_ntz | e: timestamp_ntz
        2024-03-10T02:00 | 2024-03-10T03:00
        2024-11-03T01:30 | 2024-11-03T01:30:00.000001
    """)
    with zone(any_spark, "America/New_York"):
        left, right = relation_of(any_spark, CLOCKS), relation_of(any_spark, LATER)
        inside = rows_of(
            left.interval_join(relation_of(any_spark, ranges), IntervalSpec(order=ORDER, right_end="e")).df
        )
        hourly = rows_of(left.window_join(right, WindowSpec(order=ORDER, window="tumbling", size="1h")).df)
        bursts = rows_of(left.window_join(right, WindowSpec(order=ORDER, window="session", gap="1h")).df)
    times = [dt.datetime(2024, 3, 10, 2, 30), dt.datetime(2024, 11, 3, 1, 30)]  # noqa: DTZ001  # no zone is the point
    assert sorted(row[0] for row in inside) == times
    assert_rows_equal(hourly, [(t, t) for t in times])
    # March: 1:30, 2:30, 2:30, 3:30 are one burst; so are the five of November.
    assert Counter(t.month for t, _ in bursts) == {3: 4, 11: 6}


def test_times_with_a_zone_are_elapsed_time_across_a_change_of_clocks(any_spark: SparkSession) -> None:
    left = T("t\n2024-03-10T06:30:00Z")  # 1:30 in New York
    right = T("s\n2024-03-10T07:30:00Z\n2024-03-10T08:30:00Z")  # 3:30 and 4:30 there
    spec = IntervalSpec(order=ORDER, lower="1h", upper="119m")
    with zone(any_spark, "America/New_York"):
        found = joined(relation_of(any_spark, left), relation_of(any_spark, right), spec).df.count()
    assert found == 1


def tailed(rng: random.Random, count: int) -> list[tuple[Any, ...]]:
    """Return ranges of lengths from 0 to a million, few of them long, some open, empty or without a start."""
    rows = []
    for i in range(count):
        start = rng.choice((rng.randint(-500, 3000), rng.randint(0, 300_000)))
        end: int | None = start + int(10 ** (6 * rng.random() ** 3)) - 1
        if rng.random() < 0.05:
            end = rng.choice((None, 2**62, start - 1))
        rows.append((rng.choice((1, 1, 2, None)), None if rng.random() < 0.03 else start, end, i))
    return rows


def ranges(session: SparkSession, names: str, seed: int) -> DataFrame:
    schema = ", ".join(f"{n} {kind}" for n, kind in zip(names, ("int", "long", "long", "int"), strict=True))
    return session.createDataFrame(tailed(random.Random(seed), 150), schema)


def overlap(*, closed: bool) -> Column:
    from pyspark.sql import functions as F

    def before(one: str, other: str) -> Column:
        return F.col(other).isNull() | (F.col(one) <= F.col(other) if closed else F.col(one) < F.col(other))

    def holds(start: str, end: str) -> Column:
        return F.col(end).isNull() | (F.col(end) >= F.col(start) if closed else F.col(end) > F.col(start))

    valid = F.col("a").isNotNull() & F.col("c").isNotNull() & holds("a", "b") & holds("c", "d")
    return valid & before("a", "d") & before("c", "b")


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("closed", [False, True], ids=["half-open", "closed"])
def test_long_and_short_ranges_together_give_what_a_nested_loop_gives(
    spark: SparkSession,
    how: Any,
    closed: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    left, right = ranges(spark, "kabm", 1), ranges(spark, "jcdn", 2)
    order, numbers = AsofOrder("a", "c"), ["m"] if how in ("semi", "anti") else ["m", "n"]
    for keys in ([], [("k", "j")]):
        spec = IntervalSpec(keys, order=order, left_end="b", right_end="d", closed=closed, how=how)
        meets = overlap(closed=closed)
        condition = meets & (left["k"] == right["j"]) if keys else meets
        wanted = left.join(right, condition, SPARK_HOW[how]).select(*numbers)
        found = weft.relation(left).interval_join(weft.relation(right), spec).df.select(*numbers)
        assert Counter(map(tuple, found.collect())) == Counter(map(tuple, wanted.collect()))


@pytest.mark.parametrize("how", HOWS)
def test_times_in_long_and_short_ranges_give_what_a_nested_loop_gives(spark: SparkSession, how: Any) -> None:
    from pyspark.sql import functions as F

    left, right = ranges(spark, "kabm", 3), ranges(spark, "jcdn", 4)
    inside = overlap(closed=False)
    ends: tuple[tuple[str, dict[str, Any]], ...] = (("b", {"right_end": "d"}), ("d", {"left_end": "b"}))
    for point, other in ends:
        # Without its end a range is its start: give the nested loop [start, start + 1).
        as_time = F.col("a" if point == "b" else "c") + F.lit(1)
        one, two = (
            (left.withColumn(point, as_time), right) if point == "b" else (left, right.withColumn(point, as_time))
        )
        numbers = ["m"] if how in ("semi", "anti") else ["m", "n"]
        wanted = one.join(two, inside, SPARK_HOW[how]).select(*numbers)
        spec: Any = IntervalSpec(order=AsofOrder("a", "c"), how=how, **other)
        found = weft.relation(left).interval_join(weft.relation(right), spec).df.select(*numbers)
        assert Counter(map(tuple, found.collect())) == Counter(map(tuple, wanted.collect()))


@pytest.mark.parametrize("how", ["left", "right"])
def test_ranges_that_began_in_an_earlier_bin_are_met(spark: SparkSession, how: Any) -> None:
    """Short ranges without open ends fall into many bins, and some reach over the end of their bin."""
    starts, times = range(0, 4000, 8), range(0, 4000, 3)
    wanted = {(a, c) for a in starts for c in times if a <= c < a + 10}
    ranges = weft.relation(spark.createDataFrame([(a, a + 10) for a in starts], "a long, b long"))
    points = weft.relation(spark.createDataFrame([(c,) for c in times], "c long"))
    if how == "left":
        spec: Any = IntervalSpec(order=AsofOrder("a", "c"), left_end="b", how=how)
        found = ranges.interval_join(points, spec)
    else:
        spec = IntervalSpec(order=AsofOrder("c", "a"), right_end="b", how=how)
        found = points.interval_join(ranges, spec)
    assert {(row.a, row.c) for row in found.df.collect() if row.c is not None} == wanted


def test_the_long_tail_of_these_tests_needs_several_levels(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    from weft.joins.spark.bins import measure

    frame = ranges(spark, "kabm", 1).filter("b IS NULL OR b > a")
    lengths = frame.select(F.col("a").cast("double").alias("start"), F.col("b").cast("double").alias("end"))
    row = measure(cast("Any", F), lengths.withColumn("anchored", F.lit(True))).collect()[0].measured
    assert row.levels >= 2
    assert 0 < row.size < row.span


def test_a_measure_is_the_same_in_whatever_order_rows_are_read(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    from weft.joins.spark.bins import measure

    rng = random.Random(5)
    rows = [(x := rng.uniform(-1e6, 1e6), x + math.exp(rng.gauss(0, 8)), rng.random() < 0.5) for _ in range(500)]
    reported = set()
    for seed in range(4):
        rng.shuffle(rows)
        frame = spark.createDataFrame(rows, "start double, end double, anchored boolean").repartition(1 + seed)
        reported.add(tuple(measure(cast("Any", F), frame).collect()[0].measured))
    assert len(reported) == 1


FAR = (-math.inf, -1.7e308, -5e-324, 0.0, -0.0, 1e-300, 1.7e308, math.inf, math.nan, None)


def rank(number: float) -> float:
    """Return a number by which Spark's order is Python's: NaN last, no minus zero."""
    return math.inf if math.isnan(number) else 1.79e308 if number == math.inf else number


def test_numbers_at_the_ends_of_their_types_are_near_themselves(any_spark: SparkSession) -> None:
    left = weft.relation(any_spark.createDataFrame([(x,) for x in FAR], "t double"))
    right = weft.relation(any_spark.createDataFrame([(x,) for x in FAR], "s double"))
    found = left.interval_join(right, IntervalSpec(order=ORDER, lower=-1, upper=1, how="full")).df
    # Four numbers around zero are near each other, five far ones near themselves; NULL is alone on both sides.
    assert found.count() == 4 * 4 + 5 + 2


@pytest.mark.parametrize("how", ["inner", "right"])
def test_ranges_between_the_ends_of_their_types(any_spark: SparkSession, how: Any) -> None:
    left = weft.relation(any_spark.createDataFrame([(x,) for x in FAR], "t double"))
    pairs = [(a, b) for a in FAR for b in FAR]
    right = weft.relation(any_spark.createDataFrame(pairs, "s double, e double"))
    found = left.interval_join(right, IntervalSpec(order=ORDER, right_end="e", how=how)).df
    held = [
        sum(a is not None and t is not None and rank(a) <= rank(t) and (b is None or rank(t) < rank(b)) for t in FAR)
        for a, b in pairs
    ]
    assert found.count() == sum(n if how == "inner" else max(n, 1) for n in held)


@pytest.mark.parametrize(
    "given",
    [
        {"window": "tumbling", "size": "7s"},
        {"window": "sliding", "size": "7s", "slide": "3s"},
        {"window": "session", "gap": "1us"},
    ],
    ids=lambda given: given["window"],
)
def test_times_at_the_ends_of_the_calendar_fall_into_windows(any_spark: SparkSession, given: dict[str, Any]) -> None:
    F = functions_of(any_spark.range(1))
    times = [(-(2**63),), (1 - 2**63,), (0,), (2**63 - 1,)]
    frame = any_spark.createDataFrame(times, "u long").withColumn("t", F.timestamp_micros("u"))
    left, right = weft.relation(frame), weft.relation(frame.toDF("w", "s"))
    result = left.window_join(right, WindowSpec(order=ORDER, **given)).select("u", "w")
    # The first two are in one window; all others are alone in theirs.
    assert result.df.count() == 2 * 2 + 1 + 1


def test_decimals_of_every_width_are_compared_exactly(any_spark: SparkSession) -> None:
    for precision, scale in ((9, 2), (18, 9), (36, 10), (37, 3), (38, 6), (38, 7), (38, 18), (38, 35)):
        step = f"0.{'0' * (scale - 1)}1"
        base = "9" * min(precision - scale, 20)
        rows = [f"{base}.{'9' * scale}", f"-{base}.{'9' * scale}", "0", step, f"-{step}"]
        table = T(f"t: decimal({precision},{scale})\n" + "\n".join(rows))
        other = T(f"s: decimal({precision},{scale})\n" + "\n".join(rows))
        spec = IntervalSpec(order=ORDER, lower=f"-{step}", upper=step)
        left, right = (weft.relation(frame_of(any_spark, x)) for x in (table, other))
        found = rows_of(left.interval_join(right, spec).df)
        with localcontext() as context:
            context.prec = 80
            wanted = [(t, s) for (t,) in table.rows for (s,) in other.rows if abs(s - t) <= Decimal(step)]
        assert_rows_equal(found, wanted)
