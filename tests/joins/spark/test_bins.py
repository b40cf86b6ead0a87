"""Bins that both sides are copied into: which of the copies of a pair counts."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

from weft.joins.spark.bins import _FIRST_BIN, BIN, MeasuredBins


def meets(left: range, right: range) -> int:
    """Return in how many bins a pair counts whose rows are copied into these bins."""
    found = 0
    for here, there in product(left, right):
        row = {
            BIN["left"]: here,
            BIN["right"]: there,
            _FIRST_BIN["left"]: left.start,
            _FIRST_BIN["right"]: right.start,
        }
        # The condition on numbers instead of columns: a row of Python needs no Spark.
        functions: Any = SimpleNamespace(col=row.__getitem__, greatest=max, least=min)
        unused: Any = None
        found += bool(MeasuredBins(functions, unused, levels=False).met_first())
    return found


def test_a_pair_that_shares_bins_counts_in_one_of_them() -> None:
    ranges = [range(first, last + 1) for first in range(5) for last in range(first, 5)]
    for left, right in product(ranges, ranges):
        shared = set(left) & set(right)
        assert meets(left, right) == (1 if shared else 0), (left, right)
