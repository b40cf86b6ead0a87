"""A join resolved against two schemas: the record that every engine reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal, NamedTuple

from weft.core.types import DType, Field, Schema
from weft.expr import Typed
from weft.joins.spec.values import Direction, How, NearestTie, Relationship, WindowKind

Side = Literal["left", "right"]
Origin = Literal["shared", "alias", "keys", "spec"]
Amount = int | Decimal
"""A distance on the order axis: microseconds for times and dates, a Decimal for numbers."""


class Slot(NamedTuple):
    """A column of one side, by position; predicates refer to columns through slots."""

    side: Side
    index: int  # type: ignore[assignment]  # hides tuple.index, which is not used


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedKey:
    """Two columns that must be equal, compared as `dtype`."""

    left: int
    right: int
    dtype: DType
    origin: Origin

    def index(self, side: Side) -> int:
        """Return the position of the key column of a side."""
        return self.left if side == "left" else self.right


@dataclass(frozen=True, slots=True)
class Exact:
    """Keys and predicates alone decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """At most one right row for each left row: the nearest in order."""

    left: int
    right: int
    direction: Direction
    allow_exact: bool
    tolerance: Amount | None
    nearest_tie: NearestTie
    tie_break: tuple[int, ...]
    known: tuple[int, int] | None = None
    tombstone: int | None = None
    until: int | None = None
    skip_nulls: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """``left + lower <= right <= left + upper``, both ends included; None leaves an end open."""

    left: int
    right: int
    lower: Amount | None
    upper: Amount | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """A time is in a range, or two ranges overlap; a side without an end is a time.

    Ranges are ``[start, end)``, or ``[start, end]`` when `closed`; a NULL end is open, and so is a
    NULL start with `open_start`.  A range that ends before it starts matches nothing, nor does one
    with a NULL start otherwise, nor a NULL time.
    """

    left: int
    right: int
    left_end: int | None
    right_end: int | None
    closed: bool
    open_start: bool = False

    def opens(self, side: Side) -> bool:
        """Whether a NULL in the order column of a side is a range without a start."""
        return self.open_start and (self.left_end if side == "left" else self.right_end) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SameWindow:
    """Both times fall into one window, epoch-aligned or made by the events themselves."""

    left: int
    right: int
    kind: WindowKind
    size: int | None
    slide: int | None
    gap: int | None
    per_window: bool


Match = Exact | AsOf | Within | Overlap | SameWindow


def order_index(match: AsOf | Within | Overlap | SameWindow, side: Side) -> int:
    """Return the position of the order column of a side."""
    return match.left if side == "left" else match.right


def append_column(schema: Schema, name: str, dtype: DType) -> Schema:
    """Return the schema with a column of Weft's own at the end; the name changes if the schema has it."""
    # A schema refuses two equal names, and a column of the user may have any name.
    while name in schema:
        name += "_"
    return Schema((*schema.fields, Field(name, dtype, nullable=False)), schema.case_sensitive)


OutputSource = Literal["left", "right", "coalesced", "indicator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputColumn:
    """A column of the result: its name, its source and the reason for its name."""

    name: str
    dtype: DType
    nullable: bool
    source: OutputSource
    left: int | None = None
    right: int | None = None
    reason: str = ""

    @classmethod
    def of(cls, side: Side, index: int, field: Field, *, nullable: bool, reason: str = "") -> OutputColumn:
        """Return the column of a side that is returned under its own name."""
        left, right = (index, None) if side == "left" else (None, index)
        return cls(
            name=field.name, dtype=field.dtype, nullable=nullable, source=side, left=left, right=right, reason=reason
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedPredicate:
    """A predicate with its columns bound to slots; `typed` is its boolean tree."""

    text: str
    typed: Typed
    origin: Literal["predicate", "range"] = "predicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedJoin:
    """A join in full: columns by position, types, output columns, promises."""

    how: How
    left: Schema
    right: Schema
    keys: tuple[ResolvedKey, ...]
    match: Match
    output: tuple[OutputColumn, ...]
    conditions: tuple[ResolvedPredicate, ...] = ()
    nulls_equal: bool = False
    relationship: Relationship | None = None
    unmatched: tuple[Side, ...] = ()
    # Of the order columns that are expressions: the last columns of the schema of their side.
    computed_left: tuple[Typed, ...] = ()
    computed_right: tuple[Typed, ...] = ()
    dropped_aliases: tuple[tuple[str, str], ...] = ()
    # Not compared: specs that are written differently may resolve to the same join.
    fingerprint: str = field(default="", compare=False)
    spec_fingerprint: str = field(default="", compare=False)

    @property
    def predicates(self) -> tuple[Typed, ...]:
        """The boolean trees that must all be true of a pair, over `Slot`s."""
        return tuple(c.typed for c in self.conditions)

    def schema_of(self, side: Side) -> Schema:
        """Return the schema of a side."""
        return self.left if side == "left" else self.right

    def computed(self, side: Side) -> tuple[Typed, ...]:
        """Return the expressions behind the last columns of a side; their slots are ``(side, index)``."""
        return self.computed_left if side == "left" else self.computed_right

    def own_columns(self, side: Side) -> range:
        """Return the positions of the columns that the relation of a side has itself."""
        return range(len(self.schema_of(side)) - len(self.computed(side)))

    def carrying(self, left: Sequence[Field], right: Sequence[Field]) -> ResolvedJoin:
        """Return the same join on sides with more columns behind those that it was resolved for.

        They pass through and decide nothing, so keys, match and fingerprint stay as they are.
        """
        if not left and not right:
            return self
        own = [c for c in self.output if c.right is None]
        other = [c for c in self.output if c.right is not None]

        def carried(side: Side, behind: int, fields: Sequence[Field]) -> list[OutputColumn]:
            columns = enumerate(fields, start=behind)
            return [OutputColumn.of(side, i, f, nullable=True, reason="passes through") for i, f in columns]

        return replace(
            self,
            left=Schema((*self.left.fields, *left), self.left.case_sensitive),
            right=Schema((*self.right.fields, *right), self.right.case_sensitive),
            output=(
                *own,
                *carried("left", len(self.left), left),
                *other,
                *carried("right", len(self.right), right),
            ),
        )

    @property
    def schema(self) -> Schema:
        """Schema of the result."""
        case = self.left.case_sensitive
        return Schema(tuple(Field(c.name, c.dtype, c.nullable) for c in self.output), case)
