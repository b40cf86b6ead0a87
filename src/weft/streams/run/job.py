"""A streaming job: its statements run one after another, or concurrently in continuous mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from weft.core.crash import Crash
from weft.core.names import find_similar, format_list
from weft.errors import Diagnostic, StreamError
from weft.io.spark.session import count_cores
from weft.streams.checkpoint.folder import Checkpoint, remove_path
from weft.streams.checkpoint.lease import lock_statement
from weft.streams.kernel.spec import KernelProblem
from weft.streams.plan.resolved import JobPlan, StatementPlan
from weft.streams.run.endpoints import Reader
from weft.streams.run.failing import explain_failure
from weft.streams.run.opening import Keep, find_sealed, local_folder, open_checkpoint
from weft.streams.run.report import JobReport, Listener, QueryReport
from weft.streams.run.statement import Mode, RunContext, Statement, refuse_connect, wait_all
from weft.streams.spark.files import check_file_order
from weft.streams.spark.memory import Memory


def run_job(
    spark: SparkSession,
    plan: JobPlan,
    *,
    mode: Mode = "available",
    fresh: bool = False,
    keep: Keep | None = None,
    only: str | None = None,
    memory: Memory | None = None,
    listener: Listener | None = None,
    stop: Callable[[], bool] | None = None,
    show: Callable[[str], None] | None = None,
) -> JobReport:
    """Run the statements of a job and return their reports.

    ``available`` reads the existing input, ``final`` also ends the input, flushes and seals, ``continuous``
    runs until `stop` returns True.  `memory` holds rows by stream and table, `show` receives the text of
    consoles.  At a CRASH in the rows of a stream everything is opened again from disk.
    """
    refuse_connect(spark)
    chosen = select_statements(plan, only)
    listener = listener or Listener()
    lives = _split_at_crashes(memory or {})
    folder = local_folder(plan) / ".memory"
    try:
        queries: tuple[QueryReport, ...] = ()
        for number, rows in enumerate(lives, start=1):
            running = RunContext(
                spark=spark,
                job=plan,
                reader=Reader(spark=spark, root=plan.root, memory=rows, memory_folder=folder),
                mode=mode if number == len(lives) else "available",
                listener=listener,
                show=show or print,
                stop=stop,
            )
            queries = _run_open(running, chosen, fresh=fresh and number == 1, keep=keep if number == 1 else None)
    except (OSError, KernelProblem, Py4JError) as cause:  # the disk, damaged state or the JVM, before the first batch
        failure = explain_failure(cause, plan.name)
        listener.on_failed(failure)
        raise failure from cause
    except Exception as error:
        listener.on_failed(error)
        raise
    return JobReport(
        queries=queries,
        sealed=bool(queries) and all(q.sealed for q in queries),
        warnings=(*plan.warnings, *source_warnings(plan, chosen)),
        spark=spark,
    )


def run_statements(
    running: RunContext, plans: Sequence[StatementPlan], *, fresh: bool, keep: Keep | None
) -> dict[str, QueryReport]:
    """Run statements concurrently, each on its checkpoint, and return their reports by name.

    This is the whole of `weft stream run`, top to bottom.  A process may be killed between any two lines: the next
    run continues after the last commit.
    """

    def run_batch(statement: Statement, rows: DataFrame, number: int, *, final: bool) -> None:
        if statement.has_committed(number):  # killed after the commit, before Spark recorded the end of the batch
            statement.finish_commit(number)
            return
        # Watermark and clocks are on disk before they are used, so that a repeated batch has the same result.
        stages = statement.begin_batch(number, final=final)
        try:
            with stages.cache(rows) as source:
                joined = stages.join(source)  # the kernel with its state, lookups into tables
                selected = stages.select(joined, with_event_time=statement.sink.needs_event_time)
                written = statement.write(stages, selected)  # one Spark job runs all of it
        except Exception as failure:
            if not statement.use_more_tasks(failure):
                raise
            run_batch(statement, rows, number, final=final)
            return
        reports = statement.collect_reports(stages)
        statement.commit(stages, written, reports)  # the ledger balances, the manifest is written

    with ExitStack() as stack:
        statements: list[Statement] = []
        for plan in plans:
            # The checkpoint is locked, compared with the plan, and restored to its last commit.
            locked = open_checkpoint(running.job, plan, cores=count_cores(running.spark), fresh=fresh, keep=keep)
            statement = Statement.open(running, plan, stack.enter_context(locked))
            # If a later statement does not start, this one ends before its lock is released.
            stack.callback(statement.end)
            # Spark reads the sources and calls `run_batch` with the rows of each batch.
            statement.start(run_batch)
            statements.append(statement)
        wait_all(statements, running.stop)
        if running.mode == "final":
            for statement in statements:
                statement.finish(run_batch)  # waiting rows are emitted, the checkpoint is sealed
                running.listener.on_sealed(statement.report())
        return {statement.plan.name: statement.report() for statement in statements}


def select_statements(plan: JobPlan, only: str | None) -> tuple[StatementPlan, ...]:
    """Return the statements to run; raise W2215 if `only` is unknown."""
    if only is None:
        return plan.statements
    selected = tuple(s for s in plan.statements if s.name == only)
    if not selected:
        names = [s.name for s in plan.statements]
        close = find_similar(only, names, most=1)
        raise StreamError(
            f"job {plan.name!r} writes no sink {only!r}",
            code="W2215",
            help=(f"did you mean {close[0]!r}? " if close else "") + f"it writes {format_list(names)}",
        )
    return selected


def source_warnings(plan: JobPlan, chosen: Sequence[StatementPlan]) -> tuple[Diagnostic, ...]:
    """Return the warnings about the sources of statements."""
    streams = {i.stream.name: i.stream for s in chosen for i in s.inputs}
    files = [s for s in streams.values() if s.connector["connector"] == "files"]
    return tuple(finding for stream in files for finding in check_file_order(stream, plan.root))


def _run_open(
    running: RunContext, chosen: Sequence[StatementPlan], *, fresh: bool, keep: Keep | None
) -> tuple[QueryReport, ...]:
    """Run the statements that are not sealed: one after another, or concurrently in continuous mode."""
    ended = find_sealed(running.job, chosen, fresh=fresh, keep=keep)
    if fresh:
        remove_path(running.reader.memory_folder)
    reports = {name: _report_sealed(running, chosen, name, checkpoint) for name, checkpoint in ended.items()}
    left = [plan for plan in chosen if plan.name not in ended]
    for together in [left] if running.mode == "continuous" else [[plan] for plan in left]:
        reports |= run_statements(running, together, fresh=fresh, keep=keep)
    return tuple(reports[plan.name] for plan in chosen)


def _report_sealed(
    running: RunContext, chosen: Sequence[StatementPlan], name: str, checkpoint: Checkpoint
) -> QueryReport:
    plan = next(plan for plan in chosen if plan.name == name)
    with lock_statement(checkpoint.lock, name):
        return Statement.open(running, plan, checkpoint).report()


def _split_at_crashes(memory: Memory) -> list[Memory]:
    """Return the rows of a program up to each crash in them, then all rows."""
    cuts = max((sum(isinstance(b, Crash) for b in rows) for rows in memory.values()), default=0)
    return [{name: _rows_until(rows, life) for name, rows in memory.items()} for life in range(cuts + 1)]


def _rows_until(rows: Sequence[Any], life: int) -> list[Any]:
    kept, crashes = [], 0
    for one in rows:
        if not isinstance(one, Crash):
            kept.append(one)
            continue
        crashes += 1
        if crashes > life:
            break
    return kept
