"""The reference engine: the meaning of a resolved join as nested loops over tuples.

Every engine must return the same rows.  The reference shares no code with the lowering to Spark, and is simple where
it could be fast.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from weft.core.types import DType, common_type
from weft.expr import evaluate
from weft.joins.resolve.resolved import AsOf, Exact, OutputColumn, Overlap, ResolvedJoin, SameWindow, Side, Slot, Within
from weft.testing.values import (
    Position,
    as_type,
    compare,
    distance,
    is_nan,
    microseconds,
    position,
    shared_windows,
    shifted,
)

Row = tuple[Any, ...]
Pair = tuple[int, int]


class RowNumbers(NamedTuple):
    """Indexes of rows of each side."""

    left: tuple[int, ...]
    right: tuple[int, ...]


def reference_join(join: ResolvedJoin, left_rows: Sequence[Row], right_rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the join in the order of its output columns.

    These are the matching pairs, and the unmatched rows of each side that `how` keeps, in no specified order.

    Parameters
    ----------
    join
        A resolved join: ``spec.bind(left, right, how="left")``.  Required.
    left_rows, right_rows
        Rows of both sides, each a tuple with a value for every column.  Required.

    Examples
    --------
    >>> from weft import JoinSpec
    >>> from weft.core.types import LONG, STRING, Field, Schema
    >>> orders = Schema((Field("order_id", LONG), Field("customer", LONG)))
    >>> customers = Schema((Field("id", LONG), Field("name", STRING)))
    >>> join = JoinSpec([("customer", "id")]).bind(orders, customers, how="left")
    >>> reference_join(join, [(1, 100), (2, 999)], [(100, "Alice")])
    [(1, 100, 'Alice'), (2, 999, None)]
    """
    left_rows, right_rows = _with_orders(join, "left", left_rows), _with_orders(join, "right", right_rows)
    pairs = matching_pairs(join, left_rows, right_rows)
    alone = unmatched_rows(pairs, left_rows, right_rows)
    if join.how == "anti":
        return [_output(join, left_rows[i], None) for i in alone.left]
    # A semi join has each left row once, however many rows match it.
    if join.how == "semi":
        return [_output(join, row, None) for i, row in enumerate(left_rows) if i not in alone.left]
    rows = [_output(join, left_rows[i], _matched(join, left_rows[i], j, right_rows)) for i, j in pairs]
    if join.how in ("left", "full"):
        rows.extend(_output(join, left_rows[i], None) for i in alone.left)
    if join.how in ("right", "full"):
        rows.extend(_output(join, None, right_rows[j]) for j in alone.right)
    return rows


def matching_pairs(join: ResolvedJoin, left_rows: Sequence[Row], right_rows: Sequence[Row]) -> list[Pair]:
    """Return the ``(left, right)`` row numbers that match.

    A pair occurs once, or once for each shared window if the match is per window.
    ``matching_pairs(join, [(1, 100)], [(100, "Alice")])`` is ``[(0, 0)]`` for the join of `reference_join`.

    Parameters
    ----------
    join
        A resolved join.  Required.
    left_rows, right_rows
        Rows of both sides, as in `reference_join`.  Required.
    """
    left_rows, right_rows = _with_orders(join, "left", left_rows), _with_orders(join, "right", right_rows)
    pairs: list[Pair] = []
    for i, left in enumerate(left_rows):
        candidates = [j for j, right in enumerate(right_rows) if _is_candidate(join, left, right)]
        if isinstance(join.match, Exact):
            pairs.extend((i, j) for j in candidates)
        elif isinstance(join.match, Within):
            pairs.extend((i, j) for j in candidates if _is_within(join, join.match, left, right_rows[j]))
        elif isinstance(join.match, Overlap):
            pairs.extend((i, j) for j in candidates if _overlaps(join.match, left, right_rows[j]))
        elif isinstance(join.match, AsOf):
            chosen = _nearest(join, join.match, left, candidates, right_rows)
            pairs.extend((i, j) for j in chosen if not _is_over(join.match, left, right_rows[j]))
        else:
            events = _events_of_key(join, join.match, left, left_rows, right_rows)
            for j in candidates:
                times = _times(join, join.match, left, right_rows[j])
                windows = shared_windows(join.match, *times, events)
                pairs.extend((i, j) for _ in (windows if join.match.per_window else windows[:1]))
    return pairs


def _with_orders(join: ResolvedJoin, side: Side, rows: Sequence[Row]) -> list[Row]:
    """Return rows with the values of orders that are expressions; rows that have them already stay."""

    def completed(row: Row) -> Row:
        def lookup(slot: Hashable) -> object:
            return row[slot[1]]  # type: ignore[index]  # slots of an order are (side, index)

        computed = join.computed(side) if len(row) == len(join.own_columns(side)) else ()
        return (*row, *(evaluate(typed, lookup) for typed in computed))

    return list(map(completed, rows))


def _is_candidate(join: ResolvedJoin, left: Row, right: Row) -> bool:
    """Whether keys are equal and every predicate is true; NULL is not true."""
    if not _same_key(join, _key(join, "left", left), _key(join, "right", right)):
        return False
    return all(_is_true(predicate, left, right) for predicate in join.predicates)


