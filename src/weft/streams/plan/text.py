"""plan_text: from the text of a job to its plan, with the mistakes of both in one go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from weft.errors import Diagnostic, StreamPlanError, StreamSqlError
from weft.streams.plan.resolve import plan_job
from weft.streams.plan.resolved import JobPlan
from weft.streams.sql.job import in_order
from weft.streams.sql.lower import Partly, read_partly

_OF_COLUMNS = ("W02", "W2102", "W2103", "W2121")
"""Findings that columns alone decide: they hold however the options of a statement are mended."""


def plan_text(text: str, root: Path, *, file: str | None = None, env: Mapping[str, str] = {}) -> JobPlan:
    """Return the plan of the text of a job; raise with everything that is wrong with it.

    A mistake of one statement hides no mistake of another.
    """
    found = read_partly(text, file=file, env=env)
    if not found.mistakes:
        return plan_job(found.spec, root)
    raise StreamSqlError(in_order([*found.mistakes, *_further(found, root)]))


def _further(found: Partly, root: Path) -> list[Diagnostic]:
    """Return the errors of statements that were read."""
    errors: list[Diagnostic] = []
    for statement in found.spec.statements:
        try:
            plan_job(replace(found.spec, statements=(statement,)), root)
        except StreamPlanError as problem:
            touched = statement.name in found.doubtful
            errors += [
                d
                for d in problem.diagnostics
                if d.severity == "error" and (not touched or d.code.startswith(_OF_COLUMNS))
            ]
    return errors
