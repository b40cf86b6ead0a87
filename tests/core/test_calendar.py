"""The built-in calendar: names, levels, neighbours, children that tile their parent."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.calendar import GREGORIAN, Period
from weft.errors import PeriodError

DAYS = st.dates(dt.date(1600, 1, 1), dt.date(2600, 12, 31))
LEVELS = tuple(level.name for level in GREGORIAN.levels)


def ids(periods: tuple[Period, ...]) -> list[str]:
    return [p.identifier for p in periods]


@pytest.mark.parametrize(
    ("identifier", "level", "start", "last"),
    [
        ("2026", "year", "2026-01-01", "2026-12-31"),
        ("2026-Q1", "quarter", "2026-01-01", "2026-03-31"),
        ("2026-Q4", "quarter", "2026-10-01", "2026-12-31"),
        ("2026-01", "month", "2026-01-01", "2026-01-31"),
        ("2024-02", "month", "2024-02-01", "2024-02-29"),
        ("1900-02", "month", "1900-02-01", "1900-02-28"),
        ("2026-12", "month", "2026-12-01", "2026-12-31"),
        ("2026-W05", "week", "2026-01-26", "2026-02-01"),
        ("2026-W01", "week", "2025-12-29", "2026-01-04"),
        ("2020-W53", "week", "2020-12-28", "2021-01-03"),
        ("2026-01-31", "day", "2026-01-31", "2026-01-31"),
        ("0001", "year", "0001-01-01", "0001-12-31"),
        ("9998-12", "month", "9998-12-01", "9998-12-31"),
    ],
)
def test_a_name_says_its_level_and_its_days(identifier: str, level: str, start: str, last: str) -> None:
    period = GREGORIAN.parse(identifier)
    assert (period.identifier, period.level, period.calendar) == (identifier, level, "gregorian")
    assert (period.start_date.isoformat(), period.end_date.isoformat()) == (start, last)
    assert period.end == period.end_date + dt.timedelta(days=1)
    assert str(period) == identifier


@pytest.mark.parametrize(
    "identifier",
    ["", "2026-13", "2026-00", "2026-Q0", "2026-Q5", "2025-W53", "2026-W00", "2026-02-29", "26", "0000", "9999",
     "2026-1", "2026-q1", "2026-01-1", " 2026", "2026-01 ", "FY26", "2026-01\n", "\u0662\u0660\u0662\u0666"],
)  # fmt: skip
def test_other_names_are_unknown_and_the_forms_are_shown(identifier: str) -> None:
    with pytest.raises(PeriodError) as caught:
        GREGORIAN.parse(identifier)
    assert caught.value.code == "W0401"
    assert caught.value.message == f"the calendar 'gregorian' has no period {identifier!r}"
    assert "a quarter 2026-Q1" in caught.value.help


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-1", "2026-01"),
        ("202601", "2026-01"),
        ("2026/01", "2026-01"),
        ("2026Q1", "2026-Q1"),
        ("2026-q1", "2026-Q1"),
        ("2026-W5", "2026-W05"),
        ("20260131", "2026-01-31"),
        ("2026-1-5", "2026-01-05"),
        (" 2026-01", "2026-01"),
    ],
)
def test_a_name_that_is_nearly_right_is_guessed(written: str, meant: str) -> None:
    with pytest.raises(PeriodError, match=f"did you mean '{meant}'"):
        GREGORIAN.parse(written)


def test_children_are_listed_in_order_and_transitively() -> None:
    year = GREGORIAN.parse("2026")
    assert ids(GREGORIAN.children(year)) == ["2026-Q1", "2026-Q2", "2026-Q3", "2026-Q4"]
    assert ids(GREGORIAN.children(GREGORIAN.parse("2026-Q1"), "month")) == ["2026-01", "2026-02", "2026-03"]
    assert len(GREGORIAN.children(year, "month")) == 12
    assert len(GREGORIAN.children(year, "day")) == 365
    assert ids(GREGORIAN.children(GREGORIAN.parse("2026-W01")))[0] == "2025-12-29"
    assert GREGORIAN.children(year, "year") == (year,)


@pytest.mark.parametrize(
    ("identifier", "level", "code"),
    [
        ("2026-01", "quarter", "W0404"),
        ("2026-01", "week", "W0404"),
        ("2026-W01", "month", "W0404"),
        ("2026-01-01", None, "W0404"),
        ("2026", "mnoth", "W0403"),
    ],
)
def test_a_level_that_is_not_below_is_refused(identifier: str, level: str | None, code: str) -> None:
    with pytest.raises(PeriodError) as caught:
        GREGORIAN.children(GREGORIAN.parse(identifier), level)
    assert caught.value.code == code


def test_an_unknown_level_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(PeriodError) as caught:
        GREGORIAN.level("mnoth")
    assert str(caught.value) == (
        "error[W0403]: the calendar 'gregorian' has no level 'mnoth'\n = help: did you mean 'month'?"
    )


def test_levels_contain_each_other_but_a_week_is_not_part_of_a_month() -> None:
    assert GREGORIAN.below("year") == ("quarter", "month", "day")
    assert GREGORIAN.below("week") == ("day",)
    assert GREGORIAN.below("day") == ()


def test_a_month_has_the_weeks_that_lie_in_it_as_a_whole() -> None:
    january = GREGORIAN.parse("2026-01")
    assert ids(GREGORIAN.within(january.start, january.end, "week")) == ["2026-W02", "2026-W03", "2026-W04"]
    gaps = ((dt.date(2026, 1, 1), dt.date(2026, 1, 4)), (dt.date(2026, 1, 26), dt.date(2026, 1, 31)))
    assert GREGORIAN.gaps("week", january) == gaps


def test_parents_are_found_at_the_next_level_or_at_a_named_one() -> None:
    day = GREGORIAN.parse("2026-01-31")
    assert str(GREGORIAN.parent(day)) == "2026-01"
    assert str(GREGORIAN.parent(day, "year")) == "2026"
    assert str(GREGORIAN.parent(day, "week")) == "2026-W05"
    assert GREGORIAN.parent(GREGORIAN.parse("2026")) is None
    with pytest.raises(PeriodError, match="a week is not part of a month"):
        GREGORIAN.parent(GREGORIAN.parse("2026-W05"), "month")


def test_neighbours_cross_the_year() -> None:
    for one, other in (
        ("2025-12", "2026-01"),
        ("2025-Q4", "2026-Q1"),
        ("2025-W52", "2026-W01"),
        ("2025", "2026"),
    ):
        assert str(GREGORIAN.next(GREGORIAN.parse(one))) == other
        assert str(GREGORIAN.previous(GREGORIAN.parse(other))) == one


def test_the_calendar_has_two_ends() -> None:
    with pytest.raises(PeriodError, match="no year before '0001'"):
        GREGORIAN.previous(GREGORIAN.parse("0001"))
    with pytest.raises(PeriodError, match="no month after '9998-12'"):
        GREGORIAN.next(GREGORIAN.parse("9998-12"))


def test_periods_of_different_levels_are_compared_by_their_dates() -> None:
    month, quarter, year = map(GREGORIAN.parse, ("2024-01", "2024-Q1", "2024"))
    assert quarter.covers(month)
    assert year.covers(quarter)
    assert not month.covers(quarter)
    assert month.overlaps(year)
    assert not month.precedes(quarter)
    assert GREGORIAN.parse("2023-Q4").precedes(month)
    with pytest.raises(TypeError):
        _ = month < quarter  # type: ignore[operator]


def test_the_day_of_a_time_decides_whether_it_is_inside() -> None:
    january = GREGORIAN.parse("2026-01")
    assert january.contains(dt.datetime(2026, 1, 31, 23, 59, 59, tzinfo=dt.UTC))
    assert not january.contains(dt.datetime(2026, 2, 1, tzinfo=dt.UTC))


def test_tokens_exist_when_the_period_is_in_one_year_quarter_or_month() -> None:
    def tokens(identifier: str) -> dict[str, str]:
        return GREGORIAN.parse(identifier).tokens()

    assert tokens("2026-05") == {"period": "2026-05", "YYYY": "2026", "QQ": "Q2", "MM": "05"}
    assert tokens("2026-Q2") == {"period": "2026-Q2", "YYYY": "2026", "QQ": "Q2"}
    assert tokens("2026") == {"period": "2026", "YYYY": "2026"}
    assert tokens("2026-W01") == {"period": "2026-W01"}


def test_a_period_without_days_cannot_be_made() -> None:
    day = dt.date(2026, 1, 1)
    with pytest.raises(PeriodError, match="has no day"):
        Period("x", "month", day, day)


def test_periods_are_values() -> None:
    assert GREGORIAN.parse("2026-01") == GREGORIAN.parse("2026-01")
    assert len({GREGORIAN.parse("2026-01"), GREGORIAN.parse("2026-01"), GREGORIAN.parse("2026-Q1")}) == 2


@given(DAYS, st.sampled_from(LEVELS))
def test_every_day_is_in_one_period_of_each_level_and_its_name_can_be_parsed(day: dt.date, level: str) -> None:
    period = GREGORIAN.at(day, level)
    assert period is not None
    assert period.contains(day)
    assert period.level == level
    assert GREGORIAN.parse(period.identifier) == period


@given(DAYS, st.sampled_from(LEVELS))
def test_children_tile_their_parent_at_every_level_below(day: dt.date, level: str) -> None:
    period = GREGORIAN.at(day, level)
    assert period is not None
    for below in GREGORIAN.below(level):
        children = GREGORIAN.children(period, below)
        assert children[0].start == period.start
        assert children[-1].end == period.end
        assert all(a.end == b.start for a, b in pairwise(children))
        assert all(GREGORIAN.parent(child, level) == period for child in children)
        assert GREGORIAN.gaps(below, period) == ()


@given(DAYS, st.sampled_from(LEVELS))
def test_next_and_previous_undo_each_other_without_a_gap(day: dt.date, level: str) -> None:
    period = GREGORIAN.at(day, level)
    assert period is not None
    following = GREGORIAN.next(period)
    assert following.start == period.end
    assert GREGORIAN.previous(following) == period
