"""Every case that Spark runs, on a classic and on a Connect session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from join_cases import by_reference, by_spark, cases_of, named
from weft.testing import Case, assert_rows_equal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("case", cases_of("natural", "directed", "contracts"), ids=named)
def test_spark_gives_what_the_case_and_the_reference_say(any_spark: SparkSession, case: Case) -> None:
    reported, found = by_reference(case), by_spark(case, any_spark)
    assert found.error == reported.error
    assert found.columns == reported.columns
    assert_rows_equal(found.rows, reported.rows, reported.columns)
    if case.expect is None:
        assert found.error is not None
        assert found.error[1] == case.error
    else:
        assert found.columns == case.expect.schema.names
        assert_rows_equal(found.rows, case.expect.rows, found.columns, exact_types=False)
