"""The shape of ``calendars/*.yml``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weft.pipelines.model.shapes.base import Name, Shape, Text
from weft.pipelines.model.words import CalendarStatus


class LevelShape(Shape):
    """A size of period, inside periods of its parent."""

    name: Text
    parent: Text | None = None


class PeriodShape(Shape):
    """A named stretch of days; the end date is its last day."""

    identifier: Name
    level: Text
    start_date: Text
    end_date: Text
    parent: Name | None = None
    status: Literal["open", "closed", "locked"] | None = None


class CalendarShape(Shape):
    """Levels and the periods in them."""

    id: Text | None = None
    name: Text
    description: str | None = None
    status: CalendarStatus | None = None
    is_default: bool | None = None
    levels: Annotated[list[LevelShape], Field(min_length=1)]
    periods: Annotated[list[PeriodShape], Field(min_length=1)]
