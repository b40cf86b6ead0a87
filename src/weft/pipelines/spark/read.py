"""A read of a plan as a DataFrame: located, typed, filtered, with system columns.

::

    locations -> parts (as the source has them) -> declared types -> period or as-of filter -> not deleted
              -> one frame: columns of the read, system columns, temporal columns

Data with times of knowledge has a fingerprint of the rows that a run reads::

    data/rates.csv   EUR 1.0850  _known_from 2026-01-02      a run with known_at 2026-02-01 reads this row,
                     EUR 1.0870  _known_from 2026-03-15      and this correction changes none of its rows

The file has changed, but the rows of the run have not, so a rerun is possible.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from weft.core.frozen import EMPTY
from weft.core.names import find_similar, format_list, quote
from weft.core.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, DType, Field
from weft.errors import Diagnostic, ResolutionError
from weft.expr.spark.frames import functions_of, schema_of
from weft.expr.spark.types import literal, to_spark
from weft.io.datasource import PERIOD, DataSource
from weft.io.location import Location
from weft.io.spark.connector import ByPosition, Part, Scan, missing_columns, spark_connector
from weft.io.spark.failures import data_failure
from weft.io.spark.strict import strict, utc_day
from weft.pipelines.model.dataset import TableDef
from weft.pipelines.model.values import (
    KNOWN_FROM,
    KNOWN_TO,
    PERIOD_FROM,
    PERIOD_TO,
    SYSTEM_COLUMNS,
    Check,
    temporal_columns,
)
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.reads import Read, TemporalFilter
from weft.pipelines.plan.resolver.locate import find_datasource
from weft.pipelines.plan.resolver.service import needs_service, request_location
from weft.pipelines.spark.system_columns import identity, with_system_columns

_MOST_SHOWN = 20


def repeated_keys(frame: DataFrame, read: Read) -> Diagnostic | None:
    """Return the finding about keys that more than one row of a read has, None when there are none or no check is requested.

    ``check_keys`` of a dataset checks its main table, ``overlap`` of a bitemporal table checks rows that are
    valid on the same day.  It costs a job of its own.  W1320 is raised when the check is ``fail``.
    """
    how = _requested_check(read)
    keys = read.dataset.natural_key_columns
    if how == "off" or not keys or read.table != read.dataset.main_table:
        return None
    F: Any = functions_of(frame)
    by = [*keys, *([PERIOD.name] if read.filter.mode == "period" else [])]
    grouped = frame.groupBy(*(F.col(quote(k)) for k in by)).agg(F.count(F.lit(1)).alias("__weft_rows"))
    rows = grouped.filter(F.col("__weft_rows") > 1).orderBy(*(F.col(quote(k)) for k in by)).limit(_MOST_SHOWN).collect()
    if not rows:
        return None
    shown = [f"{', '.join(f'{k} = {row[k]}' for k in by)} ({row['__weft_rows']} rows)" for row in rows]
    finding = Diagnostic(
        "W1320",
        f"the natural key of {read.dataset} repeats: {format_list(shown, most=_MOST_SHOWN)}",
        help="correct the data, or the `natural_key_columns` of the dataset",
        severity="error" if how == "fail" else "warning",
        at=read.dataset.at.of("natural_key_columns"),
    )
    if how == "fail":
        raise ResolutionError([finding])
    return finding


def _requested_check(read: Read) -> Check:
    """Return the stricter check of the dataset and its table."""
    overlap: Check = read.table.overlap if read.table.temporal_mode == "bitemporal" else "off"
    order: tuple[Check, ...] = ("off", "warn", "fail")
    return max((read.dataset.check_keys, overlap), key=order.index)


def as_condition(filter: TemporalFilter, F: ModuleType, types: Mapping[str, DType]) -> Column:
    """Return the condition on the temporal columns of a frame.

    `types` are the temporal columns that the frame has, dates or timestamps.  Timestamps are compared at 00:00 UTC of
    the day.
    """
    conditions: list[Any] = []
    if filter.mode == "period":
        conditions.append(F.col(PERIOD.name).isin(*filter.identifiers))
    if filter.mode == "bitemporal" and filter.instant is not None:
        conditions.append(_within(F, filter.instant, PERIOD_FROM.name, PERIOD_TO.name, types))
    if filter.mode != "snapshot" and filter.known_at is not None and KNOWN_FROM.name in types:
        conditions.append(_within(F, filter.known_at, KNOWN_FROM.name, KNOWN_TO.name, types))
    condition: Column = reduce(operator.and_, conditions) if conditions else F.lit(True)
    return condition


def _within(F: ModuleType, at: dt.date, start: str, end: str, types: Mapping[str, DType]) -> Any:
    # Ranges are half-open: a row ends where the next one begins; NULL is no end.
    begun = F.col(start) <= _moment(F, at, types[start])
    if end not in types:
        return begun
    return begun & (F.col(end).isNull() | (F.col(end) > _moment(F, at, types[end])))


def _moment(F: ModuleType, at: dt.date, dtype: DType) -> Any:
    if dtype == DATE or isinstance(at, dt.datetime):
        return literal(F, at, dtype)
    return literal(F, dt.datetime.combine(at, dt.time(), dt.UTC), TIMESTAMP)


_RANGE = (PERIOD_FROM, PERIOD_TO)
_KNOWN = (KNOWN_FROM, KNOWN_TO)
_OWN = frozenset(f.name for f in (*SYSTEM_COLUMNS, PERIOD, *_RANGE, *_KNOWN))
Notice = Callable[[Diagnostic], None]


def read_table(
    session: SparkSession,
    read: Read,
    catalog: Catalog,
    root: Path,
    *,
    run_at: dt.datetime,
    notice: Notice | None = None,
) -> DataFrame:
    """Return the rows of a read: its columns, then the system columns, then the temporal ones.

    Rows of other periods and deleted rows are left out.  `notice` receives warnings.  Errors of the data
    raise `ResolutionError` here, or fail the job that reads the value; `data_failure` explains the failure of that job.
    """
    try:
        parts = parts_of(session, read, catalog, root)
        typed = [_typed(part, read, run_at, notice) for part in parts]
    except ResolutionError:
        raise
    except Exception as failure:
        known = data_failure(failure)
        # An exception that is not Spark's is an error of Weft or a JVM that died: neither is about the data.
        if known is None and not isinstance(failure, PySparkException):
            raise
        raise known or _unreadable(read, failure) from failure
    frame = reduce(lambda a, b: a.union(b), typed) if typed else _empty(session, read)
    if notice is not None or read.dataset.check_keys == "fail" or read.table.overlap == "fail":
        finding = repeated_keys(frame, read)
        if finding is not None and notice is not None:
            notice(finding)
    return frame


def _unreadable(read: Read, failure: Exception) -> ResolutionError:
    return ResolutionError(
        f"cannot read table {read.table.name!r} of {read.dataset}: {str(failure).splitlines()[0]}",
        code="W1318",
        help="check where the data is expected: `weft resolver test`",
    )


def parts_of(session: SparkSession, read: Read, catalog: Catalog, root: Path) -> list[Part]:
    """Return the rows at the locations of a read, as its sources have them."""
    groups: dict[tuple[str, str, str], list[Location]] = {}
    for planned in read.locations:
        location = request_location(planned, root) if needs_service(planned) else planned
        kind = _kind(location, find_datasource(location, catalog))
        writer = str((location.catalog or EMPTY).get("datasource") or "")
        groups.setdefault((location.datasource_id, kind, writer), []).append(location)
    parts: list[Part] = []
    for (_, kind, writer), locations in groups.items():
        request = Scan(
            session=session,
            kind=kind,
            locations=tuple(locations),
            root=root,
            columns=_by_position(read.table),
            source=find_datasource(locations[0], catalog),
            written_as=catalog.datasource(writer) if writer else None,
        )
        parts += spark_connector(kind).scan(request)
    return parts


def _by_position(table: TableDef) -> ByPosition:
    """Return the columns of files without a header: the declared ones, then the temporal ones, which may be missing."""
    declared = [column.name for column in table.columns]
    temporal = [field.name for field in temporal_columns(table.temporal_mode)]
    return ByPosition(table=table.name, names=(*declared, *temporal), needed=len(declared))


def _kind(location: Location, source: DataSource | None) -> str:
    """Return what reads a location: a kind of datasource, or the format that its publisher or service reported."""
    if source is not None:
        return source.type
    if location.table is not None:
        return "table"
    return str((location.catalog or EMPTY).get("format", "parquet"))


def _typed(part: Part, read: Read, run_at: dt.datetime, notice: Notice | None) -> DataFrame:
    """Return the rows of a part that the read keeps, in the columns that it gives."""
    table, there = read.table, part.types
    F: Any = functions_of(part.frame)
    declared = {c.name: c.dtype for c in table.columns if c.name not in _OWN}
    missing = [name for name in declared if name not in there]
    if missing:
        raise missing_columns(part, missing, f"table {table.name!r} of {read.dataset}")
    _report_extra_columns(part, declared, read, notice)
    temporal = _temporal(part, read)
    system = {f.name: f.dtype for f in SYSTEM_COLUMNS if f.name in there}
    place = part.place()

    def column(name: str, dtype: DType) -> Any:
        source = there[name]
        if source is None:
            raise missing_columns(part, [name], f"table {table.name!r} of {read.dataset}")
        return strict(F, F.col(quote(name)), source, dtype, name=name, place=place).alias(name)

    chosen = [column(name, dtype) for name, dtype in {**declared, **system}.items()]
    chosen += [
        F.lit(part.period or read.locations[0].period_identifier).alias(name)
        if name not in there
        else column(name, dtype)
        for name, dtype in temporal.items()
    ]
    rows = part.frame.select(*chosen).filter(as_condition(read.filter, F, temporal))
    if "_deleted" in system:
        rows = rows.filter(~F.coalesce(F.col("_deleted"), F.lit(False)))
    return _finished(rows, read, run_at, system, temporal, [n for n in read.columns if n in declared])


def _finished(
    rows: DataFrame,
    read: Read,
    run_at: dt.datetime,
    system: dict[str, DType],
    temporal: dict[str, DType],
    business: Sequence[str],
) -> DataFrame:
    F: Any = functions_of(rows)
    for field in _RANGE:
        dtype = temporal.get(field.name)
        if dtype is not None and dtype != field.dtype:
            rows = rows.withColumn(field.name, utc_day(F, F.col(field.name), dtype))
    kept = [f.name for f in _KNOWN if f.name in read.columns and f.name in temporal]
    present = {**system, **{f.name: f.dtype for f in _KNOWN if f.name in temporal}}
    return with_system_columns(
        rows, read.dataset, read.table, run_at=run_at, business=[*business, *kept], present=present
    )


def _temporal(part: Part, read: Read) -> dict[str, DType]:
    """Return the temporal columns of a part with the types they are compared in; raise W1319 when one is missing."""
    there = part.types
    mode = read.table.temporal_mode
    types: dict[str, DType] = {}
    missing = []
    for field in temporal_columns(mode):
        source = there.get(field.name)
        if source is not None:
            types[field.name] = TIMESTAMP if source in (TIMESTAMP, TIMESTAMP_NTZ) else field.dtype
        elif field == PERIOD and (part.period is not None or mode == "snapshot"):
            types[field.name] = STRING
        else:
            missing.append(field.name)
    if missing:
        raise _no_temporal(part, read, missing)
    return types | {f.name: f.dtype for f in _KNOWN if there.get(f.name) is not None}


def _no_temporal(part: Part, read: Read, missing: list[str]) -> ResolutionError:
    close = [f"{n!r} could be {f[0]!r}" for n in missing if (f := find_similar(n, part.types, most=1))]
    mode = read.table.temporal_mode
    next_step = (
        "add the column, give the rule a `data_level` when each place holds one period, "
        "or declare `temporal_mode: snapshot`"
        if mode == "period"
        else "add the columns: the first day, and the day after the last one or NULL"
    )
    return ResolutionError(
        f"{part.label} has no column {format_list(missing)}, which places the rows of the {mode} table "
        f"{read.table.name!r} in time",
        code="W1319",
        help=", ".join([*close, next_step]),
    )


def _report_extra_columns(part: Part, declared: dict[str, DType], read: Read, notice: Notice | None) -> None:
    extra = [name for name in part.types if name not in declared and name not in _OWN]
    if extra and notice is not None:
        notice(
            Diagnostic(
                "W1316",
                f"{part.label} has columns that table {read.table.name!r} of {read.dataset} does not declare: "
                f"{format_list(extra)}",
                help="declare them in a new version of the dataset to use them",
                severity="note",
            )
        )


def _empty(session: SparkSession, read: Read) -> DataFrame:
    """Return no rows, in the columns that the read gives."""
    declared = [c for c in read.table.columns if c.name in read.columns and c.name not in _OWN]
    fields = [
        *sorted((Field(c.name, c.dtype) for c in declared), key=lambda f: read.columns.index(f.name)),
        *SYSTEM_COLUMNS,
        *temporal_columns(read.table.temporal_mode),
    ]
    return session.createDataFrame([], StructType([StructField(f.name, to_spark(f.dtype)) for f in fields]))


def fingerprint_rows(
    session: SparkSession, read: Read, catalog: Catalog, root: Path, *, run_at: dt.datetime
) -> str | None:
    """Return number and hash of the rows of a read, independent of their order.

    None for data without times of knowledge: then any change of it may change the rows.
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
    # A sum and an exclusive or of two hashes: neither depends on the order, and the sum counts equal rows.
    (totals,) = frame.select(row.alias("row")).agg(
        F.count(F.lit(1)).alias("rows"),
        F.sum(F.xxhash64("row").cast("decimal(20,0)")).alias("sum"),
        F.bit_xor(F.xxhash64("row", F.lit(1))).alias("xor"),
    ).collect()  # fmt: skip
    return f"{totals['rows']}:{totals['sum'] or 0}:{totals['xor'] or 0}"
