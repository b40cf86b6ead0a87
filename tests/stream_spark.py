"""Stream jobs on Spark, for tests: rows of each batch in, rows of each batch out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.core.crash import Crash
from weft.core.frozen import FrozenMap
from weft.streams.checkpoint.folder import Checkpoint
from weft.streams.checkpoint.manifest import list_batches, read_manifest
from weft.streams.plan.resolve import plan_job
from weft.streams.plan.resolved import JobPlan
from weft.streams.run.job import run_job
from weft.streams.run.report import JobReport
from weft.streams.sql.lower import read_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = tuple[tuple[int, Mapping[str, Any]], ...]


def job_of(sql: str, root: Path, *, groups: int | None = 2) -> JobPlan:
    """Return the plan of a job whose files are below `root`."""
    plan = plan_job(read_spec(sql, file="job.sql", env={}), root)
    return plan if groups is None else replace(plan, settings=FrozenMap(plan.settings, groups=groups))


def fed(plan: JobPlan, given: Sequence[Mapping[str, Sequence[Any]] | Crash]) -> dict[str, list[Any]]:
    """Return batches as `run_job` takes them: for each stream a list of batches, empty ones too."""
    names = {i.stream.name for s in plan.statements for i in s.inputs}
    return {name: [b if isinstance(b, Crash) else list(b.get(name, ())) for b in given] for name in sorted(names)}


@dataclass(frozen=True, kw_only=True)
class Done:
    """A finished run: its report, and the rows of the first sink with their batches."""

    report: JobReport
    rows: Rows

    @property
    def ledger(self) -> dict[str, dict[str, int]]:
        return {side: dict(counts) for side, counts in (self.report.queries[0].ledger or {}).items()}

    @property
    def checkpoint(self) -> Checkpoint:
        root = self.report.queries[0].checkpoint
        assert root is not None
        return Checkpoint(root)


def run_memory(
    spark: SparkSession,
    plan: JobPlan,
    given: Sequence[Mapping[str, Sequence[Any]] | Crash],
    *,
    tables: Mapping[str, Sequence[Any]] | None = None,
    final: bool = True,
    **named: Any,
) -> Done:
    """Run a job whose streams are in memory."""
    memory = {**fed(plan, given), **(tables or {})}
    return done(spark, run_job(spark, plan, mode="final" if final else "available", memory=memory, **named))


def done(spark: SparkSession, report: JobReport) -> Done:
    """Return a report with the rows that each batch gave to the first sink."""
    query = report.queries[0]
    assert query.checkpoint is not None
    checkpoint = Checkpoint(query.checkpoint)
    found: list[tuple[int, Mapping[str, Any]]] = []
    for batch in list_batches(checkpoint.commits):
        files = [str(m.to) for m in read_manifest(checkpoint, batch).sink]
        if files:
            rows = spark.read.format(query.format).load(files).collect()
            found.extend((batch, {n: _utc(v) for n, v in row.asDict().items()}) for row in rows)
    return Done(report=report, rows=tuple(found))


def _utc(value: Any) -> Any:
    return value.replace(tzinfo=dt.UTC) if isinstance(value, dt.datetime) and value.tzinfo is None else value
