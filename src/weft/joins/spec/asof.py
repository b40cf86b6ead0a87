"""AsofOrder and AsofSpec: for each left row the right row nearest in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self

from weft import expr
from weft.core.names import canonical_name, parse_name, quote
from weft.errors import ArgumentError, ExpressionError, JoinSpecError
from weft.joins.spec.join import JoinSpec, Keys, check_predicates, read_alias_pairs
from weft.joins.spec.predicates import JoinPredicate, format_column
from weft.joins.spec.serial import Serial
from weft.joins.spec.values import Direction, Distance, NearestTie, check_bool, check_choice, check_distance

AsofHow = Literal["left", "inner", "right", "full", "semi", "anti"]
UNBOUNDED = "unbounded"
ALL = "all"
"""`skip_nulls` of every right column that is neither a key nor a time."""


@dataclass(frozen=True)
class AsofOrder(Serial):
    """The order columns of a join: one of the left side and one of the right.

    Parameters
    ----------
    left
        Name of the left order column: a time, a date or a number; or an expression over left columns, such as
        ``"CAST(ts AS timestamp)"``.  Required.
    right
        The same for the right side, of a type that can be compared with the left one.  Required.
    tie_break
        Names of right columns, or one name, for an as-of join: of right rows with equal order values, the one with
        the greatest values in these columns wins.  Empty by default.

    Examples
    --------
    >>> AsofOrder("event_ts", "quote_ts", tie_break=("seq",))
    AsofOrder(left='event_ts', right='quote_ts', tie_break=('seq',))
    >>> AsofOrder("event_ts", "quote_ts").reversed()
    AsofOrder(left='quote_ts', right='event_ts', tie_break=())

    A spec takes two shorter forms of an order without a tie-break:

    >>> AsofSpec("symbol", order="ts").order, AsofSpec("symbol", order=("event_ts", "quote_ts")).order
    (AsofOrder(left='ts', right='ts', tie_break=()), AsofOrder(left='event_ts', right='quote_ts', tie_break=()))
    """

    TYPE: ClassVar[str] = "order"

    left: str
    right: str
    tie_break: Sequence[str] | str = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", _check_order_column(self.left, "left order column"))
        object.__setattr__(self, "right", _check_order_column(self.right, "right order column"))
        object.__setattr__(self, "tie_break", check_column_names(self.tie_break, "tie_break"))

    def reversed(self) -> AsofOrder:
        """Return the order with the two relations exchanged."""
        if self.tie_break:
            raise JoinSpecError(
                "an order with a tie_break cannot be reversed: it names right columns",
                help="write the AsofOrder for the other direction",
            )
        return AsofOrder(self.right, self.left)


def _check_order_column(text: object, what: str) -> str:
    if not isinstance(text, str):
        raise ArgumentError(
            f"{what} must be a string, not {type(text).__name__}",
            help="write the name of a column, or an expression such as 'CAST(ts AS timestamp)', in quotes",
        )
    try:
        return canonical_name(parse_name(text, what=what))
    except JoinSpecError:
        # The dot may be in an expression, ts * 1.5, whose errors are reported when the columns are known.
        if not may_be_expression(text) and read_order_expression(text) is None:
            raise
        return quote(text)


def may_be_expression(text: str) -> bool:
    """Return whether a text has a character that expressions have and names rarely do.

    >>> may_be_expression("day +"), may_be_expression("order day"), may_be_expression("order-day")
    (True, False, False)
    """
    return bool(_OPERATORS.intersection(text))


_OPERATORS = frozenset("()+*/|<>='")


def read_order_expression(text: str) -> expr.Expr | None:
    """Return the tree of an expression over columns, None for anything else, also for the name of a column.

    >>> read_order_expression("day + 1") is None, read_order_expression("day") is None
    (False, True)
    """
    try:
        tree = expr.parse(text)
    except ExpressionError:
        return None
    return None if isinstance(tree, expr.Ref) or not any(expr.references(tree)) else tree


def read_order(order: object, what: str = "order") -> AsofOrder:
    """Return an order from an AsofOrder, from the name that both sides use, or from a pair of names.

    >>> read_order("ts"), read_order(("at", "quoted"))
    (AsofOrder(left='ts', right='ts', tie_break=()), AsofOrder(left='at', right='quoted', tie_break=()))
    """
    if isinstance(order, AsofOrder):
        return order
    if isinstance(order, str):
        return AsofOrder(order, order)
    if isinstance(order, tuple | list) and len(order) == 2:
        return AsofOrder(*order)
    received = f"{type(order).__name__} of {len(order)}" if isinstance(order, tuple | list) else type(order).__name__
    raise ArgumentError(
        f"{what} must be an AsofOrder, a column name or a pair of column names, not {received}",
        help=f"write {what}='ts' if both sides have that column, otherwise {what}=('event_ts', 'quote_ts')",
    )


def check_column_names(names: object, what: str) -> tuple[str, ...]:
    """Return column names, or one column name, as a tuple of canonical names."""
    if isinstance(names, str):
        names = (names,)
    if isinstance(names, bytes | Mapping) or not isinstance(names, Sequence):
        raise ArgumentError(
            f"{what} must be a sequence of column names, not {names!r}", help=f"write {what}=['column']"
        )
    return tuple(canonical_name(parse_name(n, what=what)) for n in names)


@dataclass(frozen=True)
class TemporalSpec(JoinSpec):
    """Base of the specs with an order; keys may be empty because the order is a condition."""

    equal_keys: Sequence[tuple[str, str]] = ()
    order: AsofOrder = field(kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", read_order(self.order))
        super().__post_init__()

    def _check_not_empty(self) -> None:
        """Do nothing: the order is a condition itself."""

    @classmethod
    def from_kwargs(
        cls, *shared: str, predicates: Sequence[JoinPredicate] = (), keys: Keys = None, **named: Any
    ) -> Self:
        """Build a spec with arguments as in ``natural_asof``: options by name, every other keyword an alias.

        A column with the name of an option goes into `keys`.
        """
        # Every keyword-only field is an option, also those that a later version adds.
        options = {f.name: named.pop(f.name) for f in fields(cls) if f.kw_only and f.name in named}
        cls._require_order("from_kwargs", options)
        accepted = ("predicates", "keys", *(f.name for f in fields(cls) if f.kw_only))
        pairs = [*((name, name) for name in shared), *read_alias_pairs(named, keys, accepted)]
        return cls(equal_keys=pairs, predicates=predicates, **options)

    @classmethod
    def from_tuples(
        cls, *keys: tuple[str, str], predicates: Sequence[JoinPredicate] | None = None, **options: Any
    ) -> Self:
        """Build a spec from key pairs given one after another; `order` is required."""
        cls._require_order("from_tuples", options)
        return super().from_tuples(*keys, predicates=predicates, **options)

    @classmethod
    def _require_order(cls, method: str, options: Mapping[str, Any]) -> None:
        if "order" not in options:
            raise ArgumentError(
                f"{cls.__name__}.{method} needs an order",
                help="write order=AsofOrder(left='event_ts', right='quote_ts')",
            )

    def _refuse_tie_break(self) -> None:
        if self.order.tie_break:
            raise JoinSpecError(
                f"tie_break {self.order.tie_break!r}: this join keeps every match, so there are no ties to break",
                code="W0305",
                help="leave tie_break out; an AsofSpec takes one",
            )


@dataclass(frozen=True)
class AsofSpec(TemporalSpec):
    """For each left row, at most one right row: the nearest in order.

    A right row is a candidate if its keys are equal, both order values are not NULL, direction and
    tolerance allow it, and all predicates are true.  The match is then chosen among the candidates.

    Parameters
    ----------
    equal_keys, predicates, nulls_equal, relationship, unmatched
        See `JoinSpec`.  The keys of an as-of join may be empty (default).
    order
        The order columns: an `AsofOrder`, ``"ts"`` if both sides use that name, or ``("event_ts", "quote_ts")``.
        An expression may stand for a name.  Required.
    direction
        ``"backward"`` (default): the last right row at or before the left one.  ``"forward"``: the first right
        row at or after it.  ``"nearest"``: the nearer of the two.
    tolerance
        The greatest distance, inclusive: ``"5 seconds"`` or a timedelta for times, a number for numbers.  None
        (default) allows any distance, except for ``"nearest"``, which needs a tolerance or ``"unbounded"``.
    range_predicates
        Further predicates that may only name order columns and keys.  Empty by default.
    allow_exact_matches
        Whether a right row with an equal order value is a candidate.  True by default.
    nearest_tie
        Which of two equally near rows wins: the earlier (``"backward"``, default) or the later (``"forward"``).
    how
        ``"left"`` (default) keeps left rows without a match, with NULLs; ``"inner"`` drops them.  ``"right"`` keeps
        the right rows that no left row matches, ``"full"`` both.  ``"semi"`` returns the left rows that have a match,
        ``"anti"`` those that have none, both without right columns.
    tie_break
        Right columns, or one, that decide between right rows with equal order values: the greatest wins.  Empty
        by default: all right columns decide, the first one first.
    known
        A second time axis, written like `order`: a right row is a candidate if its knowledge time is not later than
        that of the left row; of rows with equal event times the one known last wins.  None by default.
    tombstone
        A boolean right column: if it is true in the chosen row, the left row has no match.  None by default.
    until
        A right column with the exclusive end of a state: if the state of the chosen row has ended at the left
        time, the left row has no match.  None by default.
    skip_nulls
        Right columns, or one, for which the nearest value that is not NULL is taken, each column separately;
        ``"all"`` for every one that is neither a key nor a time.  Empty by default.

    Examples
    --------
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
    known: AsofOrder | None = field(default=None, kw_only=True)
    tombstone: str | None = field(default=None, kw_only=True)
    until: str | None = field(default=None, kw_only=True)
    skip_nulls: Sequence[str] | str = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.direction, Direction, "direction")
        check_choice(self.nearest_tie, NearestTie, "nearest_tie")
        check_choice(self.how, AsofHow, "how")
        check_bool(self.allow_exact_matches, "allow_exact_matches")
        ranges = check_predicates(self.range_predicates, "range_predicates")
        object.__setattr__(self, "range_predicates", ranges)
        self._merge_tie_breaks()
        self._check_tolerance()
        self._check_extras()

    def _check_extras(self) -> None:
        """Check the second time axis, tombstones, ends and columns that skip NULLs."""
        if self.known is not None:
            object.__setattr__(self, "known", read_order(self.known, "known"))
        if self.known is not None and self.known.tie_break:
            raise ArgumentError(
                f"known must be an AsofOrder without a tie_break, not {self.known!r}",
                help="write known=AsofOrder(left='as_known_at', right='known_from')",
            )
        for name in ("tombstone", "until"):
            column = getattr(self, name)
            if column is not None:
                object.__setattr__(self, name, canonical_name(parse_name(column, what=name)))
        if self.skip_nulls != ALL:
            object.__setattr__(self, "skip_nulls", check_column_names(self.skip_nulls, "skip_nulls"))
        if self.skip_nulls and self.how in ("semi", "anti"):
            raise JoinSpecError(
                f"a {self.how} join returns no right column, so skip_nulls has nothing to fill",
                code="W0305",
                help="leave out skip_nulls, or write how='left'",
            )
        if self.until is not None and self.direction != "backward":
            raise JoinSpecError(
                f"until= is the end of a state, which needs direction='backward', not {self.direction!r}",
                code="W0305",
                help="leave out until=, or write direction='backward'",
            )
        if self.skip_nulls and (self.tombstone is not None or self.until is not None):
            raise JoinSpecError(
                "skip_nulls takes values from several right rows, so none of them can end or delete the match",
                code="W0305",
                help="leave out skip_nulls, or tombstone and until",
            )

    def _merge_tie_breaks(self) -> None:
        """Store the tie-break in the spec, whether it was written there or in the order."""
        # The order is emptied, so that both spellings are one spec with one fingerprint.
        own, orders = check_column_names(self.tie_break, "tie_break"), self.order.tie_break
        if own and orders and own != orders:
            raise JoinSpecError(
                f"tie_break is {own!r} in the spec and {orders!r} in its order",
                code="W0305",
                help="write it in one of the two",
            )
        object.__setattr__(self, "tie_break", own or orders)
        if orders:
            object.__setattr__(self, "order", replace(self.order, tie_break=()))

    def _check_tolerance(self) -> None:
        if self.tolerance is None:
            if self.direction == "nearest":
                raise JoinSpecError(
                    "direction='nearest' needs a tolerance: an unlimited nearest match hides bad data",
                    code="W0304",
                    help="write tolerance='5 seconds', or tolerance='unbounded' to allow any distance",
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

    def reversed(self) -> Self:
        """Raise an error: the reverse of an as-of join is a different join."""
        raise JoinSpecError(
            "an as-of join cannot be reversed: it keeps one right row for each left row",
            help="write the AsofSpec for the other direction",
        )

    def __str__(self) -> str:
        words = {"backward": "at or before", "forward": "at or after", "nearest": "nearest to"}
        if not self.allow_exact_matches:
            words = {"backward": "before", "forward": "after", "nearest": "nearest to but not at"}
        bound = "" if self.tolerance in (None, UNBOUNDED) else f" within {self.tolerance}"
        left, right = format_column("left", self.order.left), format_column("right", self.order.right)
        order = f"{right} {words[self.direction]} {left}{bound}"
        extras = (*map(str, self.range_predicates), order, *self._describe_extras())
        return " AND ".join(filter(None, (super().__str__(), *extras)))

    def _describe_extras(self) -> Iterator[str]:
        if self.known is not None:
            yield f"{format_column('right', self.known.right)} at or before {format_column('left', self.known.left)}"
        if self.tombstone is not None:
            yield f"no match if {format_column('right', self.tombstone)}"
        if self.until is not None:
            yield f"{format_column('right', self.until)} after {format_column('left', self.order.left)}"
        if self.skip_nulls:
            names = "every right column" if self.skip_nulls == ALL else ", ".join(self._describe_columns())
            yield f"nearest value that is not NULL of {names}"

    def _describe_columns(self) -> Iterator[str]:
        yield from (format_column("right", name) for name in self.skip_nulls)
