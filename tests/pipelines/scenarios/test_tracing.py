"""Expected changes against events."""

from __future__ import annotations

from typing import Any

import pytest

from weft.core import types
from weft.core.frozen import FrozenMap, freeze
from weft.errors import ScenarioError
from weft.pipelines.model.scenario import Expect, TraceExpected
from weft.pipelines.run.preview import Event
from weft.pipelines.scenarios.compare import compare_trace

TYPES = {10: {"id": types.LONG, "a": types.LONG}}


def event(id: int, a: int, was: int | None = 0, change: Any = "updated") -> Event:
    before = None if was is None else {"id": id, "a": was}
    return Event(operation=10, change=change, row={"id": id, "a": a}, before=before, diff={"a": (was, a)})


def wanted(id: int, change: Any = "updated", operation: int = 10, **diff: Any) -> TraceExpected:
    return TraceExpected(operation=operation, change=change, match=FrozenMap(id=id), diff=freeze(diff))


def found(expected: list[TraceExpected], events: list[Event], match: Any = "subset") -> list[str]:
    expect = Expect(trace=tuple(expected), trace_match=match)
    return [m.kind for m in compare_trace(expect, events, TYPES)]


def test_each_expectation_takes_one_event() -> None:
    assert found([wanted(1, a=(0, 5))], [event(1, 5)]) == []
    assert found([wanted(1), wanted(1)], [event(1, 5)]) == ["missing_event"]
    assert found([wanted(1), wanted(1)], [event(1, 5), event(1, 6)]) == []


def test_an_unexpected_row_kind_or_value_is_reported() -> None:
    assert found([wanted(2)], [event(1, 5)]) == ["missing_event"]
    assert found([wanted(1, "deleted")], [event(1, 5)]) == ["missing_event"]
    assert found([wanted(1, a=(0, 6))], [event(1, 5)]) == ["diff_mismatch"]
    assert found([wanted(1, "created", a=(None, 5))], [event(1, 5, None, "created")]) == []


def test_the_event_that_fits_is_found_among_those_of_one_row() -> None:
    assert found([wanted(1, a=(0, 6))], [event(1, 5), event(1, 6)]) == []


def test_exact_leaves_no_event_over() -> None:
    assert found([wanted(1)], [event(1, 5), event(2, 5)]) == []
    assert found([wanted(1)], [event(1, 5), event(2, 5)], "exact") == ["extra_event"]
    assert found([], [event(1, 5)], "exact") == ["extra_event"]


def test_operations_and_columns_that_are_not_there() -> None:
    with pytest.raises(ScenarioError, match=r"W1705.*operation 20, which changes no rows"):
        found([wanted(1, operation=20)], [])
    with pytest.raises(ScenarioError, match=r"W1705.*no column 'b'"):
        found([wanted(1, b=(0, 1))], [event(1, 5)])
