"""Rows that do not read, in statements without a join with state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from weft.streams.spark.kernel_stage import FLAT_RAW, Moment


def write_malformed(unread: DataFrame, moment: Moment) -> int:
    """Write unreadable rows to the reject table, as the kernel does, and return how many there are."""
    texts: list[Any] = [row[0] for row in unread.select(FLAT_RAW).collect()]
    if not texts:
        return 0
    count = len(texts)
    table = pa.table(
        {
            "side": pa.array(["left"] * count, pa.string()),
            "reason": pa.array(["MALFORMED"] * count, pa.string()),
            "event_time": pa.nulls(count, pa.int64()),
            "watermark": pa.nulls(count, pa.int64()),
            "batch": pa.array([moment.batch] * count, pa.int64()),
            "group": pa.array([0] * count, pa.int32()),
            "matched": pa.array([False] * count, pa.bool_()),
            "raw": pa.array(texts, pa.string()),
        }
    )
    file = Path(moment.root) / "rejects" / "left" / f"{moment.batch}-j0-0.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".tmp-{file.name}")
    pq.write_table(table, beside, write_page_checksum=True)
    beside.replace(file)
    return count
