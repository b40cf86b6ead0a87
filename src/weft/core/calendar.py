"""Period and Calendar: named ranges of days, in levels that contain each other; GREGORIAN is built in.

Identifiers are names, never quantities: "2024-01" and "2024-Q1" are compared by their dates.

>>> january = GREGORIAN.parse("2026-01")
>>> january.level, str(GREGORIAN.parent(january)), str(GREGORIAN.next(january)), january.end_date.isoformat()
('month', '2026-Q1', '2026-02', '2026-01-31')
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
    """A size of period, and the levels whose periods consist of such periods."""

    name: str
    parents: tuple[str, ...] = ()

    @property
    def parent(self) -> str | None:
        """The next level above, None for a top level."""
        return self.parents[0] if self.parents else None


@dataclass(frozen=True, slots=True)
class Period:
    """A named range of days; `end` is exclusive.

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
                f"period {self.identifier!r} has no days: it starts on {self.start} and ends before {self.end}",
                code="W0402",
                help="`end` is the first day after the period",
            )

    @property
    def start_date(self) -> dt.date:
        """The first day."""
        return self.start

    @property
    def end_date(self) -> dt.date:
        """The last day, inclusive."""
        return self.end - ONE_DAY

    @property
    def days(self) -> int:
        """The number of days."""
        return (self.end - self.start).days

    def contains(self, day: dt.date) -> bool:
        """Whether the period contains the day, or the day of a timestamp."""
        day = day.date() if isinstance(day, dt.datetime) else day
        return self.start <= day < self.end

    def covers(self, other: Period) -> bool:
        """Whether the period contains every day of the other period."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Period) -> bool:
        """Whether the two have a day in common."""
        return self.start < other.end and other.start < self.end

    def precedes(self, other: Period) -> bool:
        """Whether this period ends before the other starts, whatever their levels."""
        return self.end <= other.start

    def tokens(self) -> dict[str, str]:
        """Return the template tokens of the period.

        ``YYYY``, ``QQ`` and ``MM`` are present when the period is within one year, quarter or month.

        >>> Period("2026-01", "month", dt.date(2026, 1, 1), dt.date(2026, 2, 1)).tokens()
        {'period': '2026-01', 'YYYY': '2026', 'QQ': 'Q1', 'MM': '01'}
        """
        first, last = self.start, self.end_date
        tokens = {"period": self.identifier}
        if first.year == last.year:
            tokens["YYYY"] = f"{first.year:04d}"
            if _quarter(first) == _quarter(last):
                tokens["QQ"] = f"Q{_quarter(first)}"
            if first.month == last.month:
                tokens["MM"] = f"{first.month:02d}"
        return tokens

    def __str__(self) -> str:
        return self.identifier


def _quarter(day: dt.date) -> int:
    return (day.month + 2) // 3


class Calendar(ABC):
    """Periods in levels; the periods of a level never overlap."""

    name: str
    levels: tuple[Level, ...]

    @abstractmethod
    def find(self, identifier: str) -> Period | None:
        """Return the period of that name, or None."""

    @abstractmethod
    def at(self, day: dt.date, level: str) -> Period | None:
        """Return the period of the level that contains the day, or None."""

    @abstractmethod
    def within(self, start: dt.date, end: dt.date, level: str) -> tuple[Period, ...]:
        """Return the periods of the level between two days, end exclusive, in order."""

    @abstractmethod
    def suggestions(self, identifier: str) -> str:
        """Return the help for an unknown period."""

    def parse(self, identifier: str) -> Period:
        """Return the period of that name, of any level."""
        period = self.find(identifier) if isinstance(identifier, str) else None
        if period is None:
            raise PeriodError(
                f"the calendar {self.name!r} has no period {identifier!r}", help=self.suggestions(str(identifier))
            )
        return period

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
        """Return the levels below a level, nearest first."""
        names = [self.level(name).name]
        for above in names:
            names += [level.name for level in self.levels if above in level.parents and level.name not in names]
        return tuple(names[1:])

    def children(self, period: Period, level: str | None = None) -> tuple[Period, ...]:
        """Return the periods of a lower level inside `period`, in order; by default of the next level."""
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
                help=f"levels below {period.level!r}: {format_list(lower)}",
            )
        periods = self.within(period.start, period.end, level)
        if not periods:
            raise PeriodError(
                f"the calendar {self.name!r} has no {level} inside {period.identifier!r}",
                help=f"add its periods of level {level!r}, each with a start_date and an end_date",
            )
        return periods

    def parent(self, period: Period, level: str | None = None) -> Period | None:
        """Return the period of a higher level that contains `period`; by default of the next level."""
        above = self.level(period.level).parent if level is None else self.level(level).name
        if above is None:
            return None
        if period.level not in self.below(above):
            raise PeriodError(
                f"a {period.level} is not part of a {above}",
                code="W0404",
                help=f"levels below {above!r}: {format_list(self.below(above))}",
            )
        parent = self.at(period.start, above)
        return parent if parent is not None and parent.covers(period) else None

    def next(self, period: Period) -> Period:
        """Return the following period of the same level."""
        return self._neighbour(period, after=True)

    def previous(self, period: Period) -> Period:
        """Return the preceding period of the same level."""
        return self._neighbour(period, after=False)

    def _neighbour(self, period: Period, *, after: bool) -> Period:
        neighbour = self._find_neighbour(period, after=after)
        if neighbour is None:
            where = "after" if after else "before"
            raise PeriodError(
                f"the calendar {self.name!r} has no {period.level} {where} {period.identifier!r}",
                help="stop at the first or last period of the calendar",
            )
        return neighbour

    @abstractmethod
    def _find_neighbour(self, period: Period, *, after: bool) -> Period | None:
        """Return the previous or next period of the level, None at the end of the calendar."""

    def gaps(self, level: str, within: Period | None = None) -> tuple[tuple[dt.date, dt.date], ...]:
        """Return the first and last day of each gap between the periods of a level.

        `within` limits the search to a period; without it, gaps between the first and last period are returned.
        """
        start, end = (within.start, within.end) if within else (dt.date.min, dt.date.max)
        periods = self.within(start, end, self.level(level).name)
        edges = [(p.start, p.end) for p in periods]
        if within:  # the ends of the period bound the first and the last gap
            edges = [(start, start), *edges, (end, end)]
        return tuple((a[1], b[0] - ONE_DAY) for a, b in pairwise(edges) if a[1] < b[0])


_LAST_YEAR = 9998  # the exclusive end of 9999 is not a valid Python date
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
    """Years, quarters, months and days; ISO weeks, which cross the ends of months.

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
        match = _PATTERN.fullmatch(identifier)
        if match is None:
            return None
        numbers = {unit: int(text) for unit, text in match.groupdict().items() if text is not None}
        if not 1 <= numbers["year"] <= _LAST_YEAR:
            return None
        try:
            return _period(**numbers)
        except ValueError:
            return None

    def at(self, day: dt.date, level: str) -> Period | None:
        """Return the period of the level that contains the day, or None."""
        return self.find(_identifier(day, self.level(level).name))

    def within(self, start: dt.date, end: dt.date, level: str) -> tuple[Period, ...]:
        """Return the periods of the level between two days, end exclusive, in order."""
        periods = []
        period = self.at(start, level)
        while period is not None and period.end <= end:
            if period.start >= start:  # the first one may begin before: a week across the end of a month
                periods.append(period)
            period = self.at(period.end, level)
        return tuple(periods)

    def _find_neighbour(self, period: Period, *, after: bool) -> Period | None:
        if not after and period.start == dt.date.min:  # there is no day before it
            return None
        return self.at(period.end if after else period.start - ONE_DAY, period.level)

    def suggestions(self, identifier: str) -> str:
        """Return the valid forms of a name, and the corrected name where it can be guessed."""
        match = _ALMOST.fullmatch(identifier.strip())
        if match is None:
            return _FORMS
        year, kind, number, day = (match["year"], (match["kind"] or "").upper(), int(match["number"]), match["day"])
        digits = f"{number:02d}" if kind != "Q" else str(number)
        guess = f"{year}-{kind}{digits}" + (f"-{int(day):02d}" if day and not kind else "")
        return f"did you mean {guess!r}?\n{_FORMS}" if self.find(guess) else _FORMS


