"""The as-of search on Arrow tables: numpy and pyarrow only, because it runs on workers.

This module and `asof_result` are sent to the workers by value, so they need not have Weft installed; they
must import nothing else of Weft.

Keys become dense codes, times become 64-bit integers, and both together one sorted array of
numbers that a binary search reads.  Right rows of equal key and time are sorted by the tie
columns, so the last of a run is the one that wins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.joins.spark.asof_result import Search, build_result, cast_to_utc

_MANY = 1 << 24


class GroupTooLargeError(MemoryError):
    """One group of both sides is more than a task may hold."""


def join_group(search: Search) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """Return the function that joins one group of both sides."""

    def run(left: pa.Table, right: pa.Table) -> pa.Table:
        size = left.nbytes + right.nbytes
        if size > search.most:
            message = (
                f"[W0110] the kernel refuses a group of {left.num_rows:,} left and {right.num_rows:,} right rows: "
                f"{size:,} bytes are more than the {search.most:,} a task may hold, so a key is heavy or the "
                "shuffle partitions are few. Next: strategy='slices' (or statistics='sample'), strategy='union', "
                "or a larger spark.sql.shuffle.partitions"
            )
            raise GroupTooLargeError(message)
        return joined(search, left, right)

    return run


def joined(search: Search, left: pa.Table, right: pa.Table) -> pa.Table:
    """Return left rows with the columns of their right row, or with NULLs."""
    held = left.nbytes + right.nbytes
    left, right = left.combine_chunks(), right.combine_chunks()
    usable = _usable(search, left)
    left_codes, right_codes = _codes(search, left, right)
    left_times, right_times = (numbers(left.column(search.left_time)), numbers(right.column(search.right_time)))
    matches = _search(search, left_codes, left_times, right_codes, right_times, right)
    matches[~usable] = -1
    skipped = {}
    for column in search.skip_nulls:
        # A search of its own among the rows with a value; a left row without a match gets no value either.
        rows = np.flatnonzero(right.column(column).is_valid().to_numpy())
        some = _search(search, left_codes, left_times, right_codes[rows], right_times[rows], right.take(pa.array(rows)))
        skipped[column] = np.where((some >= 0) & (matches >= 0), rows[some] if len(rows) else -1, -1)
    if not search.keep_unmatched:
        kept = np.flatnonzero(matches >= 0)
        left, matches = left.take(pa.array(kept)), matches[kept]
        skipped = {c: rows[kept] for c, rows in skipped.items()}
    return build_result(search, left.select(list(search.left_out)), right, matches, skipped, held)


def _usable(search: Search, left: pa.Table) -> Any:
    """Return which left rows can match at all: a column of flags if it was sent, otherwise those without NULLs."""
    if search.usable is not None:
        return left.column(search.usable).to_numpy()
    needed = [search.left_time, *(() if search.nulls_equal else search.left_keys)]
    usable = np.ones(len(left), dtype=bool)
    for column in needed:
        if left.column(column).null_count:
            usable &= left.column(column).is_valid().to_numpy()
    return usable


def _codes(search: Search, left: pa.Table, right: pa.Table) -> tuple[Any, Any]:
    """Return one number per row and side, equal where all keys are equal."""
    rows, most = len(left), 1
    total = np.zeros(rows + len(right), dtype=np.int64)
    for a, b in zip(search.left_keys, search.right_keys, strict=True):
        both = pa.chunked_array([*left.column(a).chunks, *right.column(b).chunks], type=left.schema.field(a).type)
        encoded = both.combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        count = len(encoded.dictionary) + 1
        total, most = total * count + codes, most * count
        if most > max(count, _MANY):  # `_packed` puts a time beside the number in 64 bits
            again = pa.array(total).dictionary_encode()
            total, most = again.indices.to_numpy().astype(np.int64), len(again.dictionary)
    return total[:rows], total[rows:]


def numbers(column: pa.ChunkedArray) -> Any:
    """Return times or numbers as 64-bit integers in the same order; NULL becomes the smallest."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_floating(array.type):
        return _ordered_bits(array)
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    return pc.fill_null(array.cast(pa.int64()), np.iinfo(np.int64).min).to_numpy(zero_copy_only=False)


