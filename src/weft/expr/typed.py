"""Checked expressions: a tree of typed operations, and the scope that resolves names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from weft.core.names import fold, suggest
from weft.core.types import DType, Field, Schema
from weft.errors import Diagnostic
from weft.expr.ast import Expr


@dataclass(frozen=True, slots=True)
class Typed:
    """An operation on typed operands; syntactic sugar is removed and conversions are explicit.

    ``op`` is a sign (``+``, ``=``), a word (``lit``, ``ref``, ``cast``, ``case``, ``and``) or the
    first name of a function.  ``slot`` identifies the column of a ``ref``, ``value`` is the
    value of a literal, a pattern or a unit.  ``expr`` is the node that was checked.
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
        """The columns that are read, without duplicates, in order of first use."""
        return tuple(dict.fromkeys(n.slot for n in self.walk() if n.op == "ref"))


def all_valid(operands: Iterable[Typed | None]) -> tuple[Typed, ...] | None:
    """Return the operands, None when one of them is invalid; every operand is checked, so that every error is added."""
    typed = tuple(operands)
    valid = tuple(t for t in typed if t is not None)
    return valid if len(valid) == len(typed) else None


@dataclass(frozen=True, slots=True)
class Column:
    """The column of a name; `slot` is the key by which users of the tree look it up."""

    slot: Hashable
    dtype: DType
    nullable: bool = True

    @classmethod
    def of(cls, slot: Hashable, field: Field, *, padded: bool = False) -> Column:
        """Return the column of a field; `padded` means that an outer join may replace it with NULL."""
        return cls(slot, field.dtype, field.nullable or padded)


def unknown_name(message: str, name: str, known: Iterable[str], otherwise: str = "there is") -> Diagnostic:
    """Return the finding for an unknown name, with similar names or all names.

    The checker adds the location.
    """
    return Diagnostic("W0207", message, help=suggest(name, known, otherwise))


class Scope(Protocol):
    """The columns an expression can name."""

    def resolve(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        """Return the column, or a finding (without location) when the name is unknown."""

    def names(self) -> tuple[str, ...]:
        """Return every name as it can be written, for messages about an unknown name."""


@dataclass(frozen=True, slots=True)
class TableScope:
    """Columns of named tables; a bare name must be unique.

    `aliases` are additional names of tables.  `bare` lists the tables whose columns can be named
    without the table; None means all.  Slots are ``(table, index)``.

    >>> scope = TableScope({"o": Schema.of(id="long"), "c": Schema.of(id="long", name="string")})
    >>> scope.resolve("c", "NAME")
    Column(slot=('c', 1), dtype=Scalar(name='string', collation=''), nullable=True)
    >>> print(scope.resolve(None, "id"))
    error[W0216]: 'id' is ambiguous: o.id or c.id
     = help: qualify it, as in o.id
    """

    tables: Mapping[str, Schema]
    aliases: Mapping[str, str] = field(default_factory=dict)
    bare: tuple[str, ...] | None = None

    def resolve(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        """Return the column, or a finding."""
        if qualifier is None:
            return self._bare(name)
        table = self._table(qualifier)
        if table is None:
            return unknown_name(f"unknown table {qualifier!r}", qualifier, (*self.tables, *self.aliases))
        schema = self.tables[table]
        index = schema.find(name)
        if index is None:
            return unknown_name(f"{qualifier!r} has no column {name!r}", name, schema.names)
        return Column.of((table, index), schema.fields[index])

    def names(self) -> tuple[str, ...]:
        """Return ``table.column`` for every column."""
        return tuple(f"{table}.{column}" for table, schema in self.tables.items() for column in schema.names)

    def _table(self, qualifier: str) -> str | None:
        # The exact spelling comes first: two tables may differ in case only.
        for name in (qualifier, *(q for q in (*self.tables, *self.aliases) if fold(q) == fold(qualifier))):
            if name in self.tables:
                return name
            if name in self.aliases:
                return self.aliases[name]
        return None

    def _bare(self, name: str) -> Column | Diagnostic:
        open_tables = self.tables if self.bare is None else self.bare
        matches = [(t, i) for t in open_tables if (i := self.tables[t].find(name)) is not None]
        if len(matches) == 1:
            table, index = matches[0]
            return Column.of((table, index), self.tables[table].fields[index])
        if matches:
            candidates = [f"{table}.{self.tables[table].fields[index].name}" for table, index in matches]
            return Diagnostic(
                "W0216", f"{name!r} is ambiguous: {' or '.join(candidates)}", help=f"qualify it, as in {candidates[0]}"
            )
        columns = [c for table in open_tables for c in self.tables[table].names]
        return unknown_name(f"unknown column {name!r}", name, columns)
