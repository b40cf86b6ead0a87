"""Scenario files in their three forms."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from entity_texts import entity, reported
from weft.core.frozen import FrozenMap
from weft.pipelines.model.project import Project
from weft.pipelines.model.scenario import Expect, Rows, Scenario, TraceExpected
from weft.pipelines.model.values import LocatedText
from weft.pipelines.model.yaml_nodes import Exact


def scenario(text: str) -> Scenario:
    found: Scenario = entity("scenario", text)
    return found


FULL = """
scenario:
  name: FX
  description: rates
  project: fx_reporting
  period: 2026-01
  known_at: 2026-01-31T12:00:00+02:00
  today: 2026-02-01
  calendar: fiscal
  given:
    gl: [{id: 1, amount: 1.10, note: null}]
    rates: {file: rates.csv}
    budgets:
      csv: |
        a,b
        1,2
  expect:
    output: working
    match: subset
    ordered: true
    rows: [{id: 1}]
    columns: exact
    pins: {fx: 2}
    errors: [W1209, VR-007]
    trace: [{operation: 10, change: updated, match: {id: 1}, diff: {amount: [1.10, "2"]}}]
    trace_match: exact
    metadata: true
    tolerance: 0.001
"""


def test_everything_a_scenario_can_say_is_read() -> None:
    found = scenario(FULL)
    assert (found.name, found.description, found.project) == ("FX", "rates", LocatedText("fx_reporting"))
    assert found.known_at == dt.datetime(2026, 1, 31, 10, tzinfo=dt.UTC)
    assert (found.today, found.calendar, found.period.text) == (dt.date(2026, 2, 1), "fiscal", "2026-01")
    assert found.given is not None
    (row,) = found.given["gl"].rows or ()
    assert row == {"id": 1, "amount": Decimal("1.10"), "note": None}
    assert isinstance(row["amount"], Exact)
    assert found.given["rates"] == Rows(file=LocatedText("rates.csv"))
    assert found.given["budgets"] == Rows(csv=LocatedText("a,b\n1,2\n"))
    assert found.expect == Expect(
        output="working",
        match="subset",
        ordered=True,
        rows=(FrozenMap(id=1),),
        columns="exact",
        pins=FrozenMap(fx=2),
        errors=(LocatedText("W1209"), LocatedText("VR-007")),
        trace=(
            TraceExpected(
                operation=10,
                change="updated",
                match=FrozenMap(id=1),
                diff=FrozenMap(amount=(Decimal("1.10"), "2")),
            ),
        ),
        trace_match="exact",
        metadata=True,
        tolerance=Decimal("0.001"),
    )


def test_a_scenario_on_the_data_of_the_workspace_has_no_given() -> None:
    assert scenario("scenario: s\nproject: p\nperiod: 2026\ngiven: workspace\nexpect: {count: 0}").given is None
    assert scenario("scenario: s\nproject: p\nperiod: 2026\nexpect: {errors: []}").given is None


def test_a_period_may_look_like_a_number_and_a_day_like_a_date() -> None:
    found = scenario("scenario: s\nproject: p\nperiod: 2026\nknown_at: 2026-01-31\nexpect: {count: 3}")
    assert found.period == LocatedText("2026")
    assert found.known_at == dt.datetime(2026, 1, 31, tzinfo=dt.UTC)
    assert found.expect == Expect(count=3)


CATALOGUE = """
name: TS-03
periods:
  - {identifier: 2026-01, level: month, start_date: 2026-01-01, end_date: 2026-01-31}
  - {identifier: 2026-02, level: month, start_date: 2026-02-01, end_date: 2026-02-28, status: closed}
input:
  dataset: {id: ds-gl, version: 1}
  data:
    gl: {rows: [{id: 1}]}
    rates: {file: rates.csv}
project: {id: fx_reporting, version: 1}
expected_output: {data: {rows: [{id: 1, amount: 2}]}}
expected_trace:
  - {operation_order: 10, change_type: updated, row_match: {id: 1}, expected_diff: {amount: [1, 2]}}
