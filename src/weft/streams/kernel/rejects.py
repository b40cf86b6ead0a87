"""Rejects: rows that take no part, kept with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.streams.kernel.spec import NEVER, Reason, Side


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RejectRows:
    """Rows of one side with one reason; `raw` is the text of rows that do not read."""

    side: Side
    reason: Reason
    times: NDArray[np.int64]  # NEVER: none
    matched: NDArray[np.bool_]
    raw: Any
    rows: Any

    def __len__(self) -> int:
        return len(self.times)


def reject_table(found: Sequence[RejectRows], *, batch: int, group: int, watermark: int) -> Any:
    """Return rejected rows of one side as one table: what is kept of them below the checkpoint."""
    return pa.concat_tables([_table(one, batch, group, watermark) for one in found])


def _table(found: RejectRows, batch: int, group: int, watermark: int) -> Any:
    count = len(found)
    rows = found.rows.combine_chunks().to_struct_array() if found.rows.num_columns else None
    struct = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
    columns: dict[str, Any] = {
        "side": pa.array([found.side] * count, pa.string()),
        "reason": pa.array([found.reason] * count, pa.string()),
        "event_time": pa.array(found.times, pa.int64(), mask=found.times == NEVER),
        "watermark": pa.array([None if watermark == NEVER else watermark] * count, pa.int64()),
        "batch": pa.array([batch] * count, pa.int64()),
        "group": pa.array([group] * count, pa.int32()),
        "matched": pa.array(found.matched),
        "raw": pa.nulls(count, pa.string()) if found.raw is None else found.raw,
    }
    if struct is not None:
        columns["row"] = struct
    return pa.table(columns)