def _key(join: ResolvedJoin, side: Side, row: Row) -> Row:
    return tuple(as_type(row[key.left if side == "left" else key.right], key.dtype) for key in join.keys)


def _same_key(join: ResolvedJoin, one: Row, other: Row) -> bool:
    for a, b in zip(one, other, strict=True):
        if a is None or b is None:
            if not (join.nulls_equal and a is None and b is None):
                return False
        elif compare(a, b) != 0:
            return False
    return True


def _is_true(predicate: Any, left: Row, right: Row) -> bool:
    def lookup(slot: Hashable) -> object:
        side, index = Slot(*slot)  # type: ignore[misc]  # slots of a join's predicates are Slots
        return left[index] if side == "left" else right[index]

    return evaluate(predicate, lookup) is True


def _axis(join: ResolvedJoin, match: AsOf | Within | SameWindow) -> DType:
    """Return the type in which the two order columns are compared."""
    one, other = join.left.fields[match.left].dtype, join.right.fields[match.right].dtype
    return common_type(one, other) or one


def _times(join: ResolvedJoin, match: AsOf | Within | SameWindow, left: Row, right: Row) -> tuple[Any, Any]:
    """Return the two order values as positions, None for NULL."""
    axis = _axis(join, match)
    return position(left[match.left], axis), position(right[match.right], axis)


def _is_within(join: ResolvedJoin, match: Within, left: Row, right: Row) -> bool:
    """Whether ``left + lower <= right <= left + upper``."""
    at, other = _times(join, match, left, right)
    if at is None or other is None:
        return False
    if match.lower is not None and compare(other, shifted(at, match.lower)) < 0:
        return False
    return match.upper is None or compare(other, shifted(at, match.upper)) <= 0


def _nearest(
    join: ResolvedJoin, match: AsOf, left: Row, candidates: Iterable[int], right_rows: Sequence[Row]
) -> list[int]:
    """Return the candidate that is nearest in time, or none.

    Candidates are filtered before one is chosen: a nearer row that a predicate excludes hides no other row.
    """
    best: int | None = None
    for j in candidates:
        allowed = _is_known(match, left, right_rows[j]) and _is_in_reach(
            match, *_times(join, match, left, right_rows[j])
        )
        if allowed and (best is None or _is_better(join, match, left, right_rows[j], right_rows[best])):
            best = j
    return [] if best is None else [best]


def _is_known(match: AsOf, left: Row, right: Row) -> bool:
    """Whether the right row was known at the time of the left row."""
    if match.known is None:
        return True
    as_of, known = _point(left[match.known[0]]), _point(right[match.known[1]])
    return as_of is not None and known is not None and compare(known, as_of) <= 0


def _matched(join: ResolvedJoin, left: Row, chosen: int, right_rows: Sequence[Row]) -> Row:
    """Return the chosen right row; columns that skip NULLs get the nearest value that is not NULL."""
    match, row = join.match, list(right_rows[chosen])
    for column in match.skip_nulls if isinstance(match, AsOf) else ():
        filled = [j for j, r in enumerate(right_rows) if r[column] is not None and _is_candidate(join, left, r)]
        nearest = _nearest(join, match, left, filled, right_rows)  # type: ignore[arg-type]  # an AsOf here
        row[column] = right_rows[nearest[0]][column] if nearest else None
    return tuple(row)


def _is_over(match: AsOf, left: Row, right: Row) -> bool:
    """Whether the chosen row is a tombstone or its state has ended; it is dropped, not replaced by an earlier row."""
    if match.tombstone is not None and right[match.tombstone] is True:
        return True
    if match.until is None or right[match.until] is None:
        return False
    return compare(_point(left[match.left]), _point(right[match.until])) >= 0


def _point(value: Any) -> Any:
    """Return a value of an order column as a position, whatever its type."""
    return microseconds(value) if isinstance(value, dt.date) else value


def _overlaps(match: Overlap, left: Row, right: Row) -> bool:
    """Whether the time or range of one row overlaps that of the other."""
    mine = _stretch(left, match.left, match.left_end, match)
    theirs = _stretch(right, match.right, match.right_end, match)
    if mine is None or theirs is None:
        return False
    return _starts_before_end(mine, theirs) and _starts_before_end(theirs, mine)


def _stretch(row: Row, start: int, end: int | None, match: Overlap) -> tuple[Any, Any, bool] | None:
    """Return start, end and whether the end is inclusive; None for an empty range.  A start or end of None is open."""
    first = _point(row[start])
    if first is None and (end is None or not match.open_start):
        return None
    if end is None:
        return first, first, True
    if row[end] is None:
        return first, None, True
    last = _point(row[end])
    # An end before the start, and an empty range without its end, contain no time.
    order = 1 if first is None else compare(last, first)
    if order < 0 or (order == 0 and not match.closed):
        return None
    return first, last, match.closed


def _starts_before_end(one: tuple[Any, Any, bool], other: tuple[Any, Any, bool]) -> bool:
    if one[0] is None or other[1] is None:
        return True
    order = compare(one[0], other[1])
    return order < 0 or (order == 0 and other[2])


