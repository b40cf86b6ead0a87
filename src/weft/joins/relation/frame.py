"""The frame below a Relation: a DataFrame with its schema, order marker and lineage, and the actions on it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from pyspark.sql import Column as AnyColumn

from weft import expr
from weft.core.names import fold, format_list, parse_name, quote
from weft.core.types import BOOLEAN, Field, Schema, common_type
from weft.errors import ArgumentError, ColumnCollisionError, JoinTypeError
from weft.expr.spark.columns import compile_expr
from weft.expr.spark.frames import check_one_session, functions_of, schema_of
from weft.joins.explain import JoinExplanation, explain_resolved
from weft.joins.picture import Picture
from weft.joins.relation.display import Preview, render_relation
from weft.joins.relation.grouping import Groups, check_new_name
from weft.joins.spark.failures import coded_errors
from weft.joins.spark.matches import collect_timeline
from weft.joins.spark.stats import is_sorted
from weft.joins.spark.streams import check_not_streaming
from weft.joins.timeline import draw_timeline

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from weft.joins.choose import Choice
    from weft.joins.resolve.resolved import ResolvedJoin
    from weft.joins.spec.join import JoinSpec
    from weft.joins.spec.projection import JoinProjection


Ordering = tuple[tuple[str, bool], ...]
"""Sort columns in order, each with whether it ascends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinLineage:
    """The join that a relation is the result of: the spec as given, and as resolved."""

    spec: JoinSpec | None
    project: JoinProjection | None
    resolved: ResolvedJoin
    choice: Choice
    left_ordering: Ordering = ()
    natural: bool = False
    inputs: tuple[DataFrame, DataFrame] | None = None

    def explain(self) -> JoinExplanation:
        """Return the explanation of the join."""
        return explain_resolved(
            self.resolved, self.spec, ordering=self.left_ordering, choice=self.choice, natural=self.natural
        )


