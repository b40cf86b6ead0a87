"""Comparison of expected and actual rows, and of expected and actual changes.

Equal rows must occur equally often; their order counts only with `ordered`.  An expected row names the columns to
compare; others are ignored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal

from weft.core.documents import OPEN_WORD, Document
from weft.core.names import format_list
from weft.core.types import DType
from weft.errors import ScenarioError
from weft.pipelines.model.scenario import Expect, TraceExpected
from weft.pipelines.scenarios.values import cell_text, equal, is_row_id, key_of, plain, typed_value

if TYPE_CHECKING:
    from weft.pipelines.run.preview import Event


Values = Mapping[str, Any]
MismatchKind = Literal[
    "missing_row",
    "extra_row",
    "value_mismatch",
    "row_count",
    "schema",
    "metadata",
    "pin",
    "missing_error",
    "missing_event",
    "extra_event",
    "diff_mismatch",
]
_MOMENTS = ("_created_at", "_updated_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch(Document):
    """One difference; `columns` are those whose values differ."""

    kind: Annotated[MismatchKind, OPEN_WORD]
    expected: Annotated[Values, plain] | None = None
    actual: Annotated[Values, plain] | None = None
    columns: tuple[str, ...] = ()
    operation: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparing:
    """How rows are compared; `key` are the columns that identify a row for the user."""

    match: Literal["exact", "subset"] = "exact"
    ordered: bool = False
    key: tuple[str, ...] = ()
    tolerance: Decimal | None = None


def compare_rows(expected: Sequence[Values], actual: Sequence[Values], how: Comparing) -> tuple[Mismatch, ...]:
    """Return the differences between the actual and the expected rows."""
    if how.ordered:
        return _in_order(expected, actual, how)
    missing, left = _without_equal(expected, actual, how)
    mismatches, others = _paired(missing, left, how)
    if how.match == "exact":
        mismatches += [Mismatch(kind="extra_row", actual=_cut(row, expected)) for row in others]
    return tuple(mismatches)


def _cut(row: Values, expected: Sequence[Values]) -> Values:
    """Return the columns of a row that the scenario names, or all when it names none."""
    names = dict.fromkeys(name for e in expected for name in e)
    return {n: row[n] for n in names if n in row} or row


def _differing(expected: Values, actual: Values, how: Comparing) -> tuple[str, ...]:
    return tuple(
        name for name, value in expected.items() if name not in actual or not equal(value, actual[name], how.tolerance)
    )


def _without_equal(
    expected: Sequence[Values], actual: Sequence[Values], how: Comparing
) -> tuple[list[Values], list[Values]]:
    """Return the rows of both sides that remain after equal rows are removed in pairs."""
    left: dict[int, Values] = dict(enumerate(actual))
    missing: list[tuple[int, Values]] = []
    groups: dict[tuple[str, ...], list[tuple[int, Values]]] = defaultdict(list)
    for i, row in enumerate(expected):
        groups[tuple(sorted(row))].append((i, row))
    # A row that names more columns matches fewer rows, so it is matched first.
    for names in sorted(groups, key=len, reverse=True):
        known: dict[Any, list[int]] = defaultdict(list)
        for i, row in left.items():
            known[tuple(key_of(row.get(n)) for n in names)].append(i)
        for i, row in groups[names]:
            near = known.get(tuple(key_of(row[n]) for n in names), [])
            hit = near.pop(0) if near else _within(row, left, how)
            if hit is None or not all(n in left[hit] for n in names):
                missing.append((i, row))
            else:
                del left[hit]
    return [row for _, row in sorted(missing, key=lambda m: m[0])], list(left.values())


def _within(row: Values, left: Mapping[int, Values], how: Comparing) -> int | None:
    if how.tolerance is None:
        return None
    return next((i for i, other in left.items() if not _differing(row, other, how)), None)


def _paired(
    expected: Sequence[Values], actual: Sequence[Values], how: Comparing
) -> tuple[list[Mismatch], list[Values]]:
    """Return the rows that differ in some values, and the actual rows that belong to none."""
    left = list(actual)
    mismatches: list[Mismatch] = []
    for row in expected:
        other = _by_key(row, left, how) if how.key and set(how.key) <= set(row) else _nearest(row, left, how)
        if other is None:
            mismatches.append(Mismatch(kind="missing_row", expected=row))
            continue
        left.remove(other)
        mismatches.append(_value_mismatch(row, other, _differing(row, other, how)))
    return mismatches, left


def _value_mismatch(expected: Values, actual: Values, columns: tuple[str, ...]) -> Mismatch:
    named = {name: actual.get(name) for name in expected}
    return Mismatch(kind="value_mismatch", expected=expected, actual=named, columns=columns)


def _by_key(row: Values, left: Iterable[Values], how: Comparing) -> Values | None:
    same = [o for o in left if all(equal(row[k], o.get(k)) for k in how.key)]
    return min(same, key=lambda o: len(_differing(row, o, how)), default=None)


def _nearest(row: Values, left: Iterable[Values], how: Comparing) -> Values | None:
    scored = [(len(_differing(row, other, how)), i, other) for i, other in enumerate(left)]
    # A row that differs in every column is not a changed one: it is missing, and the other is extra.
    near = [s for s in scored if s[0] < len(row)]
    return min(near, key=lambda s: s[:2])[2] if near else None


def _in_order(expected: Sequence[Values], actual: Sequence[Values], how: Comparing) -> tuple[Mismatch, ...]:
    if how.match == "subset":
        return _subsequence(expected, actual, how)
    mismatches = []
    for row, other in zip(expected, actual, strict=False):
        if columns := _differing(row, other, how):
            mismatches.append(_value_mismatch(row, other, columns))
    mismatches += [Mismatch(kind="missing_row", expected=row) for row in expected[len(actual) :]]
    mismatches += [Mismatch(kind="extra_row", actual=_cut(row, expected)) for row in actual[len(expected) :]]
    return tuple(mismatches)


def _subsequence(expected: Sequence[Values], actual: Sequence[Values], how: Comparing) -> tuple[Mismatch, ...]:
    mismatches, start = [], 0
    for row in expected:
        here = next((i for i in range(start, len(actual)) if not _differing(row, actual[i], how)), None)
        if here is None:
            mismatches.append(Mismatch(kind="missing_row", expected=row, text="missing, or not in this order"))
        else:
            start = here + 1
    return tuple(mismatches)


def metadata_mismatches(rows: Sequence[Values]) -> tuple[Mismatch, ...]:
    """Return the rows with invalid system columns."""
    mismatches = []
    for row in rows:
        wrong = [name for name in _MOMENTS if name in row and row[name] is None]
        if "_row_id" in row and not is_row_id(row["_row_id"]):
            wrong.append("_row_id")
        if wrong:
            mismatches.append(Mismatch(kind="metadata", actual=row, columns=tuple(wrong)))
    ids = [row["_row_id"] for row in rows if "_row_id" in row]
    if len(set(ids)) != len(ids):
        mismatches.append(Mismatch(kind="metadata", columns=("_row_id",), text="two rows have the same _row_id"))
    return tuple(mismatches)


def describe_mismatch(mismatch: Mismatch, key: tuple[str, ...] = ()) -> list[str]:
    """Return a difference as lines of text."""
    row = mismatch.expected if mismatch.expected is not None else mismatch.actual or {}
    named = [k for k in key if k in row] or [n for n in row if n not in mismatch.columns][:3]
    who = ", ".join(f"{name} {cell_text(row[name])}" for name in named)
    where = f"operation {mismatch.operation}  " if mismatch.operation is not None else ""
    lines = [f"{mismatch.kind:<15} {where}{who}".rstrip()]
    if mismatch.text:
        lines.append(f"    {mismatch.text}")
    if mismatch.kind in ("missing_row", "extra_row"):
        rest = [f"{n} {cell_text(v)}" for n, v in row.items() if n not in named]
        lines += [f"    {', '.join(rest)}"] if rest else []
    for column in mismatch.columns:
        sides = (mismatch.expected or {}, mismatch.actual or {})
        was, now = (cell_text(side[column]) if column in side else "(missing)" for side in sides)
        lines.append(f"    {column}   expected {was}   actual {now}")
    return lines


def compare_trace(
    expect: Expect, events: Sequence[Event], types: Mapping[int, Mapping[str, DType]]
) -> tuple[Mismatch, ...]:
    """Return how the events differ from what the scenario expects; each event serves one expectation.

    `types` gives, for each operation, the columns after it.
    """
    left = list(events)
    mismatches: list[Mismatch] = []
    for expected_event in expect.trace or ():
        match, diff = typed_trace(expected_event, types)
        near = [e for e in left if _is_about(e, expected_event, match, expect.tolerance)]
        hit = next((e for e in near if not _wrong(e, diff, expect.tolerance)), None)
        if hit is not None:
            left.remove(hit)
        elif near:
            left.remove(near[0])
            mismatches.append(_diff_mismatch(expected_event, match, diff, near[0], expect.tolerance))
        else:
            mismatches.append(
                Mismatch(
                    kind="missing_event",
                    operation=expected_event.operation,
                    expected=match,
                    text=f"no row was {expected_event.change}",
                )
            )
    if expect.trace_match == "exact":
        mismatches += [
            Mismatch(kind="extra_event", operation=e.operation, actual=_shown(e), text=f"a row was {e.change}")
            for e in left
        ]
    return tuple(mismatches)


def typed_trace(
    expected_event: TraceExpected, types: Mapping[int, Mapping[str, DType]]
) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """Return the match and the diff of an expected event in the types of their columns."""
    columns = types.get(expected_event.operation)
    if columns is None:
        raise ScenarioError(
            f"the trace names operation {expected_event.operation}, which changes no rows",
            code="W1705",
            help=f"operations with a trace are {format_list(str(seq) for seq in types)}; outputs make no events",
            at=expected_event.at.of("operation"),
        )
    match = {name: _typed(value, name, columns, expected_event) for name, value in expected_event.match.items()}
    diff = {
        name: tuple(_typed(v, name, columns, expected_event) for v in pair)
        for name, pair in expected_event.diff.items()
    }
    return match, diff


def _typed(value: Any, name: str, columns: Mapping[str, DType], expected_event: TraceExpected) -> Any:
    if name not in columns:
        raise ScenarioError(
            f"operation {expected_event.operation} has no column {name!r}",
            code="W1705",
            help=f"it has {format_list(columns)}",
            at=expected_event.at.whole,
        )
    return typed_value(value, columns[name], expected_event.at.whole)


def _is_about(event: Event, expected_event: TraceExpected, match: Mapping[str, Any], tolerance: Decimal | None) -> bool:
    """Whether an event is of the operation and the kind, and its row, before or after, is the one meant."""
    if (event.operation, event.change) != (expected_event.operation, expected_event.change):
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
    expected_event: TraceExpected,
    match: Mapping[str, Any],
    diff: Mapping[str, tuple[Any, ...]],
    event: Event,
    tolerance: Decimal | None,
) -> Mismatch:
    columns = tuple(_wrong(event, diff, tolerance))
    return Mismatch(
        kind="diff_mismatch",
        operation=expected_event.operation,
        expected={**match, **{c: list(diff[c]) for c in columns}},
        actual={c: list(event.diff[c]) for c in columns if c in event.diff},
        columns=columns,
    )


def _shown(event: Event) -> dict[str, Any]:
    return {name: value for name, value in event.row.items() if not name.startswith("_")}
