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
from weft.streams.checkpoint.folder import Checkpoint, damaged_file, read_document
from weft.streams.checkpoint.manifest import Counts, Ledger

COUNTS = ("in", "matched", "waiting", "unmatched", "late", "rejected", "evicted")
_SIDE_COUNTS = {"type": "object", "properties": {name: {"type": "integer"} for name in COUNTS}, "required": COUNTS}
LedgerDocument = Annotated[Ledger, freeze({"type": "object", "additionalProperties": _SIDE_COUNTS})]
"""A ledger in a document: each side has all the counts."""

Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")
_GREATEST = frozenset({"max_time", "max_lateness"})
_LEAST = frozenset({"min_time"})
_DEFECT = "nothing of the batch is committed; keep the checkpoint and report it as a defect of Weft"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupIndex:
    """index.json: the state of one group of one join after a batch, written by the kernel.

    `files` are the files that its state consists of, relative to the folder of the join.
    """

    join: int
    group: int
    batch: int
    counters: FrozenMap[str, Counts]
    stats: FrozenMap[str, Any] = EMPTY
    max_times: FrozenMap[str, int] = EMPTY
    files: tuple[str, ...] = ()


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


def read_indexes(checkpoint: Checkpoint, batch: int, joins: Iterable[int], groups: int) -> tuple[GroupIndex, ...]:
    """Read the index of every group after a batch; raise W2213 if a group is missing."""
    indexes: list[GroupIndex] = []
    for join in joins:
        folder = checkpoint.join_state(join) / str(batch)
        files = sorted(folder.glob("*/index.json"))
        if len(files) != groups:
            raise StreamError(
                f"batch {batch} wrote {len(files)} of {groups} groups of join {join} to {str(folder)!r}",
                code="W2213",
                help="nothing of the batch is committed, and `weft stream run JOB` repeats it; if it fails again, "
                "the workers may be on other machines with their own disks: "
                "SET 'checkpoint' = '/a/folder/that/all/of/them/share'",
            )
        indexes.extend(_parse_index(join, path) for path in files)
    return tuple(indexes)


def read_batch_indexes(checkpoint: Checkpoint, batch: int) -> tuple[GroupIndex, ...]:
    """Read the indexes of a batch, complete or not."""
    files = sorted(checkpoint.state.glob(f"j*/{batch}/*/index.json"))
    return tuple(_parse_index(int(path.parts[-4][1:]), path) for path in files)


def _parse_index(join: int, path: Path) -> GroupIndex:
    document = read_document(path)
    try:
        # Optional files are missing or None in the index of a side that has none.
        files = [s["path"] for s in document["segments"]]
        for more in ("flags", "seen", "sessions"):
            files.extend(name for name in (document.get(more) or {}).values() if name)
        return GroupIndex(
            join=join,
            group=document["group"],
            batch=document["batch"],
            counters=freeze({s: {c: document["counters"][s][c] for c in COUNTS} for s in SIDES}),
            stats=freeze(document.get("stats") or {}),
            max_times=FrozenMap({s: t for s, t in (document.get("max_times") or {}).items() if t is not None}),
            files=tuple(files),
        )
    except (KeyError, TypeError, AttributeError) as cause:
        raise damaged_file(path, f"{type(cause).__name__} {cause}") from cause


def count_missing(counts: Mapping[str, int]) -> int:
    """Return the number of rows that are not counted; negative if rows are counted twice.

    >>> count_missing({"in": 3, "matched": 1, "waiting": 1, "unmatched": 0, "late": 0, "rejected": 0, "evicted": 0})
    1
    """
    return counts["in"] - sum(counts[name] for name in COUNTS[1:])


def check_group(index: GroupIndex) -> None:
    """Raise `StreamError` W2210 when the ledger of a group does not balance."""
    for side in SIDES:
        if count_missing(index.counters[side]):
            where = f"group {index.group} of batch {index.batch}"
            raise _unbalanced_error(side_name(index.join, side), where, index.counters[side])


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


def sum_counts(indexes: Iterable[GroupIndex]) -> Ledger:
    """Return the counts of all groups together, by side."""
    groups = (FrozenMap({side_name(i.join, side): i.counters[side] for side in SIDES}) for i in indexes)
    return reduce(add_ledgers, groups, EMPTY)


def sum_stats(indexes: Iterable[GroupIndex]) -> FrozenMap[str, Any]:
    """Return the statistics of all groups together, by side: sums, minima and maxima."""
    totals: dict[str, dict[str, Any]] = {}
    for index in indexes:
        for side, stats in index.stats.items():
            into = totals.setdefault(side_name(index.join, side), {})
            for name, value in stats.items():
                if value is None or into.get(name) is None:
                    # A group without rows has no times; it must not hide those of the others.
                    into[name] = into.get(name) if value is None else value
                elif name in _GREATEST | _LEAST:
                    into[name] = (max if name in _GREATEST else min)(into[name], value)
                else:
                    into[name] += value
    return FrozenMap({side: FrozenMap(stats) for side, stats in totals.items()})


def max_event_times(
    indexes: Iterable[GroupIndex], inputs: Mapping[str, str], before: Mapping[str, int]
) -> FrozenMap[str, int]:
    """Return the greatest event time of each input so far; `inputs` maps sides to aliases."""
    times = dict(before)
    for index in indexes:
        for side, time in index.max_times.items():
            alias = inputs.get(side_name(index.join, side))
            if alias is not None:
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
