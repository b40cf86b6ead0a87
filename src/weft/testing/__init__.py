"""Tools for tests: tables written as tables, case files, the reference engine, readable diffs."""

from weft.core.crash import CRASH, Crash
from weft.testing.asserts import assert_rows_equal
from weft.testing.cases import Case, load_cases, read_cases
from weft.testing.reference import RowNumbers, matching_pairs, reference_join, relationship_violations, unmatched_rows
from weft.testing.tables import T, Table
from weft.testing.values import Window, shared_windows, windows_of

__all__ = [
    "CRASH", "Case", "Crash", "RowNumbers", "T", "Table", "Window", "assert_rows_equal", "load_cases",
    "matching_pairs", "read_cases", "reference_join", "relationship_violations", "shared_windows", "unmatched_rows",
    "windows_of",
]  # fmt: skip
