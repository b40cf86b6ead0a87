"""Lookups of a dataset, also those of datasets that a lookup leads to, under the names expressions use.

Before::

    orders    lookups: customer -> dataset customers      on customer_id = id
    customers lookups: country  -> table countries        on country_code = code

After::

    customer                    orders.customer_id = customers.id
    country, customer.country   customers.country_code = countries.code

A nested lookup has its own alias when nothing nearer has that name, and always its path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from weft.core.sites import NOWHERE, Sites
from weft.core.types import Schema
from weft.errors import OperationError
from weft.pipelines.model.dataset import Dataset, LookupDef, TableDef
from weft.pipelines.model.reference import AsOfSaid
from weft.pipelines.plan.catalog import Catalog, Missing

DEEPEST = 5
"""How many lookups may follow one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupNode:
    """A lookup by its path; `table` is None when its dataset cannot be taken, and `missing` says why."""

    path: str
    dataset: Dataset
    table: TableDef | None
    parent: str | None
    conditions: tuple[tuple[str, str], ...]
    as_of: AsOfSaid
    at: Sites
    missing: Missing | None = None

    @property
    def schema(self) -> Schema | None:
        """The columns that can be read, None when nobody knows."""
        return None if self.table is None else self.table.schema


def lookup_nodes(dataset: Dataset, catalog: Catalog) -> Mapping[str, LookupNode]:
    """Return every lookup under each name it has; lookups that lead back to themselves raise W1212."""
    nodes = tuple(_below(dataset, catalog, None, (dataset.id,), NOWHERE))
    nodes = tuple(sorted(nodes, key=lambda n: n.path.count(".")))
    named: dict[str, LookupNode] = {}
    for node in nodes:
        named.setdefault(node.path, node)
    for node in nodes:
        short = node.path.rpartition(".")[2]
        if short != dataset.main_table.name:
            named.setdefault(short, node)
    return named


def _below(
    dataset: Dataset, catalog: Catalog, parent: str | None, above: tuple[str, ...], at: Sites
) -> Iterator[LookupNode]:
    for lookup in dataset.lookups:
        place = lookup.at if parent is None else at
        path = lookup.alias if parent is None else f"{parent}.{lookup.alias}"
        target = lookup.target
        if isinstance(target, TableDef):
            yield _node(path, parent, lookup, dataset, target, place)
            continue
        found = catalog.dataset(target)
        if isinstance(found, Missing):
            yield _node(path, parent, lookup, dataset, None, place, found)
            continue
        inner = found.dataset
        if inner.id in above or len(above) > DEEPEST:
            raise _endless(inner, path, above, place)
        yield _node(path, parent, lookup, inner, inner.main_table, place)
        yield from _below(inner, catalog, path, (*above, inner.id), place)


def _node(
    path: str,
    parent: str | None,
    lookup: LookupDef,
    dataset: Dataset,
    table: TableDef | None,
    at: Sites,
    missing: Missing | None = None,
) -> LookupNode:
    return LookupNode(
        path=path,
        dataset=dataset,
        table=table,
        parent=parent,
        conditions=lookup.join_conditions,
        as_of=lookup.as_of,
        at=at,
        missing=missing,
    )


def _endless(dataset: Dataset, path: str, above: tuple[str, ...], at: Sites) -> OperationError:
    if dataset.id in above:
        message = f"lookup {path!r} leads back to dataset {dataset}"
        help = "leave one of the lookups out, or join the dataset in the update that needs it"
    else:
        message = f"lookup {path!r} is nested more than {DEEPEST} deep"
        help = "join the dataset in the update that needs it"
    return OperationError(message, code="W1212", help=help, at=at.of("target"))
