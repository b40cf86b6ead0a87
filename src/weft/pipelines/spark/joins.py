"""Joins and lookups of an operation, made by the plans that ``relation`` joins use.

Before::

    working   fx: currency = fx.from_currency AND fx.to_currency = 'USD'

After::

    working LEFT JOIN (SELECT from_currency AS `__weft_j$fx$from_currency`, rate AS `__weft_j$fx$rate`,
                              true AS `__weft_j$fx`
                       FROM exchange_rates WHERE to_currency = 'USD')
    ON currency = `__weft_j$fx$from_currency`
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Hashable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from weft.core.names import quote
from weft.core.types import BOOLEAN, LONG, STRING, Field, Schema
from weft.errors import RuntimeJoinError
from weft.expr.spark.columns import compile_expr
from weft.expr.spark.frames import functions_of, window_of
from weft.joins.spark.contracts import PREFIX
from weft.joins.spark.lowering import lower
from weft.pipelines.model.values import SYSTEM_COLUMNS, temporal_columns
from weft.pipelines.plan.explain import is_broadcast
from weft.pipelines.plan.operations.resolved import HIDDEN, LookupStep, ResolvedJoinStep, join_column_name
from weft.pipelines.spark.frame import Lowering, Opened, compiled
from weft.pipelines.spark.system_columns import identity, named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from weft.expr import Typed


ROW_ID = "_row_id"
ROW = Field(f"{HIDDEN}_row", LONG)


@dataclass(frozen=True, slots=True)
class Joined:
    """Rows with joined columns: the frame, all its columns, and marks for the matches of each join."""

    df: DataFrame
    fields: tuple[Field, ...]

    def with_column(self, field: Field, column: Column) -> Joined:
        """Return the rows with one more column."""
        return Joined(self.df.withColumn(field.name, column), (*self.fields, field))

    def beside(self, planned: Schema) -> tuple[Field, ...]:
        """Return the columns that a plan does not know."""
        return tuple(field for field in self.fields if field.name not in planned)

    def ordered(self, schema: Schema) -> DataFrame:
        """Return the rows with the columns of a schema, in its order."""
        return self.df.select(*(quote(name) for name in schema.names))


def with_lookup(left: Joined, step: LookupStep, env: Lowering) -> Joined:
    """Return the rows with the columns of a lookup; more than one match fails the job."""
    prefix = join_column_name("l", step.alias)
    right = _right(step, prefix, env, step.columns)
    return _join(left, right, step, env, [(target, target.rpartition("$")[2]) for _, target in step.keys])


def with_join(left: Joined, step: ResolvedJoinStep, env: Lowering) -> Joined:
    """Return the rows with the columns of a join; its mark is NULL on unmatched rows."""
    F = functions_of(left.df)
    for name, typed in step.keys:
        if name not in (f.name for f in left.fields):
            left = left.with_column(Field(name, typed.dtype), compiled(typed, F, env))
    prefix = join_column_name("j", step.alias)
    fanned = (ROW_ID,) if step.on_multiple == "all" else ()
    right = _right(step, prefix, env, (*step.columns, *fanned), step.own_filter)
    if fanned:
        right = _numbered(right, prefix)
    keys = [(f"{prefix}${k}", k) for k in step.right_keys]
    if step.on_multiple == "error":
        return _join(left, right, step, env, keys)
    if step.late:
        numbered = left.with_column(ROW, F.monotonically_increasing_id())
        joined = _join(numbered, right, step, env, keys)
        return _number_matches(joined, step, prefix, [F.col(ROW.name)])
    right = _number_matches(right, step, prefix, [F.col(quote(name)) for name, _ in keys])
    return _join(left, right, step, env, keys)


def has_match(step: ResolvedJoinStep, F: ModuleType) -> Column:
    """Return whether a row has a match.

    A matched key is not NULL, and every reader of the joined side has the keys.  With the mark
    instead, two readers of one join would differ in a column, and Spark would build its side twice.
    """
    prefix = join_column_name("j", step.alias)
    match: Column = F.col(prefix if step.spec.nulls_equal else f"{prefix}${step.right_keys[0]}").isNotNull()
    return match


def count_name(prefix: str) -> str:
    """Return the name of the column with the number of rows that match."""
    return f"{prefix}$#count"


def number_name(prefix: str) -> str:
    """Return the name of the column that numbers the rows that match."""
    return f"{prefix}$#number"


def fan_id(step: ResolvedJoinStep, F: ModuleType) -> Column:
    """Return the id of a row that a join with all its matches made."""
    prefix = join_column_name("j", step.alias)
    parts = [
        *named(F, "fan"),
        (F.col(ROW_ID), STRING),
        *named(F, step.alias),
        (F.col(f"{prefix}${ROW_ID}"), STRING),
        (F.col(_occurrence(prefix)), LONG),
    ]
    return identity(F, parts)


def _occurrence(prefix: str) -> str:
    return f"{prefix}$#occurrence"


def _right(
    step: ResolvedJoinStep | LookupStep, prefix: str, env: Lowering, columns: tuple[str, ...], own: Typed | None = None
) -> Joined:
    """Return the joined side: filtered, cut to what is read, renamed, with its mark."""
    df = env.frame(step.read)
    F = functions_of(df)
    if own is not None:

        def column(slot: Hashable) -> Column:
            assert isinstance(slot, tuple)  # noqa: S101  # scopes of operations have such slots
            value: Column = F.col(slot[2])
            return value

        df = df.filter(compile_expr(own, column, F, today=env.run.today))
    types = {
        f.name: f.dtype for f in (*step.table.schema, *SYSTEM_COLUMNS, *temporal_columns(step.table.temporal_mode))
    }
    fields = [Field(f"{prefix}${name}", types[name]) for name in columns]
    taken = [F.col(name).alias(field.name) for name, field in zip(columns, fields, strict=True)]
    df = df.select(*taken, F.lit(True).alias(prefix))
    sent = is_broadcast(step, env.size_of(step.read) if env.size_of is not None else None)
    if sent is not None:
        df = df.hint("broadcast" if sent else "merge")
    return Joined(df, (*fields, Field(prefix, BOOLEAN, nullable=False)))


def _join(
    left: Joined, right: Joined, step: ResolvedJoinStep | LookupStep, env: Lowering, keys: list[tuple[str, str]]
) -> Joined:
    """Return the planned join, and keep the right side for error messages."""
    planned = step.resolved
    # Columns that the plan does not have, such as counts of matches, pass through.
    join = planned.carrying(left.beside(planned.left), right.beside(planned.right))
    opened = Opened(alias=step.alias, right=right.df, keys=tuple(keys))
    env.opened.setdefault(join.fingerprint[:12], []).append(opened)
    return Joined(lower(left.ordered(join.left), right.ordered(join.right), join, step.choice), join.schema.fields)


def _numbered(right: Joined, prefix: str) -> Joined:
    """Return the joined side with a number that distinguishes equal row ids."""
    F = functions_of(right.df)
    own = [F.col(f.name) for f in right.fields if f.dtype.is_orderable]
    window = window_of(right.df).partitionBy(F.col(f"{prefix}${ROW_ID}")).orderBy(*own)
    return right.with_column(Field(_occurrence(prefix), LONG), F.row_number().over(window).cast("long"))


def _number_matches(rows: Joined, step: ResolvedJoinStep, prefix: str, partition: list[Column]) -> Joined:
    """Return rows that match numbered and counted; of a join that takes the first, only that one."""
    F = functions_of(rows.df)
    window = window_of(rows.df).partitionBy(*partition)
    count = F.count(F.col(prefix)).over(window)
    number = F.row_number().over(window.orderBy(*_order(rows, step, prefix, F)))
    numbered = rows.with_column(Field(count_name(prefix), LONG), count)
    numbered = numbered.with_column(Field(number_name(prefix), LONG), number.cast("long"))
    if step.on_multiple == "first":
        return Joined(numbered.df.filter(F.col(number_name(prefix)) == F.lit(1)), numbered.fields)
    return numbered


def _order(rows: Joined, step: ResolvedJoinStep, prefix: str, F: ModuleType) -> list[Column]:
    """Return the order of matches: as requested, then by every column, so that it is deterministic."""
    requested = {
        f"{prefix}${name}": F.col(f"{prefix}${name}").asc_nulls_last()
        if up
        else F.col(f"{prefix}${name}").desc_nulls_last()
        for name, up in step.order_by
    }
    own = [f for f in rows.fields if f.name.startswith(f"{prefix}$") and f.dtype.is_orderable]
    return [*requested.values(), *(F.col(f.name).asc_nulls_last() for f in own if f.name not in requested)]


MOST_KEYS = 20
"""How many repeated keys an error names."""
_BROKEN = re.compile(
    re.escape(PREFIX) + r" W0501 (.*?): (?P<key>[^:]*?) \(spec [0-9a-f]{12}, join (?P<join>[0-9a-f]{12})\)", re.DOTALL
)


def multiple_matches(failure: BaseException, env: Lowering) -> RuntimeJoinError | None:
    """Return the error for a join with more than one match, None when the job failed for another reason.

    One small job on the joined side finds up to twenty keys that it has more than once.
    """
    match = _BROKEN.search(str(failure))
    if match is None:
        return None
    # Several joins can have the same fingerprint: the one whose right side has repeated keys is meant.
    known = env.opened.get(match["join"], [])
    for opened in known:
        keys = _repeated(opened)
        if keys:
            return _error(opened.alias, ", ".join(keys[:MOST_KEYS]), more=len(keys) > MOST_KEYS)
    alias = known[0].alias if known else "?"
    return _error(alias, match["key"], more=False)


def _error(alias: str, keys: str, *, more: bool) -> RuntimeJoinError:
    error = RuntimeJoinError(
        f"Join {alias!r} matches more than one row: {keys}" + (" and more" if more else ""),
        code="W1209",
        help="correct the data, add a term to `on`, or set on_multiple to first or all",
    )
    error.alias = alias
    return error


def _repeated(opened: Opened) -> list[str]:
    right: DataFrame = opened.right
    F = functions_of(right)
    columns = [F.col(quote(name)) for name, _ in opened.keys]
    known = right
    for column in columns:
        known = known.filter(column.isNotNull())
    counted = known.groupBy(*columns).agg(F.count(F.lit(1)).alias("__weft_n")).filter(F.col("__weft_n") > 1)
    rows = counted.orderBy(F.col("__weft_n").desc(), *columns).limit(MOST_KEYS + 1).collect()
    keys = (", ".join(f"{known} = {_text(row[name])}" for name, known in opened.keys) for row in rows)
    return [f"{key} ({row['__weft_n']} rows)" for key, row in zip(keys, rows, strict=True)]


def _text(value: object) -> str:
    if isinstance(value, str):
        return repr(value)
    return value.isoformat() if isinstance(value, dt.date) else str(value)
