"""Random joins of every kind, natural and directed, against the reference engine.

A pack is one pair of schemas and one spec with many data sets, told apart by a number that is a
key of both sides, so a pack is one Spark job.  ``WEFT_EXAMPLES=10`` runs ten times as many packs.
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

import weft
from join_cases import DIRECTED, assert_schema_is_true, frame_of, reference_rows, rows_of
from strategies import CASE, RandomJoin, expected, seeded_join
from weft.core.names import canonical
from weft.core.types import common_type
from weft.errors import JoinContractError, JoinKeyWarning, WeftError
from weft.plan.natural import natural_keys
from weft.plan.resolve_join import Inference, resolve_join
from weft.plan.resolved import ResolvedJoin
from weft.relations import Relation
from weft.spec import JoinProjection, JoinSpec, from_dict
from weft.testing import assert_rows_equal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOWS = ("inner", "left", "right", "full", "semi", "anti")
MULTIPLY = int(os.environ.get("WEFT_EXAMPLES", "1"))
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Plan:
    """A pack as one join: what the reference reads, and the call that runs it on relations."""

    pack: RandomJoin
    join: ResolvedJoin
    call: Callable[[Relation, Relation], Relation]


def projection(pack: RandomJoin, how: str) -> JoinProjection:
    said = dict(pack.project)
    if how in ("semi", "anti"):
        said.pop("indicator", None)
    return JoinProjection.from_dict(said)


def directed(pack: RandomJoin, how: Any) -> Plan:
    spec: JoinSpec = from_dict(pack.spec)
    if len(spec.equal_keys) == 1 and (pack.seed or 0) % 2:
        # Without another key the number may as well be a predicate: a join that has no key at all.
        same = weft.ColumnPredicate(CASE, "=", CASE)
        spec = replace(spec, equal_keys=(), predicates=(same, *spec.predicates))
    project = projection(pack, how)
    join = resolve_join(spec, pack.left.schema, pack.right.schema, how=how, project=project)
    return Plan(pack, join, lambda left, right: getattr(left, DIRECTED[how])(right, spec, project=project))


def natural(pack: RandomJoin, how: Any) -> Plan:
    """Join on the names that both sides share and on the pairs of the spec, some shared ones left out."""
    rng = random.Random(f"{pack.seed}/natural")  # no secret
    left, right, spec = pack.left.schema, pack.right.schema, from_dict(pack.spec)
    pairs = [(a, b) for a, b in spec.equal_keys if a != b]
    shared = [f for f in left if f.name in right and f.name != CASE]
    excluded = [
        canonical(f.name)
        for f in shared
        if common_type(f.dtype, right[f.name].dtype) is None or rng.random() < 0.6
    ]
    found = natural_keys(left, right, keys=tuple(pairs), exclude_shared=excluded)
    inference = Inference(origins=found.origins, displaced=found.displaced)
    said = JoinSpec(found.pairs, spec.predicates, nulls_equal=spec.nulls_equal)
    project = projection(pack, how)
    join = resolve_join(said, left, right, how=how, project=project, inference=inference)

    def call(one: Relation, other: Relation) -> Relation:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", JoinKeyWarning)  # shared keys of fractions are wanted here
            result: Relation = getattr(one, f"natural_{how}")(
                other,
                keys=pairs,
                exclude_shared=excluded,
                predicates=spec.predicates,
                nulls_equal=spec.nulls_equal,
                project=project,
            )
        return result

    return Plan(pack, join, call)


def cross(pack: RandomJoin) -> Plan:
    project = replace(projection(pack, "cross"), right_keys="auto")
    join = resolve_join(None, pack.left.schema, pack.right.schema, how="cross", project=project)

    def call(left: Relation, right: Relation) -> Relation:
        all_pairs = left.cross_join(right, project=project)
        numbers = [canonical(c.name) for c in join.output if 0 in (c.left, c.right)]
        return all_pairs.filter(" = ".join(f"`{n.strip('`')}`" for n in numbers))

    return Plan(pack, join, call)


def plans(make: Callable[[RandomJoin], Plan], count: int, datasets: int, start: int) -> list[Plan]:
    """Return `count` plans that resolve; a pack whose names cannot be settled is passed over."""
    found: list[Plan] = []
    seed = start
    while len(found) < count * MULTIPLY:
        try:
            found.append(make(seeded_join(seed, "join", datasets)))
        except WeftError as error:
            assert error.code in ("W0103", "W0307"), f"seed {seed}: {error}"
        seed += 1
    return found


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


STYLES: dict[str, Callable[[RandomJoin, Any], Plan]] = {"directed": directed, "natural": natural}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("how", HOWS)
def test_random_joins_give_the_rows_of_the_reference(spark: SparkSession, how: str, style: str) -> None:
    for plan in plans(lambda pack: STYLES[style](pack, how), 10, 52, start=100 * HOWS.index(how)):
        check(spark, plan)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("how", HOWS)
def test_random_joins_over_connect_give_the_rows_of_the_reference(
    connect: SparkSession, how: str, style: str
) -> None:
    for plan in plans(lambda pack: STYLES[style](pack, how), 2, 52, start=1000 + 100 * HOWS.index(how)):
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
        told = weft.contract_failure(failure)
        if told is None:
            failure.add_note(str(plan.pack))
            raise
        assert code is not None, f"{plan.pack}\n{told}"
        assert told.code == code or (plan.join.relationship and plan.join.unmatched), str(plan.pack)
        return told.code
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
