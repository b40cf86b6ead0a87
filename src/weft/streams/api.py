"""The functions of `weft.streams`, which loads this module when one of them is first used."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.core.names import format_list
from weft.errors import ArgumentError
from weft.streams.plan.explain import JobExplanation, explain_job
from weft.streams.plan.resolve import plan_text
from weft.streams.run.batch import run_batch
from weft.streams.run.job import run_job
from weft.streams.run.opening import Keep
from weft.streams.run.report import BatchReport, JobReport, Listener, QueryReport
from weft.streams.sql.job import read_job_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weft.streams.plan.resolved import JobPlan

__all__ = ["BatchReport", "JobExplanation", "JobReport", "Listener", "QueryReport", "explain", "run", "run_as_batch"]


def run(
    spark: SparkSession,
    sql: str | Path,
    *,
    root: str | Path = ".",
    final: bool = False,
    available: bool = True,
    fresh: bool = False,
    keep: Keep | None = None,
    variables: Mapping[str, str] | None = None,
    memory: Mapping[str, Sequence[Any]] | None = None,
    listener: Listener | None = None,
) -> JobReport:
    """Run a job over all available input and return a report.

    `sql` is the text of a job or the path of its file; paths in it are relative to `root`.  Without ``final`` the
    run can be resumed later and waiting rows keep waiting; with it the input has ended: unmatched rows are emitted and
    the checkpoint is sealed.  ``fresh`` starts over, `keep` selects what to keep of the checkpoint of a changed query.
    `variables` replace ``${NAME}`` and take precedence over the environment.  `memory` holds the rows of streams with
    the connector ``memory``, a list for each batch, and of tables.  The session is not modified.
    """
    if not final and not available:
        raise ArgumentError(
            "with available=False and without final=True the run would never end",
            code="W0305",
            help="remove available=False; `weft stream start` runs a job until it is stopped",
        )
    plan = _plan(sql, root, variables)
    return run_job(
        spark,
        plan,
        mode="final" if final else "available",
        fresh=fresh,
        keep=_check_keep(keep),
        memory=memory,
        listener=listener,
    )


def run_as_batch(
    spark: SparkSession,
    sql: str | Path,
    *,
    to: str | Path | None = None,
    root: str | Path = ".",
    variables: Mapping[str, str] | None = None,
    memory: Mapping[str, Sequence[Any]] | None = None,
) -> JobReport:
    """Run the same job over the same inputs as batch queries; the rows are those of the sealed stream.

    They are written to the folder `to`, or to the sinks if no stream of the job has written there.  A batch run has
    neither a checkpoint nor a ledger.
    """
    plan = _plan(sql, root, variables)
    return run_batch(spark, plan, to=None if to is None else Path(to).absolute(), memory=memory)


def explain(sql: str | Path, *, root: str | Path = ".", variables: Mapping[str, str] | None = None) -> JobExplanation:
    """Return what a job does: bounds, state, when unmatched rows are emitted, the executor and why.  No JVM is started."""
    return explain_job(_plan(sql, root, variables))


def _plan(sql: str | Path, root: str | Path, variables: Mapping[str, str] | None) -> JobPlan:
    env = {**os.environ, **(variables or {})}
    folder = Path(root).absolute()
    if isinstance(sql, Path):
        return plan_text(read_job_text(sql), folder, file=str(sql), env=env)
    if isinstance(sql, str) and not _is_path(sql):
        return plan_text(sql, folder, env=env)
    if isinstance(sql, str):
        raise ArgumentError(
            f"{sql!r} is the path of a file, not the text of a job", code="W0302", help=f"write Path({sql!r})"
        )
    raise ArgumentError(
        f"sql must be the text of a job or the Path of its file, not {type(sql).__name__}",
        help="write Path('streams/orders.sql'), or the statements themselves",
    )


def _is_path(sql: str) -> bool:
    return sql.strip().lower().endswith(".sql") and not any(c in sql.strip() for c in " \t\n;()")


def _check_keep(keep: Keep | None) -> Keep | None:
    if keep not in (None, "state", "offsets"):
        raise ArgumentError(
            f"keep must be one of {format_list(('state', 'offsets'))}, not {keep!r}",
            code="W0302",
            help="keep='state' keeps the waiting rows, keep='offsets' only the positions in the sources",
        )
    return keep
