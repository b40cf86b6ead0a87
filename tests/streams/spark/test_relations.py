"""Joins of streaming relations: Spark's own join gives the rows of batch, NULLs and all."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

import weft
from weft import AsofOrder, AsofSpec, IntervalSpec, JoinProjection, Relation, WindowSpec, explain_join
from weft.errors import StreamPlanError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

START = dt.datetime(2026, 1, 15, 10, tzinfo=dt.UTC)
SCHEMA = "k string, n int, t timestamp"
ORDER = AsofOrder(left="t", right="t")
KEYS = [("k", "k")]
LAST = 10**6
"""A minute after all others: rows at it move the watermark past all of them."""

Row = tuple[str | None, int, int | None]
# (key, number, seconds after START); the k-th list is the k-th file of the side.
LEFT: list[list[Row]] = [
    [("a", 1, 0), ("a", 2, 30), (None, 3, 5), ("b", 4, 100)],
    [("c", 5, 60), ("b", 6, 90), (None, 7, 65), ("a", 8, 119)],
    [("d", 9, 1000), ("a", 10, 600)],
    [("z", 0, LAST)],
]
RIGHT: list[list[Row]] = [
    [("a", 1, 60), ("a", 2, 0), (None, 3, 5)],
    [("b", 4, 160), ("b", 5, 161), ("e", 6, 61), (None, 7, 65)],
    [("d", 8, 940), ("d", 9, 939), ("a", 10, 1199)],
    [("y", 0, LAST)],
]


def written(folder: Path, files: list[list[Row]]) -> Path:
    """Write a side, one file for each batch; equal times of files would leave their order open."""
    folder.mkdir(parents=True)
    for number, rows in enumerate(files):
        lines = [{"k": k, "n": n, "t": None if s is None else _text(s)} for k, n, s in rows]
        file = folder / f"{number}.json"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        os.utime(file, (1000 + number, 1000 + number))
    return folder


def _text(seconds: float) -> str:
    return (START + dt.timedelta(seconds=seconds)).isoformat()


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def watched(spark: SparkSession, folder: Path) -> Relation:
    # No row is late: the whole of the test's time is within the delay.
    return weft.relation(stream(spark, folder).withWatermark("t", "30 minutes"))


def rows_of(relation: Relation, folder: Path) -> Counter[tuple[Any, ...]]:
    """Run the stream over all its files; rows of the last files are left out."""
    name = f"q{uuid4().hex}"
    query = (
        relation.df.writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(folder / name))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return _counted(relation.df.sparkSession.table(name).collect())


def _counted(rows: list[Any]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(r) for r in rows if not {"y", "z"} & set(r))


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    return written(tmp_path / "left", LEFT), written(tmp_path / "right", RIGHT)


def both(spark: SparkSession, sides: tuple[Path, Path]) -> tuple[Relation, Relation]:
    left, right = (weft.relation(spark.read.schema(SCHEMA).json(str(s))) for s in sides)
    return left, right


def joined(left: Relation, right: Relation, spec: IntervalSpec | WindowSpec) -> Relation:
    join = left.interval_join if isinstance(spec, IntervalSpec) else left.window_join
    return join(right, spec, suffixes=("", "_r"))  # type: ignore[arg-type]  # the method that fits


def interval(how: str, lower: str = "-1m", upper: str = "60s") -> IntervalSpec:
    return IntervalSpec(KEYS, order=ORDER, lower=lower, upper=upper, how=how)  # type: ignore[arg-type]


def window(kind: str, how: str, **more: Any) -> WindowSpec:
    return WindowSpec(KEYS, order=ORDER, window=kind, how=how, **more)  # type: ignore[arg-type]


SPECS: dict[str, IntervalSpec | WindowSpec] = {
    "interval full": interval("full"),
    "interval left": interval("left", "0s", "1m"),
    "interval right, before": interval("right", "-61s", "-1s"),
    "interval semi": interval("semi"),
    "interval anti": interval("anti"),
    "tumbling full": window("tumbling", "full", size="2m"),
    "tumbling anti": window("tumbling", "anti", size="2m"),
    "sliding left": window("sliding", "left", size="2m", slide="30s"),
    "sliding full, a row for each window": window("sliding", "full", size="2m", slide="30s", per_window=True),
}


@pytest.mark.parametrize("name", SPECS)
def test_a_stream_gives_the_rows_of_batch(
    spark: SparkSession, tmp_path: Path, sides: tuple[Path, Path], name: str
) -> None:
    spec = SPECS[name]
    left, right = (watched(spark, side) for side in sides)
    wanted = _counted(joined(*both(spark, sides), spec).df.collect())
    assert len(wanted) > 3, "a join of nothing tells nothing"
    assert rows_of(joined(left, right, spec), tmp_path) == wanted


def test_spark_alone_would_match_null_keys(spark: SparkSession, tmp_path: Path, sides: tuple[Path, Path]) -> None:
    """The defect that the guards are for; when this fails, Spark has changed and they may go."""
    from pyspark.sql import functions as F

    left = stream(spark, sides[0]).withWatermark("t", "30 minutes").toDF("lk", "ln", "lt")
    right = stream(spark, sides[1]).withWatermark("t", "30 minutes").toDF("rk", "rn", "rt")
    minute = F.lit(dt.timedelta(minutes=1))
    near = (F.col("rt") >= F.col("lt") - minute) & (F.col("rt") <= F.col("lt") + minute)
    by_hand = weft.relation(left.join(right, (F.col("lk") == F.col("rk")) & near, "full_outer"))
    assert any(r[0] is r[3] is None and r[1] and r[4] for r in rows_of(by_hand, tmp_path))


def test_null_keys_meet_where_the_join_says_so(spark: SparkSession, tmp_path: Path, sides: tuple[Path, Path]) -> None:
    spec = IntervalSpec(KEYS, order=ORDER, lower="-1m", upper="1m", how="full", nulls_equal=True)
    wanted = _counted(joined(*both(spark, sides), spec).df.collect())
    assert any(r[0] is None and r[3] is not None for r in wanted)
    left, right = (watched(spark, side) for side in sides)
    assert rows_of(joined(left, right, spec), tmp_path) == wanted


def test_rows_without_a_time_are_dropped_or_fail_the_query(spark: SparkSession, tmp_path: Path) -> None:
    left = written(tmp_path / "left", [[("a", 1, 0), ("b", 2, None)], [("z", 0, LAST)]])
    right = written(tmp_path / "right", [[("a", 1, 1), ("b", 3, None)], [("y", 0, LAST)]])
    sides = watched(spark, left), watched(spark, right)
    for spec in (interval("left"), window("tumbling", "left", size="1m")):
        join = sides[0].interval_join if isinstance(spec, IntervalSpec) else sides[0].window_join
        kept = join(sides[1], spec, suffixes=("", "_r"), on_null_time="drop")  # type: ignore[arg-type]
        assert [r[:2] for r in rows_of(kept, tmp_path)] == [("a", 1)]
    failing = sides[0].interval_join(sides[1], interval("left"), suffixes=("", "_r"))
    with pytest.raises(Exception, match="JOIN_CONTRACT") as caught:
        rows_of(failing, tmp_path)
    broken = weft.contract_failure(caught.value)
    assert broken is not None
    assert broken.code == "W2207"
    assert broken.message.startswith("a left row has no event time: k = 'b'")


def test_a_day_is_24_hours_where_the_clock_goes_back(spark: SparkSession, tmp_path: Path) -> None:
    """Spark adds days by the session's calendar: in the zone of this test that day has 25 hours."""
    began = dt.datetime(2026, 10, 24, 21, 0, tzinfo=dt.UTC)
    seconds = (began - START).total_seconds()
    day = 86_400
    left = written(tmp_path / "left", [[("a", 1, seconds)], [("z", 0, seconds + LAST)]])  # type: ignore[list-item]
    right = written(
        tmp_path / "right",
        [[("a", 1, seconds + day), ("a", 2, seconds + day + 1)], [("y", 0, seconds + LAST)]],  # type: ignore[list-item]
    )
    sides = watched(spark, left), watched(spark, right)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        inner = joined(*sides, interval("left", "1d", "1d"))
        found = rows_of(inner, tmp_path)
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    assert [(r[1], r[-2]) for r in found] == [(1, 1)]


