"""Watermarks and clocks: the event time that each side of each join has reached.

The clock of a side is a lower bound of the times of its future rows.  For a stream it is the watermark of the
statement.  After a join the clocks lag: a left row that waited for a match is emitted when the right clock has passed
its reach, with its own, earlier time.

A side without rows for its ``idle.timeout`` on the wall clock is excluded from the watermark until it has a row
again; its next rows may then be late.  The decision is written to the heartbeat before the batch, so that a replay
makes the same one.  The timeout starts at the earliest with the run: a stopped job does not make its sides idle.
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
    plan: StatementPlan, greatest: Mapping[str, int | None], before: int | None, *, idle: Collection[str] = ()
) -> int | None:
    """Return the watermark of the next batch in microseconds, or None while there is none.

    `greatest` is the greatest event time of each alias so far, `before` the watermark of the previous batch; it
    never moves back.  Sides in `idle` are excluded; if all are idle, the watermark does not move.
    """
    if not plan.has_watermark:
        return None
    sides = [i for i in plan.inputs if i.alias not in idle]
    times = [greatest.get(i.alias) for i in sides]
    marks = [_mark(side, time) for side, time in zip(sides, times, strict=True) if time is not None]
    if not marks or len(marks) < len(sides):  # a side without rows may still have older ones than all others
        return before
    return min(marks) if before is None else max(before, min(marks))


def find_lagging_side(
    plan: StatementPlan, greatest: Mapping[str, int | None], *, idle: Collection[str] = ()
) -> str | None:
    """Return the alias that holds the watermark back, or None if there is no watermark."""
    sides = [i for i in plan.inputs if i.alias not in idle]
    if not plan.has_watermark or not sides:
        return None

    def mark(side: Input) -> int:
        time = greatest.get(side.alias)
        return NEVER if time is None else _mark(side, time)

    return min(sides, key=mark).alias


def _mark(side: Input, time: int) -> int:
    """Return the watermark of a side by its greatest event time; it is in whole milliseconds, as in Spark."""
    return time // _MILLISECOND * _MILLISECOND - side.stream.delay.microseconds


def collect_timeouts(plan: StatementPlan, default: Duration | None = None) -> dict[str, int]:
    """Return the timeout of each side that has one, in microseconds; `default` is the job's."""
    waits = {i.alias: i.stream.idle or default for i in plan.inputs} if plan.has_watermark else {}
    return {alias: wait.microseconds for alias, wait in waits.items() if wait is not None}


def find_idle_sides(
    plan: StatementPlan, last_rows: Mapping[str, int], *, started: int, now: int, default: Duration | None = None
) -> FrozenMap[str, FrozenMap[str, int]]:
    """Return the idle sides, each with the time since which it has had no rows.

    `last_rows` are the times of the last rows of each alias, from the last manifest; `started` is the start of
    the run.  All times are in microseconds.
    """
    idle: dict[str, FrozenMap[str, int]] = {}
    for alias, wait in collect_timeouts(plan, default).items():
        # Not before the start of the run: a job that was stopped for a day would find every side idle.
        since = max(started, last_rows.get(alias, started))
        if now - since >= wait:
            idle[alias] = FrozenMap(since=since)
    return FrozenMap(idle)


def compute_clocks(plan: StatementPlan, now: int | None, before: tuple[Clock, ...]) -> tuple[Clock, ...]:
    """Return the clock of each stateful join for one batch.

    `now` is the watermark of the batch, None while there is none, ``FOREVER`` for the final flush; `before` are
    the clocks of the previous batch, empty for the first.
    """
    steps = plan.kernel_steps
    if now == FOREVER:
        return (Clock(left=FOREVER, right=FOREVER),) * len(steps)
    mark = NEVER if now is None else now
    floors = dict.fromkeys((i.number for i in plan.inputs), mark)
    least = Differences()
    clocks: list[Clock] = []
    for place, step in enumerate(steps):
        if step.axis is None:
            clocks.append(Clock(left=mark, right=mark))
            continue
        (_, left), (_, right) = step.axis
        clock = Clock(left=floors[left], right=floors[right])
        earlier = before[place] if place < len(before) else Clock(left=NEVER, right=NEVER)
        clocks.append(clock)
        # Unmatched rows that are emitted now had not expired in the previous batch, whose clocks bound their times.
        floors[left] = min(clock.left, shift_clock(earlier.right, -step.reach.greatest))
        floors[right] = min(clock.right, shift_clock(earlier.left, step.reach.least))
        # A delayed row carries the times of all its sources; the bounds of earlier joins say how far they are apart.
        for other in step.left:
            if other != left and other in floors:
                floors[other] = min(floors[other], shift_clock(floors[left], least.of(other, left)))
        least.add(left, right, step.reach.least, step.reach.greatest)
    return tuple(clocks)


def shift_clock(clock: int, by: int) -> int:
    """Return the clock shifted by a duration; the two ends of time do not move.

    >>> shift_clock(NEVER, -5) == NEVER, shift_clock(FOREVER, -5) == FOREVER, shift_clock(10, -5)
    (True, True, 5)
    """
    if clock in (NEVER, FOREVER):
        return clock
    return max(NEVER, min(FOREVER, clock + by))


@dataclass(slots=True)
class Differences:
    """The least differences of two sources' times in a row, closed over the bounds of all joins so far."""

    _least: dict[tuple[int, int], int] = field(default_factory=dict)

    def of(self, one: int, other: int) -> int:
        """Return the least value of ``time of one - time of other``; a table has no time."""
        return 0 if one == other else self._least[one, other]

    def add(self, left: int, right: int, lower: int, upper: int) -> None:
        """Add the constraint ``lower <= right - left <= upper`` of a join."""
        # Through the left side of the new join, whose differences from all earlier sources are known.
        known = {one for pair in self._least for one in pair} | {left}
        for other in known:
            from_left, to_left = self.of(left, other), self.of(other, left)
            self._least[right, other] = lower + from_left
            self._least[other, right] = to_left - upper


def compute_needed(steps: Iterable[KernelStep]) -> tuple[tuple[int, int], ...]:
    """Return, for each join, how long left and right rows must be kept after the watermark has reached them.

    In a chain, the left side of a later join lags behind the watermark because earlier joins delay rows; right rows
    must wait for them.
    """
    lags: dict[int, int] = {}
    least = Differences()
    lengths = []
    for step in steps:
        if step.axis is None:
            lengths.append((0, 0))
            continue
        (_, left), (_, right) = step.axis
        lag = lags.get(left, 0)
        lengths.append(_compute_step(step, lag))
        lags[left] = max(lag, step.reach.greatest)
        lags[right] = max(0, lag - step.reach.least)
        for other in step.left:
            if other != left and other in lags:
                lags[other] = max(lags[other], lags[left] - least.of(other, left))
        least.add(left, right, step.reach.least, step.reach.greatest)
    return tuple(lengths)


def _compute_step(step: KernelStep, lag: int) -> tuple[int, int]:
    reach = step.reach
    if reach.kind == "session":
        return lag + reach.gap, lag + reach.gap
    left, right = reach.greatest, lag - reach.least
    if step.emit == "final" and reach.kind == "interval":
        # A left row is matched when it expires, and its right rows must still be there.
        right = max(right, reach.upper - reach.lower)
    elif step.emit == "final":  # both sides stay until the window is closed
        left = max(left, lag + reach.greatest)
    return max(0, left), max(0, right)
