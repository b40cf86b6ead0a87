"""Which rows a run sees: period identifiers, half-open ranges, knowledge."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers import table
from visible_rows import is_visible
from weft.core.calendar import GREGORIAN
from weft.core.listed_calendar import calendar_from_dict
from weft.pipelines.model.values import PERIOD_END, PERIOD_START, AsOfDay
from weft.pipelines.plan.reads import TemporalFilter, build_filter

RATES = table("rates", "bitemporal")
JANUARY = GREGORIAN.parse("2026-01")


def day(text: str | None) -> dt.date | None:
    return None if text is None else dt.date.fromisoformat(text)


@pytest.mark.parametrize(
    ("period", "found"),
    [
        ("2026-01", ("2026-01",)),
        ("2026-Q1", ("2026-Q1", "2026-01", "2026-02", "2026-03")),
        ("2026-W05", ("2026-W05",)),
        ("2026-01-31", ("2026-01-31",)),
    ],
)
def test_a_period_table_is_filtered_by_the_period_and_those_inside_it(period: str, found: tuple[str, ...]) -> None:
    made = build_filter(table(), GREGORIAN.parse(period), GREGORIAN)
    assert made == TemporalFilter(mode="period", identifiers=found)


def test_a_year_has_its_quarters_and_months() -> None:
    found = build_filter(table(), GREGORIAN.parse("2026"), GREGORIAN).identifiers
    assert len(found) == 17
    assert set(found) >= {"2026", "2026-Q4", "2026-12"}


def test_days_count_when_the_data_is_cut_by_day() -> None:
    found = build_filter(table(), JANUARY, GREGORIAN, data_level="day").identifiers
    assert found == ("2026-01", *(f"2026-01-{d:02d}" for d in range(1, 32)))


def test_levels_of_a_listed_calendar_count_whatever_their_names() -> None:
    entries = [
        ("FY", "year", "01-01", "12-31"),
        ("H2", "half", "07-01", "12-31"),
        ("H1", "half", "01-01", "06-30"),
    ]
    fiscal = calendar_from_dict(
        {
            "name": "fiscal",
            "levels": [{"name": "year"}, {"name": "half", "parent": "year"}],
            "periods": [
                {"identifier": i, "level": v, "start_date": f"2026-{s}", "end_date": f"2026-{e}"}
                for i, v, s, e in entries
            ],
        }
    )
    assert build_filter(table(), fiscal.parse("FY"), fiscal).identifiers == ("FY", "H1", "H2")
    assert build_filter(table(), fiscal.parse("H1"), fiscal).identifiers == ("H1",)


@pytest.mark.parametrize(
    ("as_of", "instant"),
    [
        (PERIOD_START, "2026-01-01"),
        (PERIOD_END, "2026-01-31"),
        (AsOfDay("date", date=dt.date(2025, 5, 5)), "2025-05-05"),
        (AsOfDay("column", column="posting_date"), None),
    ],
)
def test_a_bitemporal_table_is_read_at_a_day(as_of: AsOfDay, instant: str | None) -> None:
    known = dt.datetime(2026, 2, 1, tzinfo=dt.UTC)
    found = build_filter(RATES, JANUARY, GREGORIAN, as_of=as_of, known_at=known)
    assert found == TemporalFilter(mode="bitemporal", instant=day(instant), known_at=known)


@pytest.mark.parametrize(
    ("start", "end", "seen"),
    [
        ("2023-01-01", "2024-02-01", True),
        ("2023-01-01", None, True),
        ("2024-02-01", None, False),
        ("2023-01-01", "2024-01-01", False),
        ("2024-01-01", None, True),
        ("2024-01-01", "2024-01-02", True),
        ("2024-01-01", "2024-01-01", False),
        (None, None, False),
        (None, "2025-01-01", False),
    ],
)
def test_ranges_hold_their_first_day_and_not_their_last(
    start: str | None,
    end: str | None,
    seen: bool,  # noqa: FBT001
) -> None:
    filter = TemporalFilter(mode="bitemporal", instant=dt.date(2024, 1, 1))
    assert is_visible(filter, {"_period_from": day(start), "_period_to": day(end)}) is seen


def test_of_nine_rates_five_are_valid_on_the_first_of_january() -> None:
    rates = [
        ("EUR closing", "2025-01-01", "2026-01-01"),
        ("EUR closing 1.0920", "2026-01-01", None),
        ("GBP", "2025-01-01", "2026-01-01"),
        ("GBP 1.2710", "2026-01-01", None),
        ("JPY", "2025-01-01", "2026-01-01"),
        ("JPY 0.00672", "2026-01-01", None),
        ("USD 1.0000", "2020-01-01", None),
        ("EUR average", "2025-01-01", "2026-01-01"),
        ("EUR average 1.0900", "2026-01-01", None),
    ]
    filter = build_filter(RATES, JANUARY, GREGORIAN)
    kept = [n for n, s, e in rates if is_visible(filter, {"_period_from": day(s), "_period_to": day(e)})]
    assert kept == ["EUR closing 1.0920", "GBP 1.2710", "JPY 0.00672", "USD 1.0000", "EUR average 1.0900"]


def test_rows_of_other_periods_and_of_none_are_out() -> None:
    filter = build_filter(table(), JANUARY, GREGORIAN)
    tags = ["2025-12", "2026-01", "2026-02", None, "2026-Q1", "2026"]
    assert [t for t in tags if is_visible(filter, {"_period": t})] == ["2026-01"]


def test_a_snapshot_table_has_no_filter() -> None:
    made = build_filter(table("t", "snapshot"), JANUARY, GREGORIAN, known_at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    assert made == TemporalFilter(mode="snapshot")
    assert is_visible(made, {})


def test_times_are_compared_as_moments_of_utc() -> None:
    filter = TemporalFilter(mode="bitemporal", instant=dt.date(2026, 1, 1))
    zone = dt.timezone(dt.timedelta(hours=1))
    midnight = dt.datetime(2026, 1, 1)  # noqa: DTZ001  # a time without a zone is one of UTC
    assert is_visible(filter, {"_period_from": midnight, "_period_to": None})
    assert is_visible(filter, {"_period_from": dt.datetime(2026, 1, 1, 0, 30, tzinfo=zone), "_period_to": None})
    assert not is_visible(filter, {"_period_from": dt.datetime(2026, 1, 1, 0, 0, 1, tzinfo=dt.UTC), "_period_to": None})


MOMENTS = st.datetimes(dt.datetime(2025, 1, 1), dt.datetime(2026, 1, 1), timezones=st.just(dt.UTC))  # noqa: DTZ001


@given(MOMENTS, MOMENTS, st.none() | MOMENTS)
def test_knowledge_is_a_half_open_range_too(at: dt.datetime, start: dt.datetime, end: dt.datetime | None) -> None:
    row = {"_period": "2026-01", "_known_from": start, "_known_to": end}
    filter = build_filter(table(), JANUARY, GREGORIAN, known_at=at)
    assert is_visible(filter, row) is (start <= at and (end is None or at < end))
    assert is_visible(filter, {"_period": "2026-01"})
    assert not is_visible(filter, {**row, "_known_from": None})
    assert is_visible(build_filter(table(), JANUARY, GREGORIAN), row)


def test_a_filter_says_what_it_keeps() -> None:
    assert str(build_filter(table(), JANUARY, GREGORIAN)) == "_period 2026-01"
    assert str(build_filter(RATES, JANUARY, GREGORIAN)) == "as of 2026-01-01"
    by_row = build_filter(RATES, JANUARY, GREGORIAN, as_of=AsOfDay("column", column="d"))
    assert str(by_row) == "as of each row's day"
    assert str(build_filter(table("t", "snapshot"), JANUARY, GREGORIAN)) == "all rows"
