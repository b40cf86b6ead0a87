"""Operations once their names have met the columns at hand: the records that lowering and explaining read."""

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
"""Every name that a column of Weft's own can have."""

HIDDEN = "__weft"
"""How the names of columns start that live inside one operation only."""

ACTIVE = f"{HIDDEN}_active"
"""The left key of a join that not every row takes part in; it meets the mark of the right side."""


def join_column_name(kind: Literal["j", "l"], alias: str, column: str = "") -> str:
    """Return the name that a column of a join or lookup has while the operation runs; without one, the mark's.

    >>> join_column_name("j", "fx", "rate"), join_column_name("l", "customer.country")
    ('__weft_j$fx$rate', '__weft_l$customer/country')
    """
    return f"{HIDDEN}_{kind}${alias.replace('.', '/')}" + (f"${column}" if column else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSet:
    """The rows that operations hand on: the table they came from, and the columns they have by now.

    `schema` holds the business columns, then Weft's own, in the order an output writes them.  An `open`
    working set has more columns than anybody knows: a name that is not among them is taken as it comes.
    """

    table: str
    dataset: Dataset
    schema: Schema
    open: bool = False

    @property
    def business(self) -> tuple[Field, ...]:
        """The columns that are not Weft's own."""
        return tuple(f for f in self.schema.fields if f.name not in OWN_NAMES)

    @property
    def system(self) -> tuple[Field, ...]:
        """Weft's own columns."""
        return tuple(f for f in self.schema.fields if f.name in OWN_NAMES)

    def with_columns(self, new: tuple[Field, ...]) -> WorkingSet:
        """Return the working set with more business columns behind those it has."""
        if not new:
            return self
        fields = (*self.business, *new, *self.system)
        return replace(self, schema=Schema(fields, case_sensitive=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedJoinStep:
    """A join of an update: what is read, how the sides meet, which columns the operation uses.

    `keys` are the working sides of the equal keys with the names they have in `spec`; `own_filter` is
    applied to the right side before the join.  `columns` are the columns of the alias that the operation
    reads.  Where `late`, matches are told apart after the join, not by counting keys before it.
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
    """The condition as it was written."""
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
        """Whether keys alone do not decide which rows match."""
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
    """The condition in words."""
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
    """An update with everything found; `selector_after_joins` when the selector reads a joined column."""

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
    """An aggregate with everything found: group columns, values and the types they are stored in."""

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
    """An append with everything found; `keys` is None when rows are taken one by one."""

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
    """A delete with everything found."""

    seq: int
    name: str
    selector: Typed | None
    lookups: tuple[LookupStep, ...]
    before: WorkingSet
    after: WorkingSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where an output goes; `location` is a folder, a file or a table as users see it.

    `period` is the period that the location stands for, None when the location holds all periods.  `csv` says
    how CSV files are written, `encoding` in which character set files are.
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
    """An output with everything found; columns of `order_by` are paired with whether they ascend."""

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
        """The working set, which an output leaves as it is."""
        return self.before


ResolvedOperation = ResolvedUpdate | ResolvedAggregate | ResolvedAppend | ResolvedDelete | ResolvedOutput
