"""From a dataset in a project to the places that hold its data: choose the resolver, ask it, check the answer.

Which resolver answers for a dataset: the project's override, the dataset's own, the workspace's default.

The first of the three that is named decides.  A named resolver that is missing or disabled is an error: a
fallback would read other data than the user asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from weft.core.calendar import Calendar, Period
from weft.core.names import find_similar, format_list
from weft.core.source import Source
from weft.errors import Diagnostic, ResolutionError
from weft.io.datasource import DataSource
from weft.io.location import PUBLISHED, Location, full_path, is_local, list_data_files, missing_data_error
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import Resolver
from weft.pipelines.model.values import ResolverSource
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.reads import Read
from weft.pipelines.plan.resolver.published import resolve_published
from weft.pipelines.plan.resolver.rules import Resolution, resolve_table


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverChoice:
    """The resolver of a dataset and who named it; None is the one of datasets that runs registered."""

    resolver: Resolver | None
    source: ResolverSource

    @property
    def id(self) -> str:
        """Id of the resolver."""
        return PUBLISHED if self.resolver is None else self.resolver.id

    @property
    def version(self) -> int:
        """Version of the resolver; the built-in one is always the first."""
        return 1 if self.resolver is None else self.resolver.version


def choose_resolver(dataset: Dataset, project: Project | None, catalog: Catalog) -> ResolverChoice:
    """Return the resolver that answers for a dataset in a project; raise `ResolutionError` when there is none."""
    override = _override(dataset, project)
    if override is not None and project is not None:
        key, said = override
        at = project.at.of(f"resolver_overrides.{key}")
        told = f"project {project.name!r} overrides the resolver of {dataset.name!r} with"
        return _named(said, told, "project_override", at, catalog)
    if dataset.resolver_id is not None:
        at = dataset.at.of("resolver_id")
        return _named(dataset.resolver_id, f"dataset {dataset} names", "dataset_resolver", at, catalog)
    if dataset.origin == "registered":
        return ResolverChoice(resolver=None, source="dataset_resolver")
    settings = catalog.settings
    if settings.default_resolver is not None:
        at = settings.at.of("default_resolver")
        return _named(settings.default_resolver, "weft.yml names as default", "system_default", at, catalog)
    default = catalog.default_resolver()
    if default is not None:
        return _named(default.id, "the default is", "system_default", default.at.of("status"), catalog)
    raise ResolutionError(
        f"nothing says where the data of {dataset} lies: no resolver is named and none is the default",
        code="W1303",
        help="give the dataset a `resolver_id`, or write `default_resolver` into weft.yml",
        at=dataset.at.whole,
    )


def _override(dataset: Dataset, project: Project | None) -> tuple[str, str] | None:
    """Return the key and the resolver of the project's override; the id of the dataset goes before its name."""
    overrides = {} if project is None else project.resolver_overrides
    for key in (dataset.id, dataset.name):
        if key in overrides:
            return key, overrides[key]
    return None


def _named(
    said: str, told: str, source: ResolverSource, at: Source | None, catalog: Catalog
) -> ResolverChoice:
    if said == PUBLISHED:
        return ResolverChoice(resolver=None, source=source)
    found = catalog.resolver(said)
    if found is None:
        names = [name for r in catalog.workspace.resolvers for name in dict.fromkeys((r.id, r.name))]
        close = find_similar(said, names, most=1)
        raise ResolutionError(
            f"{told} the resolver {said!r}, which is not there",
            code="W1301",
            help=f"did you mean {close[0]!r}?" if close else f"resolvers are {format_list(names)}",
            at=at,
        )
    if found.status == "disabled":
        raise ResolutionError(
            f"{told} the resolver {said!r}, which is disabled",
            code="W1302",
            help="set `status: active` in its file, or name another; no other resolver takes its place",
            at=at,
        )
    return ResolverChoice(resolver=found, source=source)


def locate(
    dataset: Dataset,
    table: TableDef,
    project: Project | None,
    catalog: Catalog,
    period: Period,
    calendar: Calendar,
    *,
    chosen: ResolverChoice | None = None,
) -> Resolution:
    """Return where the data of a table lies in a run of `period`.

    Raises `ResolutionError`, also when a datasource that is needed is missing or disabled.
    """
    by = chosen or choose_resolver(dataset, project, catalog)
    if by.resolver is None:
        known = resolve_published(dataset, table, period, calendar, catalog, source=by.source)
        for location in known.locations:
            find_datasource(location, catalog)
        return known
    found = resolve_table(by.resolver, dataset, table, period, calendar, source=by.source)
    rule = next(r for r in by.resolver.rules if r.name == found.locations[0].rule_name)
    for location in found.locations:
        if location.datasource_id:
            find_datasource(location, catalog, at=rule.strategy.at.of("datasource_id"))
    return found


def find_datasource(location: Location, catalog: Catalog, *, at: Source | None = None) -> DataSource | None:
    """Return the datasource of a location, None when it needs none; a missing or disabled one raises."""
    said = location.datasource_id
    if said in ("", PUBLISHED):
        return None
    found = catalog.datasource(said)
    if found is None:
        names = [s.id for s in catalog.workspace.datasources]
        close = find_similar(said, names, most=1)
        raise ResolutionError(
            f"rule {location.rule_name!r} of resolver {location.resolver_id!r} reads from {said!r}, which is no datasource",
            code="W1020",
            help=f"did you mean {close[0]!r}?" if close else f"datasources are {format_list(names)}",
            at=at,
        )
    if found.status == "disabled":
        raise ResolutionError(
            f"datasource {found.id!r} is disabled, and rule {location.rule_name!r} of resolver "
            f"{location.resolver_id!r} reads from it",
            code="W1315",
            help="set `status: active` in its file, or let the rule read from another datasource",
            at=at,
        )
    return found


def measure_bytes(read: Read, catalog: Catalog, root: Path) -> int | None:
    """Return how many bytes the files of a read have; None when nobody knows without asking."""
    total = 0
    for location in read.locations:
        if location.path is None:
            return None
        try:
            path = full_path(location, find_datasource(location, catalog), root)
            files = list_data_files(path) if is_local(path) else ()
            total += sum(file.stat().st_size for file in files)
        except (ResolutionError, OSError):
            return None
        if not files:
            return None
    return total if read.locations else None


def find_missing_data(read: Read, catalog: Catalog, root: Path) -> tuple[Diagnostic, ...]:
    """Return a warning when a run would not find the files of a read; places elsewhere are not asked."""
    missing = []
    for location in read.locations:
        if location.path is None or location.missing == "skip":
            continue
        try:
            path = full_path(location, find_datasource(location, catalog), root)
        except ResolutionError as problem:
            return tuple(replace(d, severity="warning") for d in problem.diagnostics)
        if is_local(path) and not list_data_files(path):
            missing.append((location, path))
    found = missing_data_error(missing).diagnostics if missing else ()
    return tuple(replace(d, message=f"{read.name}: {d.message}", severity="warning") for d in found)
