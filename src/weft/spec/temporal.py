"""AsofSpec, IntervalSpec and WindowSpec: joins in which time decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self

from weft.core.names import canonical, parse_name
from weft.errors import ArgumentError, JoinSpecError
from weft.spec.amount import Distance, check_distance, is_number, negated, size_of
from weft.spec.join import JoinSpec, Keys, alias_pairs, checked_predicates
from weft.spec.predicates import JoinPredicate, as_said
from weft.spec.serial import Serial
from weft.spec.words import Direction, NearestTie, WindowKind, a_bool, one_of

AsofHow = Literal["left", "inner"]
TemporalHow = Literal["inner", "left", "right", "full", "semi", "anti"]
_MIRRORED_HOW: dict[str, TemporalHow] = {"inner": "inner", "left": "right", "right": "left", "full": "full"}
UNBOUNDED = "unbounded"


@dataclass(frozen=True)
class AsofOrder(Serial):
    """The two columns that are compared in order: one of the left side, one of the right.

    `tie_break` names right columns; of right rows with equal time the greatest wins.
    """

    TYPE: ClassVar[str] = "order"

    left: str
    right: str
    tie_break: Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", canonical(parse_name(self.left, what="left order column")))
        object.__setattr__(self, "right", canonical(parse_name(self.right, what="right order column")))
        object.__setattr__(self, "tie_break", name_list(self.tie_break, "tie_break"))

    def reversed(self) -> AsofOrder:
        """Return the order with the two relations exchanged."""
        if self.tie_break:
            raise JoinSpecError("an order with a tie_break cannot be reversed: it names right columns")
        return AsofOrder(self.right, self.left)


def name_list(names: object, what: str) -> tuple[str, ...]:
    """Return column names as a tuple of canonical names."""
    if isinstance(names, str | bytes | Mapping) or not isinstance(names, Sequence):
        raise ArgumentError(f"{what} must be a sequence of column names, not {names!r}")
    return tuple(canonical(parse_name(n, what=what)) for n in names)


@dataclass(frozen=True)
class TemporalSpec(JoinSpec):
    """What the three specs with an order share; keys may be empty because the order joins."""

    equal_keys: Sequence[tuple[str, str]] = ()
    order: AsofOrder = field(kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.order, AsofOrder):
            raise ArgumentError(
                f"order must be an AsofOrder, not {type(self.order).__name__}",
                help="write order=AsofOrder(left='event_ts', right='quote_ts')",
            )
        super().__post_init__()

    def _check_not_empty(self) -> None:
        """Nothing to check: the order pair is a condition of its own."""

    @classmethod
    def from_kwargs(
        cls, *shared: str, predicates: Sequence[JoinPredicate] = (), keys: Keys = None, **named: Any
    ) -> Self:
        """Build a spec as ``natural_asof`` takes it: options by their names, every other keyword an alias.

        A column that is called like an option goes into `keys`.
        """
        options = {f.name: named.pop(f.name) for f in fields(cls) if f.kw_only and f.name in named}
        if "order" not in options:
            raise ArgumentError(f"{cls.__name__}.from_kwargs needs order=AsofOrder(left=..., right=...)")
        pairs = [*((name, name) for name in shared), *alias_pairs(named, keys)]
        return cls(equal_keys=pairs, predicates=predicates, **options)

    def _refuse_tie_break(self) -> None:
        if self.order.tie_break:
            raise JoinSpecError(
                f"tie_break {self.order.tie_break!r}: this join keeps every match, so there are no ties to break",
                code="W0305",
                help="leave tie_break out; an AsofSpec takes one",
            )


@dataclass(frozen=True)
class AsofSpec(TemporalSpec):
    """For each left row the right row nearest in order, at most one.

    A pair is a candidate when its keys are equal, both order values are there, the
    direction and the tolerance hold, and `predicates` and `range_predicates` are true;
    among the candidates the choice is made afterwards.

    >>> spec = AsofSpec(
    ...     equal_keys=[("symbol", "symbol")],
    ...     order=AsofOrder("event_ts", "quote_ts"),
    ...     direction="nearest",
    ...     tolerance="5 seconds",
    ... )
    >>> print(spec)
    left.symbol = right.symbol AND right.quote_ts nearest to left.event_ts within 5 seconds
    """

    TYPE: ClassVar[str] = "asof"

    direction: Direction = field(default="backward", kw_only=True)
    tolerance: Distance | None = field(default=None, kw_only=True)
    range_predicates: Sequence[JoinPredicate] = field(default=(), kw_only=True)
    allow_exact_matches: bool = field(default=True, kw_only=True)
    nearest_tie: NearestTie = field(default="backward", kw_only=True)
    how: AsofHow = field(default="left", kw_only=True)
    tie_break: Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.direction, Direction, "direction")
        one_of(self.nearest_tie, NearestTie, "nearest_tie")
        one_of(self.how, AsofHow, "how")
        a_bool(self.allow_exact_matches, "allow_exact_matches")
        ranges = checked_predicates(self.range_predicates, "range_predicates")
        object.__setattr__(self, "range_predicates", ranges)
        self._settle_tie_break()
        self._settle_tolerance()

    def _settle_tie_break(self) -> None:
        """Keep the tie-break in one place, wherever it was written."""
        mine, orders = name_list(self.tie_break, "tie_break"), self.order.tie_break
        if mine and orders and mine != orders:
            raise JoinSpecError(
                f"tie_break is {mine!r} in the spec and {orders!r} in its order", code="W0305"
            )
        object.__setattr__(self, "tie_break", mine or orders)
        if orders:
            object.__setattr__(self, "order", replace(self.order, tie_break=()))

    def _settle_tolerance(self) -> None:
        if self.tolerance is None:
            if self.direction == "nearest":
                raise JoinSpecError(
                    "direction='nearest' needs a tolerance: an unlimited nearest match hides bad data",
                    code="W0304",
                    help="give tolerance='5 seconds', or tolerance='unbounded' to say that any distance will do",
                )
        elif self.tolerance != UNBOUNDED:
            object.__setattr__(self, "tolerance", check_distance(self.tolerance, "tolerance"))

    @classmethod
    def from_current_api(
        cls,
        *,
        keys: Mapping[str, str] | None = None,
        order: AsofOrder,
        direction: Direction = "backward",
        tolerance: Any = None,
    ) -> Self:
        """Build a spec from the arguments of the ``join_asof`` helper."""
        pairs = JoinSpec.from_kwargs(keys=keys).equal_keys if keys else ()
        return cls(equal_keys=pairs, order=order, direction=direction, tolerance=tolerance)

    @classmethod
    def from_tuples(
        cls, *keys: tuple[str, str], predicates: Sequence[JoinPredicate] | None = None, **options: Any
    ) -> Self:
        """Build a spec from key pairs; `order` is required."""
        if "order" not in options:
            raise ArgumentError("AsofSpec.from_tuples needs order=AsofOrder(left=..., right=...)")
        return super().from_tuples(*keys, predicates=predicates, **options)

    def reversed(self) -> Self:
        """Raise: each left row looks for a right row, and the other way is another join."""
        raise JoinSpecError(
            "an as-of join cannot be reversed: it keeps one right row for each left row",
            help="write the AsofSpec for the other direction",
        )

    def __str__(self) -> str:
        words = {"backward": "at or before", "forward": "at or after", "nearest": "nearest to"}
        if not self.allow_exact_matches:
            words = {"backward": "before", "forward": "after", "nearest": "nearest to but not at"}
        bound = "" if self.tolerance in (None, UNBOUNDED) else f" within {self.tolerance}"
        left, right = as_said("left", self.order.left), as_said("right", self.order.right)
        order = f"{right} {words[self.direction]} {left}{bound}"
        return " AND ".join(filter(None, (super().__str__(), *map(str, self.range_predicates), order)))


@dataclass(frozen=True)
class IntervalSpec(TemporalSpec):
    """The right time lies in ``[left + lower, left + upper]``, both ends included.

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

    lower: Distance | None = field(kw_only=True)
    upper: Distance | None = field(kw_only=True)
    how: TemporalHow = field(default="inner", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._refuse_tie_break()
        one_of(self.how, TemporalHow, "how")
        for name in ("lower", "upper"):
            bound = getattr(self, name)
            if bound is not None:
                object.__setattr__(self, name, check_distance(bound, name, signed=True))
        if self.lower is None and self.upper is None:
            raise JoinSpecError("an interval needs a lower or an upper bound", code="W0304")
        if self.lower is not None and self.upper is not None:
            self._check_bounds(self.lower, self.upper)

    @staticmethod
    def _check_bounds(lower: Distance, upper: Distance) -> None:
        if is_number(lower) != is_number(upper):
            raise JoinSpecError(
                f"lower {lower!r} and upper {upper!r}: one is a number, the other a duration", code="W0305"
            )
        if size_of(lower, "lower", signed=True) > size_of(upper, "upper", signed=True):
            raise JoinSpecError(f"lower {lower!r} is above upper {upper!r}", code="W0305")

    def reversed(self) -> Self:
        """Return the same condition with the two relations exchanged."""
        how = _mirrored_how(self.how)
        lower = None if self.upper is None else negated(self.upper)
        upper = None if self.lower is None else negated(self.lower)
        turned = replace(self, order=self.order.reversed(), lower=lower, upper=upper, how=how)
        return super(IntervalSpec, turned).reversed()

    def __str__(self) -> str:
        left = as_said("left", self.order.left)
        low = "the beginning" if self.lower is None else f"{left} + {self.lower}"
        high = "the end" if self.upper is None else f"{left} + {self.upper}"
        between = f"{as_said('right', self.order.right)} between {low} and {high}"
        return " AND ".join(filter(None, (super().__str__(), between)))


def _mirrored_how(how: str) -> TemporalHow:
    if how not in _MIRRORED_HOW:
        raise JoinSpecError(f"a {how} join cannot be reversed: it keeps the left side only")
    return _MIRRORED_HOW[how]


@dataclass(frozen=True)
class WindowSpec(TemporalSpec):
    """Both times fall into one window: tumbling (`size`), sliding (`size`, `slide`), session (`gap`).

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
        one_of(self.window, WindowKind, "window")
        one_of(self.how, TemporalHow, "how")
        a_bool(self.per_window, "per_window")
        needed = self._NEEDS[self.window]
        for name in ("size", "slide", "gap"):
            value = getattr(self, name)
            if (value is not None) != (name in needed):
                verb = "needs" if value is None else "takes no"
                raise JoinSpecError(
                    f"a {self.window} window {verb} {name}=",
                    code="W0305",
                    help=f"a {self.window} window is said with {' and '.join(n + '=' for n in needed)}",
                )
            if value is not None:
                object.__setattr__(self, name, check_distance(value, name, zero=False))
        self._check_slide()

    def _check_slide(self) -> None:
        if self.slide is None or self.size is None:
            return
        if is_number(self.slide) != is_number(self.size):
            raise JoinSpecError("size and slide: one is a number, the other a duration", code="W0305")
        if size_of(self.slide, "slide") > size_of(self.size, "size"):
            raise JoinSpecError(
                f"slide {self.slide!r} is longer than size {self.size!r}: some times would be in no window",
                code="W0305",
            )

    def reversed(self) -> Self:
        """Return the same condition with the two relations exchanged."""
        turned = replace(self, order=self.order.reversed(), how=_mirrored_how(self.how))
        return super(WindowSpec, turned).reversed()

    def __str__(self) -> str:
        told = ", ".join(f"{n} {getattr(self, n)}" for n in self._NEEDS[self.window])
        left, right = as_said("left", self.order.left), as_said("right", self.order.right)
        window = f"{left} and {right} in one {self.window} window ({told})"
        return " AND ".join(filter(None, (super().__str__(), window)))
