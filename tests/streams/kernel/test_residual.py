from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kernel_runs import Kernel, interval
from weft.streams.kernel.pairs import arrow_type, evaluate_residual
from weft.streams.kernel.segments import Segment
from weft.streams.kernel.spec import KernelProblem, Residual

V = ("ref", "left", "v")
W = ("ref", "right", "w")


def answers(program: tuple[Any, ...], left: list[Any], right: list[Any], kind: pa.DataType | None = None) -> list[bool]:
    def segment(name: str, values: list[Any]) -> Segment:
        none = np.zeros(len(values), dtype=np.int64)
        return Segment(hashes=none, times=none, rows=pa.table({name: pa.array(values, kind)}), batch=0)

    places = np.arange(len(left))
    found: list[bool] = evaluate_residual(
        Residual(program=program), segment("v", left), places, segment("w", right), places
    ).tolist()
    return found


@pytest.mark.parametrize(
    ("op", "found"),
    [
        ("=", [False, True, False]),
        ("<>", [True, False, True]),
        ("<", [True, False, False]),
        ("<=", [True, True, False]),
        (">", [False, False, True]),
        (">=", [False, True, True]),
    ],
)
def test_columns_are_compared(op: str, found: list[bool]) -> None:
    assert answers((op, V, W), [1, 2, 3], [2, 2, 2]) == found


def test_unknown_is_not_true_and_three_valued() -> None:
    one = ("lit", 1, "long")
    assert answers(("=", V, W), [None, 1], [1, None]) == [False, False]
    assert answers(("not", ("=", V, W)), [None, 1], [1, 2]) == [False, True]
    assert answers(("or", ("=", V, one), ("=", W, one)), [None, 1, None], [1, None, 2]) == [True, True, False]
    assert answers(("and", ("=", V, one), ("isnull", W)), [1, 1], [None, 1]) == [True, False]


def test_a_condition_on_nothing_holds_for_all_or_none() -> None:
    assert answers(("lit", True, "boolean"), [1, 2], [1, 2]) == [True, True]
    assert answers(("lit", None, "boolean"), [1, 2], [1, 2]) == [False, False]


def test_a_bare_null_is_unknown_everywhere() -> None:
    null = ("lit", None, "null")
    assert answers(("=", V, null), [1, 2], [1, 2]) == [False, False]
    assert answers(("not", ("=", null, null)), [1, 2], [1, 2]) == [False, False]
    assert answers(("or", null, ("=", V, W)), [1, 2], [1, 3]) == [True, False]
    assert answers(("not", null), [1], [1]) == [False]
    assert answers(("isnull", null), [1], [1]) == [True]


@pytest.mark.parametrize(
    ("value", "given", "kind"),
    [
        ("b", "string", pa.string()),
        (Decimal("1.50"), "decimal(10,2)", pa.decimal128(10, 2)),
        (dt.date(2026, 1, 2), "date", pa.date32()),
        (dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "timestamp", pa.timestamp("us", "UTC")),
    ],
)
def test_literals_have_the_type_of_their_column(value: Any, given: str, kind: pa.DataType) -> None:
    assert answers((">=", V, ("lit", value, given)), [value, None], [value, value], kind) == [True, False]


def test_integers_of_two_widths_are_compared_as_numbers() -> None:
    assert answers(("<", V, ("lit", 2**40, "long")), [1], [1], pa.int32()) == [True]


def test_a_type_that_no_column_has_is_a_defect_with_a_code() -> None:
    with pytest.raises(KernelProblem, match="W2201"):
        arrow_type("variant")


def test_a_condition_of_rows_is_asked_for_candidates_only() -> None:
    asked: list[int] = []

    def same_parity(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> list[bool]:
        asked.append(len(left))
        return [a["v"] % 2 == b["v"] % 2 for a, b in zip(left, right, strict=True)]

    kernel = Kernel(replace(interval(0, 10, "left"), residual=Residual(rows=same_parity)))
    out = kernel.feed([("a", 1, 1), ("a", 1, 2), ("b", 1, 3)], [("a", 5, 4), ("c", 5, 5)])
    assert out == [(0, 5, ("a", 2), ("a", 4))]
    assert asked == [2]
    assert kernel.flush() == [(1, 1, ("a", 1), None), (1, 1, ("b", 3), None)]
