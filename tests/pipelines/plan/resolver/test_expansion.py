"""The periods that a rule reads for a run: its own, those inside it, the one around it."""

from __future__ import annotations

import pytest

from resolvers import dataset, resolver, rule, table
from weft.core.calendar import GREGORIAN, Calendar
from weft.core.listed_calendar import calendar_from_dict
from weft.errors import ResolutionError
from weft.pipelines.model.resolver import PathStrategy
from weft.pipelines.plan.resolver.rules import expand, resolve_table


def fiscal(*months: tuple[str, str, str]) -> Calendar:
    """Return a calendar with one quarter, one lonely year and the months that are given."""
    periods = [
        {"identifier": "FY26", "level": "year", "start_date": "2025-07-01", "end_date": "2026-06-30"},
        {"identifier": "FY26-Q1", "level": "quarter", "start_date": "2025-07-01", "end_date": "2025-09-30"},
        {"identifier": "FY27-Q1", "level": "quarter", "start_date": "2026-07-01", "end_date": "2026-09-30"},
        *({"identifier": i, "level": "month", "start_date": s, "end_date": e} for i, s, e in months),
    ]
    levels = [
        {"name": "year"},
        {"name": "quarter", "parent": "year"},
        {"name": "month", "parent": "quarter"},
    ]
    return calendar_from_dict({"name": "fiscal", "levels": levels, "periods": periods})


def expanded(level: str, period: str, calendar: Calendar = GREGORIAN) -> list[str]:
    found = expand(rule("r", data_level=level), calendar.parse(period), calendar)
    return [p.identifier for p in found.periods]


@pytest.mark.parametrize(
    ("period", "level", "found"),
    [
        ("2026-Q1", "any", ["2026-Q1"]),
        ("2026-Q1", "quarter", ["2026-Q1"]),
        ("2026-Q1", "month", ["2026-01", "2026-02", "2026-03"]),
        ("2026", "month", [f"2026-{m:02d}" for m in range(1, 13)]),
        ("2026", "quarter", ["2026-Q1", "2026-Q2", "2026-Q3", "2026-Q4"]),
        ("2026-W01", "day", [f"2025-12-{d}" for d in (29, 30, 31)] + [f"2026-01-0{d}" for d in range(1, 5)]),
        ("2026-01", "quarter", ["2026-Q1"]),
        ("2026-01", "year", ["2026"]),
    ],
)
def test_a_period_is_read_by_the_level_of_the_rule(period: str, level: str, found: list[str]) -> None:
    assert expanded(level, period) == found


def test_the_order_follows_the_days_whatever_the_names() -> None:
    calendar = fiscal(("zz", "2025-07-01", "2025-07-31"), ("aa", "2025-08-01", "2025-08-31"))
    assert expanded("month", "FY26-Q1", calendar) == ["zz", "aa"]


def test_days_that_no_child_covers_are_reported() -> None:
    calendar = fiscal(("M1", "2025-07-01", "2025-07-31"), ("M3", "2025-09-01", "2025-09-30"))
    path = PathStrategy(datasource="files", path="{{period}}.csv")
    main = table()
    found = resolve_table(
        resolver(rule("r", strategy=path, data_level="month")),
        dataset(main),
        main,
        calendar.parse("FY26-Q1"),
        calendar,
        source="system_default",
    )
    assert [at.path for at in found.locations] == ["M1.csv", "M3.csv"]
    assert found.diagnostic.missing_periods == ("2025-08-01..2025-08-31",)
    (warning,) = found.warnings
    assert (warning.code, warning.severity) == ("W1308", "warning")
    assert "2025-08-01..2025-08-31" in warning.message


@pytest.mark.parametrize(
    ("level", "period", "message", "help"),
    [
        ("mnth", "2026-Q1", "'mnth', which is not a level", "did you mean 'month'?"),
        ("decade", "2026-Q1", "not a level of the calendar 'gregorian'", "'year', 'quarter'"),
        ("week", "2026-01", "neither contains a week nor is part of one", "levels below 'month': 'day'"),
        ("month", "2026-W05", "a week neither", "'day'"),
    ],
)
def test_a_level_that_does_not_fit_is_an_error(level: str, period: str, message: str, help: str) -> None:
    with pytest.raises(ResolutionError) as caught:
        expanded(level, period)
    assert caught.value.code == "W1307"
    assert message in caught.value.message
    assert help in caught.value.help


def test_a_period_without_children_and_one_without_a_parent_are_errors() -> None:
    calendar = fiscal()
    with pytest.raises(ResolutionError, match="has no month inside 'FY26-Q1'"):
        expanded("month", "FY26-Q1", calendar)
    assert expanded("year", "FY26-Q1", calendar) == ["FY26"]
    with pytest.raises(ResolutionError, match="has no year around 'FY27-Q1'"):
        expanded("year", "FY27-Q1", calendar)


def test_a_failed_expansion_is_part_of_the_diagnostic() -> None:
    main = table()
    with pytest.raises(ResolutionError) as caught:
        resolve_table(
            resolver(rule("r", data_level="week")),
            dataset(main),
            main,
            GREGORIAN.parse("2026-01"),
            GREGORIAN,
            source="system_default",
        )
    assert caught.value.resolution.outcome == "period_expansion_failure"
    assert caught.value.resolution.evaluated_rules[0].matched is True
