"""Rows that wait in a state that is left behind: kept as rejects, so that they are not lost without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weft.kernel.spec import GONE, MATCHED, OVER
from weft.store.streams.checkpoint import Checkpoint
from weft.store.streams.durable import damaged, read_document
from weft.store.streams.ledger import SIDES

REASON = "ABANDONED"


def abandon(old: Checkpoint, new: Checkpoint, batch: int) -> int:
    """Write the rows that wait in the state of `old` as rejects of `new` and return how many they are."""
    count = 0
    for path in sorted(old.state.glob(f"j*/{batch}/*/index.json")):
        index = read_document(path)
        folder = path.parents[2]
        for side in SIDES:
            tables = [t for t in _waiting(folder, index, side) if t.num_rows]
            if tables:
                rows = pa.concat_tables(tables)
                name = f"{batch}-{folder.name}-{index['group']}.parquet"
                _write(_rejects(rows, side, batch, int(index["group"])), new.rejects / side / name)
                count += rows.num_rows
    return count


def _waiting(folder: Path, index: dict[str, Any], side: str) -> list[Any]:
    """Return the rows of one side that are alive and have met nothing."""
    segments = [s for s in index["segments"] if s["side"] == side]
    said = index["flags"].get(side)
    flags = np.zeros(sum(s["rows"] for s in segments), dtype=np.uint8)
    if said:
        flags = np.fromfile(folder / said, dtype=np.uint8)
    found, first = [], 0
    for segment in segments:
        file = folder / segment["path"]
        try:
            with pa.memory_map(str(file)) as source:
                table = pa.ipc.open_file(source).read_all()
        except (OSError, pa.ArrowInvalid) as cause:
            raise damaged(file, str(cause)) from cause
        mine = flags[first : first + table.num_rows]
        first += table.num_rows
        found.append(table.filter(pa.array(mine & (MATCHED | OVER | GONE) == 0)))
    return found


def _rejects(rows: Any, side: str, batch: int, group: int) -> Any:
    count = rows.num_rows
    children = [name for name in rows.column_names if not name.startswith("__")]
    times = rows.column("__time").combine_chunks()
    struct = rows.select(children).combine_chunks().to_struct_array()
    return pa.table(
        {
            "side": pa.array([side] * count, pa.string()),
            "reason": pa.array([REASON] * count, pa.string()),
            "event_time": pa.array(times.to_numpy(zero_copy_only=False), pa.int64()),
            "watermark": pa.nulls(count, pa.int64()),
            "batch": pa.array([batch] * count, pa.int64()),
            "group": pa.array([group] * count, pa.int32()),
            "matched": pa.array([False] * count, pa.bool_()),
            "raw": pa.nulls(count, pa.string()),
            "row": struct,
        }
    )


def _write(table: Any, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".tmp-{file.name}")
    pq.write_table(table, beside)
    beside.replace(file)
