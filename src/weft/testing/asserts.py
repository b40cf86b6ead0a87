"""Comparison of rows in tests, with a readable diff."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.core.types import STRING
from weft.testing import cells
from weft.testing.tables import Row, Table, align
from weft.testing.values import compare, is_nan, kind_of

Rows = Table | Iterable[Sequence[Any] | Mapping[str, Any]]
SHOWN = 20
"""Rows of each kind that a diff shows."""

_NUMBERS = {"integer", "decimal", "double"}


@dataclass(frozen=True, slots=True)
class _Sameness:
    """When two values are the same."""

    tolerance: float
    exact_types: bool

    def cell(self, a: Any, b: Any) -> bool:
        kinds = kind_of(a), kind_of(b)
        if kinds[0] != kinds[1] and (self.exact_types or not set(kinds) <= _NUMBERS):
            return False
        if kinds[0] in ("array", "struct"):
            return len(a) == len(b) and all(self.cell(x, y) for x, y in zip(a, b, strict=True))
        if kinds[0] == "map":
            return len(a) == len(b) and all(k in b and self.cell(v, b[k]) for k, v in a.items())
        if self.tolerance and "double" in kinds and math.isfinite(a) and math.isfinite(b):
            return abs(float(a) - float(b)) <= self.tolerance
        return compare(a, b) == 0

    def row(self, a: Row, b: Row) -> bool:
        return len(a) == len(b) and all(map(self.cell, a, b))


def assert_rows_equal(
    actual: Rows,
    expected: Rows,
    columns: Sequence[str] | None = None,
    *,
    ordered: bool = False,
    tolerance: float = 0.0,
    exact_types: bool = True,
) -> None:
    """Raise AssertionError with a readable diff unless both hold the same rows, duplicates counted.

    Parameters
    ----------
    actual, expected
        Tables, or rows as tuples or as mappings.  Required.
    columns
        Names for the diff; of mappings and tables, also the columns that are compared.  None by default: all columns.
    ordered
        Whether the order of rows matters.  False by default.
    tolerance
        How far two floating point numbers may be apart; decimals are always exact.  0 by default.
    exact_types
        True by default; False lets numbers of different types be equal by value: 1, 1.0 and Decimal("1").

    Examples
    --------
    >>> assert_rows_equal([(1, "a"), (2, "b")], [(2, "b"), (1, "c")], columns=["id", "name"])
    Traceback (most recent call last):
        ...
    AssertionError: rows differ: 1 of 2 differs
              id | name
    expected  1  | *c*
    actual    1  | *a*
    """
    same = _Sameness(tolerance, exact_types)
    names = _names(columns, expected, actual)
    wanted, given = _tuples(expected, names), _tuples(actual, names)
    if ordered:
        if len(wanted) == len(given) and all(map(same.row, given, wanted)):
            return
        raise AssertionError(_ordered_diff(names, wanted, given, same))
    missing, extra = _left_over(wanted, given, same)
    if missing or extra:
        raise AssertionError(_diff(names, len(wanted), missing, extra, same))


def _names(columns: Sequence[str] | None, *sides: Rows) -> tuple[str, ...] | None:
    if columns is not None:
        return tuple(columns)
    for side in sides:
        if isinstance(side, Table):
            return side.schema.names
        if isinstance(side, Sequence) and side and isinstance(side[0], Mapping):
            return tuple(side[0])
    return None


def _tuples(rows: Rows, names: Sequence[str] | None) -> list[Row]:
    if isinstance(rows, Table):
        picked = [rows.schema.index(name, side="table") for name in names or rows.schema.names]
        return [tuple(row[i] for i in picked) for row in rows.rows]
    return [tuple(row[n] for n in names or row) if isinstance(row, Mapping) else tuple(row) for row in rows]


def _left_over(wanted: list[Row], given: list[Row], same: _Sameness) -> tuple[list[Row], list[Row]]:
    """Return the rows of each side without an equal row on the other side, each row used once.

    With a tolerance a row may equal several others, so this is a maximum matching by augmenting paths.
    """
    buckets: dict[Any, list[int]] = {}
    for j, row in enumerate(given):
        buckets.setdefault(_bucket(row, same), []).append(j)
    partner: dict[int, int] = {}

    def seek(i: int, seen: set[int]) -> bool:
        for j in buckets.get(_bucket(wanted[i], same), ()):
            if j not in seen and same.row(given[j], wanted[i]):
                seen.add(j)
                # Without a tolerance equality is transitive, so a taken row need not look for another partner.
                if j not in partner or (same.tolerance and seek(partner[j], seen)):
                    partner[j] = i
                    return True
        return False

    missing = [wanted[i] for i in range(len(wanted)) if not seek(i, set())]
    return missing, [given[j] for j in range(len(given)) if j not in partner]


def _bucket(row: Row, same: _Sameness) -> tuple[Any, ...]:
    """Return a key that equal rows share, so that a row is compared with few others."""
    return tuple(_bucket_value(value, same) for value in row)


def _bucket_value(value: Any, same: _Sameness) -> Any:
    # Values that cannot be hashed, or that are equal without being the same, share one bucket.
    if isinstance(value, list | tuple | Mapping | bytearray) or is_nan(value):
        return ""
    return "" if same.tolerance and kind_of(value) in _NUMBERS else value


def _diff(names: Sequence[str] | None, total: int, missing: list[Row], extra: list[Row], same: _Sameness) -> str:
    near, missing, extra = _near(missing, extra, same)
    counts = [
        f"{len(near)} of {total} {'differs' if len(near) == 1 else 'differ'}" if near else "",
        f"{len(missing)} missing" if missing else "",
        f"{len(extra)} extra" if extra else "",
    ]
    lines: list[tuple[str, list[str]]] = []
    for want, got in near[:SHOWN]:
        lines += _marked(want, got, same)
    lines += [("missing", [_shown(v) for v in row]) for row in missing[:SHOWN]]
    lines += [("extra", [_shown(v) for v in row]) for row in extra[:SHOWN]]
    unseen = sum(max(0, len(rows) - SHOWN) for rows in (near, missing, extra))
    return _text(f"rows differ: {', '.join(filter(None, counts))}", names, lines, unseen)


def _near(missing: list[Row], extra: list[Row], same: _Sameness) -> tuple[list[tuple[Row, Row]], list[Row], list[Row]]:
    """Pair each missing row with the extra row that has most of its cells, at least half of them."""
    pairs, alone, rest = [], [], list(extra)
    for row in missing:
        scores = [sum(map(same.cell, other, row)) if len(other) == len(row) else 0 for other in rest]
        best = max(range(len(rest)), key=scores.__getitem__, default=None)
        if best is not None and scores[best] * 2 >= len(row) > 1:
            pairs.append((row, rest.pop(best)))
        else:
            alone.append(row)
    return pairs, alone, rest


def _marked(want: Row, got: Row, same: _Sameness) -> list[tuple[str, list[str]]]:
    """Return the two lines of a near pair; cells that differ are between asterisks."""
    expected, actual = [], []
    for a, b in zip(want, got, strict=True):
        if same.cell(b, a):
            expected.append(_shown(a))
            actual.append(_shown(b))
        else:
            typed = kind_of(a) != kind_of(b)
            expected.append(f"*{_shown(a, typed=typed)}*")
            actual.append(f"*{_shown(b, typed=typed)}*")
    return [("expected", expected), ("actual", actual)]


def _shown(value: Any, *, typed: bool = False) -> str:
    text = repr(value) if isinstance(value, list | tuple | Mapping) else cells.write(value, STRING)
    return f"{text} ({kind_of(value)})" if typed and value is not None else text


def _ordered_diff(names: Sequence[str] | None, wanted: list[Row], given: list[Row], same: _Sameness) -> str:
    lines: list[tuple[str, list[str]]] = []
    wrong = 0
    for number in range(max(len(wanted), len(given))):
        want = wanted[number] if number < len(wanted) else None
        got = given[number] if number < len(given) else None
        if want is not None and got is not None and same.row(got, want):
            continue
        wrong += 1
        if wrong > SHOWN:
            continue
        if want is not None and got is not None and len(want) == len(got):
            lines += [(f"{number + 1} {tag}", cells_) for tag, cells_ in _marked(want, got, same)]
        else:
            tagged = (("expected", want), ("actual", got))
            lines += [(f"{number + 1} {tag}", [_shown(v) for v in row]) for tag, row in tagged if row is not None]
    title = f"rows differ in {wrong} of {max(len(wanted), len(given))} places"
    return _text(title, names, lines, max(0, wrong - SHOWN))


def _text(title: str, names: Sequence[str] | None, lines: list[tuple[str, list[str]]], unseen: int) -> str:
    """Return the diff: a title, then one line for each row with a tag before it."""
    width = max(len(row) for _, row in lines)
    header = list(names or ())[:width]
    table = [[*header, *[""] * (width - len(header))]] if header else []
    table += [[*row, *[""] * (width - len(row))] for _, row in lines]
    tags = ["" for _ in range(len(table) - len(lines))] + [tag for tag, _ in lines]
    gutter = max(map(len, tags)) + 2
    shown = [tag.ljust(gutter) + line for tag, line in zip(tags, align(table).split("\n"), strict=True)]
    more = [f"and {unseen} more"] if unseen else []
    return "\n".join([title, *shown, *more])
