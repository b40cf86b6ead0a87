"""Match counts and pictures of joins: they agree with the reference engine for every kind of join."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

import weft
from join_cases import relation_of
from test_docs import ROOT, blocks
from weft import ArgumentError, AsofOrder, AsofSpec, IntervalSpec, JoinSpec, WindowSpec, inspect_matches
from weft.joins.facts import MatchCounts
from weft.joins.resolve.join import resolve_join
from weft.joins.spark.matches import collect_timeline
from weft.joins.spec.projection import JoinProjection
from weft.testing import T, Table
from weft.testing.reference import matching_pairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDER = AsofOrder("t", "t")
RANGES = AsofOrder("t", "t")
KEYS = [("k", "k")]
SPECS: dict[str, Any] = {
    "keys": JoinSpec(KEYS),
    "null keys": JoinSpec(KEYS, nulls_equal=True),
    "backward": AsofSpec(KEYS, order=ORDER),
    "tolerance": AsofSpec(KEYS, order=ORDER, tolerance="10 minutes", how="inner"),
    "nearest": AsofSpec(KEYS, order=ORDER, direction="nearest", tolerance="20 minutes"),
    "no key": AsofSpec(order=ORDER, direction="forward"),
    "skip nulls": AsofSpec(KEYS, order=ORDER, skip_nulls=["v"]),
    "broken promise": AsofSpec(KEYS, order=ORDER, tolerance="1 second", unmatched="error"),
    "bounds": IntervalSpec(KEYS, order=ORDER, lower="-15 minutes", upper="5 minutes"),
    "open": IntervalSpec(KEYS, order=ORDER, lower="0s", how="full"),
    "in range": IntervalSpec(KEYS, order=RANGES, right_end="e"),
    "overlap": IntervalSpec(KEYS, order=RANGES, left_end="e", right_end="e", closed=True),
    "tumbling": WindowSpec(KEYS, order=ORDER, window="tumbling", size="30 minutes"),
    "sliding": WindowSpec(KEYS, order=ORDER, window="sliding", size="30 minutes", slide="10 minutes", per_window=True),
    "session": WindowSpec(KEYS, order=ORDER, window="session", gap="6 minutes"),
}


def tables(seed: int = 7) -> tuple[Table, Table]:
    def side(rows: int, values: random.Random) -> Table:
        lines = []
        for n in range(rows):
            start, length = values.randrange(0, 100), values.randrange(0, 30)
            time = "" if values.random() < 0.1 else f"{10 + start // 60}:{start % 60:02}"
            end = "" if values.random() < 0.2 else f"{10 + (start + length) // 60}:{(start + length) % 60:02}"
            lines.append(f"{values.choice(['a', 'b', '', 'c'])} | {time} | {end} | {n if n % 3 else ''}")
        return T("k: string | t: timestamp | e: timestamp | v: long\n" + "\n".join(lines))

    values = random.Random(seed)
    return side(14, values), side(18, values)


def reference_pairs(spec: Any, left: Table, right: Table) -> set[tuple[int, int]]:
    project = JoinProjection(suffixes=("", "_r"))
    join = resolve_join(spec, left.schema, right.schema, how=None, project=project)
    return set(matching_pairs(join, left.rows, right.rows))


@pytest.mark.parametrize("name", SPECS)
def test_counts_are_those_of_the_reference(any_spark: SparkSession, name: str) -> None:
    ours, theirs = tables()
    counts = inspect_matches(relation_of(any_spark, ours), relation_of(any_spark, theirs), SPECS[name])
    pairs = reference_pairs(SPECS[name], ours, theirs)
    left, right = [i for i, _ in pairs], [j for _, j in pairs]
    assert counts == MatchCounts(
        left_rows=len(ours.rows),
        right_rows=len(theirs.rows),
        pairs=len(pairs),
        left_matched=len(set(left)),
        right_matched=len(set(right)),
        most_for_left=max(map(left.count, left), default=0),
        most_for_right=max(map(right.count, right), default=0),
    )
    assert pairs or name == "broken promise"


@pytest.mark.parametrize("name", [n for n, spec in SPECS.items() if not isinstance(spec, JoinSpec) or n != "keys"])
def test_a_picture_has_the_pairs_of_the_reference(spark: SparkSession, name: str) -> None:
    spec = SPECS[name]
    if type(spec) is JoinSpec:
        return
    ours, theirs = tables()
    left, right = relation_of(spark, ours), relation_of(spark, theirs)
    join = resolve_join(spec, left.schema, right.schema, how=None, project=JoinProjection(suffixes=("", "_r")))
    timeline = collect_timeline(left.df, right.df, join, "t", keys=10, rows=50)
    pairs = reference_pairs(spec, ours, theirs)

    def times(table: Table, row: int) -> Any:
        return table.rows[row][1].timestamp() * 1e6

    wanted = sorted((times(ours, i), times(theirs, j)) for i, j in pairs)
    # Right rows of one key with equal times and ends are one mark.
    drawn = {(lane.left[i].start, lane.right[j].start) for lane in timeline.lanes for i, j in lane.pairs}
    assert drawn == set(wanted)
    marks = [m.matched for lane in timeline.lanes for m in lane.left]
    assert (len(marks), sum(marks)) == (sum(row[1] is not None for row in ours.rows), len({i for i, _ in pairs}))


def test_keys_and_rows_limit_what_is_drawn_and_not_what_matches(spark: SparkSession) -> None:
    left = relation_of(spark, T("k | t: timestamp \n b | 10:00 \n a | 10:00 \n a | 10:10 \n a | 10:20 \n c | 10:00"))
    right = relation_of(spark, T("k | t: timestamp | v \n a | 08:00 | 1 \n a | 10:15 | 2 \n b | 10:30 | 3"))
    joined = left.asof_join(right, AsofSpec(KEYS, order=ORDER), suffixes=("", "_r"))
    picture = joined.plot_matches(keys=2, rows=2)
    assert ": 3 left.t rows, 1 right.t rows, 2 matches, 1 left.t rows without a match" in picture.title
    svg = picture.to_svg()
    assert "k a<" in svg
    assert "k b<" in svg
    assert "k c<" not in svg
    assert ": 1 left.t rows" in joined.plot_matches("k = 'c'").title


def test_a_session_depends_on_rows_that_are_not_drawn(spark: SparkSession) -> None:
    left = relation_of(spark, T("k | t: timestamp \n a | 10:00 \n a | 10:05 \n a | 10:10"))
    right = relation_of(spark, T("k | t: timestamp | v \n a | 10:14 | 1"))
    spec = WindowSpec(KEYS, order=ORDER, window="session", gap="6 minutes")
    joined = left.window_join(right, spec, suffixes=("", "_r"))
    assert ": 1 left.t rows, 1 right.t rows, 1 matches" in joined.plot_matches(rows=1).title


@pytest.mark.parametrize("dtype", ["date", "long", "double", "decimal(10,2)", "timestamp_ntz"])
def test_every_kind_of_order_column_is_drawn(spark: SparkSession, dtype: str) -> None:
    values = ("2026-01-15", "2026-01-17") if dtype in ("date", "timestamp_ntz") else ("1", "3")
    sides = [
        weft.relation(spark.sql(f"SELECT 'a' AS k, CAST('{v}' AS {dtype}) AS t, {n} AS {name}"))
        for (n, name), v in zip(((1, "x"), (2, "y")), reversed(values), strict=True)
    ]
    picture = sides[0].asof_join(sides[1], AsofSpec(KEYS, order=ORDER), suffixes=("", "_r")).plot_matches()
    assert "1 matches, 0 left.t rows without" in picture.title
    assert ("01-16" in picture.to_svg()) == (dtype in ("date", "timestamp_ntz"))


def test_no_row_is_a_picture_too(spark: SparkSession) -> None:
    left = relation_of(spark, T("k | t: timestamp \n a | 10:00"))
    right = relation_of(spark, T("k | t: timestamp | v \n a | 10:14 | 1"))
    joined = left.asof_join(right, AsofSpec(KEYS, order=ORDER), suffixes=("", "_r"))
    assert ": 0 left.t rows" in joined.plot_matches("k = 'z'").title
    counts = inspect_matches(left.filter("k = 'z'"), right.filter("k = 'z'"), AsofSpec(KEYS, order=ORDER))
    assert (counts.left_rows, counts.pairs, counts.match_rate) == (0, 0, 1.0)


def test_what_cannot_be_drawn_is_refused(spark: SparkSession) -> None:
    left = relation_of(spark, T("k | t: timestamp \n a | 10:00"))
    right = relation_of(spark, T("k | u: timestamp \n a | 10:00"))
    with pytest.raises(ArgumentError, match="compares keys only"):
        left.natural_inner(right).plot_matches()
    with pytest.raises(ArgumentError, match="not the result of one join"):
        left.plot_matches()
    joined = left.asof_join(right, AsofSpec(KEYS, order=AsofOrder("t", "u")))
    with pytest.raises(ArgumentError, match="integer of 1 or more"):
        joined.plot_matches(keys=0)
    with pytest.raises(weft.WeftError, match="unknown column 'nothing'"):
        joined.plot_matches("nothing = 1")
    with pytest.raises(ArgumentError, match="takes a JoinSpec"):
        inspect_matches(left, right, "k")  # type: ignore[arg-type]


def test_the_natural_join_is_counted_without_a_spec(spark: SparkSession) -> None:
    left = relation_of(spark, T("k | x \n a | 1 \n b | 2"))
    right = relation_of(spark, T("k | y \n a | 1 \n a | 2"))
    assert str(inspect_matches(left, right)) == (
        "1 of 2 left rows match (50.0 %), 2 of 2 right rows match (100 %)\n"
        "2 pairs: at most 2 for a left row and 1 for a right row"
    )


@pytest.mark.golden
def test_the_picture_of_the_readme_is_that_of_its_first_example(
    spark: SparkSession, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    first = blocks((ROOT / "README.md").read_text(encoding="utf-8"))[0]
    names: dict[str, Any] = {"spark": spark}
    exec(first.body, names)  # noqa: S102  # our own page
    assert "AAPL" in capsys.readouterr().out
    svg, file = names["priced"].plot_matches().to_svg(), ROOT / "docs" / "images" / "readme.svg"
    if request.config.getoption("--rewrite-golden"):
        file.write_text(svg, encoding="utf-8")
    assert svg == file.read_text(encoding="utf-8"), f"{file} differs: see the diff, or `make golden`"
