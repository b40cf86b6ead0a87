"""The rows that an as-of search returns to Spark, as Arrow tables of bounded size.

A right row may be the match of any number of left rows, so the result can be far larger than both
sides together.  If its right values have more bytes than both sides, or than a piece if that is more, it is
therefore returned folded: a right row once, with the left rows that it was chosen for in a list, which
Spark unfolds row by row::

    k  t  u  note  folded                 k  t  u  note
    A  7  5  xxx   NULL            is     A  7  5  xxx
    -  -  5  xxx   [(A, 8), (A, 9)]       A  8  5  xxx
                                          A  9  5  xxx
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Search(NamedTuple):
    """The parameters of a search; columns are positions in the tables that the worker receives."""

    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    left_time: int
    right_time: int
    usable: int | None
    nulls_equal: bool
    ties: tuple[int, ...]
    skip_nulls: tuple[int, ...]
    backward: bool
    forward: bool
    allow_exact: bool
    tolerance: int | float | None
    tie_backward: bool
    keep_unmatched: bool
    left_out: tuple[int, ...]
    right_out: tuple[int, ...]
    names: tuple[str, ...]
    most: int
    whole: int
    piece: int


def build_result(
    search: Search, left: pa.Table, right: pa.Table, matches: Any, skipped: dict[int, Any], held: int
) -> pa.Table:
    """Return the joined rows in record batches of bounded size, folded where their right values outgrow the input.

    `held` is the size of both sides.  Left values take no memory of their own in plain rows, because pieces of a table
    share its buffers.
    """
    sizes = _sum_right_sizes(search, right, matches, skipped)
    most = sum(int(size.max(initial=0)) for _, size in sizes) * len(left)
    if most + left.nbytes <= search.piece:
        return pa.Table.from_batches([_rows(search, left, right, matches, skipped)])
    theirs = np.zeros(len(left), dtype=np.int64)
    for rows, size in sizes:
        theirs += np.where(rows >= 0, size[rows], 0) if len(size) else 0
    ours = sum_sizes(left.columns, len(left))
    if int(theirs.sum()) > min(max(held, search.piece), search.whole):
        return _folded(search, left, right, matches, skipped, ours, theirs)
    ends = _ends(ours + theirs, search.piece)
    batches = [
        _rows(search, left.slice(a, b - a), right, matches[a:b], {i: rows[a:b] for i, rows in skipped.items()})
        for a, b in zip([0, *ends], ends, strict=False)
    ]
    return pa.Table.from_batches(batches)


def _sum_right_sizes(search: Search, right: pa.Table, matches: Any, skipped: dict[int, Any]) -> list[tuple[Any, Any]]:
    """Return for each choice of right rows the sizes of the values that it gives."""
    alone = [(rows, sum_sizes([right.column(i)], len(right))) for i, rows in skipped.items() if i in search.right_out]
    common = [right.column(i) for i in search.right_out if i not in skipped]
    return [(matches, sum_sizes(common, len(right))), *alone]


def _rows(search: Search, left: pa.Table, right: pa.Table, matches: Any, skipped: dict[int, Any]) -> pa.RecordBatch:
    """Return a row for each left row."""
    columns = [cast_to_utc(_one_array(column)) for column in left.columns]
    # The list is there, and NULL, in plain results too: Spark needs one schema for all of them.
    many = _many_type(columns)
    return pa.record_batch(
        [*columns, *_taken(search, right, matches, skipped), pa.nulls(len(left), many)], list(search.names)
    )


def _taken(search: Search, right: pa.Table, matches: Any, skipped: dict[int, Any]) -> list[Any]:
    """Return the right columns of the rows that were chosen, and whether there is one."""
    columns = []
    for i in search.right_out:
        rows = skipped.get(i, matches)
        columns.append(cast_to_utc(_one_array(right.column(i).take(pa.array(rows, mask=rows < 0)))))
    return [*columns, pa.array(matches >= 0)]


def _many_type(columns: list[Any]) -> Any:
    return pa.list_(pa.struct([(f"f{n}", column.type) for n, column in enumerate(columns)]))


def _folded(
    search: Search, left: pa.Table, right: pa.Table, matches: Any, skipped: dict[int, Any], ours: Any, theirs: Any
) -> pa.Table:
    """Return each choice of right values once for every list of left rows that it was made for.

    A list has about as many bytes as the right values beside it, or a piece: so all right values
    together have at most the bytes of both sides.
    """
    choices = [matches, *skipped.values()]
    # Sorted by what was chosen: left rows with the same right values are neighbours.
    order = np.lexsort(choices)
    same = np.ones(len(order) - 1, dtype=bool)
    for rows in choices:
        same &= rows[order][1:] == rows[order][:-1]
    first = np.concatenate(([True], ~same))
    # Spark's rows have eight bytes for each column, and as much for each row and its place.
    before = np.concatenate(([0], np.cumsum(ours[order] + 8 * len(left.columns) + 16)))[:-1]
    inside = before - before[np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))]
    part = inside // np.clip(theirs[order], search.piece, search.whole)
    starts = np.flatnonzero(first | np.concatenate(([False], part[1:] != part[:-1])))
    stops = np.append(starts[1:], len(order))
    heads = order[starts]
    batches = []
    bytes_of = np.add.reduceat(ours[order], starts) + theirs[heads]
    ends = _ends(bytes_of, search.piece)
    for a, b in zip([0, *ends], ends, strict=False):
        rows = left.take(pa.array(order[starts[a] : stops[b - 1]]))
        columns = [cast_to_utc(_one_array(column)) for column in rows.columns]
        many = _many_type(columns)
        lists = pa.ListArray.from_arrays(
            pa.array(np.append(starts[a:b], stops[b - 1]) - starts[a], pa.int32()),
            pa.StructArray.from_arrays(columns, fields=list(many.value_type)),
            type=many,
        )
        taken = _taken(search, right, matches[heads[a:b]], {i: rows[heads[a:b]] for i, rows in skipped.items()})
        nothing = [pa.nulls(b - a, column.type) for column in columns]
        batches.append(pa.record_batch([*nothing, *taken, lists], list(search.names)))
    return pa.Table.from_batches(batches)


def _ends(sizes: Any, most: int) -> list[int]:
    """Return where pieces of rows end, so that each has at most as many bytes, or is one row.

    >>> _ends(np.array([3, 3, 3, 9, 1, 1]), 6)
    [2, 3, 4, 6]
    """
    total = np.concatenate(([0], np.cumsum(sizes)))
    ends, start = [], 0
    while start < len(sizes):
        start = max(int(np.searchsorted(total, total[start] + most, side="right")) - 1, start + 1)
        ends.append(start)
    return ends


def sum_sizes(columns: list[Any], rows: int) -> Any:
    """Return how many bytes each row of some columns has in Arrow's memory."""
    total = np.zeros(rows, dtype=np.int64)
    for column in columns:
        total += measure_sizes(column)
    return total


