"""Everything that a project can come to read: its datasets, their lookups, resolvers and datasources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.io.datasource import DataSource
from weft.pipelines.model.dataset import Dataset, DatasetRef
from weft.pipelines.model.operation import Output
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import Resolver
from weft.pipelines.plan.catalog import Catalog, DatasetFound
from weft.pipelines.plan.references import dataset_references


@dataclass(frozen=True, slots=True)
class Reached:
    """What a project needs of a catalog to be planned again."""

    datasets: tuple[Dataset, ...]
    resolvers: tuple[Resolver, ...]
    datasources: tuple[DataSource, ...]


def reached(project: Project, catalog: Catalog) -> Reached:
    """Return what the references of a project lead to, in the versions they mean now."""
    datasets = tuple(_datasets(project, catalog))
    named = (
        *project.resolver_overrides.values(),
        *(d.resolver_id for d in datasets if d.resolver_id is not None),
    )
    found = [catalog.resolver(said) for said in named] + [catalog.default_resolver()]
    resolvers = {r.id: r for r in found if r is not None}
    return Reached(
        datasets=datasets,
        resolvers=tuple(resolvers[id] for id in sorted(resolvers)),
        datasources=tuple(_datasources(project, resolvers.values(), datasets, catalog)),
    )


def _datasets(project: Project, catalog: Catalog) -> Iterator[Dataset]:
    """Yield each dataset once; a lookup may lead to another dataset."""
    waiting = [ref for _, ref in dataset_references(project)]
    for operation in project.operations:
        arguments = operation.arguments
        # What an output registers goes on under the id, and may be merged by the key, of what is there.
        if isinstance(arguments, Output) and arguments.register_as_dataset is not None:
            waiting.append(DatasetRef(arguments.register_as_dataset))
    seen: set[tuple[str, int]] = set()
    for ref in waiting:
        found = catalog.dataset(ref)
        if not isinstance(found, DatasetFound) or (found.dataset.id, found.dataset.version) in seen:
            continue
        seen.add((found.dataset.id, found.dataset.version))
        yield found.dataset
        waiting += [x.target for x in found.dataset.lookups if isinstance(x.target, DatasetRef)]


def _datasources(
    project: Project, resolvers: Iterable[Resolver], datasets: Iterable[Dataset], catalog: Catalog
) -> Iterator[DataSource]:
    named = {rule.strategy.datasource for resolver in resolvers for rule in resolver.rules}
    named |= {place.datasource for dataset in datasets for place in catalog.published(dataset)}
    for operation in project.operations:
        if isinstance(operation.arguments, Output):
            named.add(operation.arguments.destination.datasource)
    found = {source.id: source for said in named if said and (source := catalog.datasource(said))}
    yield from (found[id] for id in sorted(found))