def _ordered_bits(array: Any) -> Any:
    """Return doubles as integers that sort alike: -0.0 is 0.0 and NaN is above all."""
    values = array.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0
    values = np.where(np.isnan(values), np.nan, values)
    # Negative doubles sort in reverse by their bits, so all bits but the sign are flipped.
    bits = values.view(np.int64)
    ordered = np.where(bits < 0, ~bits ^ np.int64(-(2**63)), bits)
    return np.where(np.asarray(array.is_null()), np.iinfo(np.int64).min, ordered)


def _search(search: Search, lk: Any, lt: Any, rk: Any, rt: Any, right: pa.Table) -> Any:
    """Return for each left row the number of its right row, or -1."""
    if len(rk) == 0 or len(lk) == 0:
        return np.full(len(lk), -1, dtype=np.int64)
    order, sorted_keys, wanted = _packed(lk, lt, rk, rt)
    order = _ties_settled(search, order, sorted_keys, right)
    # Sorted left rows read neighbouring places of the array, which are in the cache of the processor.
    by_value = np.argsort(wanted)
    back = _backward(search, sorted_keys, wanted[by_value]) if search.backward else None
    ahead = _forward(search, sorted_keys, wanted[by_value]) if search.forward else None
    back = None if back is None else _in_reach(search, _unsorted(back, by_value), order, lk, lt, rk, rt)
    ahead = None if ahead is None else _in_reach(search, _unsorted(ahead, by_value), order, lk, lt, rk, rt)
    if back is None or ahead is None:
        return back if ahead is None else ahead
    return _nearer(search, back, ahead, lt, rt)


def _unsorted(places: Any, order: Any) -> Any:
    """Return places in the original order of the left rows."""
    unsorted = np.empty_like(places)
    unsorted[order] = places
    return unsorted


def _packed(lk: Any, lt: Any, rk: Any, rt: Any) -> tuple[Any, Any, Any]:
    """Return the order of right rows, their sorted (key, time) numbers, and those of left rows."""
    # Python integers: the span of two 64-bit times may not fit one.
    low = min(int(lt.min()), int(rt.min()))
    span = max(int(lt.max()), int(rt.max())) - low
    keys = max(int(lk.max()), int(rk.max())) + 1
    if span.bit_length() + keys.bit_length() < 63:
        shift = span.bit_length()
        packed, wanted = (rk << shift) | (rt - low), (lk << shift) | (lt - low)
    else:  # too far apart for one number: rank the times first
        times = np.unique(np.concatenate((lt, rt)))
        shift = len(times).bit_length()
        packed = (rk << shift) | np.searchsorted(times, rt)
        wanted = (lk << shift) | np.searchsorted(times, lt)
    order = np.argsort(packed, kind="stable")
    return order, packed[order], wanted


def _ties_settled(search: Search, order: Any, packed: Any, right: pa.Table) -> Any:
    """Return the order with rows of equal key and time sorted by the tie columns."""
    same = packed[1:] == packed[:-1]
    if not same.any() or not search.ties:
        return order
    inside = np.concatenate(([False], same)) | np.concatenate((same, [False]))
    places = np.flatnonzero(inside)
    rows = order[places]
    runs = np.cumsum(np.concatenate(([True], packed[places][1:] != packed[places][:-1])))
    table = {"run": pa.array(runs)}
    for n, column in enumerate(search.ties):
        values = right.column(column).take(pa.array(rows))
        table[f"n{n}"] = values.is_valid()
        table[f"t{n}"] = _sortable_column(values)
    keys = [("run", "ascending")]
    for n in range(len(search.ties)):
        keys += [(f"n{n}", "ascending"), (f"t{n}", "ascending")]
    settled = order.copy()
    settled[places] = rows[pc.sort_indices(pa.table(table), sort_keys=keys).to_numpy()]
    return settled


def _sortable_column(values: Any) -> Any:
    """Return values that Arrow sorts, in the order in which Spark does."""
    if pa.types.is_floating(values.type):
        return pa.array(numbers(values))
    return pa.array(rank_values(cast_to_utc(values))) if pa.types.is_nested(values.type) else values


