"""How interval and window joins are run in tests: cases, random packs, and the same rows in other shapes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from join_cases import Outcome, assert_schema_is_true, frame_of, outcome_of, relation_of, rows_of
from strategies import Flavour, RandomJoin, expected, seeded_join, seeds
from weft.errors import WeftError
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spec import IntervalSpec, JoinProjection, from_dict
from weft.testing import Case, assert_rows_equal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from weft.joins.relation import Relation

Shape = Callable[["DataFrame"], "DataFrame"]
DATASETS = 30


def joined(left: Relation, right: Relation, spec: Any, project: JoinProjection | None = None) -> Relation:
    """Return the join of a spec by the method it belongs to."""
    verb = "interval_join" if isinstance(spec, IntervalSpec) else "window_join"
    result: Relation = getattr(left, verb)(right, spec, project=project)
    return result


def outcome(case: Case, session: SparkSession) -> Outcome:
    """Run a case by Spark."""

    def join() -> Relation:
        left = relation_of(session, case.left)
        right = left if case.left == case.right else relation_of(session, case.right)
        return joined(left, right, from_dict(case.spec))

    return outcome_of(join)


def packs(
    flavour: Flavour, count: int, start: int, wanted: Callable[[ResolvedJoin], bool], datasets: int = DATASETS
) -> list[tuple[RandomJoin, ResolvedJoin]]:
    """Return packs that resolve and are wanted; ``WEFT_EXAMPLES`` asks for more of them."""
    found: list[tuple[RandomJoin, ResolvedJoin]] = []
    seed = start
    while len(found) < len(seeds(count)):
        pack = seeded_join(seed, flavour, datasets)
        seed += 1
        join = resolve_pack(pack, seed - 1)
        if join is not None and wanted(join):
            found.append((pack, join))
    return found


def resolve_pack(pack: RandomJoin, seed: int) -> ResolvedJoin | None:
    """Return the resolved join of a pack, None if its columns collide or have no common type."""
    try:
        return resolve_join(
            from_dict(pack.spec),
            pack.left.schema,
            pack.right.schema,
            project=JoinProjection.from_dict(pack.project),
        )
    except WeftError as error:
        assert error.code in ("W0103", "W0307"), f"seed {seed}: {error}"
        return None


def shuffled(pack: RandomJoin) -> RandomJoin:
    """Return the pack with the rows of its tables in another order."""
    rng = random.Random(f"{pack.seed}/shuffled")

    def mixed(table: Any) -> Any:
        return table.with_rows(rng.sample(table.rows, len(table.rows)))

    left = mixed(pack.left)
    return replace(pack, left=left, right=left if pack.self_join else mixed(pack.right))


def check(
    session: SparkSession,
    pack: RandomJoin,
    join: ResolvedJoin,
    *,
    left: Shape | None = None,
    right: Shape | None = None,
) -> None:
    """Run a pack and compare; `left` and `right` turn the frames into others with the same rows."""
    import weft

    one = frame_of(session, pack.left)
    other = one if pack.self_join else frame_of(session, pack.right)
    sides = weft.relation(left(one) if left else one), weft.relation(right(other) if right else other)
    try:
        result = joined(*sides, from_dict(pack.spec), JoinProjection.from_dict(pack.project))
        rows = rows_of(result.df)
        assert_schema_is_true(result, rows)
        assert_rows_equal(rows, expected(join, pack), result.columns)
    except Exception as failure:
        failure.add_note(f"{pack}\n{join.match}")
        raise
