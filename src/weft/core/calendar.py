"""Period and Calendar: named stretches of days, in levels that contain each other; GREGORIAN is built in.

Identifiers are names, never quantities: "2024-01" and "2024-Q1" are compared by their dates.
"""

from __future__ import annotations

import datetime as dt
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from weft.core.names import format_list, suggest
from weft.errors import PeriodError

Status = Literal["open", "closed", "locked"]
ONE_DAY = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Level:
    """A size of period, and the levels whose periods are made of such periods."""

    name: str
    parents: tuple[str, ...] = ()

    @property
    def parent(self) -> str | None:
        """The level next above, or None for a top level."""
        return self.parents[0] if self.parents else None


@dataclass(frozen=True, slots=True)
class Period:
    """A named stretch of whole days: from `start` to just before `end`.

    >>> q1 = Period("2026-Q1", "quarter", dt.date(2026, 1, 1), dt.date(2026, 4, 1))
    >>> q1.end_date.isoformat(), q1.days, q1.contains(dt.date(2026, 3, 31)), q1.contains(dt.date(2026, 4, 1))
    ('2026-03-31', 90, True, False)
    """

    identifier: str
    level: str
    start: dt.date
    end: dt.date
    calendar: str = "gregorian"
    status: Status = "open"

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise PeriodError(
                f"period {self.identifier!r} has no day: it starts on {self.start} and ends before {self.end}",
                code="W0402",
                help="`end` is the first day after the period",
            )

    @property
    def start_date(self) -> dt.date:
        """The first day."""
        return self.start

    @property
    def end_date(self) -> dt.date:
        """The last day, which belongs to the period."""
        return self.end - ONE_DAY

    @property
    def days(self) -> int:
        """How many days it has."""
        return (self.end - self.start).days

    def contains(self, day: dt.date) -> bool:
        """Whether the day, or the day of a time, lies in the period."""
        day = day.date() if isinstance(day, dt.datetime) else day
        return self.start <= day < self.end

    def covers(self, other: Period) -> bool:
        """Whether every day of the other period lies in this one."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Period) -> bool:
        """Whether the two have a day in common."""
        return self.start < other.end and other.start < self.end

    def precedes(self, other: Period) -> bool:
        """Whether this period is over when the other begins, whatever their levels."""
        return self.end <= other.start

    def tokens(self) -> dict[str, str]:
        """Return what templates may say of the period.

        ``YYYY``, ``QQ`` and ``MM`` are there when the period lies in one year, quarter or month.

        >>> Period("2026-01", "month", dt.date(2026, 1, 1), dt.date(2026, 2, 1)).tokens()
        {'period': '2026-01', 'YYYY': '2026', 'QQ': 'Q1', 'MM': '01'}
        """
        first, last = self.start, self.end_date
        found = {"period": self.identifier}
        if first.year == last.year:
            found["YYYY"] = f"{first.year:04d}"
            if _quarter(first) == _quarter(last):
                found["QQ"] = f"Q{_quarter(first)}"
            if first.month == last.month:
                found["MM"] = f"{first.month:02d}"
        return found

    def __str__(self) -> str:
        return self.identifier


def _quarter(day: dt.date) -> int:
    return (day.month + 2) // 3


class Calendar(ABC):
    """Periods in levels; a level's periods never overlap."""

    name: str
    levels: tuple[Level, ...]

    @abstractmethod
    def find(self, identifier: str) -> Period | None:
        """Return the period of that name, or None."""

    @abstractmethod
    def at(self, day: dt.date, level: str) -> Period | None:
        """Return the period of the level in which the day lies, or None."""

    @abstractmethod
    def within(self, start: dt.date, end: dt.date, level: str) -> tuple[Period, ...]:
        """Return the periods of the level that lie wholly between two days, end exclusive, in order."""

    @abstractmethod
    def suggestions(self, identifier: str) -> str:
        """Return help for somebody who named a period that is not there."""

    def parse(self, identifier: str) -> Period:
        """Return the period of that name; its level is found with it."""
        found = self.find(identifier) if isinstance(identifier, str) else None
        if found is None:
            raise PeriodError(
                f"the calendar {self.name!r} has no period {identifier!r}",
                help=self.suggestions(str(identifier)),
            )
        return found

    def level(self, name: str) -> Level:
        """Return the level of that name."""
        names = [level.name for level in self.levels]
        if name not in names:
            raise PeriodError(
                f"the calendar {self.name!r} has no level {name!r}",
                code="W0403",
                help=suggest(name, names, "its levels are", most=1),
            )
        return self.levels[names.index(name)]

    def below(self, name: str) -> tuple[str, ...]:
        """Return the levels into which periods of a level divide, nearest first."""
        found = [self.level(name).name]
        for above in found:
            found += [
                level.name for level in self.levels if above in level.parents and level.name not in found
            ]
        return tuple(found[1:])

    def children(self, period: Period, level: str | None = None) -> tuple[Period, ...]:
        """Return the periods of a level below that lie in `period`, in order; by default of the next level."""
        lower = self.below(period.level)
        if level is None:
            level = lower[0] if lower else ""
        elif self.level(level).name == period.level:
            return (period,)
        if level not in lower:
            raise PeriodError(
                f"a {period.level} does not divide into periods of level {level!r}"
                if level
                else f"a {period.level} does not divide into smaller periods",
                code="W0404",
                help=f"below {period.level!r} there is {format_list(lower)}",
            )
        found = self.within(period.start, period.end, level)
        if not found:
            raise PeriodError(
                f"the calendar {self.name!r} has no {level} inside {period.identifier!r}",
                help=f"add its periods of level {level!r}, each with a start_date and an end_date",
            )
        return found

    def parent(self, period: Period, level: str | None = None) -> Period | None:
        """Return the period of a level above in which `period` lies; by default of the next level."""
        above = self.level(period.level).parent if level is None else self.level(level).name
        if above is None:
            return None
        if period.level not in self.below(above):
            raise PeriodError(
                f"a {period.level} is not part of a {above}",
                code="W0404",
                help=f"below {above!r} there is {format_list(self.below(above))}",
            )
        found = self.at(period.start, above)
        return found if found is not None and found.covers(period) else None

    def next(self, period: Period) -> Period:
        """Return the period of the same level that follows."""
        return self._neighbour(period, after=True)

    def previous(self, period: Period) -> Period:
        """Return the period of the same level that comes before."""
        return self._neighbour(period, after=False)

    def _neighbour(self, period: Period, *, after: bool) -> Period:
        found = self._beside(period, after=after)
        if found is None:
            where = "after" if after else "before"
            raise PeriodError(
                f"the calendar {self.name!r} has no {period.level} {where} {period.identifier!r}",
                help="stop at the first or last period that the calendar lists",
            )
        return found

    @abstractmethod
    def _beside(self, period: Period, *, after: bool) -> Period | None:
        """Return the neighbour of a period on its level, or None at an end of the calendar."""

    def gaps(self, level: str, within: Period | None = None) -> tuple[tuple[dt.date, dt.date], ...]:
        """Return the stretches, first and last day, that no period of the level covers.

        They are looked for inside a period, or between the first and the last one of the level.
        """
        start, end = (within.start, within.end) if within else (dt.date.min, dt.date.max)
        periods = self.within(start, end, self.level(level).name)
        edges = [(p.start, p.end) for p in periods]
        if within:
            edges = [(start, start), *edges, (end, end)]
        return tuple((a[1], b[0] - ONE_DAY) for a, b in pairwise(edges) if a[1] < b[0])


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
