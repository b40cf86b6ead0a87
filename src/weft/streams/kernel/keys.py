"""Exact comparison of keys with equal hashes, and the width of rows, by which output is split into pieces.

A row of one side may match a million of the other, and each pair repeats its columns: a string of 2 kB becomes 2 GB,
more than an Arrow string column can hold.  The average width of a table says nothing about the rows that repeat,
so lengths are computed row by row, from the offsets alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from weft.streams.kernel.segments import Longs, Segment, combine_column

MAX_PIECE_ROWS = 65_536
"""The maximum number of rows of a piece."""
MAX_PIECE_BYTES = 64 * 1024**2
"""The approximate maximum number of bytes of a piece; one row may have more."""


@dataclass(frozen=True, slots=True, eq=False)
class Widths:
    """Bytes of some rows: a fixed part, and a part for each row (None: no such part)."""

    fixed: int
    each: Longs | None

    def __add__(self, other: Widths) -> Widths:
        if self.each is None or other.each is None:
            each = other.each if self.each is None else self.each
        else:
            each = self.each + other.each
        return Widths(self.fixed + other.fixed, each)

    def at(self, places: Longs) -> Widths:
        """Return the widths of some of the rows, in any order, also repeated."""
        return Widths(self.fixed, None if self.each is None else self.each[places])

    def pieces(self, count: int, rows: int | None = None) -> Iterator[slice]:
        """Yield `count` rows piece by piece, each of at most `MAX_PIECE_ROWS` rows and about `MAX_PIECE_BYTES` bytes.

        >>> [(s.start, s.stop) for s in Widths(8, np.array([0, MAX_PIECE_BYTES, 0, 0])).pieces(4)]
        [(0, 1), (1, 2), (2, 4)]
        """
        most = MAX_PIECE_ROWS if rows is None else rows
        if self.each is None:
            step = max(1, min(most, MAX_PIECE_BYTES // max(1, self.fixed)))
            yield from (slice(first, min(first + step, count)) for first in range(0, count, step))
            return
        ends = np.cumsum(self.each + self.fixed)
        first = 0
        while first < count:
            base = int(ends[first - 1]) if first else 0
            last = int(np.searchsorted(ends, base + MAX_PIECE_BYTES, side="right"))
            last = max(first + 1, min(last, first + most, count))
            yield slice(first, last)
            first = last


def row_widths(columns: Iterable[Any], places: Longs) -> Widths:
    """Return the widths of the rows at some places of Arrow columns."""
    total = Widths(0, None)
    for column in columns:
        array = combine_column(column)
        size = fixed_width(array.type)
        total += Widths(size, None) if size is not None else Widths(0, _range_bytes(array, places, places + 1))
    return total


def fixed_width(kind: Any) -> int | None:
    """Return the bytes of a value of a fixed-width type, None for other types.

    >>> fixed_width(pa.int64()), fixed_width(pa.string())
    (8, None)
    """
    if pa.types.is_null(kind):
        return 0
    try:
        return -(-int(kind.bit_width) // 8)
    except ValueError:
        return None


def _range_bytes(array: Any, start: Longs, stop: Longs) -> Longs:
    """Return how many bytes the values from `start` to before `stop` have, for each of the ranges."""
    kind = array.type
    size = fixed_width(kind)
    if size is not None:
        return np.asarray((stop - start) * size, dtype=np.int64)
    if pa.types.is_struct(kind):
        # `flatten` takes the offset of a sliced struct into account.
        total = np.zeros(len(start), dtype=np.int64)
        for child in array.flatten():
            total += _range_bytes(child, start, stop)
        return total
    if pa.types.is_map(kind):
        offsets = array.offsets.to_numpy().astype(np.int64)
        first, last = offsets[start], offsets[stop]
        return 4 * (stop - start) + _range_bytes(array.keys, first, last) + _range_bytes(array.items, first, last)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        offsets = array.offsets.to_numpy().astype(np.int64)
        return 4 * (stop - start) + _range_bytes(array.values, offsets[start], offsets[stop])
    return 4 * (stop - start) + _string_bytes(array, start, stop)


def _string_bytes(array: Any, start: Longs, stop: Longs) -> Longs:
    kind = array.type
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not is_large and not pa.types.is_string(kind) and not pa.types.is_binary(kind):
        # A type without offsets, for example a view or a dictionary: the average has to do.
        return np.asarray((stop - start) * (array.nbytes // max(1, len(array))), dtype=np.int64)
    if not len(array):
        return np.zeros(len(start), dtype=np.int64)
    # The offsets of a slice are those of the whole array; `buffers` ignores where the slice begins.
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int64 if is_large else np.int32)
    ends, starts = (np.asarray(offsets[places + array.offset], np.int64) for places in (stop, start))
    return np.asarray(ends - starts)


def compare_keys(
    keys: tuple[str, ...], left: Segment, left_places: Longs, right: Segment, right_places: Longs
) -> NDArray[np.bool_] | None:
    """Return which pairs of rows have equal keys; None if all have equal keys, which is the usual case."""
    same: NDArray[np.bool_] | None = None
    for key in keys:
        # The gate removes rows with a NULL key; `skip_nulls=False` makes any other NULL count as different.
        equal = pc.equal(left.child(key, left_places), right.child(key, right_places))
        if not pc.all(equal, skip_nulls=False).as_py():
            here = equal.fill_null(fill_value=False).to_numpy(zero_copy_only=False)
            same = here if same is None else same & here
    return same


def number_keys(keys: tuple[str, ...], parts: Sequence[tuple[Segment, Longs]]) -> Longs:
    """Return a number for each row of the parts in turn, equal if and only if the keys are equal.

    Comparing each row with the first one of its hash detects keys that share a hash.
    """
    hashes = np.concatenate([segment.hashes[places] for segment, places in parts])
    _, first, numbers = np.unique(hashes, return_index=True, return_inverse=True)
    children = [[segment.child(key, places) for segment, places in parts] for key in keys]
    columns = [combine_column(pa.chunked_array(pieces)) for pieces in children]
    # Two keys with one hash are so rare that numbering by value, which is much slower, is the exception.
    if all(_has_equal_rows(column, first[numbers]) for column in columns):
        return np.asarray(numbers, dtype=np.int64)
    return _number_by_value(columns)


def _has_equal_rows(column: Any, places: Longs) -> bool:
    """Return whether each row of a key equals the row at its position, piece by piece."""
    for piece in row_widths([column], places).pieces(len(places)):
        rows = column.slice(piece.start, piece.stop - piece.start)
        if not pc.all(pc.equal(rows, column.take(pa.array(places[piece]))), skip_nulls=False).as_py():
            return False
    return True


def _number_by_value(columns: list[Any]) -> Longs:
    """Return numbers of rows by their values, ignoring hashes."""
    numbers = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        codes = column.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Numbered densely after each column, so that the product never exceeds int64.
        numbers = numbers * (codes.max(initial=0) + 1) + codes
        _, numbers = np.unique(numbers, return_inverse=True)
        numbers = np.asarray(numbers, dtype=np.int64)
    return numbers


def rank_by_content(rows: Any) -> Longs:
    """Return the rank of each row by content: column by column, NULL first.

    Equal rows get different ranks, in an arbitrary order.
    """
    columns = []
    for column in rows.columns:
        if column.null_count:
            columns.append(column.is_valid())  # false sorts before true
        columns.append(_sortable(column))
    table = pa.table(columns, names=[str(i) for i in range(len(columns))])
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names]).to_numpy()
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _sortable(column: Any) -> Any:
    # Arrow sorts neither nested values nor dictionaries; any fixed order is good enough.
    if pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type):
        return pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.string())
    return column
