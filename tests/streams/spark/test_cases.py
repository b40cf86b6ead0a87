"""Chosen stream cases through real streaming queries: rows, batches and counts as every engine gives them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stream_runs import FILES, cases_of
from stream_spark import run_memory
from weft.core.frozen import FrozenMap
from weft.streams.checkpoint.rejects import list_reject_files, read_rejects
from weft.testing import assert_rows_equal
from weft.testing.stream_cases import StreamCase

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHOSEN = (
    "TIER-24-orphan",  # full join, text and decimals
    "NUL-001",
    "LAT-001",
    "LIM-001",
    "TUM-001",
    "SLI-001",
    "SES-001",
    "EMI-001",
    "CHN-001",
    "SLF-001",
    "TAB-001",
    "TAB-003",
)
CASES = {case.id: case for case in cases_of(*FILES)}


@pytest.mark.parametrize("case", [CASES[name] for name in CHOSEN], ids=CHOSEN)
def test_a_streaming_query_gives_what_the_case_says(case: StreamCase, spark: SparkSession, tmp_path: Path) -> None:
    planned = case.job()
    settings = FrozenMap(planned.settings, groups=case.groups)
    found = run_memory(
        spark,
        replace(planned, root=tmp_path, settings=settings),
        case.batches(),
        tables=case.table_rows(),
        final=case.final,
    )
    assert case.expect is not None
    names = case.expect.schema.names
    rows = [tuple(row[n] for n in names) for _, row in found.rows]
    assert_rows_equal(rows, case.expect.rows, names, exact_types=False)
    if case.expect.batches is not None:
        reported = [(b, *r) for b, r in zip(case.expect.batches, case.expect.rows, strict=True)]
        given = [(b, *r) for (b, _), r in zip(found.rows, rows, strict=True)]
        assert_rows_equal(given, reported, ("batch", *names), exact_types=False)
    for side, counts in case.ledger.items():
        assert {name: found.ledger[side][name] for name in counts} == dict(counts)
    if case.rejects:
        files = list_reject_files(found.checkpoint)
        described = [(f.side, r) for f in files for r in read_rejects(f).column("reason").to_pylist()]
        assert Counter(f"{side} {reason}" for side, reason in described) == dict(case.rejects)
