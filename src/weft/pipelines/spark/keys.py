"""Natural keys that repeat: looked for only when a dataset asks for it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from weft.core.names import listed, quote
from weft.errors import Diagnostic, ResolutionError
from weft.expr.spark.frames import functions_of
from weft.io.datasource import PERIOD
from weft.pipelines.model.words import Check
from weft.pipelines.plan.reads import Read

_MOST_SHOWN = 20


def repeated_keys(frame: DataFrame, read: Read) -> Diagnostic | None:
    """Return the finding about keys that more than one row of a read has, None when there is none or nobody asks.

    ``check_keys`` of a dataset asks for its main table, ``overlap`` of a bitemporal table for rows that are
    valid on the same day.  It costs a job of its own.  W1320 is raised when the dataset says ``fail``.
    """
    how = _asked(read)
    keys = read.dataset.natural_key_columns
    if how == "off" or not keys or read.table != read.dataset.main_table:
        return None
    F: Any = functions_of(frame)
    by = [*keys, *([PERIOD.name] if read.filter.mode == "period" else [])]
    grouped = frame.groupBy(*(F.col(quote(k)) for k in by)).agg(F.count(F.lit(1)).alias("__weft_rows"))
    rows = (
        grouped.filter(F.col("__weft_rows") > 1)
        .orderBy(*(F.col(quote(k)) for k in by))
        .limit(_MOST_SHOWN)
        .collect()
    )
    if not rows:
        return None
    shown = [f"{', '.join(f'{k} = {row[k]}' for k in by)} ({row['__weft_rows']} rows)" for row in rows]
    finding = Diagnostic(
        "W1320",
        f"the natural key of {read.dataset} repeats: {listed(shown, most=_MOST_SHOWN)}",
        help="correct the data, or the `natural_key_columns` of the dataset",
        severity="error" if how == "fail" else "warning",
        at=read.dataset.at.of("natural_key_columns"),
    )
    if how == "fail":
        raise ResolutionError([finding])
    return finding


def _asked(read: Read) -> Check:
    """Return the stricter of what the dataset and its table ask for."""
    overlap: Check = read.table.overlap if read.table.temporal_mode == "bitemporal" else "off"
    order: tuple[Check, ...] = ("off", "warn", "fail")
    return max((read.dataset.check_keys, overlap), key=order.index)
