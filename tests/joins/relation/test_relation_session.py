"""What a relation does to the session: nothing; and what it keeps of a frame: everything."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import weft
from join_cases import DIRECTED, relation_of, rows_of
from weft import ArgumentError, JoinProjection, JoinSpec, MatchStats, SessionMismatchError
from weft.expr.spark.frames import functions_of
from weft.joins.relation import Relation
from weft.testing import T, assert_rows_equal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

LEFT = T("id | v \n 1 | a \n 2 | b")
RIGHT = T("id | w \n 1 | x \n 3 | z")


def unreadable(session: SparkSession, column: str) -> DataFrame:
    """Return a frame whose every row fails the job that reads it."""
    frame = session.sql("SELECT id, CAST(raise_error('a job has run') AS string) AS value FROM range(3)")
    return frame.withColumnRenamed("value", column)


def everything_but_running(left: Relation, right: Relation) -> None:
    """Build every join and ask every question that runs no job."""
    spec = JoinSpec([("id", "id"), ("v", "w")], relationship="1:1", unmatched="both")
    for how, method in DIRECTED.items():
        plain = spec if how in ("inner", "left", "right", "full") else JoinSpec([("v", "w")])
        project = JoinProjection(suffixes=("", "_r"))
        result = getattr(left, method)(right, plain, project=project, stats=MatchStats())
        weft.explain_join(result, file=io.StringIO())
        getattr(left, f"natural_{how}")(right, v="w")
    left.cross_join(right, suffixes=("", "_r"))
    weft.explain_join(left, right, spec, file=io.StringIO())
    weft.explain_join(left, right, how="full", file=io.StringIO())
    weft.build_join_spec(left, right, v="w")
    weft.inspect_keys(left, right, JoinSpec([("v", "w")]))
    left.filter("v = 'x'").select("v").rename(v="u").with_columns(t="LENGTH(u)").order_by("t").limit(1)
    left.union(left).distinct().repartition(2, "id").sample(0.5)
    str(left), repr(left)


def test_building_and_explaining_a_join_reads_no_row(any_spark: SparkSession) -> None:
    left, right = unreadable(any_spark, "v"), unreadable(any_spark, "w")
    everything_but_running(weft.relation(left), weft.relation(right))
    with pytest.raises(Exception, match="a job has run"):  # or the frames would prove nothing
        left.collect()


def test_building_and_explaining_a_join_starts_no_job(spark: SparkSession) -> None:
    context = spark.sparkContext
    left, right = relation_of(spark, LEFT), relation_of(spark, RIGHT)
    context.setJobGroup("weft-build", "the joins of this test")
    try:
        everything_but_running(left, right)
        assert context.statusTracker().getJobIdsForGroup("weft-build") == []
        left.natural_inner(right).df.collect()
        assert context.statusTracker().getJobIdsForGroup("weft-build")  # or the group would prove nothing
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None clears it


def settings(session: SparkSession) -> dict[str, str]:
    return dict(session.conf.getAll)


def test_nothing_in_the_session_changes(any_spark: SparkSession) -> None:
    before = settings(any_spark), [t.name for t in any_spark.catalog.listTables()]
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    everything_but_running(left, right)
    stats = MatchStats()
    left.left_outer(right, JoinSpec([("id", "id")], relationship="1:1"), stats=stats).df.collect()
    stats.get()
    weft.inspect_keys(left, right).df.collect()
    assert (settings(any_spark), [t.name for t in any_spark.catalog.listTables()]) == before


def test_relations_of_two_sessions_do_not_join(any_spark: SparkSession) -> None:
    other = any_spark.newSession()
    left, right = relation_of(any_spark, LEFT), relation_of(other, RIGHT)
    calls: list[Callable[[], Any]] = [
        lambda: left.natural_inner(right),
        lambda: left.inner_join(right, JoinSpec([("id", "id")])),
        lambda: left.cross_join(right),
        lambda: left.union(right),
        lambda: weft.inspect_keys(left, right),
    ]
    for call in calls:
        with pytest.raises(SessionMismatchError, match="different Spark sessions"):
            call()


def test_classic_and_connect_relations_do_not_join(spark: SparkSession, connect: SparkSession) -> None:
    with pytest.raises(SessionMismatchError):
        relation_of(spark, LEFT).natural_inner(relation_of(connect, RIGHT))
    with pytest.raises(SessionMismatchError):
        relation_of(connect, LEFT).natural_left(relation_of(spark, RIGHT))


def test_a_session_found_again_is_the_same_session(spark: SparkSession) -> None:
    from pyspark.sql import SparkSession

    again = SparkSession.getActiveSession()
    assert again is not None
    assert relation_of(spark, LEFT).natural_inner(relation_of(again, RIGHT)).df.count() == 1


def test_a_foreign_frame_may_be_counted_to_a_session(spark: SparkSession) -> None:
    batch = spark.newSession()
    left = relation_of(batch, LEFT)
    right = weft.relation(relation_of(spark, RIGHT).df, session=batch)
    assert left.natural_inner(right).df.count() == 1


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi"])
def test_the_metadata_of_columns_survives(any_spark: SparkSession, how: str) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    for name in ("id", "v"):
        left = weft.relation(left.df.withMetadata(name, {"comment": f"left {name}"}))
    right = weft.relation(right.df.withMetadata("w", {"comment": "right w"}))
    result = getattr(left, f"natural_{how}")(right, relationship="m:m" if how != "semi" else None)
    found = {f.name: f.metadata.get("comment") for f in result.df.schema.fields}
    expected = {"id": "left id", "v": "left v", **({} if how == "semi" else {"w": "right w"})}
    assert found == expected


@contextmanager
def no_broadcast_by_size(session: SparkSession) -> Iterator[None]:
    key = "spark.sql.autoBroadcastJoinThreshold"
    before = session.conf.get(key)
    session.conf.set(key, "-1")
    try:
        yield
    finally:
        session.conf.set(key, str(before))


@pytest.mark.parametrize(
    ("hint", "operator"), [("broadcast", "BroadcastHashJoin"), ("shuffle_hash", "ShuffledHashJoin")]
)
def test_a_join_hint_survives(
    any_spark: SparkSession, hint: str, operator: str, capsys: pytest.CaptureFixture[str]
) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    hinted = weft.relation(right.df.hint(hint))
    with no_broadcast_by_size(any_spark):
        for spec in (JoinSpec([("id", "id")]), JoinSpec([("id", "id")], relationship="m:1")):
            left.left_outer(right, spec).df.explain()
            assert "SortMergeJoin" in capsys.readouterr().out
            left.left_outer(hinted, spec).df.explain()
            assert operator in capsys.readouterr().out


def test_broadcast_of_the_functions_module_survives(
    any_spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    left, right = relation_of(any_spark, LEFT), relation_of(any_spark, RIGHT)
    small = weft.relation(functions_of(right.df).broadcast(right.df))
    with no_broadcast_by_size(any_spark):
        left.natural_left(small).df.explain()
    assert "BroadcastHashJoin" in capsys.readouterr().out


def stream(spark: SparkSession, folder: Path) -> Relation:
    folder.mkdir()
    rows = [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
    (folder / "rows.json").write_text("\n".join(map(json.dumps, rows)))
    return weft.relation(spark.readStream.schema("id bigint, v string").json(str(folder)))


def drained(spark: SparkSession, relation: Relation, name: str) -> list[Any]:
    query = relation.df.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(60)
        return rows_of(spark.table(name))
    finally:
        query.stop()
        spark.catalog.dropTempView(name)


def test_a_stream_joins_a_static_relation(spark: SparkSession, tmp_path: Path) -> None:
    source, static = stream(spark, tmp_path / "in"), relation_of(spark, RIGHT)
    inner = source.natural_inner(static)
    assert inner.df.isStreaming
    assert_rows_equal(drained(spark, inner, "weft_inner"), [(1, "a", "x")])
    left = source.natural_left(static, predicates=[weft.ExpressionPredicate("right.w <> 'q'")])
    assert_rows_equal(drained(spark, left, "weft_left"), [(1, "a", "x"), (2, "b", None)])


def test_a_promise_about_the_static_side_is_kept_on_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    source = stream(spark, tmp_path / "in")
    doubled = relation_of(spark, T("id | w \n 1 | x \n 1 | y"))
    result = source.natural_left(doubled, relationship="m:1")
    query = result.df.writeStream.format("memory").queryName("weft_m1").trigger(availableNow=True).start()
    try:
        with pytest.raises(Exception, match=r"\[JOIN_CONTRACT\] W0501") as caught:
            query.awaitTermination(60)
    finally:
        query.stop()
        spark.catalog.dropTempView("weft_m1")
    broken = weft.contract_failure(caught.value)
    assert broken is not None
    assert "id = 1" in broken.message


def test_match_stats_of_a_stream_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    source, static = stream(spark, tmp_path / "in"), relation_of(spark, RIGHT)
    with pytest.raises(ArgumentError, match="stream"):
        source.natural_inner(static, stats=MatchStats())


def test_what_a_stream_cannot_keep_is_refused_at_the_call(spark: SparkSession, tmp_path: Path) -> None:
    source, static = stream(spark, tmp_path / "in"), relation_of(spark, RIGHT)
    predicate = weft.ExpressionPredicate("right.w <> 'q'")
    refused: list[Callable[[], Any]] = [
        lambda: source.natural_left(static, relationship="1:m"),
        lambda: source.natural_left(static, relationship="1:1"),
        lambda: static.natural_inner(source, relationship="m:1"),
        lambda: source.natural_left(static, relationship="m:1", predicates=[predicate]),
        lambda: source.order_by("id"),
        lambda: source.check_sorted("id"),
    ]
    for call in refused:
        with pytest.raises(ArgumentError, match="stream") as caught:
            call()
        assert "foreachBatch" in caught.value.help
    assert source.natural_left(static, relationship="m:m").df.isStreaming
