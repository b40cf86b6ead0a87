"""Workspace: everything that the files of one folder say."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.core.period import Calendar
from weft.core.source import NOWHERE, Sites
from weft.io.datasource import DataSource
from weft.io.settings import SparkSettings
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import Resolver
from weft.pipelines.model.scenario import Scenario
from weft.pipelines.model.words import CalendarStatus, Conformance

DEFAULT_STORE = "sqlite:///.weft/weft.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """Where the outputs of draft projects go."""

    path: str = ".weft/sandbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What ``weft.yml`` says; every key has a default."""

    store: str = DEFAULT_STORE
    spark: SparkSettings = field(default_factory=SparkSettings)
    default_resolver: str | None = None
    sandbox: Sandbox = Sandbox()
    conformance: Conformance = "extended"
    notify: tuple[Any, ...] = ()
    at: Sites = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarFile:
    """A calendar that the workspace brings; the periods of a draft cannot be used in runs."""

    name: str
    calendar: Calendar
    status: CalendarStatus = "active"
    is_default: bool = False
    at: Sites = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """What the files of a workspace say; `datasets` holds every version that has a file."""

    root: Path
    settings: Settings = Settings()
    calendars: tuple[CalendarFile, ...] = ()
    datasources: tuple[DataSource, ...] = ()
    resolvers: tuple[Resolver, ...] = ()
    datasets: tuple[Dataset, ...] = ()
    projects: tuple[Project, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    files: tuple[Path, ...] = ()
