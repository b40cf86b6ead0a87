"""Keys: exact equality behind the hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from weft.streams.kernel.segments import Longs, Segment
from weft.streams.kernel.widths import widths


def same_keys(
    keys: tuple[str, ...], left: Segment, left_places: Longs, right: Segment, right_places: Longs
) -> NDArray[np.bool_] | None:
    """Return which pairs of rows have equal keys; None when all have, which is almost always so."""
    same: NDArray[np.bool_] | None = None
    for key in keys:
        equal = pc.equal(left.child(key, left_places), right.child(key, right_places))
        if not pc.all(equal, skip_nulls=False).as_py():
            here = equal.fill_null(fill_value=False).to_numpy(zero_copy_only=False)
            same = here if same is None else same & here
    return same


def key_numbers(keys: tuple[str, ...], parts: Sequence[tuple[Segment, Longs]]) -> Longs:
    """Return a number for each row of the parts in turn, equal where and only where the keys are.

    A hash that two keys share is seen by comparing each row with the first one of its hash.
    """
    hashes = np.concatenate([segment.hashes[places] for segment, places in parts])
    _, first, numbers = np.unique(hashes, return_index=True, return_inverse=True)
    columns = [_joined([segment.child(key, places) for segment, places in parts]) for key in keys]
    if all(_is_same(column, first[numbers]) for column in columns):
        return np.asarray(numbers, dtype=np.int64)
    return _spelled_out(columns)


def _is_same(column: Any, places: Longs) -> bool:
    """Whether each row of a key is equal to the one at its place; rows that repeat are taken piece by piece."""
    for piece in widths([column], places).pieces(len(places)):
        rows = column.slice(piece.start, piece.stop - piece.start)
        if not pc.all(pc.equal(rows, column.take(pa.array(places[piece]))), skip_nulls=False).as_py():
            return False
    return True


def _joined(pieces: list[Any]) -> Any:
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)


def _spelled_out(columns: list[Any]) -> Longs:
    """Return numbers of rows from the values alone, whatever their hashes."""
    numbers = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        codes = column.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
        numbers = numbers * (codes.max(initial=0) + 1) + codes
        _, numbers = np.unique(numbers, return_inverse=True)
        numbers = np.asarray(numbers, dtype=np.int64)
    return numbers


def content_ranks(rows: Any) -> Longs:
    """Return for each row its place among all by content: column by column, NULL first.

    Equal rows get ranks of their own; which of them comes first does not matter.
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
    if pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type):
        return pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.string())
    return column
