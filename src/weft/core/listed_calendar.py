"""Calendars that list their periods: fiscal years, 4-4-5 weeks, any levels."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, get_args

from weft.core.calendar import ONE_DAY, Calendar, Level, Period, Status
from weft.core.names import find_similar, format_list, suggest
from weft.errors import Code, Diagnostic, PeriodError

_STATUSES: tuple[str, ...] = get_args(Status)
_LEVEL_KEYS = ("name", "parent")
_NEEDED = ("identifier", "level", "start_date", "end_date")
_PERIOD_KEYS = (*_NEEDED, "parent", "status")


@dataclass(frozen=True, slots=True)
class ListedCalendar(Calendar):
    """A calendar defined by a list of periods, in any number of levels."""

    name: str
    levels: tuple[Level, ...]
    periods: tuple[Period, ...]
    _by_name: Mapping[str, Period] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "periods", tuple(sorted(self.periods, key=_by_start)))
        object.__setattr__(self, "_by_name", {p.identifier: p for p in self.periods})

    def find(self, identifier: str) -> Period | None:
        """Return the period of that name, or None."""
        return self._by_name.get(identifier)

    def at(self, day: dt.date, level: str) -> Period | None:
        """Return the period of the level that contains the day, or None."""
        return next((p for p in self._of(level) if p.contains(day)), None)

    def within(self, start: dt.date, end: dt.date, level: str) -> tuple[Period, ...]:
        """Return the periods of the level between two days, end exclusive, in order."""
        return tuple(p for p in self._of(level) if start <= p.start and p.end <= end)

    def suggestions(self, identifier: str) -> str:
        """Return the help for an unknown period."""
        return suggest(identifier, self._by_name, "it has")

    def _of(self, level: str) -> Iterator[Period]:
        name = self.level(level).name
        return (p for p in self.periods if p.level == name)

    def _find_neighbour(self, period: Period, *, after: bool) -> Period | None:
        if after:
            return next((p for p in self._of(period.level) if period.precedes(p)), None)
        return next((p for p in reversed(tuple(self._of(period.level))) if p.precedes(period)), None)


def _by_start(period: Period) -> tuple[dt.date, dt.date, str]:
    return period.start, period.end, period.identifier


def calendar_from_dict(data: Mapping[str, Any]) -> ListedCalendar:
    """Build a calendar from the content of its file; raise `PeriodError` with every finding.

    >>> fiscal = calendar_from_dict(
    ...     {
    ...         "name": "fiscal",
    ...         "levels": [{"name": "year"}, {"name": "half", "parent": "year"}],
    ...         "periods": [
    ...             {"identifier": "FY26", "level": "year", "start_date": "2025-07-01", "end_date": "2026-06-30"},
    ...             {"identifier": "FY26-H1", "level": "half", "start_date": "2025-07-01", "end_date": "2025-12-31"},
    ...         ],
    ...     }
    ... )
    >>> (str(fiscal.parent(fiscal.parse("FY26-H1"))), fiscal.gaps("half", fiscal.parse("FY26"))[0][0].isoformat())
    ('FY26', '2026-01-01')
    """
    builder = _Builder(data)
    if builder.findings:
        error = PeriodError(builder.findings)
        error.about = tuple(builder.about)
        raise error
    return ListedCalendar(builder.name, builder.levels, tuple(builder.periods.values()))


class _Builder:
    """Reads the content of a calendar file and collects findings."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.findings: list[Diagnostic] = []
        self.about: list[str] = []
        """The level or period of each finding."""
        self.name = self.text(data.get("name"), "the name of a calendar")
        self.levels = tuple(self.read_levels(self.entries(data.get("levels"), "levels")))
        self.periods: dict[str, Period] = {}
        if self.findings:  # periods cannot be checked against invalid levels
            return
        entries = self.entries(data.get("periods"), "periods")
        for entry in entries:
            self.read_period(entry)
        ordered = sorted(self.periods.values(), key=_by_start)
        self.by_level = {level.name: [p for p in ordered if p.level == level.name] for level in self.levels}
        if not self.findings:
            self.check_overlaps()
            self.check_parents(entries)

    def add(self, message: str, help: str = "", code: Code = "W0402", *, about: object = "") -> None:
        self.findings.append(Diagnostic(code, message, help=help))
        self.about.append(about if isinstance(about, str) else "")

    def text(self, value: object, what: str) -> str:
        if isinstance(value, str) and value.strip() == value and value:
            return value
        self.add(f"{what} must be a string, not {value!r}")
        return ""

    def entries(self, value: object, what: str) -> Sequence[Mapping[str, Any]]:
        if isinstance(value, Sequence) and value and all(isinstance(v, Mapping) for v in value):
            return value
        self.add(f"{what} must be a list of mappings, not {value!r}")
        return ()

    def keys(self, entry: Mapping[str, Any], allowed: Sequence[str], needed: Iterable[str], what: str) -> bool:
        name = entry.get("name") or entry.get("identifier")
        for key in entry:
            if key not in allowed:
                help = suggest(str(key), allowed, "its keys are", most=1)
                self.add(f"unknown key {key!r} in {what}", help, about=name)
        missing = [key for key in needed if entry.get(key) is None]
        if missing:
            self.add(f"{what} needs {format_list(missing)}: {dict(entry)!r}", about=name)
        return not missing

    def read_levels(self, entries: Sequence[Mapping[str, Any]]) -> Iterator[Level]:
        named = [entry for entry in entries if self.keys(entry, _LEVEL_KEYS, ("name",), "a level")]
        names = [self.text(entry["name"], "the name of a level") for entry in named]
        for name in {n for n in names if names.count(n) > 1}:
            self.add(f"two levels have the name {name!r}", about=name)
        above = {entry.get("name"): entry.get("parent") for entry in entries}
        for name in names:
            parent = above[name]
            if parent is not None and parent not in names:
                help = suggest(str(parent), names, "levels are", most=1)
                self.add(f"level {name!r} has the unknown parent {parent!r}", help, "W0403", about=name)
            elif _is_its_own_ancestor(name, above):
                help = "the parents of a level must end at a top level"
                self.add(f"level {name!r} is its own ancestor", help, about=name)
            yield Level(name, () if parent is None else (parent,))

    def read_period(self, entry: Mapping[str, Any]) -> None:
        if not self.keys(entry, _PERIOD_KEYS, _NEEDED, "a period"):
            return
        before = len(self.findings)
        name = self.text(entry["identifier"], "the identifier of a period")
        levels = [level.name for level in self.levels]
        if entry["level"] not in levels:
            help = suggest(str(entry["level"]), levels, "levels are", most=1)
            self.add(f"period {name!r} has the unknown level {entry['level']!r}", help, "W0403", about=name)
        if name in self.periods:
            help = "identifiers must be unique in a calendar"
            self.add(f"two periods have the identifier {name!r}", help, about=name)
        status: Any = entry.get("status") or "open"
        if status not in _STATUSES:
            help = f"statuses are {format_list(_STATUSES)}"
            self.add(f"period {name!r} has the unknown status {status!r}", help, about=name)
        start, last = (self.day(entry[key], name, key) for key in ("start_date", "end_date"))
        if start > last:
            help = "the end date is the last day"
            self.add(f"period {name!r} ends before it starts: {start} to {last}", help, about=name)
        if len(self.findings) == before:
            self.periods[name] = Period(name, entry["level"], start, last + ONE_DAY, self.name, status)

    def day(self, value: object, name: str, key: str) -> dt.date:
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            day: dt.date | None = value
        else:
            day = _parse_day(value)
        if day is None or day == dt.date.max:  # the day after the last one would not be a valid date
            self.add(f"period {name!r} has the invalid {key} {value!r}", "write for example 2026-01-31", about=name)
            return dt.date.min
        return day

    def check_overlaps(self) -> None:
        for level, ordered in self.by_level.items():
            # Sorted by start: a period overlaps an earlier one if it overlaps the one that ends last so far. One
            # finding for each is enough: the pairs of a file in which all periods overlap grow with the square.
            latest: Iterator[Period] = accumulate(ordered, _ends_later)
            for one, other in zip(latest, ordered[1:], strict=False):
                if one.overlaps(other):
                    self.add(
                        f"periods {one.identifier!r} and {other.identifier!r} of level {level!r} overlap "
                        f"from {other.start} to {min(one.end, other.end) - ONE_DAY}",
                        about=one.identifier,
                    )

    def check_parents(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Check that every period is inside its parent, and inside the period of the level above that it overlaps."""
        above = {level.name: level.parent for level in self.levels}
        for entry in entries:
            period, parent = self.periods[entry["identifier"]], entry.get("parent")
            if parent is not None and parent not in self.periods:
                close = find_similar(str(parent), self.periods, most=1)
                help = f"did you mean {close[0]!r}?" if close else ""
                message = f"period {period.identifier!r} has the unknown parent {parent!r}"
                self.add(message, help, "W0401", about=period.identifier)
            elif parent is not None and self.periods[parent].level != above[period.level]:
                self.add(
                    f"period {period.identifier!r} of level {period.level!r} has the parent {parent!r} "
                    f"of level {self.periods[parent].level!r}",
                    f"its parent must have the level {above[period.level]!r}",
                    about=period.identifier,
                )
            else:
                self.check_inside(period, parent, above[period.level])

    def check_inside(self, period: Period, parent: str | None, level: str | None) -> None:
        for other in self.by_level.get(level or "", ()):
            if (other.overlaps(period) or other.identifier == parent) and not other.covers(period):
                self.add(
                    f"period {period.identifier!r} ({period.start} to {period.end_date}) is not inside "
                    f"{other.identifier!r} ({other.start} to {other.end_date})",
                    about=period.identifier,
                )


def _ends_later(one: Period, other: Period) -> Period:
    return max(one, other, key=lambda period: period.end)


def _is_its_own_ancestor(name: str, above: Mapping[Any, Any]) -> bool:
    ancestors: list[str] = []
    at = above.get(name)
    while at is not None and at not in ancestors:
        ancestors.append(at)
        at = above.get(at)
    return name in ancestors


def _parse_day(value: object) -> dt.date | None:
    try:
        return dt.date.fromisoformat(value) if isinstance(value, str) and len(value) == 10 else None
    except ValueError:
        return None
