"""Every case file, read by the reference engine."""

from __future__ import annotations

import random

import pytest

from join_cases import FOLDER, by_reference, cases_of, named, shuffled
from weft.testing import Case, assert_rows_equal

FILES = ("natural", "directed", "contracts", "asof", "interval", "window")


def test_every_case_file_is_run() -> None:
    assert sorted(p.stem for p in FOLDER.glob("*.yml")) == sorted(FILES)


@pytest.mark.parametrize("case", cases_of(*FILES), ids=named)
def test_the_reference_engine_gives_what_the_case_says(case: Case) -> None:
    outcome = by_reference(case)
    if case.expect is None:
        assert outcome.error is not None, f"{case} gave rows"
        assert outcome.error[1] == case.error
        return
    assert outcome.error is None
    assert outcome.columns == case.expect.schema.names
    assert_rows_equal(outcome.rows, case.expect.rows, case.expect.schema.names, exact_types=False)


@pytest.mark.parametrize("case", cases_of(*FILES), ids=named)
def test_the_order_of_input_rows_decides_nothing(case: Case) -> None:
    first = by_reference(case)
    for seed in range(3):
        again = by_reference(shuffled(case, random.Random(seed)))  # no secret
        assert again.error == first.error
        assert_rows_equal(again.rows, first.rows, first.columns)
