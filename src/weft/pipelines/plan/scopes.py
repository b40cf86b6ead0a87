"""Scopes: resolves the names in an operation to working columns, lookups, and joins of that operation.

::

    amount, transactions.amount, gl.amount    the working column; gl is the name of the dataset
    accounts.type                             a column of a lookup
    fx.rate                                   a column of a join of this operation
    anything.else                             an error: a qualifier is never ignored

Lookups of a dataset include the lookups of looked-up datasets, by the names that expressions use.

Before::

    orders    lookups: customer -> dataset customers      on customer_id = id
    customers lookups: country  -> table countries        on country_code = code

After::

    customer                    orders.customer_id = customers.id
    country, customer.country   customers.country_code = countries.code

A nested lookup can always be used by its path, and by its alias when no nearer lookup has that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from weft.core.names import find_similar, format_list, suggest
from weft.core.source import NO_SOURCES, SourceMap
from weft.core.types import NULL, Schema
from weft.errors import Diagnostic, OperationError
from weft.expr import Column, Typed
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.values import AsOfDay
from weft.pipelines.plan.catalog import Catalog, MissingDataset
from weft.pipelines.plan.operations.resolved import WorkingSet

DEEPEST = 5
"""Maximum nesting of lookups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupNode:
    """A lookup by its path; `table` is None when its dataset is unusable, and `missing` has the reason."""

    path: str
    dataset: Dataset
    table: TableDef | None = None
    parent: str | None
    conditions: tuple[tuple[str, str], ...]
    as_of: AsOfDay
    at: SourceMap
    missing: MissingDataset | None = None

    @property
    def schema(self) -> Schema | None:
        """The columns that can be read, None when unknown."""
        return None if self.table is None else self.table.schema


def resolve_lookups(dataset: Dataset, catalog: Catalog) -> Mapping[str, LookupNode]:
    """Return the lookups by each of their names; circular lookups raise W1212."""
    # The nearest lookup gets the short name, so nodes are taken level by level.
    nodes = sorted(_below(dataset, catalog, None, (dataset.id,), NO_SOURCES), key=lambda n: n.path.count("."))
    named: dict[str, LookupNode] = {}
    for node in nodes:
        named.setdefault(node.path, node)
    for node in nodes:
        short = node.path.rpartition(".")[2]
        if short != dataset.main_table.name:
            named.setdefault(short, node)
    return named


def _below(
    dataset: Dataset, catalog: Catalog, parent: str | None, above: tuple[str, ...], at: SourceMap
) -> Iterator[LookupNode]:
    for lookup in dataset.lookups:
        # An error in a nested lookup is reported at the lookup of the input dataset that leads to it.
        place = lookup.at if parent is None else at
        path = lookup.alias if parent is None else f"{parent}.{lookup.alias}"
        target = lookup.target
        node = LookupNode(
            path=path,
            dataset=dataset,
            parent=parent,
            conditions=lookup.join_conditions,
            as_of=lookup.as_of,
            at=place,
        )
        if isinstance(target, TableDef):
            yield replace(node, table=target)
            continue
        resolved = catalog.dataset(target)
        if isinstance(resolved, MissingDataset):
            yield replace(node, missing=resolved)
            continue
        inner = resolved.dataset
        if inner.id in above or len(above) > DEEPEST:
            raise _nesting_error(inner, path, above, place)
        yield replace(node, dataset=inner, table=inner.main_table)
        yield from _below(inner, catalog, path, (*above, inner.id), place)


def _nesting_error(dataset: Dataset, path: str, above: tuple[str, ...], at: SourceMap) -> OperationError:
    if dataset.id in above:
        message = f"lookup {path!r} leads back to dataset {dataset}"
        help = "leave one of the lookups out, or join the dataset in the update that needs it"
    else:
        message = f"lookup {path!r} is nested more than {DEEPEST} deep"
        help = "join the dataset in the update that needs it"
    return OperationError(message, code="W1212", help=help, at=at.of("target"))


Where = Literal["expression", "assignment", "condition"]
Slot = tuple[str, ...]
"""``("w", column)``, ``("l", path, column)`` or ``("j", alias, column)``."""


def list_slots(*expressions: Typed | None) -> tuple[Slot, ...]:
    """Return the columns that expressions read."""
    return tuple(s for typed in expressions if typed is not None for s in typed.slots if isinstance(s, tuple))


