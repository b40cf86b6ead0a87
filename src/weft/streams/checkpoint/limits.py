"""Limits on the rows of a whole side, enforced after a batch over the states of all its tasks.

A task sees its own keys only.  When a side has more rows than its limit allows, the oldest rows of all tasks are marked
as removed, before the batch is committed: the same rows, whatever the number of tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from weft.core.frozen import FrozenMap, thaw
from weft.streams.checkpoint.ledger import SIDES, TaskReport
from weft.streams.checkpoint.manifest import Counts
from weft.streams.kernel.limits import evict_oldest
from weft.streams.kernel.spec import JoinTask
from weft.streams.kernel.state_files import JoinFolder
from weft.streams.kernel.state_store import StateFiles


def enforce_limits(
    files: StateFiles, joins: Sequence[JoinTask], reports: Sequence[TaskReport], *, watermark: int
) -> tuple[TaskReport, ...]:
    """Return the reports of a batch after rows above the limits were evicted; raise W2209 if they may not be."""
    found = list(reports)
    for task in joins:
        mine = [report for report in found if report.join == task.number]
        if _has_surplus(task, mine):
            place = JoinFolder(files, task.number)
            changes = evict_oldest(
                place, task, {report.task: thaw(report.state) for report in mine}, watermark=watermark
            )
            changed = {id(report): _add_changes(report, change) for report, change in zip(mine, changes, strict=True)}
            found = [changed.get(id(report), report) for report in found]
    return tuple(found)


def _has_surplus(task: JoinTask, reports: Sequence[TaskReport]) -> bool:
    """Return whether a side has more rows than it may."""
    for side in SIDES:
        most = task.side(side).limits.max_state_rows
        if most is not None and sum(report.stats[side]["current_size"] for report in reports) > most:
            return True
    return False


def _add_changes(report: TaskReport, change: dict[str, Any]) -> TaskReport:
    counters: dict[str, Counts] = {
        side: FrozenMap({name: count + change["counters"][side][name] for name, count in report.counters[side].items()})
        for side in SIDES
    }
    stats: dict[str, Any] = {
        side: FrozenMap({**report.stats[side], **_add_stats(report, change, side)}) for side in SIDES
    }
    later = TaskReport.parse(change)
    return replace(
        report,
        counters=FrozenMap(counters),
        stats=FrozenMap(stats),
        state=later.state,
        rejects=FrozenMap({**report.rejects, **later.rejects}),
    )


def _add_stats(report: TaskReport, change: dict[str, Any], side: str) -> dict[str, Any]:
    """Return the statistics that an eviction changes."""
    now, before = change["stats"][side], report.stats[side]
    added = {name: before[name] + now[name] for name in ("records_evicted", "limit_hits")}
    return {**added, **{name: now[name] for name in ("current_size", "current_keys", "peak_size")}}
