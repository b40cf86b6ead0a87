"""Snapshot: everything that determines a run, as one immutable JSON document.

::

    {"schema": "weft/snapshot/1", "engine": ..., "project": ..., "period": ..., "calendar": ...,
     "resolver_snapshot": {"input_dataset_id", "input_dataset_version", "join_datasets": [...]},
     "pins": [...], "datasets": {"id@version": ...}, "resolvers": ..., "datasources": ...,
     "locations": ..., "inputs": ..., "session": ..., "environment": ..., "plan": "<hash>"}

`plan_from_snapshot` restores the project and the catalog, so that a run can be repeated from it alone,
whatever happened to the files of the workspace.  Settings that cannot change a result are in `environment`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

from weft.core.calendar import Calendar, Period
from weft.core.fingerprint import fingerprint
from weft.core.listed_calendar import ListedCalendar, calendar_from_dict
from weft.errors import StoreError, WeftError
from weft.io.datasource import DataSource
from weft.pipelines.model.build import entity_from_dict
from weft.pipelines.model.dataset import Dataset, DatasetRef
from weft.pipelines.model.operation import Output, RuntimeJoin, Update
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import Resolver
from weft.pipelines.model.workspace import CalendarFile, Sandbox, Settings, Workspace
from weft.pipelines.plan.catalog import Catalog, PublishedLocation, RegisteredVersion, ResolvedDataset
from weft.pipelines.plan.check import list_dataset_references
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.plan.resolver.locate import choose_resolver
from weft.pipelines.store.column_types import moment_text
from weft.pipelines.store.records import PinnedJoin, ResolverSnapshot


@dataclass(frozen=True, slots=True)
class Requirements:
    """The entities that a project needs to be planned again."""

    datasets: tuple[Dataset, ...]
    resolvers: tuple[Resolver, ...]
    datasources: tuple[DataSource, ...]


def collect_requirements(project: Project, catalog: Catalog) -> Requirements:
    """Return the entities that a project references, in their current versions."""
    datasets = tuple(_datasets(project, catalog))
    named = (*project.resolver_overrides.values(), *(d.resolver_id for d in datasets if d.resolver_id is not None))
    candidates = [catalog.resolver(name) for name in named] + [catalog.default_resolver()]
    resolvers = {r.id: r for r in candidates if r is not None}
    return Requirements(
        datasets=datasets,
        resolvers=tuple(resolvers[id] for id in sorted(resolvers)),
        datasources=tuple(_datasources(project, resolvers.values(), datasets, catalog)),
    )


def _datasets(project: Project, catalog: Catalog) -> Iterator[Dataset]:
    """Yield each dataset once; a lookup may lead to another dataset."""
    waiting = [ref for _, ref in list_dataset_references(project)]
    for operation in project.operations:
        arguments = operation.arguments
        # A registered output continues the id of an existing dataset, and a merge uses its key.
        if isinstance(arguments, Output) and arguments.register_as_dataset is not None:
            waiting.append(DatasetRef(arguments.register_as_dataset))
    seen: set[tuple[str, int]] = set()
    # The list grows while it is walked: a dataset adds the targets of its lookups.
    for ref in waiting:
        resolved = catalog.dataset(ref)
        if not isinstance(resolved, ResolvedDataset) or (resolved.dataset.id, resolved.dataset.version) in seen:
            continue
        seen.add((resolved.dataset.id, resolved.dataset.version))
        yield resolved.dataset
        waiting += [x.target for x in resolved.dataset.lookups if isinstance(x.target, DatasetRef)]


def _datasources(
    project: Project, resolvers: Iterable[Resolver], datasets: Iterable[Dataset], catalog: Catalog
) -> Iterator[DataSource]:
    named = {rule.strategy.datasource for resolver in resolvers for rule in resolver.rules}
    named |= {place.datasource for dataset in datasets for place in catalog.published(dataset)}
    for operation in project.operations:
        if isinstance(operation.arguments, Output):
            named.add(operation.arguments.destination.datasource)
    sources = {source.id: source for name in named if name and (source := catalog.datasource(name))}
    yield from (sources[id] for id in sorted(sources))


SCHEMA = "weft/snapshot/1"
# The settings of a session that can change a result; the others are written to `environment`.
_COMPARED = ("timeZone", "caseSensitive", "ansi", "spark_version")


def build_snapshot(
    plan: ProjectPlan,
    catalog: Catalog,
    *,
    engine_version: str,
    session: Mapping[str, Any],
    inputs: Mapping[str, Any],
    today: dt.date,
    known_at: dt.datetime,
    run_at: dt.datetime,
) -> dict[str, Any]:
    """Return the snapshot of a run that is about to start.

    `inputs` gives each read, by name, the fingerprint of what it will read.
    """
    planned = _planned(plan, catalog)
    return {
        "schema": SCHEMA,
        "engine": engine_version,
        **planned,
        "plan": _hash(planned),
        "known_at": moment_text(known_at),
        "run_at": moment_text(run_at),
        "today": today.isoformat(),
        "inputs": {name: _plain(seen) for name, seen in sorted(inputs.items())},
        "session": {key: _plain(session[key]) for key in _COMPARED if key in session},
        "environment": {key: _plain(value) for key, value in session.items() if key not in _COMPARED},
    }


def plan_fingerprint(plan: ProjectPlan, catalog: Catalog) -> str:
    """Return the hash of a plan and its data locations; equal plans have equal hashes."""
    return _hash(_planned(plan, catalog))


def _hash(planned: Mapping[str, Any]) -> str:
    """Return the hash of a plan: it includes only the datasets that are read, since an output of the plan would change it."""
    read = {f"{pin['dataset_id']}@{pin['dataset_version']}" for pin in planned["pins"]}
    rest = {key: part for key, part in planned.items() if key not in ("datasets", "published", "resolvers")}
    return fingerprint({**rest, "datasets": {key: planned["datasets"][key] for key in sorted(read)}})


def _planned(plan: ProjectPlan, catalog: Catalog) -> dict[str, Any]:
    project, reads = plan.project, {read.name: read for read in (plan.input, *plan.reads)}.values()
    needed = collect_requirements(project, catalog)
    return {
        "project": {
            "id": project.id,
            "name": project.name,
            "version": project.version,
            "status": project.status,
            "checkpoint_every": project.checkpoint_every,
            "behaviour": project.behaviour(),
        },
        "period": None if plan.period is None else _period(plan.period),
        "calendar": _calendar(catalog.calendar(plan.calendar)),
        "sandbox": plan.draft,
        "materialization": project.materialization,
        "selectors": {name: selector.text for name, selector in project.selectors.items()},
        "operations": [operation.to_dict() for operation in project.operations],
        "resolver_overrides": dict(project.resolver_overrides),
        "resolver_snapshot": resolver_snapshot(plan, catalog),
        "pins": [_plain(read.pin) for read in reads],
        "locations": [{"read": read.name, **_plain(place)} for read in reads for place in read.locations],
        **_bodies(needed, catalog),
    }


def _bodies(needed: Requirements, catalog: Catalog) -> dict[str, Any]:
    settings, default = catalog.settings, catalog.default_resolver()
    return {
        "datasets": {f"{d.id}@{d.version}": d.to_dict() for d in needed.datasets},
        "published": {
            f"{d.id}@{d.version}": [_plain(place) for place in catalog.published(d)]
            for d in needed.datasets
            if d.origin == "registered"
        },
        "resolvers": {f"{r.id}@{r.version}": r.to_dict() for r in needed.resolvers},
        "datasources": {source.id: source.to_dict() for source in needed.datasources},
        "settings": {
            "default_resolver": None if default is None else default.id,
            "conformance": settings.conformance,
            "sandbox": settings.sandbox.path,
        },
    }


def resolver_snapshot(plan: ProjectPlan, catalog: Catalog) -> ResolverSnapshot:
    """Return which versions a plan reads: its input, and one entry for every join of every update."""
    pin = plan.input.pin
    return {
        "input_dataset_id": pin.dataset_id,
        "input_dataset_version": pin.dataset_version,
        "join_datasets": [
            _join(operation.seq, join, plan, catalog)
            for operation in plan.project.operations
            if isinstance(operation.arguments, Update)
            for join in operation.arguments.joins
        ],
    }


def _join(seq: int, join: RuntimeJoin, plan: ProjectPlan, catalog: Catalog) -> PinnedJoin:
    alias = join.alias.text
    pin = next((r.pin for r in plan.reads if (r.pin.role, r.pin.seq, r.pin.alias) == ("join", seq, alias)), None)
    if pin is not None:
        id, version, source = pin.dataset_id, pin.dataset_version, pin.resolver_source
    else:  # the input joined to itself is read once, as the input
        dataset = plan.input.dataset
        id, version, source = dataset.id, dataset.version, choose_resolver(dataset, plan.project, catalog).source
    return {"alias": alias, "dataset_id": id, "dataset_version": version, "resolver_source": source}


def _period(period: Period) -> dict[str, Any]:
    return {
        "identifier": period.identifier,
        "level": period.level,
        "start_date": period.start_date.isoformat(),
        "end_date": period.end_date.isoformat(),
        "calendar": period.calendar,
        "status": period.status,
    }


def _calendar(calendar: Calendar) -> dict[str, Any]:
    if not isinstance(calendar, ListedCalendar):
        return {"name": calendar.name, "built_in": True}
    keys = ("identifier", "level", "start_date", "end_date", "status")
    return {
        "name": calendar.name,
        "levels": [
            {"name": level.name, **({"parent": level.parent} if level.parent else {})} for level in calendar.levels
        ],
        "periods": [{key: _period(period)[key] for key in keys} for period in calendar.periods],
    }


def _plain(value: Any) -> Any:
    """Return a record as a JSON value."""
    if hasattr(value, "to_dict"):
        return _plain(value.to_dict())
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dt.datetime):
        return moment_text(value)
    return value.isoformat() if isinstance(value, dt.date) else value


def plan_from_snapshot(snapshot: Mapping[str, Any], root: Path = Path()) -> tuple[Project, Catalog]:
    """Return the project and the catalog that a snapshot holds; `root` is the folder of the workspace."""
    if snapshot.get("schema") != SCHEMA:
        raise StoreError(
            f"unsupported snapshot format {snapshot.get('schema')!r}; this release reads {SCHEMA!r}",
            code="W1604",
            help="use the release of Weft that made the run",
        )
    try:
        return _rebuilt(snapshot, root)
    except (WeftError, KeyError, TypeError) as cause:
        raise StoreError(f"invalid snapshot: {cause}", code="W1602", help="restore the store from a copy") from cause


def _rebuilt(snapshot: Mapping[str, Any], root: Path) -> tuple[Project, Catalog]:
    body = dict(snapshot["project"])
    project = entity_from_dict(Project, {**body.pop("behaviour"), **body})
    datasets = {key: entity_from_dict(Dataset, body) for key, body in snapshot["datasets"].items()}
    settings = snapshot["settings"]
    workspace = Workspace(
        root=root,
        settings=Settings(
            default_resolver=settings["default_resolver"],
            conformance=settings["conformance"],
            sandbox=Sandbox(path=settings["sandbox"]),
        ),
        calendars=_calendars(snapshot["calendar"]),
        datasources=tuple(entity_from_dict(DataSource, body) for body in snapshot["datasources"].values()),
        resolvers=tuple(entity_from_dict(Resolver, body) for body in snapshot["resolvers"].values()),
        datasets=tuple(d for d in datasets.values() if d.origin == "file"),
        projects=(project,),
    )
    registered = (
        RegisteredVersion(
            dataset=datasets[key], locations=tuple(PublishedLocation.from_dict(place) for place in places)
        )
        for key, places in snapshot["published"].items()
    )
    return project, Catalog.of(workspace, registered)


def _calendars(body: Mapping[str, Any]) -> tuple[CalendarFile, ...]:
    if body.get("built_in"):
        return ()
    calendar = calendar_from_dict(body)
    return (CalendarFile(name=calendar.name, calendar=calendar),)


def period_from_snapshot(snapshot: Mapping[str, Any]) -> Period:
    """Return the period of a run, with the days and the status it had."""
    period = snapshot["period"]
    return Period(
        period["identifier"],
        period["level"],
        dt.date.fromisoformat(period["start_date"]),
        dt.date.fromisoformat(period["end_date"]) + dt.timedelta(days=1),  # a snapshot has the last day
        period["calendar"],
        period["status"],
    )
