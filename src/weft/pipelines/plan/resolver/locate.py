"""Locates the data of a dataset in a project: chooses the resolver, applies it and checks the datasources.

The resolver is the override of the project, else the resolver of the dataset, else the default of the workspace.  When it
is missing or disabled, this is an error: a fallback would read data that the user did not choose.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from weft.core.calendar import Calendar, Period
from weft.core.names import suggest
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
    """The resolver of a dataset and where it was set; None is the built-in resolver of registered datasets."""

    resolver: Resolver | None
    source: ResolverSource

    @property
    def id(self) -> str:
        """Id of the resolver."""
        return PUBLISHED if self.resolver is None else self.resolver.id

    @property
    def version(self) -> int:
        """Version of the resolver; the built-in one is always 1."""
        return 1 if self.resolver is None else self.resolver.version


def choose_resolver(dataset: Dataset, project: Project | None, catalog: Catalog) -> ResolverChoice:
    """Return the resolver of a dataset in a project; raise `ResolutionError` when there is none."""
    # An override applies to lookups and joined datasets too, not only to the input.
    override = _override(dataset, project)
    if override is not None and project is not None:
        key, name = override
        at = project.at.of(f"resolver_overrides.{key}")
        subject = f"project {project.name!r} overrides the resolver of {dataset.name!r} with"
        return _find_named(name, subject, "project_override", at, catalog)
    if dataset.resolver_id is not None:
        at = dataset.at.of("resolver_id")
        return _find_named(dataset.resolver_id, f"dataset {dataset} names", "dataset_resolver", at, catalog)
    if dataset.origin == "registered":
        return ResolverChoice(resolver=None, source="dataset_resolver")
    settings = catalog.settings
    if settings.default_resolver is not None:
        at = settings.at.of("default_resolver")
        return _find_named(settings.default_resolver, "the default in weft.yml is", "system_default", at, catalog)
    default = catalog.default_resolver()
    if default is not None:
        return _find_named(default.id, "the default is", "system_default", default.at.of("status"), catalog)
    raise ResolutionError(
        f"dataset {dataset} has no resolver, and no default resolver is set",
        code="W1303",
        help="give the dataset a `resolver_id`, or write `default_resolver` into weft.yml",
        at=dataset.at.whole,
    )


def _override(dataset: Dataset, project: Project | None) -> tuple[str, str] | None:
    """Return the key and the resolver of the project's override; the dataset id takes precedence over its name."""
    overrides = {} if project is None else project.resolver_overrides
    for key in (dataset.id, dataset.name):
        if key in overrides:
            return key, overrides[key]
    return None


def _find_named(
    requested: str, subject: str, source: ResolverSource, at: Source | None, catalog: Catalog
) -> ResolverChoice:
    if requested == PUBLISHED:
        return ResolverChoice(resolver=None, source=source)
    resolver = catalog.resolver(requested)
    if resolver is None:
        names = [name for r in catalog.workspace.resolvers for name in dict.fromkeys((r.id, r.name))]
        raise ResolutionError(
            f"{subject} the resolver {requested!r}, which does not exist",
            code="W1301",
            help=suggest(requested, names, "resolvers are", most=1),
            at=at,
        )
    if resolver.status == "disabled":
        raise ResolutionError(
            f"{subject} the resolver {requested!r}, which is disabled",
            code="W1302",
            help="set `status: active` in its file, or name another; no other resolver is used as a fallback",
            at=at,
        )
    return ResolverChoice(resolver=resolver, source=source)


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
    """Return the locations of the data of a table in a run of `period`.

    Raises `ResolutionError`, also when a datasource is missing or disabled.
    """
    by = chosen or choose_resolver(dataset, project, catalog)
    if by.resolver is None:
        known = resolve_published(dataset, table, period, calendar, catalog, source=by.source)
        for location in known.locations:
            find_datasource(location, catalog)
        return known
    resolution = resolve_table(by.resolver, dataset, table, period, calendar, source=by.source)
    # All locations of a resolution are from one rule.
    rule = next(r for r in by.resolver.rules if r.name == resolution.locations[0].rule_name)
    for location in resolution.locations:
        if location.datasource_id:
            find_datasource(location, catalog, at=rule.strategy.at.of("datasource_id"))
    return resolution


def find_datasource(location: Location, catalog: Catalog, *, at: Source | None = None) -> DataSource | None:
    """Return the datasource of a location, None when it needs none; raise when it is missing or disabled."""
    name = location.datasource_id
    if name in ("", PUBLISHED):
        return None
    source = catalog.datasource(name)
    if source is None:
        names = [s.id for s in catalog.workspace.datasources]
        raise ResolutionError(
            f"unknown datasource {name!r} in rule {location.rule_name!r} of resolver {location.resolver_id!r}",
            code="W1020",
            help=suggest(name, names, "datasources are", most=1),
            at=at,
        )
    if source.status == "disabled":
        raise ResolutionError(
            f"datasource {source.id!r} is disabled, and rule {location.rule_name!r} of resolver "
            f"{location.resolver_id!r} reads from it",
            code="W1315",
            help="set `status: active` in its file, or let the rule read from another datasource",
            at=at,
        )
    return source


def measure_bytes(read: Read, catalog: Catalog, root: Path) -> int | None:
    """Return the total size of the files of a read; None when it is unknown."""
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
            return None  # missing data is reported when it is read; an estimate of zero would be broadcast
    return total if read.locations else None


def find_missing_data(read: Read, catalog: Catalog, root: Path) -> tuple[Diagnostic, ...]:
    """Return a warning when local files of a read are missing; remote locations are not checked."""
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
    findings = missing_data_error(missing).diagnostics if missing else ()
    return tuple(replace(d, message=f"{read.name}: {d.message}", severity="warning") for d in findings)