def _is_in_reach(match: AsOf, at: Any, other: Any) -> bool:
    """Whether direction, exactness and tolerance allow the right time `other` for the left time `at`."""
    if at is None or other is None:
        return False
    order = compare(other, at)
    if order == 0:
        return match.allow_exact
    if match.direction == "backward" and order > 0:
        return False
    if match.direction == "forward" and order < 0:
        return False
    return match.tolerance is None or compare(distance(at, other), _amount(match.tolerance, at)) <= 0


def _amount(tolerance: Any, at: Position) -> Any:
    """Return the tolerance as a distance on the axis of `at`."""
    return float(tolerance) if isinstance(at, float) else tolerance


def _is_better(join: ResolvedJoin, match: AsOf, left: Row, new: Row, best: Row) -> bool:
    """Whether the right row `new` replaces `best`; direction and tolerance allow both."""
    at, new_time = _times(join, match, left, new)
    _, best_time = _times(join, match, left, best)
    later = compare(new_time, best_time)
    if later == 0:
        return _wins_tie(join, match, new, best)
    if match.direction == "backward":
        return later > 0
    if match.direction == "forward":
        return later < 0
    nearer = compare(distance(at, new_time), distance(at, best_time))
    if nearer != 0:
        return nearer < 0
    return later < 0 if match.nearest_tie == "backward" else later > 0


def _wins_tie(join: ResolvedJoin, match: AsOf, new: Row, best: Row) -> bool:
    """Whether `new` is greater by the tie-break columns, then by all columns that can be ordered."""
    # All columns at the end, so that the choice never depends on the order of rows.
    every = [c for c, field in enumerate(join.right) if field.dtype.is_orderable]
    known = () if match.known is None else (match.known[1],)
    for column in (*known, *match.tie_break, *every):
        order = compare(new[column], best[column])
        if order != 0:
            return order > 0
    return False


def _events_of_key(
    join: ResolvedJoin, match: SameWindow, left: Row, left_rows: Sequence[Row], right_rows: Sequence[Row]
) -> list[Position]:
    """Return the times of all rows, of both sides, with the key of the row `left`."""
    axis, key = _axis(join, match), _key(join, "left", left)
    mine = [row[match.left] for row in left_rows if _same_key(join, key, _key(join, "left", row))]
    theirs = [row[match.right] for row in right_rows if _same_key(join, key, _key(join, "right", row))]
    times = [position(value, axis) for value in (*mine, *theirs) if value is not None]
    return [time for time in times if not is_nan(time)]


def _output(join: ResolvedJoin, left: Row | None, right: Row | None) -> Row:
    """Return one row of the result; a side that is None is padded with NULL."""
    return tuple(_output_value(column, left, right) for column in join.output)


def _output_value(column: OutputColumn, left: Row | None, right: Row | None) -> Any:
    if column.source == "indicator":
        return "right_only" if left is None else "left_only" if right is None else "both"
    mine = None if left is None or column.left is None else left[column.left]
    theirs = None if right is None or column.right is None else right[column.right]
    if column.source == "left":
        return mine
    if column.source == "right":
        return theirs
    return as_type(theirs if mine is None else mine, column.dtype)


def unmatched_rows(pairs: Iterable[Pair], left_rows: Sequence[Row], right_rows: Sequence[Row]) -> RowNumbers:
    """Return the rows of each side that are in no pair.

    Parameters
    ----------
    pairs
        The pairs of row numbers that `matching_pairs` returns.  Required.
    left_rows, right_rows
        Rows of both sides.  Required.

    Examples
    --------
    >>> unmatched_rows([(0, 1)], [("a",), ("b",)], [("x",), ("y",)])
    RowNumbers(left=(1,), right=(0,))
    """
    listed = tuple(pairs)
    lefts, rights = {i for i, _ in listed}, {j for _, j in listed}
    return RowNumbers(
        tuple(i for i in range(len(left_rows)) if i not in lefts),
        tuple(j for j in range(len(right_rows)) if j not in rights),
    )


def relationship_violations(join: ResolvedJoin, pairs: Iterable[Pair]) -> RowNumbers:
    """Return the rows with more matches than the relationship of the join promises.

    ``m:1``: each left row has at most one match; ``1:m``: each right row; ``1:1``: both.
    Windows shared by one pair do not count twice.
    ``relationship_violations(join, [(0, 0), (0, 1)]).left`` is ``(0,)`` if the relationship is ``m:1``.

    Parameters
    ----------
    join
        A resolved join.  Required.
    pairs
        The pairs of row numbers that `matching_pairs` returns.  Required.
    """
    once = set(pairs)  # one pair that shares several windows is one match
    lefts = Counter(i for i, _ in once) if join.relationship in ("m:1", "1:1") else Counter[int]()
    rights = Counter(j for _, j in once) if join.relationship in ("1:m", "1:1") else Counter[int]()
    return RowNumbers(
        tuple(sorted(i for i, count in lefts.items() if count > 1)),
        tuple(sorted(j for j, count in rights.items() if count > 1)),
    )