def rank_values(values: Any) -> Any:
    """Return numbers that compare as Spark compares arrays, structs and what is in them: NULL first, NaN last.

    Python objects would need many times the memory of the values.

    >>> rank_values(pa.array([[1, None], None, [1], [], [0.5], [float("nan")], [1]])).tolist()
    [4, 0, 3, 1, 2, 5, 3]
    """
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    here = values.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_struct(values.type):
        ranks = np.zeros(len(values), dtype=np.int64)
        for column in values.flatten():
            ranks = _rank_pairs(ranks, rank_values(column))
    elif pa.types.is_nested(values.type):
        ranks = _rank_lists(values, here)
    else:
        leaves = pa.array(numbers(values)) if pa.types.is_floating(values.type) else values
        encoded = leaves.dictionary_encode(null_encoding="encode")
        order = pc.sort_indices(encoded.dictionary).to_numpy()
        ranks = np.argsort(order)[encoded.indices.to_numpy()]
    return np.where(here, ranks + 1, 0)


def _rank_pairs(first: Any, second: Any) -> Any:
    """Return the ranks of pairs of numbers; numbers are at least -1 and fewer than 2**31."""
    return np.unique(first * (int(second.max(initial=0)) + 2) + second, return_inverse=True)[1]


def _rank_lists(values: Any, here: Any) -> Any:
    """Return the ranks of lists: neighbours become one rank until each list has at most one.

    A list that ended is less than any element, so that [a] is before [a, b]::

        [3, 1, 2]  [3, 1]      ranks of (3, 1), (2, end) and (3, 1)
        [1, 0]     [1]         ranks of (1, 0) and (1, end)
        [1]        [0]
    """
    lengths = np.where(here, np.diff(values.offsets.to_numpy()), 0)
    ranks = rank_values(values.flatten())
    while lengths.max(initial=0) > 1:
        halves = (lengths + 1) // 2
        starts = np.cumsum(lengths) - lengths
        inside = np.arange(int(halves.sum())) - np.repeat(np.cumsum(halves) - halves, halves)
        left = np.repeat(starts, halves) + 2 * inside
        ended = 2 * inside + 1 >= np.repeat(lengths, halves)
        second = np.where(ended, -1, ranks[np.where(ended, left, left + 1)])
        ranks, lengths = _rank_pairs(ranks[left], second), halves
    one = np.full(len(lengths), -1, dtype=np.int64)
    one[lengths > 0] = ranks
    return one + 1


def _backward(search: Search, packed: Any, wanted: Any) -> Any:
    """Return the place of the last right row at or before each left row."""
    return np.searchsorted(packed, wanted, side="right" if search.allow_exact else "left") - 1


def _forward(search: Search, packed: Any, wanted: Any) -> Any:
    """Return the place of the winning right row at or after each left row."""
    first = np.searchsorted(packed, wanted, side="left" if search.allow_exact else "right")
    inside = np.minimum(first, len(packed) - 1)
    last = np.searchsorted(packed, packed[inside], side="right") - 1
    return np.where(first < len(packed), last, -1)


def _in_reach(search: Search, places: Any, order: Any, lk: Any, lt: Any, rk: Any, rt: Any) -> Any:
    """Return right row numbers; -1 where the key differs or the distance is over the tolerance."""
    rows = order[np.maximum(places, 0)]
    good = (places >= 0) & (rk[rows] == lk)
    if search.tolerance is not None:
        good &= _distance(lt, rt[rows]) <= np.uint64(search.tolerance)
    return np.where(good, rows, -1)


def _distance(a: Any, b: Any) -> Any:
    """Return how far apart integers are, without overflow."""
    big, small = np.maximum(a, b).astype(np.uint64), np.minimum(a, b).astype(np.uint64)
    return big - small  # modulo 2**64, which is the true distance


def _nearer(search: Search, back: Any, ahead: Any, lt: Any, rt: Any) -> Any:
    """Return the nearer of two right rows; of equally near ones the side asked for."""
    far = np.iinfo(np.uint64).max
    before = np.where(back >= 0, _distance(lt, rt[np.maximum(back, 0)]), far)
    after = np.where(ahead >= 0, _distance(lt, rt[np.maximum(ahead, 0)]), far)
    takes_back = before <= after if search.tie_backward else before < after
    return np.where(ahead < 0, back, np.where(back < 0, ahead, np.where(takes_back, back, ahead)))
