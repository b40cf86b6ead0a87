"""What users say in options: periods, moments, dates, run ids."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

import typer

from weft.errors import WorkspaceError

Period = Annotated[str | None, typer.Option("-p", "--period", metavar="PERIOD", help="As in 2026-01.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="Its id, the start of it, or LAST.")]


def a_moment(said: str | None, option: str) -> dt.datetime | None:
    """Return the moment that an option says; without a zone it is UTC.

    >>> a_moment("2026-02-01", "--known-at").isoformat()
    '2026-02-01T00:00:00+00:00'
    """
    if said is None:
        return None
    try:
        found = dt.datetime.fromisoformat(said)
        return (found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found).astimezone(dt.UTC)
    except (ValueError, OverflowError) as cause:
        raise WorkspaceError(
            f"{option} {said!r} is no time", code="W1803", help="as in 2026-02-01 or 2026-02-01T08:30:00Z"
        ) from cause


def a_date(said: str | None, option: str) -> dt.date | None:
    """Return the date that an option says."""
    if said is None:
        return None
    try:
        return dt.date.fromisoformat(said)
    except ValueError as cause:
        raise WorkspaceError(
            f"{option} {said!r} is no date", code="W1803", help="as in 2026-02-01"
        ) from cause
