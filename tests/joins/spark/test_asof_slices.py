"""As-of joins cut by time: every key heavy, slices of a row or two, against the reference engine."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from join_cases import assert_schema_is_true, frame_of, rows_of
from near_joins import resolve_pack
from strategies import CASE, RandomJoin, expected, seeded_join, seeds
from weft import AsofOrder, AsofSpec, JoinProjection, Relation, WeftError, relation
from weft.joins.choose import ASOF
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.predicates import fold_order_conditions
from weft.joins.resolve.resolved import AsOf, ResolvedJoin
from weft.joins.spark import asof_slices, heavy_keys
from weft.joins.spark.asof_slices import SLICE
from weft.joins.spark.heavy_keys import CARRIED, Survey
from weft.joins.spark.sides import Sides
from weft.joins.spec import from_dict
from weft.testing import Table, assert_rows_equal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDER = AsofOrder("t", "u")


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into so many slices that a key of a few rows is heavy."""
    monkeypatch.setattr(heavy_keys, "PER_PARTITION", 100)


@pytest.fixture(params=["even", "at right rows"])
def thin(request: pytest.FixtureRequest, many: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """Cut into many slices: even ones that must be reported, or at right rows however uneven they get."""
    if request.param == "at right rows":
        _cut_at_right_rows(monkeypatch)


def _cut_at_right_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heavy_keys, "_RIGHTS_PER_CUT", 0)
    monkeypatch.setattr(heavy_keys, "_MOST_SHARES", 1 << 20)


