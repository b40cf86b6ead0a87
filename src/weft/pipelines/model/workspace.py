"""Workspace: the entities of one folder, with its settings and calendars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from weft.core.calendar import GREGORIAN, Calendar
from weft.core.findings import MAX_FINDINGS
from weft.core.listed_calendar import calendar_from_dict
from weft.core.paths import escapes_folder
from weft.core.source import NO_SOURCES, Source, SourceMap
from weft.core.spec import NEVER, REQUIRED, Limits, Locations, ReadAs, Spec, Text, freeze_values
from weft.errors import PeriodError
from weft.io.datasource import DataSource
from weft.io.options import SparkSettings
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.entries import Entries, Findings, Name, check_path_name, collect_sites
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import Resolver, check_secret
from weft.pipelines.model.scenario import Scenario
from weft.pipelines.model.values import CalendarStatus, Conformance
from weft.pipelines.model.yaml_nodes import Node, to_python

DEFAULT_STORE = "sqlite:///.weft/weft.db"
_IN_SPARK = "set it where Spark runs: in the environment, in spark-defaults.conf or in core-site.xml"
_IN_STORE = "use PGPASSWORD, ~/.pgpass, or `store: env:NAME`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox(Spec):
    """Where draft projects write."""

    path: Text = field(default=".weft/sandbox", metadata=REQUIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Spec):
    """The settings of a workspace; every key may be left out."""

    weft: Literal[1] | None = field(default=None, compare=False, repr=False, metadata=NEVER)
    store: Text = DEFAULT_STORE
    spark: SparkSettings = field(default_factory=SparkSettings)
    default_resolver: Text | None = None
    sandbox: Sandbox = Sandbox()
    conformance: Conformance = "extended"
    notify: Annotated[tuple[Any, ...], ReadAs(tuple[Any, ...], freeze_values)] = ()
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)


def check_settings(settings: Settings, entries: Entries) -> Settings:
    """Return settings; report secrets and keys that contradict each other."""
    spark, sandbox = entries.part("spark"), entries.part("sandbox")
    if spark is not None and spark.located("master") is not None and spark.located("remote") is not None:
        spark.report("W1006", "'master' and 'remote' cannot both be set", "remote", "keep one of them")
    if sandbox is not None and escapes_folder(sandbox.text("path")):
        sandbox.report(
            "W1311",
            f"the sandbox {sandbox.text('path')!r} is outside the workspace",
            "path",
            "use a folder of the workspace, or an absolute path",
        )
    for item in entries.node.pairs():
        if item.name == "store":
            check_secret("the setting", item, _IN_STORE, entries.findings, "warning")
    if spark is not None:
        for item in spark.node.pairs():
            check_secret("the setting", item, _IN_SPARK, entries.findings)
    return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLevel(Spec):
    """A level of periods, each inside a period of the parent level."""

    name: Text
    parent: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCalendarPeriod(Spec):
    """A named range of days; the end date is its last day."""

    identifier: Name
    level: Text
    start_date: Text
    end_date: Text
    parent: Name | None = None
    status: Literal["open", "closed", "locked"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCalendar(Spec):
    """Levels and the periods in them."""

    id: Text | None = None
    name: Text
    description: str | None = None
    status: CalendarStatus | None = None
    is_default: bool | None = None
    levels: Annotated[tuple[WrittenLevel, ...], Limits(min_length=1)]
    periods: Annotated[tuple[WrittenCalendarPeriod, ...], Limits(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarFile:
    """A calendar of the workspace; the periods of a draft cannot be used in runs."""

    name: str
    calendar: Calendar
    status: CalendarStatus = "active"
    is_default: bool = False
    at: SourceMap = field(default=NO_SOURCES, compare=False, repr=False)


def build_calendar(written: WrittenCalendar, entries: Entries) -> CalendarFile:
    """Return the calendar of a file; report each broken rule at the period it concerns."""
    node, findings = entries.node, entries.findings
    name = written.name
    if name == GREGORIAN.name:
        entries.report("W1013", f"the calendar {name!r} is built in", "name", "choose another name")
    for period in entries.parts("periods"):
        # The identifier becomes a folder name: file outputs write to period=<identifier>.
        check_path_name(period, period.text("identifier"), "identifier", "the period", prefix="period=")
    data = to_python(node)
    content = {"name": name, "levels": data["levels"], "periods": data["periods"]}
    try:
        calendar = calendar_from_dict(content)
    except PeriodError as cause:
        places = _named_places(node)
        names = cause.about or ("",) * len(cause.diagnostics)
        for finding, about in islice(zip(cause.diagnostics, names, strict=True), MAX_FINDINGS):
            findings.add(finding.code, finding.message, places.get(about) or node.head(), finding.help)
        calendar = None
    # With errors the entity is never run; the built-in calendar lets projects that name it be checked further.
    return CalendarFile(
        name=name,
        calendar=GREGORIAN if calendar is None else calendar,
        status=written.status or "active",
        is_default=written.is_default or False,
        at=collect_sites(node),
    )


def _named_places(node: Node) -> Mapping[str, Source]:
    """Return the location of the name of each level and period; of equal names, that of the last."""
    places: dict[str, Source] = {}
    for part, key in (("levels", "name"), ("periods", "identifier")):
        for inner in Entries(node, Findings()).parts(part):
            name_node = inner.node.get(key)
            if name_node is not None and name_node.kind == "scalar":
                places[name_node.value] = name_node.place()
    return places


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The entities of a workspace; `datasets` contains every version that has a file."""

    root: Path
    settings: Settings = Settings()
    calendars: tuple[CalendarFile, ...] = ()
    datasources: tuple[DataSource, ...] = ()
    resolvers: tuple[Resolver, ...] = ()
    datasets: tuple[Dataset, ...] = ()
    projects: tuple[Project, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    files: tuple[Path, ...] = ()
