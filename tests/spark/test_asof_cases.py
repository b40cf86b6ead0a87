"""Every as-of case, by every plan that serves it, on a classic and on a Connect session."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest

from join_cases import by_reference, cases_of, named, natural_arguments, relation_of, resolved_case, rows_of
from weft import AsofOrderWarning, JoinProjection, WeftError, asof_strategies
from weft.plan.conditions import folded
from weft.plan.strategies import ASOF
from weft.spec import from_dict
from weft.testing import Case, assert_rows_equal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weft.relations import Relation

CASES = cases_of("asof")


def joined(case: Case, session: SparkSession, strategy: str) -> Relation:
    """Return the as-of join of a case by one plan."""
    left, right = relation_of(session, case.left), relation_of(session, case.right)
    project: Any = None if case.project is None else JoinProjection.from_dict(case.project)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AsofOrderWarning)
        if case.spec["type"] == "natural":
            said = natural_arguments(case)
            aliases = case.spec.get("aliases", {})
            return left.natural_asof(right, project=project, strategy=strategy, **said, **aliases)
        return left.asof_join(right, from_dict(case.spec), project=project, strategy=strategy)


@pytest.mark.parametrize("strategy", ["auto", *asof_strategies()])
@pytest.mark.parametrize("case", [c for c in CASES if c.expect is not None], ids=named)
def test_every_plan_gives_what_the_case_says(any_spark: SparkSession, case: Case, strategy: str) -> None:
    assert case.expect is not None
    refusal = None if strategy == "auto" else ASOF[strategy](folded(resolved_case(case)))
    if refusal is not None:
        with pytest.raises(WeftError, match="refuses") as caught:
            joined(case, any_spark, strategy)
        assert caught.value.code == "W0109"
        return
    result = joined(case, any_spark, strategy)
    assert result.columns == case.expect.schema.names
    assert_rows_equal(rows_of(result.df), case.expect.rows, result.columns, exact_types=False)


@pytest.mark.parametrize("case", [c for c in CASES if c.expect is None], ids=named)
def test_a_mistake_is_the_same_on_both_sessions(any_spark: SparkSession, case: Case) -> None:
    told = by_reference(case)
    with pytest.raises(WeftError) as caught:
        joined(case, any_spark, "auto")
    assert (type(caught.value).__name__, caught.value.code) == told.error
    assert caught.value.code == case.error
