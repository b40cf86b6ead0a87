"""GREGORIAN: the built-in calendar of years, quarters, months, ISO weeks and days."""

from __future__ import annotations

import datetime as dt
import re

from weft.core.calendar import ONE_DAY, Calendar, Level, Period

_LAST_YEAR = 9998  # the end of 9999 is a day that Python's dates do not have
_PATTERN = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?:Q(?P<quarter>[1-4])|W(?P<week>[0-9]{2})|(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2}))?))?",
    re.ASCII,
)
_ALMOST = re.compile(
    r"(?P<year>[0-9]{4})[-/_. ]?(?P<kind>[QW])?[-/_. ]?(?P<number>[0-9]{1,2})(?:[-/_. ]?(?P<day>[0-9]{1,2}))?",
    re.ASCII | re.IGNORECASE,
)
_FORMS = "write a year 2026, a quarter 2026-Q1, a month 2026-01, a week 2026-W05 or a day 2026-01-31"


class Gregorian(Calendar):
    """Years, quarters, months and days; ISO weeks beside them, which lie across months.

    >>> GREGORIAN.parse("2026-Q1").level, [str(p) for p in GREGORIAN.children(GREGORIAN.parse("2026-Q1"))]
    ('quarter', ['2026-01', '2026-02', '2026-03'])
    """

    name = "gregorian"
    levels = (
        Level("year"),
        Level("quarter", ("year",)),
        Level("month", ("quarter",)),
        Level("week"),
        Level("day", ("month", "week")),
    )

    def find(self, identifier: str) -> Period | None:
        """Return the period of that name, or None."""
        read = _PATTERN.fullmatch(identifier)
        if read is None:
            return None
        numbers = {unit: int(text) for unit, text in read.groupdict().items() if text is not None}
        if not 1 <= numbers["year"] <= _LAST_YEAR:
            return None
        try:
            return _period(**numbers)
        except ValueError:
            return None

    def at(self, day: dt.date, level: str) -> Period | None:
        """Return the period of the level in which the day lies, or None."""
        return self.find(_identifier(day, self.level(level).name))

    def within(self, start: dt.date, end: dt.date, level: str) -> tuple[Period, ...]:
        """Return the periods of the level that lie wholly between two days, end exclusive, in order."""
        found = []
        period = self.at(start, level)
        while period is not None and period.end <= end:
            if period.start >= start:
                found.append(period)
            period = self.at(period.end, level)
        return tuple(found)

    def _beside(self, period: Period, *, after: bool) -> Period | None:
        if not after and period.start == dt.date.min:
            return None
        return self.at(period.end if after else period.start - ONE_DAY, period.level)

    def suggestions(self, identifier: str) -> str:
        """Return the forms that names have, after a name that was nearly right."""
        read = _ALMOST.fullmatch(identifier.strip())
        if read is None:
            return _FORMS
        year, kind, number, day = read["year"], (read["kind"] or "").upper(), int(read["number"]), read["day"]
        written = f"{number:02d}" if kind != "Q" else str(number)
        guess = f"{year}-{kind}{written}" + (f"-{int(day):02d}" if day and not kind else "")
        return f"did you mean {guess!r}?\n{_FORMS}" if self.find(guess) else _FORMS


def _identifier(day: dt.date, level: str) -> str:
    if level == "week":
        iso = day.isocalendar()
        return f"{iso.year:04d}-W{iso.week:02d}"
    if level == "quarter":
        return f"{day.year:04d}-Q{(day.month + 2) // 3}"
    return day.isoformat()[: {"year": 4, "month": 7, "day": 10}[level]]


def _period(
    year: int,
    quarter: int | None = None,
    week: int | None = None,
    month: int | None = None,
    day: int | None = None,
) -> Period:
    """Return the period that the numbers name; ValueError when there is no such day."""
    if month is not None and day is not None:
        level, start = "day", dt.date(year, month, day)
        end = start + ONE_DAY
    elif week is not None:
        level, start = "week", dt.date.fromisocalendar(year, week, 1)
        end = start + 7 * ONE_DAY
    elif quarter is not None:
        level, start = "quarter", dt.date(year, 3 * quarter - 2, 1)
        end = _months_later(start, 3)
    elif month is not None:
        level, start = "month", dt.date(year, month, 1)
        end = _months_later(start, 1)
    else:
        level, start, end = "year", dt.date(year, 1, 1), dt.date(year + 1, 1, 1)
    return Period(_identifier(start, level), level, start, end)


def _months_later(start: dt.date, months: int) -> dt.date:
    years, month = divmod(start.month - 1 + months, 12)
    return dt.date(start.year + years, month + 1, 1)


GREGORIAN = Gregorian()
"""The calendar that is there without a file."""
