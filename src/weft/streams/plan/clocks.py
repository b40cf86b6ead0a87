"""Clocks: how far time has come on each side of each join, from the watermark alone.

The clock of a side is a lower bound of the times that are still to come on it.  A stream's own clock is
the watermark of the statement.  Behind a join the clocks lag: a left row that waited for a partner comes
out when the right clock has passed its reach, and carries its own, earlier time.

A side without rows for its ``idle.timeout`` on the wall clock is left out of the watermark until it
shows a row again; the rows it shows then are judged as any other.  The decision is written into the
heartbeat before the batch, so a replay decides the same.  Waiting counts from the start of the run at the
earliest: the hours in which a job was stopped make no side idle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from weft.core.duration import Duration
from weft.core.frozen import FrozenMap
from weft.streams.kernel.spec import FOREVER, NEVER, Clock
from weft.streams.plan.resolved import Input, KernelStep, StatementPlan

_MILLISECOND = 1000


def compute_watermark(
    plan: StatementPlan,
    greatest: Mapping[str, int | None],
    before: int | None,
    *,
    idle: Collection[str] = (),
) -> int | None:
    """Return the watermark that judges the next batch, in microseconds, or None while there is none.

    `greatest` is the greatest event time that each alias has shown so far, `before` the watermark of
    the batch before: it never moves back.  Sides in `idle` are left out; with all of them idle
    nothing moves.
    """
    if not plan.has_watermark:
        return None
    sides = [i for i in plan.inputs if i.alias not in idle]
    shown = [greatest.get(i.alias) for i in sides]
    marks = [
        time // _MILLISECOND * _MILLISECOND - side.stream.delay.microseconds
        for side, time in zip(sides, shown, strict=True)
        if time is not None
    ]
    if not marks or len(marks) < len(sides):
        return before
    return min(marks) if before is None else max(before, min(marks))


def find_lagging_side(
    plan: StatementPlan, greatest: Mapping[str, int | None], *, idle: Collection[str] = ()
) -> str | None:
    """Return the alias whose rows keep the watermark where it is, None when there is no watermark."""
    sides = [i for i in plan.inputs if i.alias not in idle]
    if not plan.has_watermark or not sides:
        return None

    def mark(alias: str, delay: int) -> int:
        time = greatest.get(alias)
        return NEVER if time is None else time // _MILLISECOND * _MILLISECOND - delay

    return min(sides, key=lambda i: mark(i.alias, i.stream.delay.microseconds)).alias


def collect_timeouts(plan: StatementPlan, default: Duration | None = None) -> dict[str, int]:
    """Return the timeout of each side that has one, in microseconds; `default` is the job's."""
    found = {i.alias: _timeout(i, default) for i in plan.inputs} if plan.has_watermark else {}
    return {alias: wait for alias, wait in found.items() if wait is not None}


def find_idle_sides(
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
    for alias, wait in collect_timeouts(plan, default).items():
        since = max(started, last_rows.get(alias, started))
        if now - since >= wait:
            found[alias] = FrozenMap(since=since)
    return FrozenMap(found)


def _timeout(side: Input, default: Duration | None) -> int | None:
    wait = side.stream.idle or default
    return None if wait is None else wait.microseconds


def compute_clocks(plan: StatementPlan, now: int | None, before: tuple[Clock, ...]) -> tuple[Clock, ...]:
    """Return the clock of each stateful join for one batch.

    `now` is the watermark of the batch, None while there is none, ``FOREVER`` for the flush that ends
    a run; `before` are the clocks of the batch before, empty for the first.
    """
    steps = plan.kernel_steps
    if now == FOREVER:
        return (Clock(left=FOREVER, right=FOREVER),) * len(steps)
    mark = NEVER if now is None else now
    floors = dict.fromkeys((i.number for i in plan.inputs), mark)
    least = Differences()
    found: list[Clock] = []
    for place, step in enumerate(steps):
        if step.axis is None:
            found.append(Clock(left=mark, right=mark))
            continue
        (_, left), (_, right) = step.axis
        clock = Clock(left=floors[left], right=floors[right])
        earlier = before[place] if place < len(before) else Clock(left=NEVER, right=NEVER)
        found.append(clock)
        floors[left] = min(clock.left, shift_clock(earlier.right, -step.reach.greatest))
        floors[right] = min(clock.right, shift_clock(earlier.left, step.reach.least))
        for other in step.left:
            if other != left and other in floors:
                floors[other] = min(floors[other], shift_clock(floors[left], least.of(other, left)))
        least.add(left, right, step.reach.least, step.reach.greatest)
    return tuple(found)


def shift_clock(clock: int, by: int) -> int:
    """Return the clock moved by a distance; the two ends of time stay where they are.

    >>> shift_clock(NEVER, -5) == NEVER, shift_clock(FOREVER, -5) == FOREVER, shift_clock(10, -5)
    (True, True, 5)
    """
    if clock in (NEVER, FOREVER):
        return clock
    return max(NEVER, min(FOREVER, clock + by))


@dataclass(slots=True)
class Differences:
    """Least differences of two sources' times in one row, closed over the bounds of all joins so far."""

    _least: dict[tuple[int, int], int] = field(default_factory=dict)

    def of(self, one: int, other: int) -> int:
        """Return the least value of ``time of one - time of other``; a table has no time."""
        return 0 if one == other else self._least[one, other]

    def add(self, left: int, right: int, lower: int, upper: int) -> None:
        """Note that ``lower <= right - left <= upper`` in every pair of a join."""
        known = {one for pair in self._least for one in pair} | {left}
        for other in known:
            from_left, to_left = self.of(left, other), self.of(other, left)
            self._least[right, other] = lower + from_left
            self._least[other, right] = to_left - upper


def compute_needed(steps: Iterable[KernelStep]) -> tuple[tuple[int, int], ...]:
    """Return, for each join, how long left and right rows must stay once the watermark reached them.

    In a chain the left side of a later join lags behind the watermark by what the joins before it
    hold back; right rows wait for that too.
    """
    lags: dict[int, int] = {}
    least = Differences()
    found = []
    for step in steps:
        if step.axis is None:
            found.append((0, 0))
            continue
        (_, left), (_, right) = step.axis
        lag = lags.get(left, 0)
        found.append(_needed(step, lag))
        lags[left] = max(lag, step.reach.greatest)
        lags[right] = max(0, lag - step.reach.least)
        for other in step.left:
            if other != left and other in lags:
                lags[other] = max(lags[other], lags[left] - least.of(other, left))
        least.add(left, right, step.reach.least, step.reach.greatest)
    return tuple(found)


def _needed(step: KernelStep, lag: int) -> tuple[int, int]:
    reach = step.reach
    if reach.kind == "session":
        return lag + reach.gap, lag + reach.gap
    left, right = reach.greatest, lag - reach.least
    if step.emit == "final" and reach.kind == "interval":
        right = max(right, reach.upper - reach.lower)
    elif step.emit == "final":
        left = max(left, lag + reach.greatest)
    return max(0, left), max(0, right)
