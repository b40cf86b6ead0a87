"""Spark's exceptions turned back into ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from weft.errors import Code, JoinContractError, WeftError, WorkerError
from weft.joins.spark.contracts import PREFIX
from weft.joins.spark.workers import worker_problem

_CONTRACT = re.compile(
    re.escape(PREFIX) + r" (W050[12]|W2207) (.*?\(spec [0-9a-f]{12}, join [0-9a-f]{12}\))", re.DOTALL
)

_RELAX = "correct the data, or relax relationship= or unmatched="
_NEXT = {"W2207": "correct the data, or leave such rows out: on_null_time='drop'"}


_OURS = re.compile(r"\[(W0110|W1809)\] (.*?)\. Next: ([^\n]*)", re.DOTALL)


def job_failure(failure: BaseException) -> WeftError | None:
    """Return what a failed Spark job means where Weft can tell, or None.

    A broken promise of a join (W0501, W0502), a group too large for the kernel (W0110), workers whose Python
    cannot run it (W1809).
    """
    broken = contract_failure(failure)
    if broken is not None:
        return broken
    text = str(failure)
    ours = _OURS.search(text)
    if ours is not None:
        code: Code = ours[1]  # type: ignore[assignment]  # the pattern names our codes
        return WorkerError(" ".join(ours[2].split()), code=code, help=ours[3].strip())
    problem = worker_problem(text)
    return None if problem is None else WorkerError(problem.message, help=problem.help)


@contextmanager
def coded_errors() -> Iterator[None]:
    """Turn failures of Spark jobs into errors of Weft, where Weft can tell what they mean.

    Spark's exception of a broken promise has a Java stack trace; the error of Weft has two lines::

        with weft.coded_errors():
            joined.df.write.parquet(path)
    """
    try:
        yield
    except WeftError:
        raise
    except Exception as failure:
        told = job_failure(failure)
        if told is None:
            raise
        raise told from None


def contract_failure(failure: BaseException) -> JoinContractError | None:
    """Return the broken promise that a failed Spark job tells of, or None.

    ::

        try:
            relation.df.collect()
        except Exception as failure:
            broken = weft.contract_failure(failure)
    """
    found = _CONTRACT.search(str(failure))
    if found is None:
        return None
    code: Code = found[1]  # type: ignore[assignment]  # the pattern names our codes
    return JoinContractError(found[2], code=code, help=_NEXT.get(code, _RELAX))
