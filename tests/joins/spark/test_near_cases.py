"""Every case of an interval or a window join, on a classic and on a Connect session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from join_cases import by_reference, cases_of, named
from near_joins import outcome
from weft.testing import Case, assert_rows_equal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("case", [*cases_of("interval"), *cases_of("window")], ids=named)
def test_spark_gives_what_the_case_and_the_reference_say(any_spark: SparkSession, case: Case) -> None:
    reported, found = by_reference(case), outcome(case, any_spark)
    assert found.error == reported.error
    assert found.columns == reported.columns
    assert_rows_equal(found.rows, reported.rows, reported.columns)
    if case.expect is None:
        assert found.error is not None
        assert found.error[1] == case.error
    else:
        assert_rows_equal(found.rows, case.expect.rows, found.columns, exact_types=False)
