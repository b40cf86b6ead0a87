"""One stateful join of the reference: plain lists, every row against every row."""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Iterable, Sequence
from functools import cmp_to_key
from typing import Any

from weft.errors import Code, StreamError
from weft.expr import Typed, evaluate
from weft.joins.resolve.resolved import SameWindow, Within
from weft.streams.checkpoint.ledger import COUNTS
from weft.streams.kernel.spec import FOREVER, Clock
from weft.streams.plan.kernel_spec import build_layout, find_dedup_columns, is_raw
from weft.streams.plan.resolved import (
    WINDOW_END,
    WINDOW_START,
    Input,
    KernelStep,
    StatementPlan,
    column_slot,
    time_slot,
)
from weft.testing.stream_items import Item, Rejected
from weft.testing.values import EPOCH, Window, as_type, compare, shared_windows, windows_of


class SideReference:
    """The rows of one side of a join, and its counts."""

    def __init__(self, plan: StatementPlan, step: KernelStep, side: str) -> None:
        self.plan, self.step, self.side = plan, step, side
        numbers = step.left if side == "left" else (step.right,)
        raw = [s for n in numbers if isinstance(s := plan.source(n), Input) and is_raw(plan, step, n)]
        self.raw = raw[0] if raw else None
        self.outer = step.how in (side, "full")
        self.rows: list[Item] = []
        self.count = dict.fromkeys(COUNTS, 0)
        self.seen: list[tuple[tuple[Any, ...], int | None]] = []
        children = build_layout(plan, step)
        self.order = [c.slot for c in (children.left if side == "left" else children.right)]

    def key(self, item: Item) -> tuple[Any, ...]:
        """Return the key of a row in the common types."""
        pairs = [(k.left if self.side == "left" else k.right, k.dtype) for k in self.step.keys]
        return tuple(as_type(item.values.get(slot), dtype) for slot, dtype in pairs)

    def time(self, item: Item) -> int | None:
        """Return the time of a row on the axis of the join."""
        if self.step.axis is None:
            return None
        return item.values.get(self.step.axis[0 if self.side == "left" else 1])

    def content(self, item: Item) -> tuple[Any, ...]:
        """Return the values that order rows of equal time."""
        return tuple(item.values.get(slot) for slot in self.order)

    def live(self) -> list[Item]:
        """Return the rows that can still match."""
        return [r for r in self.rows if not (r.over or r.evicted)]


