"""Invalid stream case files: every finding is reported at once, each with its line."""

from __future__ import annotations

import pytest

from weft.errors import CaseFileError
from weft.testing.stream_cases import load_stream_cases, read_stream_cases

GOOD = """
- id: A-1
  why: a pair
  sql: SELECT l.id FROM l JOIN r ON l.k = r.k WITHIN '1m'
  streams:
    l: |
      id | k | t     | __batch__
      a  | 1 | 10:00 | 2
    r:
      with: {late: drop, event.time.field: at}
      unread: {"1": ["oops"]}
      rows: |
        k | at
        1 | 10:00
  expect: |
    id
    a
"""


def test_a_case_makes_a_job_and_batches() -> None:
    (case,) = read_stream_cases(GOOD)
    assert "'late'='drop'" in case.job_text()
    assert "'event.time.field'='t'" in case.job_text()
    assert "'event.time.field'='at'" in case.job_text()
    batches = case.batches()
    assert [sorted((n, len(rows)) for n, rows in b.items()) for b in batches] == [
        [("l", 0), ("r", 1)],
        [("l", 0), ("r", 1)],
        [("l", 1), ("r", 0)],
    ]
    assert batches[1]["r"] == ["oops"]
    assert len(case.batches("one_by_one")) == 3
    assert [list(b) for b in case.batches("swapped")] == [["r"], ["l"]]
    assert len(case.batches("twice")[0]["l"]) == 2
    assert case.plan().name == "result_of_case"
    assert str(case) == "A-1: a pair"


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ("  why: a pair\n", "", "has no 'why'"),
        ("  sql:", "  sqll:", "unknown key 'sqll'"),
        ("  expect: |\n    id\n    a\n", "", "either 'expect' or 'error'"),
        ("  expect: |\n    id\n    a\n", "  error: W99\n", "unknown code 'W99'"),
        ("late: drop", "late: [", "YAML"),
        ("      rows: |", "      rowz: |", "has no rows"),
        ("10:00 | 2", "10:00 | x", "x"),
        ("  why: a pair", "  why: 1", "'why' must be a string"),
        ("  why: a pair", "  why: a pair\n  groups: two", "'groups' must be a number"),
        ("  why: a pair", "  why: a pair\n  arrivals: [sideways]", "unknown arrival 'sideways'"),
        ("  why: a pair", "  why: a pair\n  ledger:\n    left: {inn: 3}", "unknown key 'inn'"),
        ("  why: a pair", "  why: a pair\n  wall_clock: noon", "noon"),
    ],
)
def test_a_mistake_is_reported(old: str, new: str, reported: str) -> None:
    text = GOOD.replace(old, new)
    assert text != GOOD
    with pytest.raises(CaseFileError) as caught:
        read_stream_cases(text, file="cases.yml")
    assert reported in str(caught.value)
    assert "cases.yml" in str(caught.value)


def test_two_cases_with_one_id_and_files_that_are_not_lists_are_reported() -> None:
    with pytest.raises(CaseFileError, match="duplicate id"):
        read_stream_cases(GOOD + GOOD)
    with pytest.raises(CaseFileError, match="list of cases"):
        read_stream_cases("a: 1")
    with pytest.raises(CaseFileError, match="cannot read case file"):
        load_stream_cases("/nowhere/cases.yml")
