"""A fingerprint of the rows that a read gives, for data that says when each row became known.

::

    data/rates.csv   EUR 1.0850  _known_from 2026-01-02      a run with known_at 2026-02-01 reads this row,
                     EUR 1.0870  _known_from 2026-03-15      and this correction changes none of its rows

The file is not what it was, but the rows of the run are: a rerun may go on.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from weft.core.names import quote
from weft.expr.spark.frames import functions_of, schema_of
from weft.pipelines.model.words import KNOWN_FROM
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.reads import Read
from weft.pipelines.spark.read import parts_of, read_table
from weft.pipelines.spark.system_columns import identity


def rows_seen(
    session: SparkSession, read: Read, catalog: Catalog, root: Path, *, run_at: dt.datetime
) -> str | None:
    """Return number and hash of the rows that a read gives, in any order.

    None when the data does not say when its rows became known: then any change of it may change the rows.
    One small job reads the table once.
    """
    if read.filter.known_at is None or read.filter.mode == "snapshot":
        return None
    parts = parts_of(session, read, catalog, root)
    if not parts or any(part.types.get(KNOWN_FROM.name) is None for part in parts):
        return None
    frame = read_table(session, read, catalog, root, run_at=run_at)
    F: Any = functions_of(frame)
    whole = read.pin.role in ("input", "append")  # their rows become rows of the working set
    fields = [f for f in schema_of(frame).fields if whole or f.name in read.columns]
    row = identity(F, [(F.col(quote(f.name)), f.dtype) for f in fields])
    (found,) = frame.select(row.alias("row")).agg(
        F.count(F.lit(1)).alias("rows"),
        F.sum(F.xxhash64("row").cast("decimal(20,0)")).alias("sum"),
        F.bit_xor(F.xxhash64("row", F.lit(1))).alias("xor"),
    ).collect()  # fmt: skip
    return f"{found['rows']}:{found['sum'] or 0}:{found['xor'] or 0}"