class JoinReference:
    """A stateful join: takes the arrivals of a batch, returns the joined rows."""

    def __init__(self, plan: StatementPlan, step: KernelStep) -> None:
        self.plan, self.step = plan, step
        self.left = SideReference(plan, step, "left")
        self.right = SideReference(plan, step, "right")
        self.given: set[tuple[int, int, Any]] = set()
        self.rejects: list[Rejected] = []

    def run(
        self,
        left: Sequence[Item],
        right: Sequence[Item],
        clock: Clock,
        *,
        batch: int,
        watermark: int | None,
        wall_clock: int,
    ) -> list[Item]:
        """Run one batch: admit rows, store them, emit pairs, end rows that can no longer match, apply limits."""
        out: list[Item] = []
        for side, arrived in ((self.left, left), (self.right, right)):
            items = self._admitted(side, arrived, batch, watermark, wall_clock)
            # A NULL key or, on a side that an earlier join has filled, a NULL time matches nothing.
            for item in items:
                if None in side.key(item) or (side.raw is None and self._has_no_time(side, item)):
                    side.count["unmatched"] += 1
                    out.extend(self._padded(side, item))
                else:
                    side.rows.append(item)
        out.extend(self._pairs(clock))
        for side in (self.left, self.right):
            out.extend(self._ended(side, clock))
        for side in (self.left, self.right):
            self._limited(side, batch, watermark)
            side.count["waiting"] = sum(1 for r in side.live() if not r.matched)
        return out

    def _has_no_time(self, side: SideReference, item: Item) -> bool:
        return self.step.axis is not None and side.time(item) is None

    def _admitted(
        self, side: SideReference, arrived: Sequence[Item], batch: int, watermark: int | None, wall_clock: int
    ) -> list[Item]:
        side.count["in"] += len(arrived)
        if side.raw is None:
            return list(arrived)
        stream, kept = side.raw.stream, []
        for item in arrived:
            if item.unread is not None:
                self._refuse(stream.malformed == "fail", "W2208", "an invalid row")
                self._reject(side, item, "MALFORMED", batch, watermark)
                continue
            if self._has_no_time(side, item):
                self._refuse(self.step.missing_event_time == "fail", "W2207", "a row without event time")
                if self.step.missing_event_time == "reject":
                    self._reject(side, item, "NO_EVENT_TIME", batch, watermark)
                    continue
                item.values[time_slot(side.raw.number)] = wall_clock
            time = side.time(item)
            if watermark is not None and time is not None and time < watermark:
                self._refuse(stream.late == "fail", "W2206", "a late row")
                side.count["late"] += 1
                self._note(side, item, "LATE", batch, watermark, kept=stream.late != "drop")
                continue
            kept.append(item)
        return self._first_of_each(side, kept, batch, watermark)

    def _first_of_each(self, side: SideReference, items: list[Item], batch: int, watermark: int | None) -> list[Item]:
        """Return the rows without those whose dedup keys arrived before."""
        assert side.raw is not None  # noqa: S101  # only rows of a stream are admitted or rejected
        slots = [column_slot(side.raw.number, i) for i in find_dedup_columns(side.raw.stream)]
        if not slots:
            return items
        side.seen = [(k, t) for k, t in side.seen if watermark is None or t is None or t >= watermark]
        kept = []
        for item in in_order(side, items):
            key = tuple(item.values.get(slot) for slot in slots)
            if any(compare(key, known) == 0 for known, _ in side.seen):
                self._reject(side, item, "DUPLICATE", batch, watermark)
            else:
                side.seen.append((key, side.time(item)))
                kept.append(item)
        return kept

    def _refuse(self, fails: bool, code: Code, what: str) -> None:  # noqa: FBT001  # the test is the argument
        if fails:
            raise StreamError(f"{what} arrived", code=code, help="nothing of the batch is committed")

    def _reject(self, side: SideReference, item: Item, reason: str, batch: int, watermark: int | None) -> None:
        side.count["rejected"] += 1
        self._note(side, item, reason, batch, watermark)

    def _note(
        self, side: SideReference, item: Item, reason: str, batch: int, watermark: int | None, *, kept: bool = True
    ) -> None:
        if kept:
            self.rejects.append(
                Rejected(
                    side=side.side,
                    reason=reason,
                    time=side.time(item),
                    watermark=watermark,
                    batch=batch,
                    matched=item.matched,
                    values={str(s): v for s, v in item.values.items()},
                )
            )

    def _pairs(self, clock: Clock) -> list[Item]:
        """Return the pairs that are due and were not emitted before."""
        out = []
        for one in self.left.live():
            for other in self.right.live():
                if not self._may_meet(one, other):
                    continue
                for window in self._meetings(one, other):
                    # Rows are never copied, so `id` tells them apart; equal rows are different rows.
                    mark = (id(one), id(other), window)
                    if mark not in self.given and self._is_due(one, window, clock):
                        self.given.add(mark)
                        out.append(self._joined(one, other, window))
                        self._flag(one, other)
        return out

    def _flag(self, one: Item, other: Item) -> None:
        for side, item in ((self.left, one), (self.right, other)):
            if not item.matched:
                item.matched = True
                side.count["matched"] += 1

    def _may_meet(self, one: Item, other: Item) -> bool:
        keys = zip(self.left.key(one), self.right.key(other), strict=True)
        if any(compare(a, b) != 0 for a, b in keys):
            return False
        return self.step.residual is None or is_true(self.step.residual, {**one.values, **other.values})

    def _meetings(self, one: Item, other: Item) -> list[Window | None]:
        """Return the windows that a pair shares; ``[None]`` for a pair that matches without windows."""
        match, at, then = self.step.resolved.match, self.left.time(one), self.right.time(other)
        if isinstance(match, Within):
            assert at is not None and then is not None  # noqa: S101, PT018  # stored rows have times
            return [None] if at + self.step.reach.lower <= then <= at + self.step.reach.upper else []
        if not isinstance(match, SameWindow):
            return [None]
        windows = shared_windows(match, at, then, self._events(one))
        if match.kind == "session":
            return [None] if windows else []
        return list(windows if match.per_window else windows[:1])

    def _events(self, item: Item) -> list[int]:
        """Return the times of all live rows, of both sides, under the key of a row of either side."""
        if not (isinstance(self.step.resolved.match, SameWindow) and self.step.resolved.match.kind == "session"):
            return []
        mine = self.left if any(item is r for r in self.left.rows) else self.right
        key = mine.key(item)
        times: list[int] = []
        for side in (self.left, self.right):
            same = (r for r in side.live() if compare(side.key(r), key) == 0)
            times.extend(t for r in same if (t := side.time(r)) is not None)
        return times

    def _is_due(self, one: Item, window: Window | None, clock: Clock) -> bool:
        if self.step.emit == "changes" or self.step.axis is None:
            return True
        if isinstance(self.step.resolved.match, Within):
            return self._is_over(self.left, one, clock)
        if window is not None:
            return min(clock.left, clock.right) >= window.end
        return self._is_over(self.left, one, clock)

    def _is_over(self, side: SideReference, item: Item, clock: Clock) -> bool:
        """Whether no row that can still arrive matches the row, and no pair of it has yet to be emitted."""
        match, time = self.step.resolved.match, side.time(item)
        least = min(clock.left, clock.right)
        if time is None:
            # A join with a table: stream rows are decided at once, table rows when the stream has ended.
            return side is self.left or clock.left == FOREVER
        if not isinstance(match, SameWindow):
            mine, other = (clock.left, clock.right) if side is self.left else (clock.right, clock.left)
            if side is self.left:
                return other > time + self.step.reach.upper
            last = time - self.step.reach.lower
            # EMIT FINAL gives a pair when its left row is over, so the right row is needed until then.
            waits = self.step.emit == "final" and not mine > last + self.step.reach.upper
            return other > last and not waits
        if match.kind == "session":
            end = windows_of(match, time, self._events(item))[0].end
            return least > end
        last = int(windows_of(match, time)[-1].end) - 1
        if self.step.emit == "final":
            return least > last
        return (clock.right if side is self.left else clock.left) > last

    def _ended(self, side: SideReference, clock: Clock) -> list[Item]:
        """Mark the rows that are over; return the unmatched ones, padded with NULL."""
        out: list[Item] = []
        # All are decided before the first is marked: rows of one session end together.
        over = [r for r in side.live() if self._is_over(side, r, clock)]
        for item in over:
            item.over = True
            if not item.matched:
                side.count["unmatched"] += 1
                out.extend(self._padded(side, item))
        return out

    def _limited(self, side: SideReference, batch: int, watermark: int | None) -> None:
        limits = self.step.limits
        groups: dict[Any, list[Item]] = {}
        for item in side.live():
            groups.setdefault(repr(side.key(item)), []).append(item)
        if limits.max_rows_per_key is not None:
            for rows in groups.values():
                self._evict(side, rows, limits.max_rows_per_key, batch, watermark)
        if limits.max_state_rows is not None:
            self._evict(side, side.live(), limits.max_state_rows, batch, watermark)

    def _evict(self, side: SideReference, rows: list[Item], most: int, batch: int, watermark: int | None) -> None:
        surplus = len(rows) - most
        if surplus <= 0:
            return
        self._refuse(self.step.limits.eviction == "fail", "W2209", "more rows than the state may hold")
        for item in in_order(side, rows)[:surplus]:
            item.evicted = True
            side.count["evicted"] += not item.matched
            self._note(side, item, "EVICTED", batch, watermark)

    def _padded(self, side: SideReference, item: Item) -> list[Item]:
        if not side.outer:
            return []
        values = dict(item.values)
        time = side.time(item)
        if self.step.reach.has_windows and isinstance(self.step.resolved.match, SameWindow) and time is not None:
            values |= _window_values(windows_of(self.step.resolved.match, time)[0])
        return [Item(values, time, item.batch)]

    def _joined(self, one: Item, other: Item, window: Window | None) -> Item:
        values = {**one.values, **other.values}
        if self.step.reach.has_windows and window is not None:
            values |= _window_values(window)
        return Item(values, None, max(one.batch, other.batch))


def _window_values(window: Window) -> dict[Hashable, Any]:
    ends = ((WINDOW_START, window.start), (WINDOW_END, window.end))
    return {slot: EPOCH + dt.timedelta(microseconds=int(at)) for slot, at in ends}


def in_order(side: SideReference, rows: Iterable[Item]) -> list[Item]:
    """Return rows by time, batch and content, least first."""

    def compare_rows(one: Item, other: Item) -> int:
        return compare(*((side.time(r), r.batch, side.content(r)) for r in (one, other)))

    return sorted(rows, key=cmp_to_key(compare_rows))


def is_true(typed: Typed, values: dict[Hashable, Any]) -> bool:
    """Whether a condition is true of a row, which NULL is not."""
    return evaluate(typed, values.get) is True
