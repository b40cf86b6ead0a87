"""The working set on Spark, and the context in which operations are lowered."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING

from weft.core.calendar import Period
from weft.core.types import TIMESTAMP, Field, Schema
from weft.expr import Typed
from weft.expr.spark.columns import compile_expr
from weft.expr.spark.frames import functions_of
from weft.expr.spark.types import cast_to, literal
from weft.pipelines.plan.operations.joining import column_name
from weft.pipelines.plan.operations.resolved import WorkingSet
from weft.pipelines.plan.reads import Read
from weft.pipelines.spark.counts import DIED, Counts, Event, Tally

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

DELETED = "_deleted"
UPDATED_AT = "_updated_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMoment:
    """The run that operations belong to: every time and date they write comes from here."""

    run_id: str
    project_id: str
    period: Period
    at: dt.datetime
    today: dt.date


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A joined side, kept for the job that finds repeated keys."""

    alias: str
    right: DataFrame
    keys: tuple[tuple[str, str], ...]
    """Pairs: the name of a column in `right`, the name that users know."""


@dataclass(slots=True, kw_only=True)
class Lowering:
    """What lowering needs: the session, how tables are read, the run, and where rows are counted.

    `size_of` returns the bytes of a read, to choose a broadcast.  Lookups are opened once when `eager`.
    Without `counts` nothing is counted.
    """

    session: SparkSession
    read: Callable[[Read], DataFrame]
    run: RunMoment
    counts: Counts | None = None
    size_of: Callable[[Read], int | None] | None = None
    eager: bool = True
    opened: dict[str, list[Opened]] = field(default_factory=dict)
    columns: dict[str, Column] = field(default_factory=dict)
    """Columns by name, cached: each part of an expression costs a message to the JVM."""
    _frames: dict[str, DataFrame] = field(default_factory=dict)
    _now: Column | None = None

    def frame(self, read: Read) -> DataFrame:
        """Return the rows of a read; a lookup that several operations use is the same frame."""
        if not self.eager or read.pin.role != "lookup":
            return self.read(read)
        if read.name not in self._frames:
            self._frames[read.name] = self.read(read)
        return self._frames[read.name]

    def now(self, F: ModuleType) -> Column:
        """Return the time of the run as a column, cached because each operation writes it."""
        if self._now is None:
            self._now = literal(F, self.run.at, TIMESTAMP)
        return self._now


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingFrame:
    """The rows that operations pass on: columns of `schema` under their own names, and `hidden` ones.

    The frame may have them in another order; `clean` gives those of the schema as it says.  `pending` are
    columns that updates have changed and that no projection computes yet: updates that do not read each
    other's columns become one projection.

    `deleted` says whether rows may be deleted.  `tally` defines what the hidden columns count.
    """

    base: DataFrame
    schema: Schema
    hidden: tuple[Field, ...] = ()
    deleted: bool = False
    tally: Tally = field(default_factory=Tally)
    pending: Mapping[str, Column] = field(default_factory=dict)
    folded: int = 0
    """How many updates `pending` holds."""

    @property
    def df(self) -> DataFrame:
        """The rows, with everything that updates have changed."""
        return self.base.withColumns(dict(self.pending)) if self.pending else self.base

    @property
    def F(self) -> ModuleType:
        """The functions that fit the frame."""
        return functions_of(self.base)

    def settled(self) -> WorkingFrame:
        """Return the working set with nothing pending."""
        return self.with_rows(self.df) if self.pending else self

    def with_rows(self, df: DataFrame) -> WorkingFrame:
        """Return the working set with other rows of the same columns."""
        return replace(self, base=df, pending={}, folded=0)

    @property
    def names(self) -> tuple[str, ...]:
        """All columns of the frame, hidden ones last."""
        return (*self.schema.names, *(f.name for f in self.hidden))

    def clean(self) -> DataFrame:
        """Return the rows with the columns of the schema, in order."""
        return self.df.select(*self.schema.names)

    def cut(self) -> WorkingFrame:
        """Return the working set without columns that live inside one operation."""
        return self.with_rows(self.df.select(*self.names))


def started(df: DataFrame, working: WorkingSet, *, deleted: bool = False) -> WorkingFrame:
    """Return rows that were read, or read back from a checkpoint, as a working set."""
    names = working.schema.names
    if not deleted:
        return WorkingFrame(base=df.select(*names), schema=working.schema)
    F = functions_of(df)
    # Rows that were deleted earlier are not counted by later operations.
    died = F.when(F.col(DELETED), F.lit(0).cast("long")).alias(DIED.name)
    tally = Tally(events=(Event("died", 0),))
    return WorkingFrame(base=df.select(*names, died), schema=working.schema, hidden=(DIED,), deleted=True, tally=tally)


def compiled(typed: Typed, F: ModuleType, env: Lowering) -> Column:
    """Return the column of an expression over working columns, lookups and joins."""

    def column(slot: Hashable) -> Column:
        assert isinstance(slot, tuple)  # noqa: S101  # scopes of operations have such slots
        name = column_name(slot)
        if name not in env.columns:
            env.columns[name] = F.col(name)
        return env.columns[name]

    return compile_expr(typed, column, F, today=env.run.today)


def holds(typed: Typed, F: ModuleType, env: Lowering) -> Column:
    """Return whether a condition is true; NULL counts as false."""
    condition: Column = F.coalesce(compiled(typed, F, env), F.lit(False))
    return condition


def nothing(F: ModuleType, field: Field) -> Column:
    """Return NULL in the type of a column."""
    null: Column = F.lit(None).cast(cast_to(field.dtype))
    return null
