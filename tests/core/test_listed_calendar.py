"""Custom calendars: fiscal years, 4-4-5 quarters, and what is wrong with others."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.listed_calendar import ListedCalendar, calendar_from_dict
from weft.errors import PeriodError

WEEK = dt.timedelta(days=7)
ONE_DAY = dt.timedelta(days=1)


def entry(identifier: str, level: str, start: str, last: str, **more: Any) -> dict[str, Any]:
    return {"identifier": identifier, "level": level, "start_date": start, "end_date": last, **more}


FISCAL: dict[str, Any] = {
    "name": "fiscal",
    "levels": [
        {"name": "fiscal_year"},
        {"name": "half", "parent": "fiscal_year"},
        {"name": "month", "parent": "half"},
    ],
    "periods": [
        entry("FY26-H2", "half", "2026-01-01", "2026-06-30", parent="FY26"),
        entry("FY26", "fiscal_year", "2025-07-01", "2026-06-30", status="closed"),
        entry("FY26-H1", "half", "2025-07-01", "2025-12-31"),
        entry("FY26-M01", "month", "2025-07-01", "2025-07-31"),
        entry("FY26-M03", "month", "2025-09-01", "2025-09-30"),
        entry("FY27", "fiscal_year", "2026-07-01", "2027-06-30", status="locked"),
    ],
}


def four_four_five(first: dt.date, years: int) -> ListedCalendar:
    """Return years of 52 weeks whose quarters have months of 4, 4 and 5 weeks."""
    periods: list[dict[str, Any]] = []
    for number in range(years):
        year, start = f"Y{number + 1}", first + number * 52 * WEEK
        periods.append(entry(year, "year", start.isoformat(), (start + 52 * WEEK - ONE_DAY).isoformat()))
        at = start
        for month in range(12):
            if month % 3 == 0:
                last = at + 13 * WEEK - ONE_DAY
                periods.append(entry(f"{year}-Q{month // 3 + 1}", "quarter", at.isoformat(), last.isoformat()))
            weeks = 5 if month % 3 == 2 else 4
            last = at + weeks * WEEK - ONE_DAY
            periods.append(entry(f"{year}-P{month + 1:02d}", "month", at.isoformat(), last.isoformat()))
            at = last + ONE_DAY
    levels = [{"name": "year"}, {"name": "quarter", "parent": "year"}, {"name": "month", "parent": "quarter"}]
    return calendar_from_dict({"name": "445", "levels": levels, "periods": periods})


def changed(**changes: Any) -> dict[str, Any]:
    return {**FISCAL, **changes}


def with_periods(*periods: dict[str, Any]) -> dict[str, Any]:
    return changed(periods=[*FISCAL["periods"], *periods])


def test_a_fiscal_year_has_the_halves_in_it() -> None:
    fiscal = calendar_from_dict(FISCAL)
    year = fiscal.parse("FY26")
    assert (year.level, year.status, year.calendar, year.days) == ("fiscal_year", "closed", "fiscal", 365)
    assert [p.identifier for p in fiscal.children(year)] == ["FY26-H1", "FY26-H2"]
    assert [p.identifier for p in fiscal.children(year, "month")] == ["FY26-M01", "FY26-M03"]
    assert fiscal.parent(fiscal.parse("FY26-M03"), "fiscal_year") == year
    assert str(fiscal.next(year)) == "FY27"
    assert str(fiscal.previous(fiscal.parse("FY26-M03"))) == "FY26-M01"
    assert str(fiscal.at(dt.date(2026, 3, 1), "half")) == "FY26-H2"
    assert fiscal.at(dt.date(2026, 3, 1), "month") is None
    assert year.tokens() == {"period": "FY26"}


def test_dates_may_be_dates() -> None:
    periods = [{**p, "start_date": dt.date.fromisoformat(p["start_date"])} for p in FISCAL["periods"]]
    assert calendar_from_dict(changed(periods=periods)) == calendar_from_dict(FISCAL)


def test_gaps_are_reported_on_request() -> None:
    fiscal = calendar_from_dict(FISCAL)
    day = dt.date.fromisoformat
    assert fiscal.gaps("month") == ((day("2025-08-01"), day("2025-08-31")),)
    assert fiscal.gaps("month", fiscal.parse("FY26-H1")) == (
        (day("2025-08-01"), day("2025-08-31")),
        (day("2025-10-01"), day("2025-12-31")),
    )
    assert fiscal.gaps("half", fiscal.parse("FY26")) == ()
    assert fiscal.gaps("half", fiscal.parse("FY27")) == ((day("2026-07-01"), day("2027-06-30")),)


def test_a_period_whose_children_are_not_listed_says_so() -> None:
    fiscal = calendar_from_dict(FISCAL)
    with pytest.raises(PeriodError, match="has no half inside 'FY27'"):
        fiscal.children(fiscal.parse("FY27"), "half")


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    fiscal = calendar_from_dict(FISCAL)
    with pytest.raises(PeriodError, match="did you mean 'FY26-H2' or 'FY26-H1'"):
        fiscal.parse("FY26-H3")
    with pytest.raises(PeriodError, match="no fiscal_year after 'FY27'"):
        fiscal.next(fiscal.parse("FY27"))


@given(st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)), st.integers(1, 3))
def test_four_four_five_months_tile_their_quarters_and_years(first: dt.date, years: int) -> None:
    calendar = four_four_five(first, years)
    for period in calendar.periods:
        for below in calendar.below(period.level):
            children = calendar.children(period, below)
            assert (children[0].start, children[-1].end) == (period.start, period.end)
            assert all(a.end == b.start for a, b in pairwise(children))
            assert all(calendar.parent(child, period.level) == period for child in children)
    assert [calendar.gaps(level.name) for level in calendar.levels] == [(), (), ()]
    assert [p.days // 7 for p in calendar.children(calendar.parse("Y1-Q1"))] == [4, 4, 5]


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (changed(name=None), "W0402", "the name of a calendar must be a string, not None"),
        (changed(levels=[]), "W0402", "levels must be a list of mappings, not []"),
        (changed(levels="month"), "W0402", "levels must be a list of mappings, not 'month'"),
        (changed(periods=None), "W0402", "periods must be a list of mappings, not None"),
        (changed(levels=[{"nmae": "a"}]), "W0402", "unknown key 'nmae' in a level"),
        (changed(levels=[{"name": "a"}, {"name": "a"}]), "W0402", "two levels have the name 'a'"),
        (changed(levels=[{"name": "month", "parent": "yaer"}, {"name": "year"}]), "W0403",
         "level 'month' has the unknown parent 'yaer'"),
        (changed(levels=[{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]), "W0402",
         "level 'a' is its own ancestor"),
        (changed(levels=[{"name": "a", "parent": "a"}]), "W0402", "level 'a' is its own ancestor"),
        (with_periods({"identifier": "X"}), "W0402",
         "a period needs 'level', 'start_date', 'end_date': {'identifier': 'X'}"),
        (with_periods(entry("X", "half", "2030-01-01", "2030-02-01", statsu="open")), "W0402",
         "unknown key 'statsu' in a period"),
        (with_periods(entry("X", "mnoth", "2030-01-01", "2030-02-01")), "W0403",
         "period 'X' has the unknown level 'mnoth'"),
        (with_periods(entry("FY26", "half", "2030-01-01", "2030-02-01")), "W0402",
         "two periods have the identifier 'FY26'"),
        (with_periods(entry("X", "half", "2030-01-01", "2030-02-01", status="shut")), "W0402",
         "period 'X' has the unknown status 'shut'"),
        (with_periods(entry("X", "half", "2030-02-01", "2030-01-01")), "W0402",
         "period 'X' ends before it starts: 2030-02-01 to 2030-01-01"),
        (with_periods(entry("X", "half", "2030-02-30", "2030-03-01")), "W0402",
         "period 'X' has the invalid start_date '2030-02-30'"),
        (with_periods(entry("X", "half", "2030-01-01", "9999-12-31")), "W0402",
         "period 'X' has the invalid end_date '9999-12-31'"),
        (with_periods(entry("X", "half", "2026-06-30", "2026-12-31")), "W0402",
         "periods 'FY26-H2' and 'X' of level 'half' overlap from 2026-06-30 to 2026-06-30"),
        (with_periods(entry("X", "month", "2025-12-15", "2026-01-15")), "W0402",
         "period 'X' (2025-12-15 to 2026-01-15) is not inside 'FY26-H1' (2025-07-01 to 2025-12-31)"),
        (with_periods(entry("X", "half", "2026-07-01", "2026-12-31", parent="FY26")), "W0402",
         "period 'X' (2026-07-01 to 2026-12-31) is not inside 'FY26' (2025-07-01 to 2026-06-30)"),
        (with_periods(entry("X", "half", "2026-07-01", "2026-12-31", parent="FY72")), "W0401",
         "period 'X' has the unknown parent 'FY72'"),
        (with_periods(entry("X", "month", "2026-01-01", "2026-01-31", parent="FY26")), "W0402",
         "period 'X' of level 'month' has the parent 'FY26' of level 'fiscal_year'"),
    ],
)  # fmt: skip
def test_a_calendar_that_contradicts_itself_is_refused(data: dict[str, Any], code: str, message: str) -> None:
    with pytest.raises(PeriodError) as caught:
        calendar_from_dict(data)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_every_finding_is_reported() -> None:
    bad = with_periods(
        entry("X", "mnoth", "2030-01-01", "2030-02-01"),
        entry("Y", "half", "2030-02-30", "soon", status="shut"),
    )
    with pytest.raises(PeriodError) as caught:
        calendar_from_dict(bad)
    assert len(caught.value.diagnostics) == 4


def test_a_nested_period_that_hides_an_overlap_is_found() -> None:
    periods = [
        entry("A", "half", "2030-01-01", "2030-12-31"),
        entry("B", "half", "2030-02-01", "2030-02-28"),
        entry("C", "half", "2030-11-01", "2031-01-31"),
    ]
    with pytest.raises(PeriodError) as caught:
        calendar_from_dict(with_periods(*periods))
    assert len(caught.value.diagnostics) == 2


def test_periods_that_all_overlap_give_one_finding_each() -> None:
    periods = [entry(f"P{i:03}", "half", "2030-01-01", "2030-12-31") for i in range(300)]
    with pytest.raises(PeriodError) as caught:
        calendar_from_dict(with_periods(*periods))
    assert len(caught.value.diagnostics) == 299


def test_a_period_needs_no_parent() -> None:
    fiscal = calendar_from_dict(with_periods(entry("M", "month", "2030-01-01", "2030-01-31")))
    assert fiscal.parent(fiscal.parse("M")) is None
