"""Periods and calendars: what the rest of Weft imports.

>>> january = GREGORIAN.parse("2026-01")
>>> january.level, str(GREGORIAN.parent(january)), str(GREGORIAN.next(january)), january.end_date.isoformat()
('month', '2026-Q1', '2026-02', '2026-01-31')
"""

from __future__ import annotations

from weft.core.calendar import GREGORIAN, Calendar, Level, Period, Status
from weft.core.listed_calendar import ListedCalendar, calendar_from_dict

__all__ = [
    "GREGORIAN",
    "Calendar",
    "Level",
    "ListedCalendar",
    "Period",
    "Status",
    "calendar_from_dict",
]