@dataclass(frozen=True, slots=True, repr=False)
class Frame:
    """A DataFrame with its schema; no method changes the session, and only those that say so run a job."""

    df: DataFrame
    schema: Schema
    session: SparkSession
    ordering: Ordering = ()
    lineage: JoinLineage | None = None
    preview: Preview | None = field(default=None, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names in order."""
        return self.schema.names

    def _with(self, df: DataFrame, schema: Schema | None = None, ordering: Ordering = ()) -> Self:
        return replace(self, df=df, schema=schema or schema_of(df), ordering=ordering, lineage=None, preview=None)

    def _rows(self, df: DataFrame, ordering: Ordering) -> Self:
        """Return fewer or sorted rows with the same columns; the lineage stays, because it is about columns."""
        return replace(self, df=df, ordering=ordering, preview=None)

    def _names(self, names: Sequence[str]) -> list[int]:
        return [self._index(name) for name in names]

    def _index(self, name: object) -> int:
        # A column with exactly this name comes before a parsed one, because names may contain dots and backticks.
        literal = self.schema.find(name) if isinstance(name, str) else None
        return self.schema.index(parse_name(name)) if literal is None else literal

    def _column(self, index: int) -> Column:
        found: Column = functions_of(self.df).col(quote(self.columns[index]))
        return found

    def _compiled(self, what: object, *, boolean: bool = False, aggregates: bool = False) -> tuple[Column, Any]:
        """Return a Column and, for an expression as a string, its type."""
        if not isinstance(what, str):
            return _a_column(what), None
        scope = expr.TableScope({"": self.schema})
        typed = expr.check(
            expr.parse(what), scope, expect=BOOLEAN if boolean else None, aggregates=aggregates, today=False
        )

        def column(slot: Any) -> Column:
            return self._column(slot[1])

        return compile_expr(typed, column, functions_of(self.df)), typed.dtype

    def filter(self, condition: Column | str) -> Self:
        """Keep the rows for which `condition` is true: a Column or an expression.

        ``orders.filter("total > 100 AND status = 'open'")``

        Parameters
        ----------
        condition
            A boolean Spark Column, or an expression as a string.  Required.
        """
        column, _ = self._compiled(condition, boolean=True)
        return self._rows(self.df.filter(column), self.ordering)

    def limit(self, rows: int) -> Self:
        """Keep at most `rows` rows.

        ``orders.limit(100)``

        Parameters
        ----------
        rows
            How many: an integer, 0 or greater.  Required.
        """
        _a_count(rows, "limit", least=0)
        return self._rows(self.df.limit(rows), self.ordering)

    def select(self, *names: str | Column, **columns: Column | str) -> Self:
        """Return the named columns in the order given, then computed ones.

        ``orders.select("order_id", total="price * quantity")``

        Parameters
        ----------
        *names
            Column names, each once, and Spark Columns.  A name that contains a dot is written in backticks.
        **columns
            ``name=column``: a Spark Column, or an expression as a string.  At least one column is required.
        """
        if not names and not columns:
            raise ArgumentError("select needs a column name", help=f"the columns are {format_list(self.columns)}")
        if columns or any(isinstance(name, AnyColumn) for name in names):
            return self._select_computed(names, columns)
        kept = [self._index(name) for name in names]
        for place, index in enumerate(kept):
            if index in kept[:place]:
                raise ColumnCollisionError(
                    f"select names {self.columns[index]!r} twice",
                    help="name it once; with_columns(copy='column') adds a copy under another name",
                )
        schema = Schema(tuple(self.schema.fields[i] for i in kept), self.schema.case_sensitive)
        return self._with(self.df.select(*map(self._column, kept)), schema, self._surviving(schema))

    def _select_computed(self, names: Sequence[str | Column], columns: Mapping[str, Column | str]) -> Self:
        own = [name if isinstance(name, AnyColumn) else self._column(self._index(name)) for name in names]
        computed = [self._compiled(what)[0].alias(name) for name, what in columns.items()]
        df = self.df.select(*own, *computed)
        schema = schema_of(df)
        # Only a column that is named keeps its values; a computed one may have the name of another.
        kept = {self.columns[self._index(name)] for name in names if isinstance(name, str)}
        surviving = self._surviving(Schema(tuple(f for f in schema.fields if f.name in kept), schema.case_sensitive))
        return self._with(df, schema, surviving)

    def group_by(self, *names: str) -> Groups[Self]:
        """Group the rows by the values of columns; `agg` returns one row for each group.

        ``trades.group_by("symbol").agg(volume="SUM(quantity)", trades="COUNT(*)")``

        Parameters
        ----------
        *names
            Column names, each once.  Without a name all rows are one group.
        """
        keys = tuple(self._names(names))
        for place, index in enumerate(keys):
            if index in keys[:place]:
                raise ColumnCollisionError(f"group_by names {self.columns[index]!r} twice", help="name it once")
        return Groups(self, keys)

    def drop(self, *names: str) -> Self:
        """Remove the named columns.

        ``orders.drop("note")``

        Parameters
        ----------
        *names
            Column names.  An unknown name is an error.
        """
        dropped = set(self._names(names))
        return self.select(*(quote(n) for i, n in enumerate(self.columns) if i not in dropped))

    def _surviving(self, schema: Schema) -> Ordering:
        """Return the order marker up to the first column that a schema does not have."""
        kept: list[tuple[str, bool]] = []
        for name, ascending in self.ordering:
            if name not in schema:
                break
            kept.append((name, ascending))
        return tuple(kept)

    def rename(self, names: Mapping[str, str] | None = None, /, **aliases: str) -> Self:
        """Rename columns: ``rename(old="new")`` or ``rename({"old name": "new"})``.

        Parameters
        ----------
        names
            A mapping from old to new names, for names that are not valid keywords.  None by default.
        **aliases
            ``old="new"``.
        """
        new = dict(enumerate(self.columns))
        for old, name in {**(names or {}), **aliases}.items():
            if not isinstance(name, str) or not name:
                raise ArgumentError(
                    f"rename {old!r}: the new name must be a string, not {name!r}",
                    help=f"write rename({{{old!r}: 'new_name'}})",
                )
            new[self._index(old)] = name
        fields = tuple(Field(new[i], f.dtype, f.nullable) for i, f in enumerate(self.schema.fields))
        renamed = {self.columns[i]: n for i, n in new.items()}
        ordering = tuple((renamed[n], up) for n, up in self.ordering)
        schema = Schema(fields, self.schema.case_sensitive)
        return self._with(self.df.toDF(*new.values()), schema, ordering)

    def with_columns(self, columns: Mapping[str, Column | str] | None = None, /, **more: Column | str) -> Self:
        """Add or replace columns: each a Column or an expression.

        ``orders.with_columns(total="price * quantity")``

        Parameters
        ----------
        columns
            A mapping from names to columns, for names that are not valid keywords.  None by default.
        **more
            ``name=column``: a Spark Column, or an expression as a string.
        """
        added = {**(columns or {}), **more}
        compiled = {name: self._compiled(what) for name, what in added.items()}
        taken: dict[str, str] = {}
        seen: set[str] = set()
        for name in compiled:
            check_new_name(name, "with_columns", "expression")
            folded = fold(name, case_sensitive=self.schema.case_sensitive)
            if folded in seen:
                raise ColumnCollisionError(
                    f"with_columns names {name!r} twice",
                    help="write it once: names that differ in case only are equal, unless spark.sql.caseSensitive is true",
                )
            seen.add(folded)
            index = self.schema.find(name)
            taken[name] = name if index is None else self.columns[index]
        df = self.df.withColumns({taken[name]: column for name, (column, _) in compiled.items()})
        # A replaced column has other values, so the rows are no longer known to be sorted by it.
        kept: list[tuple[str, bool]] = []
        for name, up in self.ordering:
            if name in taken.values():
                break
            kept.append((name, up))
        return self._with(df, None, tuple(kept))

    def order_by(self, *columns: str | tuple[str, bool]) -> Self:
        """Sort by the columns and mark the relation as ordered; ``("ts", False)`` sorts descending.

        The order marker is kept by filter, limit, rename and added columns.  A select without one of
        its columns ends it there.  Joins, unions and shuffles remove it.

        ``quotes.order_by("symbol", ("quote_ts", False))``

        Parameters
        ----------
        *columns
            Names, which are sorted ascending, or pairs of a name and whether it ascends.  At least one is required.
        """
        if not columns:
            raise ArgumentError("order_by needs a column name", help=f"the columns are {format_list(self.columns)}")
        check_not_streaming(self.df, "order_by")
        pairs = [_sort_pair(c) for c in columns]
        indices = [(self._index(name), up) for name, up in pairs]
        sort = [self._column(i).asc() if up else self._column(i).desc() for i, up in indices]
        ordering = tuple((self.columns[i], bool(up)) for i, up in indices)
        return self._rows(self.df.orderBy(*sort), ordering)

    def check_sorted(self, *columns: str) -> bool:
        """Run a job and return whether the rows, in partition order, ascend by the columns.

        NULLs come first, and equal rows may have any order.  The order marker only records a call of
        `order_by`; this method reads the rows.

        ``quotes.check_sorted("symbol", "quote_ts")``

        Parameters
        ----------
        *columns
            Names, all ascending.  By default those of the order marker.
        """
        marked = [] if columns else [quote(n) for n, up in self.ordering if up]
        if not columns and (not marked or len(marked) < len(self.ordering)):
            raise ArgumentError(
                "check_sorted needs a column name: there is no ascending order marker",
                help=f"the columns are {format_list(self.columns)}",
            )
        check_not_streaming(self.df, "check_sorted")
        indices = self._names(columns or marked)
        for sorted_by in (self.schema.fields[i] for i in indices):
            if not sorted_by.dtype.is_orderable:
                raise JoinTypeError(
                    f"check_sorted: column {sorted_by.name!r} is {sorted_by.dtype}, which has no order",
                    help="add a column that has an order with with_columns, and check that one",
                )
        with coded_errors():
            return is_sorted(self.df, [self.columns[i] for i in indices])

    def union(self, other: Frame) -> Self:
        """Append the rows of a relation with the same columns, matched by name.

        ``january.union(february)``

        Parameters
        ----------
        other
            A relation of the same session, with the same column names and types that have a common type.  Required.
        """
        if not isinstance(other, Frame):
            raise ArgumentError(
                f"union takes a Relation, not {type(other).__name__}", help="wrap it: weft.relation(df)"
            )
        check_one_session(self.session, other.session)
        missing = [n for n in self.columns if n not in other.schema] or [
            n for n in other.columns if n not in self.schema
        ]
        if missing or len(self.schema) != len(other.schema):
            raise ArgumentError(
                f"union: column {missing[0]!r} is on one side only",
                help="select the same columns of both, or add it with with_columns",
            )
        for mine in self.schema:
            theirs = other.schema[mine.name].dtype
            if mine.dtype != theirs and common_type(mine.dtype, theirs) is None:
                raise JoinTypeError(
                    f"union: column {mine.name!r} is {mine.dtype} on one side and {theirs} on the other",
                    help="cast one side first with with_columns",
                )
        return self._with(self.df.unionByName(other.df))

    def distinct(self) -> Self:
        """Keep each row once: ``orders.select("region").distinct()``."""
        return self._with(self.df.distinct(), self.schema)

    def repartition(self, partitions: int, *columns: str) -> Self:
        """Distribute the rows over partitions, by the values of columns if any are named.

        ``trades.repartition(8, "symbol")``

        Parameters
        ----------
        partitions
            How many: an integer, 1 or greater.  Required.
        *columns
            Rows with equal values in these columns are in one partition.  By default rows are distributed in turn.
        """
        _a_count(partitions, "repartition", least=1)
        return self._with(self.df.repartition(partitions, *map(self._column, self._names(columns))), self.schema)

    def sample(self, fraction: float, seed: int | None = None) -> Self:
        """Keep about `fraction` of the rows, without replacement.

        ``trades.sample(0.1, seed=7)``

        Parameters
        ----------
        fraction
            A number from 0 to 1.  Required.
        seed
            Equal seeds take the same rows of the same frame.  None (default) takes other rows each time.
        """
        if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
            raise ArgumentError(
                f"sample takes a fraction between 0 and 1, not {fraction!r}",
                code="W0302",
                help="write for example sample(0.1) for a tenth of the rows",
            )
        fraction = float(fraction)
        return self._with(self.df.sample(withReplacement=False, fraction=fraction, seed=seed), self.schema)

    def __str__(self) -> str:
        order = "" if not self.ordering else ", ordered by " + ", ".join(n for n, _ in self.ordering)
        return f"Relation({', '.join(map(str, self.schema.fields))}{order})"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the columns as HTML for a notebook, with the rows of a local table; no job runs."""
        return render_relation(self.schema, self.ordering, self.preview)


def _a_count(value: object, method: str, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ArgumentError(
            f"{method} takes an integer of {least} or more, not {value!r}",
            code="W0302" if isinstance(value, int) and not isinstance(value, bool) else "W0301",
            help=f"write for example {method}(10)",
        )


def _a_column(what: object) -> Column:
    if not isinstance(what, AnyColumn):
        raise ArgumentError(
            f"a column is a Spark Column or an expression, not {type(what).__name__}",
            help=f"write it as a string: {str(what)!r}",
        )
    return what


def _sort_pair(column: object) -> tuple[str, bool]:
    if isinstance(column, str):
        return column, True
    if isinstance(column, tuple) and len(column) == 2 and isinstance(column[1], bool):
        return column
    raise ArgumentError(
        f"order_by takes column names and pairs of a name and a bool, not {column!r}",
        help="write order_by('a', ('b', False)) to sort by b descending",
    )


def load_package(name: str, needed_by: str, *, extra: str) -> Any:
    """Return an optional package, or raise with the command that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as cause:
        raise ArgumentError(
            f"{needed_by} needs the package {name}, which is not installed",
            code="W0311",
            help=f"pip install 'weft[{extra}]'",
        ) from cause


class Actions(Frame):
    """``count``, ``collect``, ``head``, ``show``, ``to_pandas``, ``to_arrow``, ``to_polars`` and ``plot_matches``.

    ``.df`` has the actions of Spark.  A broken promise raises Spark's own exception there; inside
    `weft.coded_errors` it raises the error of Weft.
    """

    __slots__ = ()

    def count(self) -> int:
        """Return the number of rows: ``orders.count()``."""
        check_not_streaming(self.df, "count")
        with coded_errors():
            return self.df.count()

    def collect(self) -> list[Row]:
        """Return all rows: ``orders.limit(10).collect()``."""
        check_not_streaming(self.df, "collect")
        with coded_errors():
            return self.df.collect()

    def head(self, n: int = 5) -> list[Row]:
        """Return up to `n` rows.

        ``orders.head(3)``

        Parameters
        ----------
        n
            How many rows: an integer, 0 or greater; 5 by default.
        """
        limited = self.limit(n)
        check_not_streaming(self.df, "head")
        with coded_errors():
            return limited.df.collect()

    def show(self, n: int = 20) -> None:
        """Print up to `n` rows as a table, as Spark does.

        ``orders.order_by("order_id").show()``

        Parameters
        ----------
        n
            How many rows; 20 by default.
        """
        check_not_streaming(self.df, "show")
        with coded_errors():
            self.df.show(n)

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a pandas DataFrame: ``orders.limit(1000).to_pandas()``."""
        check_not_streaming(self.df, "to_pandas")
        with coded_errors():
            return self.df.toPandas()

    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table: ``orders.select("total").to_arrow()``."""
        check_not_streaming(self.df, "to_arrow")
        with coded_errors():
            return self.df.toArrow()

    def to_polars(self) -> pl.DataFrame:
        """Return all rows as a Polars DataFrame; needs ``pip install 'weft[polars]'``.

        ``prices.to_polars().describe()``
        """
        check_not_streaming(self.df, "to_polars")
        # Before the job: an hour of work must not end in a missing package.
        polars = load_package("polars", "to_polars", extra="polars")
        frame: pl.DataFrame = polars.from_arrow(self.to_arrow())
        return frame

    def plot_matches(self, where: Column | str | None = None, *, keys: int = 3, rows: int = 20) -> Picture:
        """Run a job and return a picture of the matches of this join: both timelines, and a line for each match.

        Filled marks have a match and empty ones have none.  A tolerance or bounds are shaded.

        ``trades.natural_asof(quotes, order="ts").plot_matches("symbol = 'A'").savefig("matches.svg")``

        Parameters
        ----------
        where
            Only left rows that satisfy this condition: an expression or a boolean Spark Column over the columns of the
            left side.  None (default) takes all.
        keys
            How many keys are drawn, in their order; 3 by default.
        rows
            How many left rows of each key are drawn, in the order of time; 20 by default.
        """
        _a_count(keys, "plot_matches(keys=)", least=1)
        _a_count(rows, "plot_matches(rows=)", least=1)
        if self.lineage is None or self.lineage.inputs is None:
            raise ArgumentError(
                "plot_matches: this relation is not the result of one join, or was changed after it",
                help="call it on the relation that the join returned: only filter, limit and order_by keep its lineage",
            )
        left, right = self.lineage.inputs
        for df in (left, right):
            check_not_streaming(df, "plot_matches")
        join, spec = self.lineage.resolved, self.lineage.spec
        if where is not None:
            source = replace(self, df=left, schema=join.left, ordering=(), lineage=None)
            left = source.filter(where).df
        with coded_errors():
            return draw_timeline(collect_timeline(left, right, join, str(spec), keys=keys, rows=rows))
