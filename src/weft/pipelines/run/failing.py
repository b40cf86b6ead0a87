"""Failures during a run: exceptions of Spark as errors of Weft and as records of the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from weft.errors import RunError, RuntimeJoinError, WeftError
from weft.io.spark.failures import data_failure
from weft.io.spark.session import is_jvm_gone
from weft.joins.spark.failures import (
    Condition,
    explain_job_failure,
    find_conditions,
    find_disk_full_message,
    strip_sqlstate,
)
from weft.joins.spark.workers import diagnose_worker
from weft.pipelines.plan.operations.resolved import ResolvedOperation, ResolvedUpdate
from weft.pipelines.run.moving import no_space
from weft.pipelines.spark.joins import multiple_matches
from weft.pipelines.store.records import RunFailure

if TYPE_CHECKING:
    from weft.pipelines.spark.frame import Lowering

_HELP = {
    "ARITHMETIC_OVERFLOW": "give the column a wider type, or ROUND the value",
    "NUMERIC_VALUE_OUT_OF_RANGE": "give the column a wider type, or ROUND the value",
    "CAST_INVALID_INPUT": "correct the value, or exclude its row before the CAST: a DELETE operation, or a selector",
}


class OperationFailedError(Exception):
    """A failure of a run with the operation it happened in; never leaves `weft.pipelines.run`."""

    def __init__(self, seq: int | None, error: WeftError, seqs: Sequence[int] = ()) -> None:
        super().__init__(str(error))
        self.seq = seq
        self.error = error
        self.seqs = tuple(seqs)

    def failure(self) -> RunFailure:
        """Return the record for the store."""
        together = f"operations {', '.join(map(str, self.seqs))} ran as one step\n" if len(self.seqs) > 1 else ""
        return RunFailure(
            operation_order=self.seq, code=self.error.code, message=self.error.message, detail=f"{together}{self.error}"
        )


def explain_failure(failure: BaseException, where: str, env: Lowering | None = None) -> WeftError:
    """Return the error that an exception means to a user."""
    if isinstance(failure, WeftError):
        return failure
    text = str(failure)
    # The order matters: a full disk and a dead worker also show as failed jobs, with conditions that say less.
    if full := find_disk_full_message(failure, text):
        return no_space(where, full)
    if problem := diagnose_worker(text):
        return RunError(f"{where} failed: {problem.message}", code="W1809", help=problem.help)
    if is_jvm_gone(failure):
        return RunError(
            f"{where} failed: Spark's JVM has ended",
            code="W1513",
            help="start it again; `weft run --resume LAST` continues a run. If the JVM ran out of memory, raise "
            "`spark.driver.memory` in `spark: {conf: ...}` of weft.yml",
        )
    known = multiple_matches(failure, env) if env is not None else None
    return known or data_failure(failure) or explain_job_failure(failure) or _wrapped(failure, where)


@contextmanager
def explain_errors(where: str) -> Iterator[None]:
    """Raise what fails in the block as an error with a code."""
    try:
        yield
    except WeftError:
        raise
    except Exception as failure:
        raise explain_failure(failure, where) from failure


def _wrapped(failure: BaseException, where: str) -> RunError:
    text = str(failure).strip() or type(failure).__name__
    condition, message = next(iter(find_conditions(failure)), Condition("", text.splitlines()[0]))
    help = next((hint for mark, hint in _HELP.items() if condition.startswith(mark)), "")
    return RunError(
        f"{where} failed: {strip_sqlstate(message)}" + (f" ({condition})" if condition else ""),
        code="W1513",
        help=help or "`weft runs show LAST` shows the details",
    )


def operation_of(error: WeftError, operations: Sequence[ResolvedOperation]) -> int | None:
    """Return the operation that a failed step of several is attributed to: the one with the join, else the last."""
    if isinstance(error, RuntimeJoinError) and error.alias:
        for op in operations:
            steps: tuple[Any, ...] = () if not hasattr(op, "lookups") else op.lookups
            if isinstance(op, ResolvedUpdate):
                steps = (*steps, *op.joins)
            if any(step.alias == error.alias for step in steps):
                return op.seq
    return operations[-1].seq if operations else None
