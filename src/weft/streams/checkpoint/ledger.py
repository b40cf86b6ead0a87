"""The ledger: counts of the rows of each side, which must add up.

::

    in = matched + waiting + unmatched + late + rejected + evicted

All seven are counted independently, so a row that is lost or counted twice is detected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal

from weft.core.frozen import EMPTY, FrozenMap, freeze
from weft.errors import StreamError
from weft.streams.checkpoint.folder import Checkpoint
from weft.streams.checkpoint.manifest import Counts, Ledger
from weft.streams.kernel.spec import list_files

COUNTS = ("in", "matched", "waiting", "unmatched", "late", "rejected", "evicted")
_SIDE_COUNTS = {"type": "object", "properties": {name: {"type": "integer"} for name in COUNTS}, "required": COUNTS}
LedgerDocument = Annotated[Ledger, freeze({"type": "object", "additionalProperties": _SIDE_COUNTS})]
"""A ledger in a document: each side has all the counts."""

Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")
_GREATEST = frozenset({"max_time", "max_lateness"})
_LEAST = frozenset({"min_time"})
_OF_NOW = frozenset({"current_size", "current_keys", "current_bytes", "peak_size"})
_DEFECT = "nothing of the batch is committed; keep the checkpoint and report it as a defect of Weft"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """What one task of a join wrote in a batch; the counters are those of the batch.

    `waited` are the rows that waited in the state before it, `state` is the state of its keys after it, and `rejects` are
    its files of rejected rows with their checksums.
    """

    join: int
    task: int
    batch: int
    counters: FrozenMap[str, Counts]
    waited: FrozenMap[str, int] = EMPTY
    stats: FrozenMap[str, Any] = EMPTY
    state: FrozenMap[str, Any] = EMPTY
    rejects: FrozenMap[str, str] = EMPTY

    @classmethod
    def parse(cls, report: Mapping[str, Any]) -> TaskReport:
        """Return the report that a worker sent."""
        return cls(**freeze(dict(report)))


def side_name(join: int, side: str) -> str:
    """Return the name of a side in the ledger.

    >>> side_name(1, "left"), side_name(2, "right")
    ('left', 'join2.right')
    """
    return side if join == 1 else f"join{join}.{side}"


def join_number(name: str) -> int:
    """Return the join of a side in the ledger.

    >>> join_number("left"), join_number("join2.right")
    (1, 2)
    """
    join = name.rpartition(".")[0]
    return int(join.removeprefix("join")) if join else 1


def select_reports(
    checkpoint: Checkpoint, batch: int, joins: Iterable[int], tasks: int, reports: Iterable[Mapping[str, Any]]
) -> tuple[TaskReport, ...]:
    """Return one report for each task of a batch; raise W2213 if one is missing, or a file that it lists."""
    # Attempts of a task write the same state under other names: any of them will do.
    known = {(one.join, one.task): one for one in map(TaskReport.parse, reports) if one.batch == batch}
    for join in joins:
        count = sum(1 for key in known if key[0] == join)
        if count != tasks:
            raise _incomplete_error(f"{count} of {tasks} tasks of join {join} reported what batch {batch} wrote")
    for report in known.values() if isinstance(checkpoint.root, Path) else ():  # a store has them, or has failed
        folder = checkpoint.join_state(report.join)
        wrote = [
            *(folder / name for name in list_files(report.state)),
            *(checkpoint.rejects / n for n in report.rejects),
        ]
        for path in wrote:
            if not path.exists():
                raise _incomplete_error(f"batch {batch} wrote {str(path)!r}, and it is not there")
    return tuple(known[key] for key in sorted(known))


def _incomplete_error(what: str) -> StreamError:
    return StreamError(
        what,
        code="W2213",
        help="nothing of the batch is committed, and `weft stream run JOB` repeats it; if it fails again, "
        "the workers may be on other machines with their own disks: "
        "SET 'checkpoint' = '/a/folder/that/all/of/them/share', or the address of a file store",
    )


def count_missing(counts: Mapping[str, int]) -> int:
    """Return the number of rows that are not counted; negative if rows are counted twice.

    >>> count_missing({"in": 3, "matched": 1, "waiting": 1, "unmatched": 0, "late": 0, "rejected": 0, "evicted": 0})
    1
    """
    return counts["in"] - sum(counts[name] for name in COUNTS[1:])


def check_report(report: TaskReport) -> None:
    """Raise `StreamError` W2210 when the counts of a task do not balance."""
    for side in SIDES:
        if count_missing(report.counters[side]):
            where = f"task {report.task} of batch {report.batch}"
            raise _unbalanced_error(side_name(report.join, side), where, report.counters[side])


def check_waiting(reports: Iterable[TaskReport], before: Ledger, batch: int) -> None:
    """Raise `StreamError` W2210 when the tasks of a batch did not find all rows that the last commit left waiting."""
    found: dict[str, int] = {}
    for report in reports:
        for side, count in report.waited.items():
            name = side_name(report.join, side)
            found[name] = found.get(name, 0) + count
    for name, count in found.items():
        waiting = before.get(name, EMPTY).get("waiting", 0)
        if count != waiting:
            raise StreamError(
                f"the state of {name} has {count} waiting rows at the start of batch {batch}, and the last commit "
                f"counted {waiting}",
                code="W2210",
                help=_DEFECT,
            )


def check_total(ledger: Ledger, batch: int, before: Ledger = EMPTY) -> None:
    """Raise `StreamError` W2210 when a side does not balance, or a count decreases."""
    for side, counts in ledger.items():
        if count_missing(counts):
            raise _unbalanced_error(side, f"batch {batch}", counts)
        # All but `waiting`, which counts the rows of the moment, count from the first batch on.
        for name in ("in", "late", "rejected", "evicted", "matched", "unmatched"):
            if counts[name] < before.get(side, EMPTY).get(name, 0):
                raise StreamError(
                    f"the ledger of {side} decreases in batch {batch}: {name} was {before[side][name]} "
                    f"and is {counts[name]}",
                    code="W2210",
                    help=_DEFECT,
                )


def _unbalanced_error(side: str, where: str, counts: Counts) -> StreamError:
    lost = count_missing(counts)
    details = ", ".join(f"{name} {counts[name]}" for name in COUNTS)
    rows = "1 row is" if abs(lost) == 1 else f"{abs(lost)} rows are"
    what = f"{rows} missing" if lost > 0 else f"{rows} counted twice"
    return StreamError(
        f"the ledger of {side} does not balance in {where}: {what} ({details})",
        code="W2210",
        help=_DEFECT,
    )


def sum_counts(reports: Iterable[TaskReport]) -> Ledger:
    """Return the counts of all tasks together, by side."""
    tasks = (FrozenMap({side_name(r.join, side): r.counters[side] for side in SIDES}) for r in reports)
    return reduce(add_ledgers, tasks, EMPTY)


def add_stats(before: Mapping[str, Mapping[str, Any]], reports: Iterable[TaskReport]) -> FrozenMap[str, Any]:
    """Return the statistics by side after a batch: sums since the first batch, sizes of now, minima and maxima."""
    totals: dict[str, dict[str, Any]] = {}
    for report in reports:
        for side, stats in report.stats.items():
            name = side_name(report.join, side)
            if name not in totals:
                totals[name] = {k: 0 if k in _OF_NOW else v for k, v in before.get(name, EMPTY).items()}
            _add_task(totals[name], stats)
    for name, into in totals.items():
        if "current_size" in into:
            into["peak_size"] = max(before.get(name, EMPTY).get("peak_size", 0), into["current_size"])
    return FrozenMap({side: FrozenMap(stats) for side, stats in totals.items()})


def _add_task(into: dict[str, Any], stats: Mapping[str, Any]) -> None:
    for name, value in stats.items():
        if value is None or into.get(name) is None:
            # A task without rows has no times; it must not hide those of the others.
            into[name] = into.get(name) if value is None else value
        elif name in _GREATEST | _LEAST:
            into[name] = (max if name in _GREATEST else min)(into[name], value)
        else:
            into[name] += value


def max_event_times(
    stats: Mapping[str, Mapping[str, Any]], inputs: Mapping[str, str], before: Mapping[str, int]
) -> FrozenMap[str, int]:
    """Return the greatest event time of each input so far; `inputs` maps sides to aliases."""
    times = dict(before)
    for side, alias in inputs.items():
        time = stats.get(side, EMPTY).get("max_time")
        if time is not None:
            times[alias] = max(times.get(alias, time), time)
    return FrozenMap(times)


def add_ledgers(one: Ledger, other: Ledger) -> Ledger:
    """Return the sum of two ledgers."""
    sides = [*one, *(s for s in other if s not in one)]
    return FrozenMap(
        {
            side: FrozenMap({c: one.get(side, EMPTY).get(c, 0) + other.get(side, EMPTY).get(c, 0) for c in COUNTS})
            for side in sides
        }
    )