@pytest.fixture(params=[name for name, _ in asof_slices.INNER])
def inner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Take one plan after the other for the joins of the slices; union where it refuses."""
    plans = dict(asof_slices.INNER)
    monkeypatch.setattr(asof_slices, "INNER", tuple((n, plans[n]) for n in dict.fromkeys((request.param, "union"))))
    name: str = request.param
    return name


def packs(count: int, *, keyless: bool = False, start: int = 0) -> list[tuple[RandomJoin, ResolvedJoin]]:
    """Return packs that resolve and that can be sliced; a keyless pack is one data set."""
    found: list[tuple[RandomJoin, ResolvedJoin]] = []
    seed = start
    while len(found) < len(seeds(count)):
        pack = seeded_join(seed, "asof", 1 if keyless else 20)
        seed += 1
        if keyless:
            pack = _without_keys(pack, random.Random(f"{seed}/keyless"))
        join = resolve_pack(pack, seed - 1)
        if join is not None and ASOF["slices"](fold_order_conditions(join)) is None:
            found.append((pack, join))
    return found


def _without_keys(pack: RandomJoin, rng: random.Random) -> RandomJoin:
    """Return the pack as one larger data set that no key divides."""

    def larger(table: Table) -> Table:
        return table.with_rows(row for s in range(4) for row in table.rows if s < 1 or rng.random() < 0.5)

    spec = {**pack.spec, "equal_keys": []}
    return replace(pack, spec=spec, left=larger(pack.left), right=larger(pack.right))


def check(session: SparkSession, pack: RandomJoin, join: ResolvedJoin, partitions: int | None = None) -> None:
    """Run a pack and compare."""
    frames = [frame_of(session, table) for table in (pack.left, pack.right)]
    if partitions is not None:
        frames = [f.repartition(partitions) for f in frames]
    left, right = map(relation, frames)
    spec: Any = from_dict(pack.spec)
    result = left.asof_join(
        right,
        spec,
        project=JoinProjection.from_dict(pack.project),
        strategy="slices",
        order_check="ignore",
    )
    rows = rows_of(result.df)
    try:
        assert_schema_is_true(result, rows)
        assert_rows_equal(rows, expected(join, pack), result.columns)
    except AssertionError as difference:
        raise AssertionError(f"{pack}\n{difference}") from difference


@pytest.mark.usefixtures("thin", "inner")
def test_slices_of_a_row_or_two_agree_with_the_reference(spark: SparkSession) -> None:
    for pack, join in packs(3):
        check(spark, pack, join)


@pytest.mark.usefixtures("thin", "inner")
def test_slices_without_a_key_agree_with_the_reference(spark: SparkSession) -> None:
    for pack, join in packs(3, keyless=True):
        check(spark, pack, join)


@pytest.mark.usefixtures("many")
def test_cuts_of_a_small_sample_agree_with_the_reference(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    _cut_at_right_rows(monkeypatch)
    monkeypatch.setattr(heavy_keys, "_SAMPLED_PER_SLICE", 0)
    monkeypatch.setattr(heavy_keys, "_LEAST_SAMPLED", 30)
    for pack, join in (*packs(2, start=300), *packs(2, keyless=True, start=300)):
        check(spark, pack, join, partitions=3)


@pytest.mark.usefixtures("thin")
def test_slices_agree_over_connect(connect: SparkSession) -> None:
    for pack, join in (*packs(1, start=100), *packs(1, keyless=True, start=100)):
        check(connect, pack, join)


@pytest.mark.usefixtures("thin")
@pytest.mark.parametrize("partitions", [1, 5])
def test_partitions_and_row_order_decide_nothing(spark: SparkSession, partitions: int) -> None:
    for pack, join in packs(1, start=200):
        check(spark, pack, join, partitions)


def numbers(session: SparkSession, rows: list[tuple[Any, ...]], schema: str) -> Relation:
    """Return rows as a relation."""
    return relation(session.createDataFrame(rows, schema))


def sliced(left: Relation, right: Relation, spec: AsofSpec) -> Sides:
    """Return the sides that the inner plan gets."""
    join = resolve_join(spec, left.schema, right.schema)
    assert isinstance(join.match, AsOf)
    return asof_slices.sliced_sides(Sides.of(left.df, right.df, join), join.match)


def test_only_heavy_keys_are_cut_and_equal_times_stay_together(spark: SparkSession) -> None:
    rows = [("A", i // 10, i) for i in range(300)] + [("B", i, i) for i in range(20)]
    left, right = (
        numbers(spark, rows, "k string, t long, a long"),
        numbers(spark, rows, "k string, u long, b long"),
    )
    spec = AsofSpec([("k", "k")], order=ORDER)
    sides = sliced(left, right, spec)
    found: dict[tuple[str, int], set[int]] = {}
    for row in sides.left.collect():
        found.setdefault((row[0], row[1]), set()).add(row[3])
    assert all(len(slices) == 1 for slices in found.values())
    assert {next(iter(s)) for (key, _), s in found.items() if key == "A"} == {0, 1, 2, 3}
    assert {next(iter(s)) for (key, _), s in found.items() if key == "B"} == {0}


def test_a_slice_without_right_rows_learns_of_the_last_one_before(spark: SparkSession) -> None:
    left = numbers(spark, [(i, i) for i in range(100)], "t long, a long")
    right = numbers(spark, [(5, 1), (5, 2), (95, 3)], "u long, b long")
    for direction, wanted in (
        ("backward", [None] * 5 + [2] * 90 + [3] * 5),
        ("forward", [2] * 6 + [3] * 90 + [None] * 4),
    ):
        spec = AsofSpec(order=ORDER, direction=direction)  # type: ignore[arg-type]  # a word of it
        result = left.asof_join(right, spec, strategy="slices", order_check="ignore")
        assert [row.b for row in sorted(result.df.collect(), key=lambda row: row.t)] == wanted


def test_shares_are_even_when_one_key_has_nearly_all_rows(spark: SparkSession) -> None:
    rng = random.Random(1)
    rows = [("A" if rng.random() < 0.95 else f"K{rng.randrange(100)}", rng.randrange(10**6), i) for i in range(20_000)]
    left, right = (
        numbers(spark, rows, "k string, t long, a long"),
        numbers(spark, rows, "k string, u long, b long"),
    )
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "8")
    try:
        sides = sliced(left, right, AsofSpec([("k", "k")], order=ORDER))
        counts = [row["count"] for row in sides.left.groupBy("__weft_l0", "__weft_l3").count().collect()]
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before or "2")
    assert max(counts) < 20_000 / 16 * 1.5


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
def test_shares_are_even_when_right_rows_are_apart(spark: SparkSession, direction: Any) -> None:
    left = relation(spark.range(1000, 3000).selectExpr("id t", "id a"))
    right = relation(spark.range(500, 1000).selectExpr("id u", "id b"))
    spec = AsofSpec(order=ORDER, direction=direction, tolerance="unbounded" if direction == "nearest" else None)
    slices = sliced(left, right, spec).left.groupBy("__weft_l2").count().collect()
    assert max(row["count"] for row in slices) < 700
    result = left.asof_join(right, spec, strategy="slices", order_check="ignore")
    assert {row.b for row in result.df.select("b").distinct().collect()} == {None if direction == "forward" else 999}


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
def test_nothing_is_reported_when_right_rows_are_at_the_cuts(spark: SparkSession, direction: Any) -> None:
    rows = [(i % 100, i) for i in range(600)]
    left, right = numbers(spark, rows, "t long, a long"), numbers(spark, rows, "u long, b long")
    spec = AsofSpec(order=ORDER, direction=direction, tolerance="unbounded" if direction == "nearest" else None)
    join = resolve_join(spec, left.schema, right.schema)
    assert isinstance(join.match, AsOf)
    heavy = Survey.of(Sides.of(left.df, right.df, join), join.match).table().collect()
    assert [row[CARRIED] for row in heavy] == [False]
    counted = sliced(left, right, spec).right.count()
    assert counted == (600 + 3 * 6 if direction == "nearest" else 600)


@pytest.mark.parametrize("direction", ["backward", "forward"])
def test_a_row_at_a_cut_that_may_not_take_an_equal_time_has_its_partner(spark: SparkSession, direction: Any) -> None:
    rows = [(i % 100, i) for i in range(600)]
    left, right = numbers(spark, rows, "t long, a long"), numbers(spark, rows, "u long, b long")
    spec = AsofSpec(order=ORDER, direction=direction, allow_exact_matches=False)
    result = left.asof_join(right, spec, strategy="slices", order_check="ignore")
    found = {(row.t, row.u) for row in result.df.select("t", "u").distinct().collect()}
    step = -1 if direction == "backward" else 1
    assert found == {(t, t + step if 0 <= t + step < 100 else None) for t in range(100)}


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
@pytest.mark.parametrize("present", ["left", "right"])
def test_a_heavy_key_may_be_on_one_side_alone(spark: SparkSession, direction: Any, present: str) -> None:
    alone, both = [("A", i, i) for i in range(300)], [("B", 5, 1)]
    left = numbers(spark, both + alone * (present == "left"), "k string, t long, a long")
    right = numbers(spark, both + alone * (present == "right"), "k string, u long, b long")
    spec = AsofSpec([("k", "k")], order=ORDER, direction=direction, tolerance=9)
    result = left.asof_join(right, spec, strategy="slices", order_check="ignore")
    assert [tuple(row) for row in result.df.filter("b IS NOT NULL").collect()] == [("B", 5, 1, 5, 1)]
    assert result.df.count() == (301 if present == "left" else 1)


def test_both_zeros_are_one_cut(spark: SparkSession) -> None:
    rights = [(-1.0, 1), *((0.0, 2), (-0.0, 2)) * 50, (float("nan"), 3)]
    lefts = [(-1.0, 1), *((-0.5, 1), (0.0, 2), (-0.0, 2)) * 50, (float("nan"), 3)]
    left, right = numbers(spark, lefts, "t double, a long"), numbers(spark, rights, "u double, b long")
    spec = AsofSpec(order=ORDER, direction="nearest", nearest_tie="forward", tolerance="unbounded")
    result = left.asof_join(right, spec, strategy="slices", order_check="ignore")
    assert sorted(row.b - (row.t == -0.5) for row in result.df.collect()) == sorted(row[1] for row in lefts)


def test_the_sample_does_not_depend_on_the_order_of_rows(spark: SparkSession) -> None:
    rows = [("A", i % 50, i) for i in range(500)]
    spec = AsofSpec([("k", "k")], order=ORDER)
    found = []
    for parts in (1, 4):
        random.Random(parts).shuffle(rows)
        df = spark.createDataFrame(rows, "k string, t long, a long").repartition(parts)
        other = df.withColumnRenamed("t", "u")
        join = resolve_join(
            spec, relation(df).schema, relation(other).schema, project=JoinProjection(suffixes=("", "_r"))
        )
        assert isinstance(join.match, AsOf)
        found.append(Survey.of(Sides.of(df, other, join), join.match).table().collect())
    assert found[0] == found[1]
    assert len(found[0]) == 1


def test_a_column_called_like_the_slice_is_an_ordinary_column(spark: SparkSession) -> None:
    left = numbers(spark, [(i, 7) for i in range(9)], f"t long, {SLICE} long")
    right = numbers(spark, [(4, 1)], "u long, b long")
    result = left.asof_join(right, AsofSpec(order=ORDER), strategy="slices", order_check="ignore")
    assert sorted((row.t, row[1], row.b) for row in result.df.collect())[4] == (4, 7, 1)


def test_a_second_time_axis_is_refused(spark: SparkSession) -> None:
    left = numbers(spark, [(1, 1)], "t long, a long")
    right = numbers(spark, [(1, 1)], "u long, v long")
    spec = AsofSpec(order=ORDER, known=AsofOrder("t", "v"))
    with pytest.raises(WeftError, match="slices plan refuses a second time axis") as caught:
        left.asof_join(right, spec, strategy="slices", order_check="ignore")
    assert caught.value.code == "W0109"


def test_case_is_not_a_key_of_a_keyless_pack() -> None:
    assert all(not join.keys and CASE in pack.left.schema for pack, join in packs(1, keyless=True))
