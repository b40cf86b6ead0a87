"""Idle sides: a stream that shows nothing for a while stops holding the others back.

A side without rows for its ``idle.timeout`` on the wall clock is left out of the watermark until it
shows a row again; the rows it shows then are judged as any other.  The decision is written into the
heartbeat before the batch, so a replay decides the same.  Waiting counts from the start of the run at the
earliest: the hours in which a job was stopped make no side idle.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.core.duration import Duration
from weft.core.frozen import FrozenMap
from weft.streams.plan.resolved import Input, StatementPlan


def timeouts(plan: StatementPlan, default: Duration | None = None) -> dict[str, int]:
    """Return the timeout of each side that has one, in microseconds; `default` is the job's."""
    found = {i.alias: _timeout(i, default) for i in plan.inputs} if plan.has_watermark else {}
    return {alias: wait for alias, wait in found.items() if wait is not None}


def idle_sides(
    plan: StatementPlan,
    last_rows: Mapping[str, int],
    *,
    started: int,
    now: int,
    default: Duration | None = None,
) -> FrozenMap[str, FrozenMap[str, int]]:
    """Return the sides that are left out of the watermark now, each with since when it shows nothing.

    `last_rows` says when each alias showed rows, as the last manifest has it; `started` is when this run
    began.  Both are microseconds, as `now` is.
    """
    found: dict[str, FrozenMap[str, int]] = {}
    for alias, wait in timeouts(plan, default).items():
        since = max(started, last_rows.get(alias, started))
        if now - since >= wait:
            found[alias] = FrozenMap(since=since)
    return FrozenMap(found)


def _timeout(side: Input, default: Duration | None) -> int | None:
    wait = side.stream.idle or default
    return None if wait is None else wait.microseconds
