"""Every as-of case: on a classic session by every plan, on a Connect session by one of those that serve it.

A plan is the same code on both, so Connect takes them in turn; with ``WEFT_EXAMPLES`` above 1 it takes all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from join_cases import by_reference, cases_of, named, natural_arguments, relation_of, resolved_case, rows_of
from strategies import seeds
from weft import JoinProjection, WeftError, asof_strategies
from weft.joins.choose import ASOF
from weft.joins.resolve.predicates import fold_order_conditions
from weft.joins.spec import from_dict
from weft.testing import Case, assert_rows_equal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weft.joins.relation import Relation

CASES = cases_of("asof")
ANSWERED = [c for c in CASES if c.expect is not None]
STRATEGIES = ("auto", *asof_strategies())


def joined(case: Case, session: SparkSession, strategy: str) -> Relation:
    """Return the as-of join of a case by one plan."""
    left, right = relation_of(session, case.left), relation_of(session, case.right)
    project: Any = None if case.project is None else JoinProjection.from_dict(case.project)
    if case.spec["type"] == "natural":
        given = natural_arguments(case)
        aliases = case.spec.get("aliases", {})
        return left.natural_asof(right, project=project, strategy=strategy, **given, **aliases)
    return left.asof_join(right, from_dict(case.spec), project=project, strategy=strategy)


def refusal(case: Case, strategy: str) -> str | None:
    """Return why a plan does not serve a case."""
    return None if strategy == "auto" else ASOF[strategy](fold_order_conditions(resolved_case(case)))


def in_turn() -> list[tuple[Case, str]]:
    """Return each case with one plan that serves it, another from case to case; all plans in a long run."""
    serving = [(case, [s for s in STRATEGIES if refusal(case, s) is None]) for case in ANSWERED]
    if len(seeds(1)) > 1:
        return [(case, strategy) for case, plans in serving for strategy in plans]
    return [(case, plans[turn % len(plans)]) for turn, (case, plans) in enumerate(serving)]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", ANSWERED, ids=named)
def test_every_plan_gives_what_the_case_says(spark: SparkSession, case: Case, strategy: str) -> None:
    why = refusal(case, strategy)
    if why is None:
        assert_as_expected(case, spark, strategy)
        return
    with pytest.raises(WeftError, match="refuses") as caught:
        joined(case, spark, strategy)
    assert caught.value.code == "W0109"


@pytest.mark.parametrize(("case", "strategy"), [pytest.param(c, s, id=f"{named(c)}-{s}") for c, s in in_turn()])
def test_plans_give_the_same_over_connect(connect: SparkSession, case: Case, strategy: str) -> None:
    assert_as_expected(case, connect, strategy)


def assert_as_expected(case: Case, session: SparkSession, strategy: str) -> None:
    assert case.expect is not None
    result = joined(case, session, strategy)
    assert result.columns == case.expect.schema.names
    assert_rows_equal(rows_of(result.df), case.expect.rows, result.columns, exact_types=False)


@pytest.mark.parametrize("case", [c for c in CASES if c.expect is None], ids=named)
def test_a_mistake_is_the_same_on_both_sessions(any_spark: SparkSession, case: Case) -> None:
    reported = by_reference(case)
    with pytest.raises(WeftError) as caught:
        joined(case, any_spark, "auto")
    assert (type(caught.value).__name__, caught.value.code) == reported.error
    assert caught.value.code == case.error
