"""Expected changes against the events of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from weft.core.names import format_list
from weft.core.types import DType
from weft.errors import ScenarioError
from weft.pipelines.model.scenario import Expect, TraceExpected
from weft.pipelines.scenarios.compare import Mismatch
from weft.pipelines.scenarios.values import equal, typed_value

if TYPE_CHECKING:
    from weft.pipelines.run.trace import Event


def compare_trace(
    expect: Expect, events: Sequence[Event], types: Mapping[int, Mapping[str, DType]]
) -> tuple[Mismatch, ...]:
    """Return how the events differ from what the scenario expects; each event serves one expectation.

    `types` gives, for each operation, the columns after it.
    """
    left = list(events)
    found: list[Mismatch] = []
    for wanted in expect.trace or ():
        match, diff = typed_trace(wanted, types)
        near = [e for e in left if _is_about(e, wanted, match, expect.tolerance)]
        hit = next((e for e in near if not _wrong(e, diff, expect.tolerance)), None)
        if hit is not None:
            left.remove(hit)
        elif near:
            left.remove(near[0])
            found.append(_diff_mismatch(wanted, match, diff, near[0], expect.tolerance))
        else:
            found.append(
                Mismatch(
                    kind="missing_event",
                    operation=wanted.operation,
                    expected=match,
                    text=f"no row was {wanted.change}",
                )
            )
    if expect.trace_match == "exact":
        found += [
            Mismatch(
                kind="extra_event", operation=e.operation, actual=_shown(e), text=f"a row was {e.change}"
            )
            for e in left
        ]
    return tuple(found)


def typed_trace(
    wanted: TraceExpected, types: Mapping[int, Mapping[str, DType]]
) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """Return the match and the diff of an expected event in the types of their columns."""
    columns = types.get(wanted.operation)
    if columns is None:
        raise ScenarioError(
            f"the trace names operation {wanted.operation}, which changes no rows",
            code="W1705",
            help=f"operations with a trace are {format_list(str(seq) for seq in types)}; outputs make no events",
            at=wanted.at.of("operation"),
        )
    match = {name: _typed(value, name, columns, wanted) for name, value in wanted.match.items()}
    diff = {name: tuple(_typed(v, name, columns, wanted) for v in pair) for name, pair in wanted.diff.items()}
    return match, diff


def _typed(value: Any, name: str, columns: Mapping[str, DType], wanted: TraceExpected) -> Any:
    if name not in columns:
        raise ScenarioError(
            f"operation {wanted.operation} has no column {name!r}",
            code="W1705",
            help=f"it has {format_list(columns)}",
            at=wanted.at.whole,
        )
    return typed_value(value, columns[name], wanted.at.whole)


def _is_about(
    event: Event, wanted: TraceExpected, match: Mapping[str, Any], tolerance: Decimal | None
) -> bool:
    """Whether an event is of the operation and the kind, and its row, before or after, is the one meant."""
    if (event.operation, event.change) != (wanted.operation, wanted.change):
        return False
    rows = [event.row] if event.before is None else [event.row, event.before]
    return any(all(equal(v, row.get(n), tolerance) for n, v in match.items()) for row in rows)


def _wrong(event: Event, diff: Mapping[str, tuple[Any, ...]], tolerance: Decimal | None) -> list[str]:
    return [
        name
        for name, pair in diff.items()
        if name not in event.diff
        or not all(equal(w, a, tolerance) for w, a in zip(pair, event.diff[name], strict=True))
    ]


def _diff_mismatch(
    wanted: TraceExpected,
    match: Mapping[str, Any],
    diff: Mapping[str, tuple[Any, ...]],
    event: Event,
    tolerance: Decimal | None,
) -> Mismatch:
    columns = tuple(_wrong(event, diff, tolerance))
    return Mismatch(
        kind="diff_mismatch",
        operation=wanted.operation,
        expected={**match, **{c: list(diff[c]) for c in columns}},
        actual={c: list(event.diff[c]) for c in columns if c in event.diff},
        columns=columns,
    )


def _shown(event: Event) -> dict[str, Any]:
    return {name: value for name, value in event.row.items() if not name.startswith("_")}