config: {match_mode: subset, order_sensitive: true, validate_metadata: true, snapshot_on_failure: false}
"""


def test_the_form_of_a_catalogue_means_the_same() -> None:
    found = scenario(CATALOGUE)
    assert (found.name, found.project, found.period) == (
        "TS-03",
        LocatedText("fx_reporting"),
        LocatedText("2026-01"),
    )
    assert [(p.identifier, p.level, p.end_date, p.status) for p in found.periods] == [
        ("2026-01", "month", dt.date(2026, 1, 31), "open"),
        ("2026-02", "month", dt.date(2026, 2, 28), "closed"),
    ]
    assert found.given == FrozenMap(gl=Rows(rows=(FrozenMap(id=1),)), rates=Rows(file=LocatedText("rates.csv")))
    assert found.expect == Expect(
        match="subset",
        ordered=True,
        metadata=True,
        rows=(FrozenMap(id=1, amount=2),),
        trace=(TraceExpected(operation=10, change="updated", match=FrozenMap(id=1), diff=FrozenMap(amount=(1, 2))),),
    )
    assert found.snapshot is False


def test_a_trace_without_a_value_expects_no_change_and_no_trace_compares_none() -> None:
    for written, trace in (("trace:", ()), ("trace: []", ()), ("count: 1", None)):
        assert scenario(f"{BASE}expect:\n  {written}\n").expect.trace == trace, written


def test_a_trace_that_is_not_to_be_checked_is_left_out() -> None:
    found = scenario(CATALOGUE.replace("config: {", "config: {validate_traceability: false, "))
    assert found.expect.trace is None


def test_a_project_may_be_part_of_a_scenario() -> None:
    text = """
    scenario: s
    project: {name: p, input: gl@2, operations: [{order: 1, type: delete}]}
    period: 2026-01
    expect: {count: 0}
    """
    found = scenario(text)
    assert isinstance(found.project, Project)
    assert found.project.operations[0].name == "delete 1"


BASE = "scenario: s\nproject: p\nperiod: 2026-01\n"


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("scenario: s\nproject: p\nexpect: {count: 1}", [("W1003", "scenario: s")]),
        (BASE, [("W1003", "scenario: s")]),
        (BASE + "expect: {}", [("W1701", "{}")]),
        (BASE + "expect: {rows: [], count: 0, file: x.csv}", [("W1701", "x.csv")]),
        (BASE + "expect: {count: -1}", [("W1004", "-1")]),
        (BASE + "expect: {count: 1}\ngiven: all", [("W1004", "all")]),
        (BASE + "expect: {count: 1}\ngiven: {t: {row: []}}", [("W1002", "row")]),
        (BASE + "expect: {count: 1}\ngiven: {t: {rows: [1]}}", [("W1004", "1")]),
        (BASE + "expect: {count: 1}\ntoday: tomorrow", [("W1004", "tomorrow")]),
        (BASE + "expect: {errors: [W9999]}", [("W1701", "W9999")]),
        (BASE + "expect: {trace: [{operation: 1, change: moved}]}", [("W1004", "moved")]),
        (BASE + "expect: {trace: [{operation: 1, change: updated, diff: {a: [1]}}]}", [("W1004", "[1]")]),
        (
            BASE + "expect: {count: 1}\nperiods: [{identifier: x, level: m, start_date: 2026-02-01, end_date: 2026-01-01}]",
            [("W1701", "2026-01-01")],
        ),
        (BASE.replace("project: p", "project: {name: p, input: gl, operations: [{order: 1, type: filter}]}") + "expect: {count: 1}",
         [("W1005", "filter")]),
        (CATALOGUE.replace("match_mode", "match_mod"), [("W1002", "match_mod")]),
        (CATALOGUE.replace("change_type", "change_typ"), [("W1003", "{operation_order: 10, change_typ: updated, row_match: {id: 1}, expected_diff: {amount: [1, 2]}}"), ("W1002", "change_typ")]),
    ],
)  # fmt: skip
def test_errors_of_a_scenario_are_reported_at_their_locations(text: str, findings: list[tuple[str, str]]) -> None:
    assert reported("scenario", text) == findings