def group_columns(kind: Literal["l", "j"], slots: Iterable[Slot]) -> dict[str, set[str]]:
    """Return the columns of each lookup or of each join among the slots."""
    columns: dict[str, set[str]] = {}
    for slot in slots:
        if slot[0] == kind:
            columns.setdefault(slot[1], set()).add(slot[2])
    return columns


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationScope:
    """The columns that an expression of one operation can name.

    A join whose schema is None has an unknown dataset: any column resolves, so that the error is reported only once.
    `later` are joins listed after the one whose condition is resolved, `elsewhere` joins of other operations, with their seq.
    """

    working: WorkingSet
    lookups: Mapping[str, LookupNode] = field(default_factory=dict)
    joins: Mapping[str, Schema | None] = field(default_factory=dict)
    later: tuple[str, ...] = ()
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    where: Where = "expression"

    def resolve(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        """Return the column, or a finding when it is unknown."""
        if qualifier is None:
            return self._working(None, name)
        if qualifier in self.joins:
            return self._joined(qualifier, name)
        if qualifier == self.working.table:
            return self._working(qualifier, name)
        if qualifier in self.lookups:
            return self._looked_up(self.lookups[qualifier], qualifier, name)
        if qualifier == self.working.dataset.name or self._may_be_input(qualifier):
            return self._working(qualifier, name)
        return self._no_table(qualifier, name)

    def _may_be_input(self, qualifier: str) -> bool:
        """Whether a qualifier may be the table of an unknown input."""
        return not self.working.table and qualifier not in self.later and qualifier not in self.elsewhere

    def names(self) -> tuple[str, ...]:
        """Return all names that can be used."""
        names = list(self.working.schema.names)
        for alias, schema in self.joins.items():
            names += [f"{alias}.{n}" for n in (schema.names if schema else ())]
        for alias, node in self.lookups.items():
            names += [f"{alias}.{n}" for n in (node.schema.names if node.schema else ())]
        return tuple(names)

    def _working(self, qualifier: str | None, name: str) -> Column | Diagnostic:
        index = self.working.schema.find(name)
        if index is None and self.working.open:
            return Column(("w", name), NULL)
        if index is None:
            written = name if qualifier is None else f"{qualifier}.{name}"
            if qualifier is not None:
                return self._unknown(written, f"{qualifier!r} has no column {name!r}", name, self._own())
            # An unqualified name never means a joined column: adding a join must not change what a name refers to.
            elsewhere = [f for f in self.names() if f.endswith(f".{name}")]
            if elsewhere:
                help = f"did you mean {' or '.join(map(repr, elsewhere[:3]))}?"
                return self._finding(written, f"unknown column {name!r}", help)
            return self._unknown(written, f"unknown column {name!r}", name, self._own())
        return Column.of(("w", self.working.schema.fields[index].name), self.working.schema.fields[index])

    def _own(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.working.business) or self.working.schema.names

    def _joined(self, alias: str, name: str) -> Column | Diagnostic:
        schema = self.joins[alias]
        if schema is None:
            return Column(("j", alias, name), NULL)
        index = schema.find(name)
        if index is not None:
            return Column.of(("j", alias, schema.fields[index].name), schema.fields[index], padded=True)
        written = f"{alias}.{name}"
        help = suggest(name, schema.names, "columns are")
        if self.where == "assignment":
            return Diagnostic("W1208", f"Unknown column '{written}' in assignment expression", help=help)
        return self._finding(written, f"join {alias!r} has no column {name!r}", help)

    def _looked_up(self, node: LookupNode, alias: str, name: str) -> Column | Diagnostic:
        schema = node.schema
        # The file of the dataset has errors of its own; they are reported there, not at each use.
        if schema is None and node.missing is not None and node.missing.kind == "unread":
            return Column(("l", node.path, name), NULL)
        if schema is None:
            dataset_name = node.missing.name if node.missing else node.path
            return Diagnostic(
                "W1213",
                f"lookup {alias!r} reads dataset {dataset_name!r}, which is missing or disabled",
                help="correct the lookup in the dataset, or name another column",
            )
        index = schema.find(name)
        if index is None:
            written = f"{alias}.{name}"
            return self._unknown(written, f"lookup {alias!r} has no column {name!r}", name, schema.names)
        return Column.of(("l", node.path, schema.fields[index].name), schema.fields[index], padded=True)

    def _no_table(self, qualifier: str, name: str) -> Diagnostic:
        known = (*self.joins, self.working.table, *self.lookups, self.working.dataset.name)
        written = f"{qualifier}.{name}"
        if qualifier in self.later:
            help = f"join {qualifier!r} is listed later: joins run in the order they are listed"
        elif qualifier in self.elsewhere:
            help = f"{qualifier!r} is a join of operation {self.elsewhere[qualifier]}: an alias is valid in one operation only"
        else:
            close = find_similar(qualifier, known)
            help = (
                f"did you mean {' or '.join(repr(f'{c}.{name}') for c in close)}?"
                if close
                else f"tables and joins are {format_list(dict.fromkeys(known))}"
            )
        if self.where == "assignment":
            return Diagnostic("W1208", f"Unknown column '{written}' in assignment expression", help=help)
        return self._finding(written, f"unknown table or join {qualifier!r}", help)

    def _unknown(self, written: str, message: str, name: str, known: tuple[str, ...]) -> Diagnostic:
        return self._finding(written, message, suggest(name, known, "columns are"))

    def _finding(self, written: str, message: str, help: str) -> Diagnostic:
        if self.where == "condition":
            return Diagnostic("W1207", f"Unknown column '{written}' in join condition", help=help)
        return Diagnostic("W0207", message, help=help)
