"""Expected rows against actual ones."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core import types
from weft.errors import ScenarioError
from weft.expr.values import fit
from weft.pipelines.scenarios.compare import Comparing, compare_rows, describe_mismatch, metadata_mismatches
from weft.pipelines.scenarios.values import cell_text, equal, fits, typed_value

Rows = list[dict[str, Any]]


def found(expected: Rows, actual: Rows, **how: Any) -> list[tuple[str, tuple[str, ...]]]:
    return [(m.kind, m.columns) for m in compare_rows(expected, actual, Comparing(**how))]


def test_order_and_further_columns_do_not_matter() -> None:
    assert found([{"a": 1}, {"a": 2}], [{"a": 2, "b": 0}, {"a": 1, "b": 0}]) == []


def test_a_row_counts_as_often_as_it_is_written() -> None:
    assert found([{"a": 1}], [{"a": 1}, {"a": 1}]) == [("extra_row", ())]
    assert found([{"a": 1}, {"a": 1}], [{"a": 1}]) == [("missing_row", ())]
    assert found([{"a": 1}], [{"a": 1}, {"a": 1}], match="subset") == []
    assert found([{"a": 1}, {"a": 1}], [{"a": 1}], match="subset") == [("missing_row", ())]


def test_values_that_differ_are_named_by_the_key() -> None:
    actual = [{"id": 1, "a": 5, "b": 1}, {"id": 2, "a": 6, "b": 1}]
    expected = [{"id": 2, "a": 5, "b": 1}, {"id": 1, "a": 5, "b": 1}]
    assert found(expected, actual, key=("id",)) == [("value_mismatch", ("a",))]


def test_without_a_key_the_nearest_row_is_meant() -> None:
    actual = [{"x": "p", "y": 1, "z": 1}, {"x": "q", "y": 2, "z": 2}]
    assert found([{"x": "q", "y": 2, "z": 3}, {"x": "p", "y": 1, "z": 1}], actual) == [("value_mismatch", ("z",))]


def test_rows_with_nothing_in_common_are_missing_and_extra() -> None:
    assert found([{"a": 1, "b": 1}], [{"a": 2, "b": 2}]) == [("missing_row", ()), ("extra_row", ())]


def test_a_row_that_says_more_chooses_first() -> None:
    assert found([{"a": 1}, {"a": 1, "b": 2}], [{"a": 1, "b": 2}, {"a": 1, "b": 3}]) == []


def test_null_equals_null_only() -> None:
    assert found([{"a": None}], [{"a": None}]) == []
    assert found([{"k": 1, "a": None}], [{"k": 1, "a": 0}]) == [("value_mismatch", ("a",))]
    assert found([{"k": 1, "a": ""}], [{"k": 1, "a": None}]) == [("value_mismatch", ("a",))]


def test_order_counts_when_asked_for() -> None:
    rows = [{"a": 1}, {"a": 2}, {"a": 3}]
    assert found(rows, rows, ordered=True) == []
    assert found(rows[::-1], rows, ordered=True) == [("value_mismatch", ("a",)), ("value_mismatch", ("a",))]
    assert found(rows[:2], rows, ordered=True) == [("extra_row", ())]
    assert found(rows, rows[:2], ordered=True) == [("missing_row", ())]
    assert found([rows[0], rows[2]], rows, ordered=True, match="subset") == []
    assert found([rows[2], rows[0]], rows, ordered=True, match="subset") == [("missing_row", ())]
    assert found([rows[0], rows[0]], rows, ordered=True, match="subset") == [("missing_row", ())]


def test_only_doubles_have_a_tolerance() -> None:
    assert found([{"a": 0.3}], [{"a": 0.1 + 0.2}], tolerance=Decimal("0.001")) == []
    assert found([{"k": 1, "a": 0.3}], [{"k": 1, "a": 0.1 + 0.2}]) == [("value_mismatch", ("a",))]
    assert not equal(Decimal("1.00"), Decimal("1.001"), Decimal("0.1"))
    assert equal(Decimal("1.0"), Decimal("1.00"))
    assert equal(float("nan"), float("nan"))


@given(
    st.lists(st.fixed_dictionaries({"a": st.integers(0, 3), "b": st.none() | st.integers(0, 2)})),
    st.randoms(),
)
def test_any_shuffle_of_the_rows_is_equal_and_one_row_less_is_not(rows: Rows, random: Any) -> None:
    shuffled = rows[:]
    random.shuffle(shuffled)
    assert found(rows, shuffled) == []
    if rows:
        assert found(rows, shuffled[1:]) != []
        assert found(rows, [*shuffled, {"a": 9, "b": 9}]) == [("extra_row", ())]


def test_metadata_has_a_shape() -> None:
    good = {"_row_id": "0199a1c2-0000-7000-8000-000000000001", "_created_at": dt.datetime.now(dt.UTC)}
    assert metadata_mismatches([good]) == ()
    bad = metadata_mismatches([good | {"_row_id": "7"}, good | {"_created_at": None}, good])
    assert [m.columns for m in bad] == [("_row_id",), ("_created_at",), ("_row_id",)]


def test_a_difference_reads_well() -> None:
    (mismatch,) = compare_rows(
        [{"id": 1, "amount": Decimal("9282.01")}],
        [{"id": 1, "amount": Decimal("9282.00")}],
        Comparing(key=("id",)),
    )
    assert describe_mismatch(mismatch, ("id",)) == [
        "value_mismatch  id 1",
        "    amount   expected 9282.01   actual 9282.00",
    ]
    (missing,) = compare_rows([{"id": 1, "amount": None}], [], Comparing())
    assert describe_mismatch(missing, ("id",)) == ["missing_row     id 1", "    amount null"]


@pytest.mark.parametrize(
    ("value", "dtype", "wanted"),
    [
        ("JE-1", types.STRING, "JE-1"),
        (True, types.STRING, "true"),
        ("12", types.LONG, 12),
        (Decimal("12.0"), types.LONG, 12),
        ("1.50", types.Decimal(18, 2), Decimal("1.50")),
        (3, types.Decimal(18, 2), Decimal(3)),
        ("TRUE", types.BOOLEAN, True),
        ("2026-01-31", types.DATE, dt.date(2026, 1, 31)),
        ("2026-01-31T10:30:00", types.TIMESTAMP, dt.datetime(2026, 1, 31, 10, 30, tzinfo=dt.UTC)),
        ("2026-01-31T10:30:00+01:00", types.TIMESTAMP, dt.datetime(2026, 1, 31, 9, 30, tzinfo=dt.UTC)),
        ("1e3", types.DOUBLE, 1000.0),
        ({"a": "b"}, types.Map(types.STRING, types.STRING), {"a": "b"}),
        ('{"a": "b"}', types.Map(types.STRING, types.STRING), {"a": "b"}),
        (None, types.DATE, None),
    ],
)
def test_a_value_is_read_in_the_type_of_its_column(value: Any, dtype: types.DType, wanted: Any) -> None:
    got = typed_value(value, dtype)
    assert (got, type(got)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ("x", types.LONG),
        ("1.5", types.LONG),
        (str(1 << 63), types.LONG),
        (True, types.LONG),
        ("much", types.Decimal(18, 2)),
        ("NaN", types.Decimal(18, 2)),
        ("maybe", types.BOOLEAN),
        ("2026-02-30", types.DATE),
        ("noon", types.TIMESTAMP),
        ({"a": 1}, types.STRING),
        ([1], types.LONG),
    ],
)
def test_a_value_of_another_type_is_refused(value: Any, dtype: types.DType) -> None:
    with pytest.raises(ScenarioError, match="W1702"):
        typed_value(value, dtype)


def test_nothing_is_rounded() -> None:
    assert fits(Decimal("1.50"), types.Decimal(3, 2))
    assert not fits(Decimal("1.505"), types.Decimal(18, 2))
    assert not fits(Decimal(10), types.Decimal(3, 2))


@pytest.mark.parametrize(("precision", "scale"), [(38, 0), (38, 10), (38, 38), (29, 1), (28, 28), (1, 0), (1, 1)])
def test_the_longest_number_of_a_type_fits_and_the_next_one_does_not(precision: int, scale: int) -> None:
    dtype = types.Decimal(precision, scale)
    for sign in (0, 1):
        longest = Decimal((sign, (9,) * precision, -scale))
        assert fits(longest, dtype)
        assert fit(longest, dtype) == longest
        assert not fits(Decimal((sign, (1, *(0,) * precision), -scale)), dtype)  # one more digit before the point
        assert not fits(Decimal((sign, (*(9,) * precision, 9), -scale - 1)), dtype)  # one more digit after it


@pytest.mark.parametrize("number", ["1e38", "1e400", "1e9999", "-1e38", "1234567890123456789012345678.12345678901"])
def test_a_number_that_is_too_large_does_not_fit(number: str) -> None:
    assert not fits(Decimal(number), types.Decimal(38, 10))


def test_values_are_shown_as_files_have_them() -> None:
    moment = dt.datetime(2026, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    shown = [cell_text(v) for v in (None, True, Decimal("1E+2"), moment, dt.date(2026, 1, 1), {"b": 1, "a": None})]
    assert shown == ["null", "true", "100", "2026-01-01T00:00:00Z", "2026-01-01", '{"a": null, "b": 1}']
