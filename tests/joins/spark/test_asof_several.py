"""Several as-of joins at once give what a chain of them gives, in one shuffle."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from join_cases import assert_schema_is_true, frame_of, rows_of
from strategies import RandomJoin, seeded_join, seeds
from weft import (
    ArgumentError,
    AsofOrder,
    AsofSpec,
    JoinProjection,
    Relation,
    WeftError,
    explain_join,
    relation,
)
from weft.joins.several import Part, resolve_several
from weft.joins.spec import from_dict
from weft.testing import T, assert_rows_equal, reference_join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ORDER = AsofOrder("t", "u")
KEYS = [("k", "k")]
TRADES = T("k | t: long | q \n A | 3 | 1 \n A | 6 | 2 \n B | 4 | 3 \n  | 5 | 4 \n A |  | 5")
QUOTES = T("k | u: long | bid \n A | 1 | 9 \n A | 6 | 11 \n B | 5 | 14")
RATES = T("k | u: long | rate \n A | 2 | 20 \n A | 7 | 21 \n B | 9 | 22 \n  | 5 | 23")


def of(session: SparkSession, table: Any) -> Relation:
    """Return a table as a relation."""
    return relation(frame_of(session, table))


def suffixed(number: int) -> JoinProjection:
    """Return names that no other part takes."""
    return JoinProjection(suffixes=("", f"_{number}"), indicator=f"side of part {number}")


def varied(rng: random.Random, spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec with other options; keys and order columns stay."""
    backward = "known" in spec or "until" in spec
    direction = "backward" if backward else rng.choice(("backward", "forward", "nearest"))
    tolerance = spec.get("tolerance") if rng.random() < 0.5 else None
    return {
        **{k: v for k, v in spec.items() if k not in ("range_predicates", "tolerance")},
        "direction": direction,
        "tolerance": tolerance or ("unbounded" if direction == "nearest" else None),
        "allow_exact_matches": rng.random() < 0.6,
        "nearest_tie": rng.choice(("backward", "forward")),
        "how": rng.choice(("left", "left", "inner")),
        "tie_break": () if rng.random() < 0.5 else spec.get("tie_break", ()),
    }


def packs(count: int, start: int = 0) -> Iterator[tuple[RandomJoin, list[Any], tuple[Part, ...]]]:
    """Yield packs with two or three specs each that one plan serves."""
    found, seed = 0, start
    while found < len(seeds(count)):
        pack, rng = seeded_join(seed, "asof", 20), random.Random(f"{seed}/several")
        seed += 1
        given = [pack.spec, *(varied(rng, pack.spec) for _ in range(rng.choice((1, 1, 2))))]
        specs: list[Any] = [from_dict(spec) for spec in given]
        asked = [(spec, pack.right.schema, suffixed(n)) for n, spec in enumerate(specs, start=1)]
        try:
            parts = resolve_several(pack.left.schema, asked)
        except WeftError as error:
            assert error.code in ("W0103", "W0106", "W0130", "W0307"), f"seed {seed - 1}: {error}"
            continue
        found += 1
        yield pack, specs, parts


def expected(pack: RandomJoin, parts: tuple[Part, ...]) -> list[tuple[Any, ...]]:
    """Return the rows of the reference engine, one join after another."""
    rows: list[tuple[Any, ...]] = []
    for number in range(pack.datasets):
        lefts, rights = ([r for r in t.rows if r[0] == number] for t in (pack.left, pack.right))
        for part in parts:
            lefts = reference_join(part.chained, lefts, rights)
        rows += lefts
    return rows


def check(
    session: SparkSession,
    pack: RandomJoin,
    specs: list[Any],
    parts: tuple[Part, ...],
    split: int | None = None,
) -> None:
    """Run a pack and compare."""
    frames = [frame_of(session, table) for table in (pack.left, pack.right)]
    left, right = (relation(f if split is None else f.repartition(split)) for f in frames)
    asked = [(right, spec, suffixed(n)) for n, spec in enumerate(specs, start=1)]
    result = left.asof_join_all(asked, order_check="ignore")
    rows = rows_of(result.df)
    try:
        assert_schema_is_true(result, rows)
        assert_rows_equal(rows, expected(pack, parts), result.columns)
    except AssertionError as difference:
        reported = "\n".join(map(str, specs))
        raise AssertionError(f"{pack}\n{reported}\n{difference}") from difference


def test_random_parts_agree_with_the_reference_chained(spark: SparkSession) -> None:
    for pack, specs, parts in packs(10):
        check(spark, pack, specs, parts)


def test_random_parts_agree_over_connect(connect: SparkSession) -> None:
    for pack, specs, parts in packs(2, start=100):
        check(connect, pack, specs, parts)


@pytest.mark.parametrize("split", [1, 5])
def test_partitions_and_row_order_decide_nothing(spark: SparkSession, split: int) -> None:
    for pack, specs, parts in packs(2, start=200):
        check(spark, pack, specs, parts, split)


