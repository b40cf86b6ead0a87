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
from weft.pipelines.model.values import RESERVED_TARGETS, SYSTEM_COLUMNS, AsOfDay, OnMultiple, ResolverSource
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
class ResolvedJoinStep:
    """A join of an update: the read, the join spec, and the columns that the operation uses.

    `keys` are the working sides of the equal keys with the names they have in `spec`; `own_filter` is
    applied to the right side before the join.  `columns` are the columns of the alias that the operation
    reads.  If `late`, matches are counted after the join, not by its keys before it.
    """

    alias: str
    dataset: Dataset
    table: TableDef
    source: ResolverSource
    resolver_id: str
    read: Read
    keys: tuple[tuple[str, Typed], ...]
    right_keys: tuple[str, ...]
    on: str
    """The condition as specified."""
    spec: JoinSpec
    resolved: ResolvedJoin
    choice: Choice
    own_filter: Typed | None
    own_text: str
    as_of: AsOfDay
    on_multiple: OnMultiple
    order_by: tuple[tuple[str, bool], ...]
    broadcast: bool | None
    columns: tuple[str, ...]
    extension: tuple[str, ...]
    pinned: bool

    @property
    def late(self) -> bool:
        """Whether rows match by more than their keys."""
        return bool(self.spec.predicates) or self.as_of.kind == "column"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupStep:
    """A lookup that an operation reads: `alias` is the path of aliases, ``customer.country``."""

    alias: str
    dataset: Dataset
    table: TableDef
    source: ResolverSource
    resolver_id: str
    read: Read
    keys: tuple[tuple[str, str], ...]
    """Pairs: the column of the working set or of the lookup above, the column of this table."""
    parent: str | None
    on: str
    """The condition for display."""
    spec: JoinSpec
    resolved: ResolvedJoin
    choice: Choice
    as_of: AsOfDay
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedAssignment:
    """A column and its value in the column's type; assignments of one level are computed together."""

    column: str
    typed: Typed
    dtype: DType
    creates: bool
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedUpdate:
    """A resolved update; `selector_after_joins` is set when the selector reads a joined column."""

    seq: int
    name: str
    selector: Typed | None
    selector_after_joins: bool
    lookups: tuple[LookupStep, ...]
    joins: tuple[ResolvedJoinStep, ...]
    assignments: tuple[ResolvedAssignment, ...]
    before: WorkingSet
    after: WorkingSet


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedAggregate:
    """A resolved aggregate: group columns, values and the types they are stored in."""

    seq: int
    name: str
    selector: Typed | None
    lookups: tuple[LookupStep, ...]
    keys: tuple[tuple[str, Typed], ...]
    values: tuple[tuple[str, Typed, DType], ...]
    include_summaries: bool
    before: WorkingSet
    after: WorkingSet


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedAppend:
    """A resolved append; `keys` is None when rows are not aggregated."""

    seq: int
    name: str
    read: Read
    selector: Typed | None
    keys: tuple[tuple[str, Typed], ...] | None
    values: tuple[tuple[str, Typed, DType], ...]
    before: WorkingSet
    after: WorkingSet


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedDelete:
    """A resolved delete."""

    seq: int
    name: str
    selector: Typed | None
    lookups: tuple[LookupStep, ...]
    before: WorkingSet
    after: WorkingSet


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
class ResolvedOutput:
    """A resolved output; each column of `order_by` is paired with whether it is ascending."""

    seq: int
    name: str
    selector: Typed | None
    lookups: tuple[LookupStep, ...]
    columns: tuple[str, ...]
    include_deleted: bool
    target: Target
    mode: WriteMode
    merge_key: tuple[str, ...]
    order_by: tuple[tuple[str, bool], ...]
    register_as: str | None
    before: WorkingSet

    @property
    def after(self) -> WorkingSet:
        """The working set, which an output does not change."""
        return self.before


ResolvedOperation = ResolvedUpdate | ResolvedAggregate | ResolvedAppend | ResolvedDelete | ResolvedOutput