def measure_sizes(column: Any) -> Any:
    """Return how many bytes each value of a column has in Arrow's memory."""
    if isinstance(column, pa.ChunkedArray):
        parts = [measure_sizes(chunk) for chunk in column.chunks]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    kind = column.type
    if pa.types.is_struct(kind):
        return sum(map(measure_sizes, column.flatten()), np.zeros(len(column), dtype=np.int64))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        total = np.concatenate(([0], np.cumsum(measure_sizes(column.values))))
        offsets = column.offsets.to_numpy()
        return total[offsets[1:]] - total[offsets[:-1]] + 4
    if _has_length(kind):
        return pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64) + 4
    return np.full(len(column), 0 if pa.types.is_null(kind) else -(-kind.bit_width // 8), dtype=np.int64)


def _has_length(kind: Any) -> bool:
    types = pa.types
    return any(
        is_it(kind) for is_it in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    )


def _one_array(column: Any) -> Any:
    """Return a column as one array; a result has too few bytes for the 32-bit offsets of one to overflow."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def cast_to_utc(column: Any) -> Any:
    """Return timestamps in UTC: Spark sends them in the session's zone and expects them in UTC."""
    wanted = _utc_type(column.type)
    return column if wanted == column.type else column.cast(wanted)


def _utc_type(kind: Any) -> Any:
    """Return an Arrow type with UTC as the zone of every timestamp in it."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit, "UTC") if kind.tz else kind
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_utc_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_utc_type(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(
            kind.key_field.with_type(_utc_type(kind.key_type)), kind.item_field.with_type(_utc_type(kind.item_type))
        )
    return kind