def _identifier(day: dt.date, level: str) -> str:
    if level == "week":
        # The year of an ISO week, which is not that of the day around New Year.
        iso = day.isocalendar()
        return f"{iso.year:04d}-W{iso.week:02d}"
    if level == "quarter":
        return f"{day.year:04d}-Q{_quarter(day)}"
    return day.isoformat()[: {"year": 4, "month": 7, "day": 10}[level]]


def _period(
    year: int, quarter: int | None = None, week: int | None = None, month: int | None = None, day: int | None = None
) -> Period:
    """Return the period of the numbers; ValueError when the day does not exist."""
    if month is not None and day is not None:
        level, start = "day", dt.date(year, month, day)
        end = start + ONE_DAY
    elif week is not None:
        level, start = "week", dt.date.fromisocalendar(year, week, 1)
        end = start + 7 * ONE_DAY
    elif quarter is not None:
        level, start = "quarter", dt.date(year, 3 * quarter - 2, 1)
        end = _add_months(start, 3)
    elif month is not None:
        level, start = "month", dt.date(year, month, 1)
        end = _add_months(start, 1)
    else:
        level, start, end = "year", dt.date(year, 1, 1), dt.date(year + 1, 1, 1)
    return Period(_identifier(start, level), level, start, end)


def _add_months(start: dt.date, months: int) -> dt.date:
    years, month = divmod(start.month - 1 + months, 12)
    return dt.date(start.year + years, month + 1, 1)


GREGORIAN = Gregorian()
"""The built-in calendar."""
