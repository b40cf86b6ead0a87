"""Every stream case file: the reference engine and the engine in this process give what it says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stream_runs import FILES, FOLDER, Outcome, by_engine, by_reference, cases_of, named, variants
from weft.testing import assert_rows_equal
from weft.testing.stream_cases import Arrival, StreamCase

VARIANTS = variants(cases_of(*FILES))
IDS = [f"{named(case)}-{arrival}" for case, arrival in VARIANTS]


def test_every_stream_case_file_is_run() -> None:
    assert sorted(p.stem for p in FOLDER.glob("*.yml")) == sorted(FILES)


def test_no_two_cases_have_one_id() -> None:
    ids = Counter(case.id for case in cases_of(*FILES))
    assert [i for i, times in ids.items() if times > 1] == []


@pytest.mark.parametrize(("case", "arrival"), VARIANTS, ids=IDS)
def test_the_reference_engine_gives_what_the_case_says(case: StreamCase, arrival: Arrival) -> None:
    holds(case, by_reference(case, arrival))


@pytest.mark.parametrize(("case", "arrival"), VARIANTS, ids=IDS)
def test_the_engine_gives_what_the_case_says(case: StreamCase, arrival: Arrival, tmp_path: Path) -> None:
    outcome = by_engine(case, arrival, tmp_path)
    holds(case, outcome)
    same = by_reference(case, arrival)
    assert outcome.error == same.error
    assert_rows_equal(_flat(outcome), _flat(same), exact_types=False)
    assert outcome.ledger == same.ledger


def holds(case: StreamCase, outcome: Outcome) -> None:
    """Fail unless the outcome is what the case says."""
    if case.error is not None:
        assert outcome.error == case.error, f"{case} gave {outcome}"
        return
    assert outcome.error is None, f"{case} gave {outcome.error}"
    assert set(case.notes) <= set(outcome.notes)
    expected = case.expect
    assert expected is not None
    names = expected.schema.names
    assert outcome.columns == names
    rows: list[tuple[Any, ...]] = [tuple(row[n] for n in names) for _, row in outcome.rows]
    assert_rows_equal(rows, expected.rows, names, exact_types=False)
    if expected.batches is not None:
        reported = [(b, *r) for b, r in zip(expected.batches, expected.rows, strict=True)]
        given = [(b, *r) for (b, _), r in zip(outcome.rows, rows, strict=True)]
        assert_rows_equal(given, reported, ("batch", *names), exact_types=False)
    for side, counts in case.ledger.items():
        assert {k: outcome.ledger[side][k] for k in counts} == dict(counts), side
    if case.rejects:
        assert outcome.rejects == dict(case.rejects)


def _flat(outcome: Outcome) -> list[tuple[Any, ...]]:
    return [(batch, *row.values()) for batch, row in outcome.rows]
