"""Random joins of every kind, natural and directed, against the reference engine.

A pack is one pair of schemas and one spec with many data sets, distinguished by a number that is a
key of both sides, so a pack is one Spark job.  ``WEFT_EXAMPLES=10`` runs ten times as many packs.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import weft
from join_cases import assert_schema_is_true, frame_of, reference_rows, rows_of
from random_plans import DIRECTED, HOWS, STYLES, Plan, covering, plans, projection
from strategies import RandomJoin, expected
from weft.core.names import canonical_name
from weft.errors import JoinContractError
from weft.joins.relation import Relation
from weft.joins.resolve.join import resolve_join
from weft.joins.spec import from_dict
from weft.testing import assert_rows_equal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[tuple[Any, ...]]


def cross(pack: RandomJoin) -> Plan:
    project = replace(projection(pack, "cross"), right_keys="auto")
    join = resolve_join(None, pack.left.schema, pack.right.schema, how="cross", project=project)

    def call(left: Relation, right: Relation) -> Relation:
        all_pairs = left.cross_join(right, project=project)
        numbers = [canonical_name(c.name) for c in join.output if 0 in (c.left, c.right)]
        return all_pairs.filter(" = ".join(f"`{n.strip('`')}`" for n in numbers))

    return Plan(pack, join, call)


def run(session: SparkSession, plan: Plan) -> Rows:
    left = weft.relation(frame_of(session, plan.pack.left))
    right = left if plan.pack.self_join else weft.relation(frame_of(session, plan.pack.right))
    result = plan.call(left, right)
    assert result.columns == tuple(c.name for c in plan.join.output)
    rows = rows_of(result.df)
    assert_schema_is_true(result, rows)
    return rows


def check(session: SparkSession, plan: Plan) -> None:
    wanted = expected(plan.join, plan.pack)
    names = [c.name for c in plan.join.output]
    try:
        assert_rows_equal(run(session, plan), wanted, names)
    except AssertionError as difference:
        difference.add_note(f"{plan.pack}\nkeys: {plan.join.keys}\npredicates: {plan.join.conditions}")
        raise
    except Exception as failure:
        failure.add_note(str(plan.pack))
        raise


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("how", HOWS)
def test_random_joins_give_the_rows_of_the_reference(spark: SparkSession, how: str, style: str) -> None:
    for plan in covering(how, style):
        check(spark, plan)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("how", HOWS)
def test_random_joins_over_connect_give_the_rows_of_the_reference(connect: SparkSession, how: str, style: str) -> None:
    for plan in covering(how, style, 6, least=1, start=1000):
        check(connect, plan)


def test_random_cross_joins_give_every_pair(spark: SparkSession) -> None:
    for plan in plans(cross, 10, 52, start=700):
        check(spark, plan)


def test_random_cross_joins_over_connect_give_every_pair(connect: SparkSession) -> None:
    for plan in plans(cross, 2, 52, start=1700):
        check(connect, plan)


RELATIONSHIPS = ("1:1", "1:m", "m:1", None)
UNMATCHED = ("left", "right", "both", "error", None)


def promising(pack: RandomJoin) -> Plan:
    """Return the pack as a directed join that promises something about its few rows."""
    rng = random.Random(f"{pack.seed}/promise")
    how: Any = rng.choice(HOWS[:4])
    relationship, unmatched = rng.choice(RELATIONSHIPS), rng.choice(UNMATCHED)
    spec = replace(from_dict(pack.spec), relationship=relationship or ("m:1" if unmatched is None else None))
    spec = replace(spec, unmatched=unmatched if rng.random() < 0.4 or relationship is None else None)
    project = projection(pack, how)
    join = resolve_join(spec, pack.left.schema, pack.right.schema, how=how, project=project)
    return Plan(pack, join, lambda left, right: getattr(left, DIRECTED[how])(right, spec, project=project))


def kept_or_broken(session: SparkSession, plan: Plan) -> str | None:
    """Check one pack and return the code of the promise that it breaks, if any."""
    try:
        wanted, code = reference_rows(plan.join, plan.pack.left.rows, plan.pack.right.rows), None
    except JoinContractError as broken:
        wanted, code = [], broken.code
    try:
        rows = run(session, plan)
    except Exception as failure:
        reported = weft.contract_failure(failure)
        if reported is None:
            failure.add_note(str(plan.pack))
            raise
        assert code is not None, f"{plan.pack}\n{reported}"
        assert reported.code == code or (plan.join.relationship and plan.join.unmatched), str(plan.pack)
        return reported.code
    assert code is None, f"{plan.pack}\nthe reference says {code}"
    assert_rows_equal(rows, wanted)
    return None


def test_random_promises_are_broken_exactly_where_the_reference_says(spark: SparkSession) -> None:
    outcomes = {kept_or_broken(spark, plan) for plan in plans(promising, 18, 2, start=3000)}
    assert outcomes == {None, "W0501", "W0502"}


def test_random_promises_over_connect(connect: SparkSession) -> None:
    outcomes = {kept_or_broken(connect, plan) for plan in plans(promising, 6, 2, start=4000)}
    assert None in outcomes
    assert len(outcomes) > 1
