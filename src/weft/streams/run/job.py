"""A streaming job: its statements one after another, or side by side while it goes on without end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from weft.core.injected_crash import Crash
from weft.core.names import listed, near
from weft.errors import Diagnostic, StreamError
from weft.io.spark.session import cores_of
from weft.streams.checkpoint.durable import remove
from weft.streams.checkpoint.folder import Checkpoint
from weft.streams.checkpoint.lock import held
from weft.streams.kernel.spec import KernelProblem
from weft.streams.plan.resolved import JobPlan, StatementPlan
from weft.streams.run.failing import told
from weft.streams.run.opening import Keep, checkpoint_base, opened, sealed_already
from weft.streams.run.report import JobReport, Listener, QueryReport
from weft.streams.run.sources import Reader
from weft.streams.run.statement import Mode, Running, Statement, refuse_connect, watch
from weft.streams.spark.files import order_warnings

Memory = Mapping[str, Sequence[Any]]


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
    """Run the statements of a job and return what they have done.

    ``available`` reads what there is, ``final`` also ends the input, flushes and seals, ``continuous``
    goes on until `stop` says so.  `memory` holds rows by stream and table, `show` takes the text of
    consoles.  A CRASH among the rows of a stream lets everything be opened again from what is on disk.
    """
    refuse_connect(spark)
    chosen = chosen_statements(plan, only)
    heard = listener or Listener()
    lives = _lives(memory or {})
    folder = checkpoint_base(plan) / ".memory"
    try:
        queries: tuple[QueryReport, ...] = ()
        for number, rows in enumerate(lives, start=1):
            running = Running(
                spark=spark,
                job=plan,
                reader=Reader(spark=spark, root=plan.root, memory=rows, memory_folder=folder),
                mode=mode if number == len(lives) else "available",
                listener=heard,
                show=show or _printed,
                stop=stop,
            )
            queries = _run(running, chosen, fresh=fresh and number == 1, keep=keep if number == 1 else None)
    except (
        OSError,
        KernelProblem,
        Py4JError,
    ) as cause:  # the disk, damaged state or the JVM, before the first batch
        failure = told(cause, plan.name)
        heard.on_failed(failure)
        raise failure from cause
    except Exception as error:
        heard.on_failed(error)
        raise
    return JobReport(
        queries=queries,
        sealed=bool(queries) and all(q.sealed for q in queries),
        warnings=(*plan.warnings, *source_warnings(plan, chosen)),
        spark=spark,
    )


def chosen_statements(plan: JobPlan, only: str | None) -> tuple[StatementPlan, ...]:
    """Return the statements to run; raise W2215 when `only` names none."""
    if only is None:
        return plan.statements
    found = tuple(s for s in plan.statements if s.name == only)
    if not found:
        names = [s.name for s in plan.statements]
        close = near(only, names, most=1)
        raise StreamError(
            f"job {plan.name!r} writes no sink {only!r}",
            code="W2215",
            help=(f"did you mean {close[0]!r}? " if close else "") + f"it writes {listed(names)}",
        )
    return found


def source_warnings(plan: JobPlan, chosen: Sequence[StatementPlan]) -> tuple[Diagnostic, ...]:
    """Return what there is to say about the sources of statements, each thing once."""
    streams = {i.stream.name: i.stream for s in chosen for i in s.inputs}
    files = [s for s in streams.values() if s.connector["connector"] == "files"]
    return tuple(told for stream in files for told in order_warnings(stream, plan.root))


def _run(
    running: Running, chosen: Sequence[StatementPlan], *, fresh: bool, keep: Keep | None
) -> tuple[QueryReport, ...]:
    ended = sealed_already(running.job, chosen, fresh=fresh, keep=keep)
    if fresh:
        remove(running.reader.memory_folder)
    found = {name: _report_of(running, chosen, name, checkpoint) for name, checkpoint in ended.items()}
    left = [plan for plan in chosen if plan.name not in ended]
    if running.mode == "continuous":
        with ExitStack() as stack:
            together = [_started(running, plan, stack, fresh=fresh, keep=keep) for plan in left]
            watch(together, running.stop)
            found |= {statement.plan.name: statement.report() for statement in together}
    else:
        for plan in left:
            found[plan.name] = _run_to_the_end(running, plan, fresh=fresh, keep=keep)
    return tuple(found[plan.name] for plan in chosen)


def _run_to_the_end(running: Running, plan: StatementPlan, *, fresh: bool, keep: Keep | None) -> QueryReport:
    with ExitStack() as stack:
        statement = _started(running, plan, stack, fresh=fresh, keep=keep)
        watch([statement], running.stop)
        if running.mode == "final":
            statement.finish()
            running.listener.on_sealed(statement.report())
        return statement.report()


def _started(
    running: Running, plan: StatementPlan, stack: ExitStack, *, fresh: bool, keep: Keep | None
) -> Statement:
    taken = opened(running.job, plan, cores=cores_of(running.spark), fresh=fresh, keep=keep)
    statement = Statement.opened(running, plan, stack.enter_context(taken))
    # When a later statement does not start, this one ends before its lock is free.
    stack.callback(statement.end)
    statement.start()
    return statement


def _report_of(
    running: Running, chosen: Sequence[StatementPlan], name: str, checkpoint: Checkpoint
) -> QueryReport:
    plan = next(plan for plan in chosen if plan.name == name)
    with held(checkpoint.lock, name):
        return Statement.opened(running, plan, checkpoint).report()


def _lives(memory: Memory) -> list[Memory]:
    """Return the rows that a program hands in up to each crash in them, and all of them last."""
    cuts = max((sum(isinstance(b, Crash) for b in rows) for rows in memory.values()), default=0)
    return [{name: _until(rows, life) for name, rows in memory.items()} for life in range(cuts + 1)]


def _until(rows: Sequence[Any], life: int) -> list[Any]:
    found, crashes = [], 0
    for one in rows:
        if not isinstance(one, Crash):
            found.append(one)
            continue
        crashes += 1
        if crashes > life:
            break
    return found


def _printed(text: str) -> None:
    sys.stdout.write(f"{text}\n")
