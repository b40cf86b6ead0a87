"""IntervalSpec and WindowSpec: pairs of rows that are near in time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from weft.core.names import canonical_name, parse_name
from weft.errors import JoinSpecError
from weft.joins.spec.asof import TemporalSpec
from weft.joins.spec.predicates import format_column
from weft.joins.spec.values import (
    Distance,
    WindowKind,
    check_bool,
    check_choice,
    check_distance,
    is_number,
    negate_distance,
    parse_distance,
)

TemporalHow = Literal["inner", "left", "right", "full", "semi", "anti"]
_MIRRORED_HOW: dict[str, TemporalHow] = {"inner": "inner", "left": "right", "right": "left", "full": "full"}


@dataclass(frozen=True)
class IntervalSpec(TemporalSpec):
    """Pairs of rows whose times are within bounds of each other, or whose ranges overlap.

    With `lower` and `upper` the right time is in ``[left + lower, left + upper]``, both ends included.  With
    end columns a side is a range that starts at its order column; a NULL end is open, and with `open_start` a NULL
    start too.

    Parameters
    ----------
    equal_keys, predicates, nulls_equal, relationship, unmatched
        See `JoinSpec`.  The keys of an interval join may be empty (default).
    order
        The order columns, or the columns where ranges start: an `AsofOrder`.  Required.
    lower, upper
        The bounds of the right time, relative to the left time: a duration such as ``"-1 hour"`` or a timedelta
        for times, a number for numbers.  None (default) is no bound.
    left_end, right_end
        The column with the end of a range.  With `right_end` the left time must be in the right range, with
        `left_end` the right time in the left range, with both the two ranges must overlap.  None by default.
    closed
        Whether the end of a range belongs to it.  False by default.
    open_start
        Whether a range whose start is NULL is open at its start.  False by default: such a range matches nothing.
    how
        ``"inner"`` (default), ``"left"``, ``"right"``, ``"full"``, ``"semi"`` or ``"anti"``.

    Examples
    --------
    >>> from weft.joins.spec.asof import AsofOrder
    >>> print(
    ...     IntervalSpec(
    ...         equal_keys=[("order_id", "order_id")],
    ...         order=AsofOrder("event_time", "event_time"),
    ...         lower="0s",
    ...         upper="24h",
    ...         how="left",
    ...     )
    ... )
    left.order_id = right.order_id AND right.event_time between left.event_time + 0s and left.event_time + 24h
    """

    TYPE: ClassVar[str] = "interval"

    lower: Distance | None = field(default=None, kw_only=True)
    upper: Distance | None = field(default=None, kw_only=True)
    left_end: str | None = field(default=None, kw_only=True)
    right_end: str | None = field(default=None, kw_only=True)
    closed: bool = field(default=False, kw_only=True)
    open_start: bool = field(default=False, kw_only=True)
    how: TemporalHow = field(default="inner", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._refuse_tie_break()
        check_choice(self.how, TemporalHow, "how")
        for name in ("lower", "upper"):
            bound = getattr(self, name)
            if bound is not None:
                object.__setattr__(self, name, check_distance(bound, name, signed=True))
        for name in ("left_end", "right_end"):
            column = getattr(self, name)
            if column is not None:
                object.__setattr__(self, name, canonical_name(parse_name(column, what=name)))
        check_bool(self.closed, "closed")
        check_bool(self.open_start, "open_start")
        self._check_form()
        if self.lower is not None and self.upper is not None:
            self._check_bounds(self.lower, self.upper)

    @property
    def has_ranges(self) -> bool:
        """Whether a side is a range with an end column."""
        return self.left_end is not None or self.right_end is not None

    def _check_form(self) -> None:
        bounded = self.lower is not None or self.upper is not None
        if bounded and self.has_ranges:
            raise JoinSpecError(
                "an interval has bounds or end columns, not both",
                code="W0305",
                help="leave out lower and upper, or left_end and right_end",
            )
        if not bounded and not self.has_ranges:
            raise JoinSpecError(
                "an interval needs a lower or an upper bound, or an end column",
                code="W0304",
                help="give lower='0s', upper='24h', or right_end='valid_to' for ranges",
            )
        if self.closed and not self.has_ranges:
            raise JoinSpecError(
                "closed= needs an end column; bounds are always included",
                code="W0305",
                help="leave closed= out, or give left_end= or right_end=",
            )

        if self.open_start and not self.has_ranges:
            raise JoinSpecError(
                "open_start= needs an end column; a missing bound is open",
                code="W0305",
                help="leave open_start= out, or give left_end= or right_end=",
            )

    @staticmethod
    def _check_bounds(lower: Distance, upper: Distance) -> None:
        if is_number(lower) != is_number(upper):
            raise JoinSpecError(
                f"lower {lower!r} and upper {upper!r}: one is a number, the other a duration",
                code="W0305",
                help="write both as numbers or both as durations",
            )
        if parse_distance(lower, "lower", signed=True) > parse_distance(upper, "upper", signed=True):
            raise JoinSpecError(
                f"lower {lower!r} is above upper {upper!r}",
                code="W0305",
                help=f"write lower={upper!r}, upper={lower!r}",
            )

    def reversed(self) -> Self:
        """Return the same condition with the two relations exchanged."""
        how = _mirrored_how(self.how)
        lower = None if self.upper is None else negate_distance(self.upper)
        upper = None if self.lower is None else negate_distance(self.lower)
        # right in [left + lower, left + upper] is left in [right - upper, right - lower].
        turned = replace(
            self,
            order=self.order.reversed(),
            lower=lower,
            upper=upper,
            left_end=self.right_end,
            right_end=self.left_end,
            how=how,
        )
        return super(IntervalSpec, turned).reversed()

    def __str__(self) -> str:
        left = format_column("left", self.order.left)
        if self.has_ranges:
            return " AND ".join(filter(None, (super().__str__(), self._describe_ranges())))
        low = "the beginning" if self.lower is None else f"{left} + {self.lower}"
        high = "the end" if self.upper is None else f"{left} + {self.upper}"
        between = f"{format_column('right', self.order.right)} between {low} and {high}"
        return " AND ".join(filter(None, (super().__str__(), between)))

    def _describe_ranges(self) -> str:
        def describe(side: str, start: str, end: str | None) -> str:
            bracket = "]" if self.closed else ")"
            point = format_column(side, start)
            return point if end is None else f"[{point}, {format_column(side, end)}{bracket}"

        left = describe("left", self.order.left, self.left_end)
        right = describe("right", self.order.right, self.right_end)
        open_start = " (a NULL start is open)" if self.open_start else ""
        if self.left_end is None:
            return f"{left} in {right}{open_start}"
        return f"{right} in {left}{open_start}" if self.right_end is None else f"{left} overlaps {right}{open_start}"


def _mirrored_how(how: str) -> TemporalHow:
    if how not in _MIRRORED_HOW:
        raise JoinSpecError(
            f"a {how} join cannot be reversed: it keeps the left side only",
            help="write the spec for the other direction",
        )
    return _MIRRORED_HOW[how]


@dataclass(frozen=True)
class WindowSpec(TemporalSpec):
    """Pairs of rows whose times are in one window: tumbling (`size`), sliding (`size`, `slide`) or session (`gap`).

    Parameters
    ----------
    equal_keys, predicates, nulls_equal, relationship, unmatched
        See `JoinSpec`.  The keys of a window join may be empty (default).
    order
        The columns with the two times, an `AsofOrder`.  Required.
    window
        ``"tumbling"``, ``"sliding"`` or ``"session"``.  Required.
    size
        The length of a tumbling or sliding window: a duration such as ``"1 hour"`` or a timedelta.  Required for
        these two, None (default) for sessions.
    slide
        The distance between the starts of two sliding windows, at most `size`.  Required for sliding windows,
        None (default) otherwise.
    gap
        A session ends when no row of its key, on either side, follows within this time.  Required for sessions,
        None (default) otherwise.
    how
        ``"inner"`` (default), ``"left"``, ``"right"``, ``"full"``, ``"semi"`` or ``"anti"``.
    per_window
        False (default) returns each pair once; True returns it once for every window that it shares.

    Examples
    --------
    >>> from weft.joins.spec.asof import AsofOrder
    >>> print(WindowSpec(order=AsofOrder("t", "t"), window="session", gap="30m"))
    left.t and right.t in one session window (gap 30m)
    """

    TYPE: ClassVar[str] = "window"

    window: WindowKind = field(kw_only=True)
    size: Distance | None = field(default=None, kw_only=True)
    slide: Distance | None = field(default=None, kw_only=True)
    gap: Distance | None = field(default=None, kw_only=True)
    how: TemporalHow = field(default="inner", kw_only=True)
    per_window: bool = field(default=False, kw_only=True)

    _NEEDS: ClassVar[dict[str, tuple[str, ...]]] = {
        "tumbling": ("size",),
        "sliding": ("size", "slide"),
        "session": ("gap",),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._refuse_tie_break()
        check_choice(self.window, WindowKind, "window")
        check_choice(self.how, TemporalHow, "how")
        check_bool(self.per_window, "per_window")
        needed = self._NEEDS[self.window]
        for name in ("size", "slide", "gap"):
            value = getattr(self, name)
            if (value is not None) != (name in needed):
                verb = "needs" if value is None else "takes no"
                raise JoinSpecError(
                    f"a {self.window} window {verb} {name}=",
                    code="W0305",
                    help=f"write a {self.window} window with {' and '.join(n + '=' for n in needed)}",
                )
            if value is not None:
                object.__setattr__(self, name, check_distance(value, name, zero=False))
        self._check_slide()

    def _check_slide(self) -> None:
        if self.slide is None or self.size is None:
            return
        if is_number(self.slide) != is_number(self.size):
            raise JoinSpecError(
                "size and slide: one is a number, the other a duration",
                code="W0305",
                help="write both as durations, for example size='1 hour', slide='15 minutes'",
            )
        if parse_distance(self.slide, "slide") > parse_distance(self.size, "size"):
            raise JoinSpecError(
                f"slide {self.slide!r} is longer than size {self.size!r}: some times would be in no window",
                code="W0305",
                help=f"write slide={self.size!r} or less",
            )

    def reversed(self) -> Self:
        """Return the same condition with the two relations exchanged."""
        turned = replace(self, order=self.order.reversed(), how=_mirrored_how(self.how))
        return super(WindowSpec, turned).reversed()

    def __str__(self) -> str:
        options = ", ".join(f"{n} {getattr(self, n)}" for n in self._NEEDS[self.window])
        left, right = format_column("left", self.order.left), format_column("right", self.order.right)
        window = f"{left} and {right} in one {self.window} window ({options})"
        return " AND ".join(filter(None, (super().__str__(), window)))
