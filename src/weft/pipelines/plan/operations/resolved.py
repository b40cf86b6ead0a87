"""Resolved operations: all names are bound to columns; lowering and explaining read these classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from weft.core.types import DType, Field, Schema
from weft.expr import Typed
from weft.io.datasource import WriteMode
from weft.io.options import PLAIN_CSV, CsvOptions
from weft.joins.choose import Choice
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spec.join import JoinSpec
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.values import RESERVED_TARGETS, SYSTEM_COLUMNS, AsOfDay, OnMultiple
from weft.pipelines.plan.reads import Read

OWN_NAMES = frozenset(f.name for f in SYSTEM_COLUMNS) | RESERVED_TARGETS
"""All names of Weft's own columns."""

HIDDEN = "__weft"
"""Prefix of columns that exist only during one operation."""

ACTIVE = f"{HIDDEN}_active"
"""The left key of a join that only active rows take part in; it is compared with the match marker of the right side."""


def join_column_name(kind: Literal["j", "l"], alias: str, column: str = "") -> str:
    """Return the name of a joined column during the operation; without `column`, that of the match marker.

    >>> join_column_name("j", "fx", "rate"), join_column_name("l", "customer.country")
    ('__weft_j$fx$rate', '__weft_l$customer/country')
    """
    # Spark reads a dot in a name as a field of a struct, so the path of a lookup has slashes.
    return f"{HIDDEN}_{kind}${alias.replace('.', '/')}" + (f"${column}" if column else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSet:
    """The rows that operations pass on: their source table and their current columns.

    `schema` has the business columns, then Weft's own, in the order in which an output writes them.  An `open` working set
    has unknown columns, so that any name resolves.
    """

    table: str
    dataset: Dataset
    schema: Schema
    open: bool = False

    @property
    def business(self) -> tuple[Field, ...]:
        """The columns other than Weft's own."""
        return tuple(f for f in self.schema.fields if f.name not in OWN_NAMES)

    @property
    def system(self) -> tuple[Field, ...]:
        """Weft's own columns."""
        return tuple(f for f in self.schema.fields if f.name in OWN_NAMES)

    def with_columns(self, new: tuple[Field, ...]) -> WorkingSet:
        """Return the working set with more business columns after the existing ones."""
        if not new:
            return self
        fields = (*self.business, *new, *self.system)
        return replace(self, schema=Schema(fields, case_sensitive=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A table that an operation joins: the read, the join spec, and the columns of it that the operation reads."""

    alias: str
    read: Read
    on: str
    """The condition for display."""
    spec: JoinSpec
    resolved: ResolvedJoin
    choice: Choice
    as_of: AsOfDay
    columns: tuple[str, ...]

    @property
    def dataset(self) -> Dataset:
        """The dataset that is joined."""
        return self.read.dataset

    @property
    def table(self) -> TableDef:
        """The table that is joined."""
        return self.read.table


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedJoinStep(_Step):
    """A join of an update.

    `keys` are the working sides of the equal keys with the names they have in `spec`; `own_filter` is
    applied to the right side before the join.  If `late`, matches are counted after the join, not by its
    keys before it.
    """

    keys: tuple[tuple[str, Typed], ...]
    right_keys: tuple[str, ...]
    own_filter: Typed | None
    own_text: str
    on_multiple: OnMultiple
    order_by: tuple[tuple[str, bool], ...]
    broadcast: bool | None
    extension: tuple[str, ...]
    pinned: bool

    @property
    def late(self) -> bool:
        """Whether rows match by more than their keys."""
        # Matching keys say nothing yet about the other terms of the condition or about the day of the row.
        return bool(self.spec.predicates) or self.as_of.kind == "column"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupStep(_Step):
    """A lookup that an operation reads: `alias` is the path of aliases, ``customer.country``."""

    keys: tuple[tuple[str, str], ...]
    """Pairs: the column of the working set or of the lookup above, the column of this table."""
    parent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedAssignment:
    """A column and its value in the column's type; assignments of one level are computed together."""

    column: str
    typed: Typed
    dtype: DType
    creates: bool
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resolved:
    """What all resolved operations have; without a selector they apply to every row."""

    seq: int
    name: str
    selector: Typed | None
    lookups: tuple[LookupStep, ...] = ()
    before: WorkingSet

    @property
    def steps(self) -> tuple[LookupStep | ResolvedJoinStep, ...]:
        """The tables that the operation joins, in this order."""
        return self.lookups

    @property
    def reads(self) -> tuple[Read, ...]:
        """The tables that the operation opens."""
        return tuple(step.read for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SameColumns(_Resolved):
    """An operation that leaves the columns of the working set as they are."""

    @property
    def after(self) -> WorkingSet:
        """The working set after the operation."""
        return self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedUpdate(_Resolved):
    """A resolved update; `selector_after_joins` is set when the selector reads a joined column."""

    selector_after_joins: bool
    joins: tuple[ResolvedJoinStep, ...]
    assignments: tuple[ResolvedAssignment, ...]
    after: WorkingSet

    @property
    def steps(self) -> tuple[LookupStep | ResolvedJoinStep, ...]:
        """The lookups, then the joins, whose conditions may read lookups."""
        return (*self.lookups, *self.joins)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedAggregate(_Resolved):
    """A resolved aggregate: group columns, values and the types they are stored in."""

    keys: tuple[tuple[str, Typed], ...]
    values: tuple[tuple[str, Typed, DType], ...]
    include_summaries: bool
    after: WorkingSet


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedAppend(_SameColumns):
    """A resolved append; `keys` is None when rows are not aggregated, the selector is on rows of the source."""

    read: Read
    keys: tuple[tuple[str, Typed], ...] | None
    values: tuple[tuple[str, Typed, DType], ...]

    @property
    def reads(self) -> tuple[Read, ...]:
        """The source."""
        return (self.read,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedDelete(_SameColumns):
    """A resolved delete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The target of an output; `location` is a folder, a file or a table for display.

    `period` is the period of the location, None when it contains all periods.  `csv` are the options of CSV files, `encoding`
    is the character set of files.
    """

    kind: Literal["files", "file", "jdbc", "table"]
    location: str
    format: str
    datasource_id: str | None = None
    table: str | None = None
    schema: str | None = None
    period: str | None = None
    csv: CsvOptions = PLAIN_CSV
    encoding: str = "UTF-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedOutput(_SameColumns):
    """A resolved output; each column of `order_by` is paired with whether it is ascending."""

    columns: tuple[str, ...]
    include_deleted: bool
    target: Target
    mode: WriteMode
    merge_key: tuple[str, ...]
    order_by: tuple[tuple[str, bool], ...]
    register_as: str | None


ResolvedOperation = ResolvedUpdate | ResolvedAggregate | ResolvedAppend | ResolvedDelete | ResolvedOutput
