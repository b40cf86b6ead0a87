"""Small joins written by hand for tests of the kernel: rows in, rows out, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from weft.streams.kernel.gate import Arrivals
from weft.streams.kernel.spec import FOREVER, NEVER, Clock, JoinTask, Limits, Reach, SideStats, SideTask
from weft.streams.kernel.transition import GroupState, StepResult, empty_state, step

SCHEMA = pa.schema([("k0", pa.string()), ("v", pa.int64())])
Row = tuple[str | None, int | None] | tuple[str | None, int | None, int]


def side(name: str = "left", **rules: Any) -> SideTask:
    """Return a raw inner side."""
    return SideTask(**{"name": name, "outer": False, "raw": True, **rules})


def interval(lower: int, upper: int, how: str = "inner", **rules: Any) -> JoinTask:
    """Return an interval join; `left` and `right` may hold rules of a side."""
    return joined(Reach(kind="interval", lower=lower, upper=upper), how, **rules)


def joined(
    reach: Reach,
    how: str = "inner",
    *,
    left: dict[str, Any] | None = None,
    right: dict[str, Any] | None = None,
    **rules: Any,
) -> JoinTask:
    """Return a join of any kind."""
    return JoinTask(
        **{
            "number": 1,
            "reach": reach,
            "keys": ("k0",),
            "left": side("left", **{"outer": how in ("left", "full"), **(left or {})}),
            "right": side("right", **{"outer": how in ("right", "full"), **(right or {})}),
            **rules,
        }
    )


def hash_of(key: str) -> int:
    """Return a hash that is easy to follow."""
    found: int = sum(ord(c) * 31**n for n, c in enumerate(key)) % 2**62
    return found


def arrivals(rows: Sequence[Row], raw: Sequence[str | None] | None = None, *, same_hash: bool = False) -> Arrivals:
    """Return rows (key, time[, value]) as arrivals."""
    hashes = [None if r[0] is None else (7 if same_hash else hash_of(r[0])) for r in rows]
    return Arrivals(
        hashes=pa.array(hashes, pa.int64()),
        times=pa.array([r[1] for r in rows], pa.int64()),
        raw=None if raw is None else pa.array(raw, pa.string()),
        rows=pa.table(
            {
                "k0": pa.array([r[0] for r in rows], pa.string()),
                "v": pa.array([r[2] if len(r) > 2 else n for n, r in enumerate(rows)], pa.int64()),
            },
            schema=SCHEMA,
        ),
    )


class Kernel:
    """A join of one group that is fed by hand."""

    def __init__(self, task: JoinTask, *, same_hash: bool = False) -> None:
        self.task = task
        self.same_hash = same_hash
        self.state: GroupState = empty_state(task, SCHEMA, SCHEMA)
        self.last: StepResult | None = None

    def feed(
        self,
        left: Sequence[Row] = (),
        right: Sequence[Row] = (),
        *,
        watermark: int = NEVER,
        clock: Clock | None = None,
        wall_clock: int = 0,
    ) -> list[tuple[Any, ...]]:
        """Do a batch and return what came out, in order: (kind, time, left key and value, right ones)."""
        self.last = step(
            self.task,
            self.state,
            arrivals(left, same_hash=self.same_hash),
            arrivals(right, same_hash=self.same_hash),
            clock or Clock(left=watermark, right=watermark),
            batch=self.state.batch + 1,
            watermark=watermark,
            wall_clock=wall_clock,
        )
        self.state = self.last.state
        assert self.state.left.counters.balances
        assert self.state.right.counters.balances
        return shown(self.last)

    def flush(self) -> list[tuple[Any, ...]]:
        """End the input."""
        return self.feed(watermark=FOREVER)

    @property
    def stats(self) -> tuple[SideStats, SideStats]:
        return self.state.left.stats, self.state.right.stats

    def rejected(self) -> list[tuple[str, str, Any]]:
        """Return side, reason and key of the rows that the last batch rejected."""
        assert self.last is not None
        found = [(r.side, r.reason, key) for r in self.last.rejects for key in r.rows.column("k0").to_pylist()]
        return sorted(found, key=repr)


def shown(stepped: StepResult) -> list[tuple[Any, ...]]:
    """Return the output of a batch as plain tuples, sorted."""
    found = []
    for batch in stepped.out:
        for row in batch.to_pylist():
            windows = (row["window_start"], row["window_end"]) if "window_start" in row else ()
            sides = [None if row[s] is None else (row[s]["k0"], row[s]["v"]) for s in ("left", "right")]
            found.append((row["kind"], row["time"], *windows, *sides))
    return sorted(found, key=repr)


def with_limits(task: JoinTask, **limits: Any) -> JoinTask:
    """Return the task with limits on both sides."""
    held = Limits(**limits)
    return replace(task, left=replace(task.left, limits=held), right=replace(task.right, limits=held))
