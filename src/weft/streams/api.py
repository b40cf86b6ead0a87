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

    Parameters
    ----------
    spark
        The session that runs the job; its settings are not changed.  Required.
    sql
        The text of a job, or the `Path` of its file.  Required.
    root
        The folder that relative paths of the job start at, and that holds its checkpoints.  The current folder by
        default.
    final
        True ends the input: unmatched rows are emitted and the checkpoint is sealed.  False (default) lets waiting
        rows wait, and a later run continues.
    available
        True (default) ends the run when all available input is read.  False is an error: such a run never ends.
    fresh
        True starts with a new checkpoint and replaces the output of the earlier ones.  False by default.
    keep
        What to keep of the checkpoint of a query that has changed: ``"state"`` keeps the waiting rows, ``"offsets"``
        only the positions in the sources.  None (default) refuses a change that needs this choice.
    variables
        Values of ``${NAME}`` in the job; they take precedence over the environment.  None by default.
    memory
        The rows of streams and tables with the connector ``memory``, by name: for a stream a list of rows for each
        batch, for a table a list of rows.  A row is a mapping or a line of JSON.  None by default.
    listener
        A `Listener` that is called after every batch.  None by default.

    Returns
    -------
    JobReport
        The ledger of every statement, and its rows.

    Examples
    --------
    ::

        report = weft.streams.run(spark, Path("streams/orders.sql"), final=True)
        report.query("order_status").ledger["left"]["unmatched"]
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

    A batch run has neither a checkpoint nor a ledger.

    Parameters
    ----------
    spark
        The session that runs the queries; its settings are not changed.  Required.
    sql
        The text of a job, or the `Path` of its file.  Required.
    to
        The folder to write to; a job of several statements gets a folder below it for each.  None (default) writes
        to the sinks of the job, where no stream may have written.
    root
        The folder that relative paths of the job start at.  The current folder by default.
    variables
        Values of ``${NAME}`` in the job; they take precedence over the environment.  None by default.
    memory
        The rows of streams and tables with the connector ``memory``, as for `run`.  None by default.

    Examples
    --------
    ::

        weft.streams.run_as_batch(spark, Path("streams/orders.sql"), to="check").rows("order_status")
    """
    plan = _plan(sql, root, variables)
    return run_batch(spark, plan, to=None if to is None else Path(to).absolute(), memory=memory)


def explain(sql: str | Path, *, root: str | Path = ".", variables: Mapping[str, str] | None = None) -> JobExplanation:
    """Return what a job does: bounds, state, when unmatched rows are emitted, the executor and why.

    No JVM is started.  ``print`` shows the summary.

    Parameters
    ----------
    sql
        The text of a job, or the `Path` of its file.  Required.
    root
        The folder that relative paths of the job start at.  The current folder by default.
    variables
        Values of ``${NAME}`` in the job; they take precedence over the environment.  None by default.

    Examples
    --------
    ::

        print(weft.streams.explain(Path("streams/orders.sql")))
    """
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
