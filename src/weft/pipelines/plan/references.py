"""What only the catalog knows: whether the datasets that files name are there, runs' own included."""

from __future__ import annotations

from collections.abc import Iterator

from weft.core.names import listed
from weft.core.names import near as nearest
from weft.core.source import Source
from weft.core.types import common_type
from weft.errors import Diagnostic
from weft.io.connectors import check_datasource
from weft.pipelines.model.dataset import Dataset, DatasetRef, LookupDef
from weft.pipelines.model.operation import Append, Update
from weft.pipelines.model.project import Project
from weft.pipelines.plan.catalog import Catalog, Missing
from weft.pipelines.plan.resolver.checks import check_resolver


def catalog_findings(catalog: Catalog) -> tuple[Diagnostic, ...]:
    """Return what is wrong with the entities that a project's own check does not look at.

    Those are datasources, the rules of resolvers, lookups that are datasets, and the datasets whose
    resolver a project overrides.
    """
    workspace = catalog.workspace
    return (
        *(finding for source in workspace.datasources for finding in check_datasource(source)),
        *(finding for resolver in workspace.resolvers for finding in check_resolver(resolver)),
        *_lookups(catalog),
        *_overrides(catalog),
    )


def dataset_references(project: Project) -> Iterator[tuple[int | None, DatasetRef]]:
    """Yield every dataset that a project names, with the operation that names it.

    The input is named by none.
    """
    yield None, project.input
    for operation in project.operations:
        if isinstance(operation.arguments, Update):
            for join in operation.arguments.joins:
                yield operation.seq, join.dataset
        elif isinstance(operation.arguments, Append):
            yield operation.seq, operation.arguments.source


def _lookups(catalog: Catalog) -> Iterator[Diagnostic]:
    for dataset in catalog.workspace.datasets:
        for lookup in dataset.lookups:
            if not isinstance(lookup.target, DatasetRef):
                continue
            found = catalog.dataset(lookup.target)
            if isinstance(found, Missing):
                if found.kind != "unread":
                    yield _missing(found, lookup.target.at)
            else:
                yield from _conditions(dataset, lookup, found.dataset)


def _conditions(dataset: Dataset, lookup: LookupDef, target: Dataset) -> Iterator[Diagnostic]:
    left, right = dataset.main_table.schema, target.main_table.schema
    for i, (source, other) in enumerate(lookup.join_conditions):
        at = lookup.at.of(f"join_conditions.{i}.target_column")
        if other not in right:
            close = nearest(other, right.names, most=1)
            help = f"did you mean {close[0]!r}?" if close else f"it has {listed(right.names)}"
            yield Diagnostic("W1019", f"dataset {target} has no column {other!r}", help=help, at=at)
        elif source in left and common_type(left[source].dtype, right[other].dtype) is None:
            yield Diagnostic(
                "W1019",
                f"{source!r} is {left[source].dtype} and {other!r} is {right[other].dtype}: they cannot be equal",
                help="give both columns one type",
                at=at,
            )


def _overrides(catalog: Catalog) -> Iterator[Diagnostic]:
    for project in catalog.workspace.projects:
        for said in project.resolver_overrides:
            found = catalog.dataset(DatasetRef(said))
            if isinstance(found, Missing) and found.kind == "dataset":
                yield _missing(found, project.at.key(f"resolver_overrides.{said}"))


def _missing(found: Missing, at: Source | None) -> Diagnostic:
    if found.kind == "dataset":
        near = f"did you mean {found.near[0]!r}?" if found.near else "write it in datasets/"
        help = found.next_step or near
        return Diagnostic("W1020", f"there is no dataset {found.said!r}", help=help, at=at)
    if found.kind == "version":
        message = f"dataset {found.said!r} has no version {found.version}"
        return Diagnostic("W1020", message, help=f"its versions are {', '.join(found.near)}", at=at)
    return Diagnostic(
        "W1020", f"dataset {found.said!r} is disabled", help="enable it, or name another dataset", at=at
    )