def test_a_chain_by_hand_gives_the_same_rows(any_spark: SparkSession) -> None:
    left, quotes, rates = of(any_spark, TRADES), of(any_spark, QUOTES), of(any_spark, RATES)
    first = AsofSpec(KEYS, order=ORDER)
    second = AsofSpec(KEYS, order=ORDER, direction="forward", nulls_equal=True, how="inner")
    names = JoinProjection(suffixes=("", "_rate"))
    chained = left.asof_join(quotes, first, order_check="ignore").asof_join(
        rates, second, project=names, order_check="ignore"
    )
    result = left.asof_join_all([(quotes, first), (rates, second, names)], order_check="ignore")
    assert result.columns == chained.columns == ("k", "t", "q", "u", "bid", "u_rate", "rate")
    assert result.schema == chained.schema
    assert_rows_equal(rows_of(result.df), rows_of(chained.df), result.columns)
    assert sorted(rows_of(result.df), key=lambda row: row[2]) == [
        ("A", 3, 1, 1, 9, 7, 21),
        ("A", 6, 2, 6, 11, 7, 21),
        ("B", 4, 3, None, None, 9, 22),
        (None, 5, 4, None, None, 5, 23),
    ]


def test_one_relation_may_be_every_side(any_spark: SparkSession) -> None:
    table = of(any_spark, QUOTES)
    spec = AsofSpec(KEYS, order=AsofOrder("u", "u"), allow_exact_matches=False)
    result = table.asof_join_all(
        [
            (table, spec, JoinProjection(suffixes=("", "_1"))),
            (table, spec, JoinProjection(suffixes=("", "_2"))),
        ],
        order_check="ignore",
    )
    assert ("A", 6, 11, 1, 9, 1, 9) in rows_of(result.df)


def test_a_promise_about_unmatched_rows_is_kept(spark: SparkSession) -> None:
    from weft import contract_failure

    left, quotes, rates = of(spark, TRADES), of(spark, QUOTES), of(spark, RATES)
    strict = AsofSpec(KEYS, order=ORDER, unmatched="error")
    names = JoinProjection(suffixes=("", "_rate"))
    result = left.asof_join_all([(quotes, AsofSpec(KEYS, order=ORDER)), (rates, strict, names)], order_check="ignore")
    with pytest.raises(Exception, match="W0502") as caught:
        result.df.collect()
    broken = contract_failure(caught.value)
    assert broken is not None
    assert broken.code == "W0502"


def shuffles(result: Relation) -> int:
    """Return how often rows are exchanged."""
    plan: Any = result.df
    text: str = plan._jdf.queryExecution().executedPlan().toString()
    return text.rsplit("Initial Plan", maxsplit=1)[-1].count("Exchange ")


@pytest.mark.parametrize("direction", ["backward", "forward"])
def test_all_parts_share_one_shuffle(spark: SparkSession, direction: Any) -> None:
    left, quotes, rates = of(spark, TRADES), of(spark, QUOTES), of(spark, RATES)
    parts: Any = [
        (quotes, AsofSpec(KEYS, order=ORDER)),
        (rates, AsofSpec(KEYS, order=ORDER, direction=direction), JoinProjection(suffixes=("", "_rate"))),
    ]
    assert shuffles(left.asof_join_all(parts, order_check="ignore")) == 1


def test_building_the_joins_starts_no_job(spark: SparkSession) -> None:
    context = spark.sparkContext
    left, quotes = of(spark, TRADES), of(spark, QUOTES)
    context.setJobGroup("weft-several", "the joins of this test")
    try:
        left.asof_join_all([(quotes, AsofSpec(KEYS, order=ORDER))], order_check="ignore")
        assert context.statusTracker().getJobIdsForGroup("weft-several") == []
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None clears it


def test_the_result_explains_all_parts(any_spark: SparkSession) -> None:
    left, quotes, rates = of(any_spark, TRADES), of(any_spark, QUOTES), of(any_spark, RATES)
    spec = AsofSpec(KEYS, order=ORDER)
    result = left.asof_join_all([(quotes, spec), (rates, spec, suffixed(2))], order_check="ignore")
    reported = explain_join(result)
    assert reported.title == "as-of joins of 2 right sides"
    assert reported.strategy is not None
    assert reported.strategy.strategy == "union"
    assert ("u_2", "long", "right 2.u") in {row[:3] for row in reported.columns}


@pytest.mark.parametrize(
    ("parts", "reported"),
    [
        ([], "takes a sequence of parts, not an empty sequence"),
        ("quotes", "takes a sequence of parts, not str"),
        ([1], "part 1 must be a tuple of a relation and an AsofSpec, not int"),
        ([(1, 2, 3, 4)], "part 1 must be a tuple of a relation and an AsofSpec, not a tuple of 4"),
    ],
)
def test_what_is_not_a_part_is_reported(spark: SparkSession, parts: Any, reported: str) -> None:
    with pytest.raises(ArgumentError, match=reported):
        of(spark, TRADES).asof_join_all(parts)


def test_what_is_not_a_relation_or_spec_is_reported_with_its_part(spark: SparkSession) -> None:
    left, quotes = of(spark, TRADES), of(spark, QUOTES)
    spec = AsofSpec(KEYS, order=ORDER)
    bad: Any = [(quotes, spec), (quotes.df, spec)]
    with pytest.raises(ArgumentError, match="part 2 takes a Relation, not DataFrame"):
        left.asof_join_all(bad)
    bad = [(quotes, KEYS)]
    with pytest.raises(ArgumentError, match="part 1 takes an AsofSpec, not list"):
        left.asof_join_all(bad)
