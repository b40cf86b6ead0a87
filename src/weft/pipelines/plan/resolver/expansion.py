"""From the period of a run to the periods at which the data is cut.

::

    run 2026-Q1, data_level: month     ->  2026-01, 2026-02, 2026-03
    run 2026-Q1, data_level: any       ->  2026-Q1
    run 2026-01, data_level: year      ->  2026                       the period around it
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.names import listed, near
from weft.core.period import Calendar, Period
from weft.core.source import Source
from weft.errors import Diagnostic, ResolutionError
from weft.io.location import ANY_LEVEL
from weft.pipelines.model.resolver import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """The periods whose data is read, and the stretches of days that no period of the level covers."""

    periods: tuple[Period, ...]
    gaps: tuple[str, ...] = ()
    warning: Diagnostic | None = None


def expand(rule: Rule, period: Period, calendar: Calendar) -> Expansion:
    """Return the periods of the rule's level that the run reads; raise `ResolutionError` when there are none."""
    level = rule.data_level
    at = rule.at.of("data_level")
    if level in (ANY_LEVEL, period.level):
        return Expansion(periods=(period,))
    names = [known.name for known in calendar.levels]
    if level not in names:
        close = near(level, names, most=1)
        raise _no_expansion(
            f"rule {rule.name!r} reads data by {level!r}, which is no level of the calendar {calendar.name!r}",
            f"did you mean {close[0]!r}?" if close else f"levels are {listed(names)}, or 'any'",
            at,
        )
    if level in calendar.below(period.level):
        return _finer(rule, period, calendar, at)
    if period.level in calendar.below(level):
        around = calendar.parent(period, level)
        if around is None:
            raise _no_expansion(
                f"the calendar {calendar.name!r} has no {level} around {period.identifier!r}",
                f"add the {level} to the calendar, with a start_date and an end_date",
                at,
            )
        return Expansion(periods=(around,))
    raise _no_expansion(
        f"rule {rule.name!r} reads data by {level}, and a {period.level} neither divides into one nor lies in one",
        f"below {period.level!r} there is {listed(calendar.below(period.level))}",
        at,
    )


def _finer(rule: Rule, period: Period, calendar: Calendar, at: Source | None) -> Expansion:
    level = rule.data_level
    inside = calendar.within(period.start, period.end, level)
    if not inside:
        raise _no_expansion(
            f"the calendar {calendar.name!r} has no {level} inside {period.identifier!r}",
            f"add its periods of level {level!r}, each with a start_date and an end_date",
            at,
        )
    gaps = tuple(f"{first}..{last}" for first, last in calendar.gaps(level, period))
    if not gaps:
        return Expansion(periods=inside)
    return Expansion(
        periods=inside,
        gaps=gaps,
        warning=Diagnostic(
            "W1308",
            f"{period.identifier} is read by {level}, and the calendar {calendar.name!r} has no {level} "
            f"for {listed(gaps)}",
            help="add the missing periods to the calendar, or the rows of those days are not read",
            severity="warning",
            at=at,
        ),
    )


def _no_expansion(message: str, help: str, at: Source | None) -> ResolutionError:
    return ResolutionError(message, code="W1307", help=help, at=at)