def test_a_joined_stream_is_joined_again(spark: SparkSession, tmp_path: Path, sides: tuple[Path, Path]) -> None:
    """Each side of the second join has one watermark left: the one of its order column."""
    third = written(tmp_path / "third", [[("a", 1, 30)], [("b", 2, 200)], [("d", 3, 945)], [("x", 0, LAST)]])
    spec = interval("inner")

    def twice(left: Relation, right: Relation, more: Relation) -> Relation:
        first = left.interval_join(right, spec, suffixes=("", "_r"))
        return first.interval_join(more, spec, suffixes=("", "_m"))

    static = twice(*both(spark, sides), weft.relation(spark.read.schema(SCHEMA).json(str(third))))
    wanted = _counted(static.df.collect())
    assert wanted
    streams = [watched(spark, folder) for folder in (*sides, third)]
    assert rows_of(twice(*streams), tmp_path) == wanted


def test_explain_says_who_joins_and_why(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    left, right = (watched(spark, side) for side in sides)
    reported = str(explain_join(joined(left, right, interval("left", "-1m", "1h"))))
    assert "native: both sides are streams: Spark's symmetric hash join" in reported
    assert "a left row is kept until the watermark passes its time by 1h, a right row by 1m" in reported
    before = explain_join(left, right, interval("left", "-1m", "1h"), project=JoinProjection(suffixes=("", "_r")))
    assert before.strategy is not None
    assert before.strategy.strategy == "native"


def refusal(left: Relation, right: Relation, spec: IntervalSpec | WindowSpec) -> StreamPlanError:
    with pytest.raises(StreamPlanError) as caught:
        joined(left, right, spec)
    return caught.value


def test_what_two_streams_cannot_do_is_refused_at_the_call(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    left, right = (watched(spark, side) for side in sides)
    bare = weft.relation(stream(spark, sides[1]))
    session = refusal(left, right, window("session", "inner", gap="1m"))
    assert session.code == "W2118"
    assert "weft.streams.run" in (session.help or "")
    unwatched = refusal(left, bare, interval("inner"))
    assert unwatched.code == "W2117"
    assert "right.df.withWatermark('t', '30 seconds')" in (unwatched.help or "")
    keyless = IntervalSpec(order=ORDER, lower="0s", upper="1s")
    assert refusal(left, right, keyless).code == "W2101"
    half_open = IntervalSpec(KEYS, order=ORDER, lower="0s")
    assert "without upper bound" in refusal(left, right, half_open).message
    both_at_once = refusal(left, bare, IntervalSpec(order=ORDER, lower="0s"))
    assert [d.code for d in both_at_once.diagnostics] == ["W2101", "W2104", "W2117"]


def test_a_range_of_a_stream_is_refused(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    left, right = (watched(spark, side) for side in sides)
    ended = weft.relation(right.df.withColumn("until", right.df["t"]))
    ranges = IntervalSpec(KEYS, order=ORDER, right_end="until")
    assert refusal(left, ended, ranges).code == "W2118"


def test_a_stream_and_a_frame_keep_rows_of_the_stream_alone(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    left, frame = watched(spark, sides[0]), both(spark, sides)[1]
    assert joined(left, frame, interval("left")).df.isStreaming
    assert refusal(left, frame, interval("full")).code == "W2118"
    assert refusal(frame, left, interval("left")).code == "W2118"
    assert refusal(left, frame, window("session", "inner", gap="1m")).code == "W2118"


def test_an_as_of_join_of_a_stream_is_refused_at_the_call(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    streams, frames = [watched(spark, side) for side in sides], both(spark, sides)
    spec = AsofSpec(KEYS, order=ORDER)
    project = JoinProjection(suffixes=("", "_r"))
    for left, right, reported, help_ in (
        (streams[0], frames[1], "the left side is a stream", "foreachBatch"),
        (frames[0], streams[1], "the right side is a stream", "interval_join"),
        (streams[0], streams[1], "both sides are streams", "interval_join"),
    ):
        calls: list[Callable[[Relation, Relation], Relation]] = [
            lambda a, b: a.natural_asof(b, order=ORDER, keys=KEYS, exclude_shared=["n"], project=project),
            lambda a, b: a.asof_join(b, spec, project=project),
            lambda a, b: a.asof_join_all([(b, spec, project)]),
        ]
        for call in calls:
            with pytest.raises(StreamPlanError, match=reported) as caught:
                call(left, right)
            assert caught.value.code == "W2118"
            assert help_ in caught.value.help


def test_on_null_time_is_about_two_streams(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    left, right = both(spark, sides)
    with pytest.raises(weft.ArgumentError, match="two streams") as caught:
        left.interval_join(right, interval("left"), suffixes=("", "_r"), on_null_time="drop")
    assert caught.value.code == "W0305"
    streams = [watched(spark, side) for side in sides]
    with pytest.raises(weft.JoinSpecError, match="on_null_time"):
        streams[0].interval_join(streams[1], interval("left"), suffixes=("", "_r"), on_null_time="keep")  # type: ignore[arg-type]
