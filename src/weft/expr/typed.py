"""A checked expression: a tree of operations with types, and what a scope must answer."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from weft.core.names import fold, listed, near
from weft.core.types import DType, Schema
from weft.errors import Diagnostic
from weft.expr.ast import Expr


@dataclass(frozen=True, slots=True)
class Typed:
    """An operation on typed operands; sugar is gone and every conversion is written out.

    ``op`` is a sign (``+``, ``=``), a word (``lit``, ``ref``, ``cast``, ``case``, ``and``) or the
    first name of a function.  ``slot`` says which column a ``ref`` is, ``value`` holds what a
    literal, a pattern or a unit is.  ``expr`` is what the user wrote.
    """

    op: str
    dtype: DType
    nullable: bool = True
    args: tuple[Typed, ...] = ()
    value: object = None
    slot: Hashable = None
    expr: Expr = field(default_factory=Expr, repr=False)

    def walk(self) -> Iterator[Typed]:
        """Yield this operation and all below it, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.args))

    @property
    def slots(self) -> tuple[Hashable, ...]:
        """The columns that are read, each once, in the order they are first written."""
        return tuple(dict.fromkeys(n.slot for n in self.walk() if n.op == "ref"))


@dataclass(frozen=True, slots=True)
class Column:
    """What a name stands for; `slot` is whatever the reader of the tree finds its column by."""

    slot: Hashable
    dtype: DType
    nullable: bool = True


class Scope(Protocol):
    """The columns an expression can name."""

    def resolve(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        """Return the column, or the finding (without its place) when there is none."""

    def names(self) -> tuple[str, ...]:
        """Return every name as it can be written, for help on a name that is not there."""


@dataclass(frozen=True, slots=True)
class TableScope:
    """Columns of named tables; a bare name must be in one table only.

    `aliases` are further names of tables.  `bare` lists the tables whose columns can be named
    without the table; None means all.  Slots are ``(table, index)``.

    >>> scope = TableScope({"o": Schema.of(id="long"), "c": Schema.of(id="long", name="string")})
    >>> scope.resolve("c", "NAME")
    Column(slot=('c', 1), dtype=Scalar(name='string', collation=''), nullable=True)
    >>> print(scope.resolve(None, "id"))
    error[W0216]: 'id' could be o.id or c.id
     = help: write the table before it, as in o.id
    """

    tables: Mapping[str, Schema]
    aliases: Mapping[str, str] = field(default_factory=dict)
    bare: tuple[str, ...] | None = None

    def resolve(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        """Return the column, or why there is none."""
        if qualifier is None:
            return self._bare(name)
        table = self._table(qualifier)
        if table is None:
            return self._no_table(qualifier)
        schema = self.tables[table]
        index = schema.find(name)
        if index is None:
            return Diagnostic(
                "W0207", f"{qualifier!r} has no column {name!r}", help=_nearest(name, schema.names)
            )
        return _column(table, schema, index)

    def names(self) -> tuple[str, ...]:
        """Return ``table.column`` for every column."""
        return tuple(f"{table}.{column}" for table, schema in self.tables.items() for column in schema.names)

    def _table(self, qualifier: str) -> str | None:
        for name in (qualifier, *(q for q in (*self.tables, *self.aliases) if fold(q) == fold(qualifier))):
            if name in self.tables:
                return name
            if name in self.aliases:
                return self.aliases[name]
        return None

    def _no_table(self, qualifier: str) -> Diagnostic:
        known = (*self.tables, *self.aliases)
        return Diagnostic("W0207", f"there is no table {qualifier!r} here", help=_nearest(qualifier, known))

    def _bare(self, name: str) -> Column | Diagnostic:
        open_tables = self.tables if self.bare is None else self.bare
        found = [(t, i) for t in open_tables if (i := self.tables[t].find(name)) is not None]
        if len(found) == 1:
            table, index = found[0]
            return _column(table, self.tables[table], index)
        if found:
            could = [f"{table}.{self.tables[table].fields[index].name}" for table, index in found]
            return Diagnostic(
                "W0216",
                f"{name!r} could be {' or '.join(could)}",
                help=f"write the table before it, as in {could[0]}",
            )
        columns = [c for table in open_tables for c in self.tables[table].names]
        return Diagnostic("W0207", f"there is no column {name!r}", help=_nearest(name, columns))


def _column(table: str, schema: Schema, index: int) -> Column:
    column = schema.fields[index]
    return Column((table, index), column.dtype, column.nullable)


def _nearest(wanted: str, known: tuple[str, ...] | list[str]) -> str:
    close = near(wanted, known)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else f"there is {listed(known)}"
