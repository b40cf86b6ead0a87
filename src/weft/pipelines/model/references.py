"""What the files of a workspace say about each other: versions, names, and references to what is not there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft.core.calendar import GREGORIAN
from weft.core.names import find_similar, format_list
from weft.core.source import SourceMap
from weft.errors import Code, Diagnostic
from weft.io.location import PUBLISHED
from weft.pipelines.model.operation import Output
from weft.pipelines.model.values import LocatedText
from weft.pipelines.model.workspace import Workspace

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def check_references(workspace: Workspace, unread: Sequence[tuple[str, str]] = ()) -> tuple[Diagnostic, ...]:
    """Return everything that is wrong between the files of a workspace.

    Datasets that projects name are not looked up here: runs register datasets that have no file.
    `unread` are the files that do not read, kind and text: what such a file names may be in it.
    """
    kinds: tuple[tuple[str, Sequence[Any]], ...] = (
        ("dataset", workspace.datasets),
        ("project", workspace.projects),
        ("resolver", workspace.resolvers),
        ("datasource", workspace.datasources),
    )
    found = [finding for kind, entities in kinds for finding in _names(kind, entities)]
    found.extend(_scenario_names(workspace))
    found.extend(_calendar_names(workspace))
    found.extend(_defaults(workspace))
    found.extend(_references(workspace, unread))
    return tuple(found)


def _names(kind: str, entities: Sequence[Any]) -> Iterator[Diagnostic]:
    ids = {entity.id: entity for entity in entities}
    versions: dict[tuple[str, int], Any] = {}
    named: dict[str, Any] = {}
    for entity in entities:
        version = getattr(entity, "version", 1)
        other = versions.setdefault((entity.id, version), entity)
        if other is not entity:
            which = (
                f"version {version} of {kind} {entity.name!r}"
                if hasattr(entity, "version")
                else f"{kind} {entity.id!r}"
            )
            yield _finding(
                "W1011", f"{which} is in two files", entity.at, "version" if kind == "dataset" else "id",
                f"{_file(other.at)} has it: raise the version of the newer one, or remove a file"
                if hasattr(entity, "version")
                else f"{_file(other.at)} has it: give each its own id",
            )  # fmt: skip
        first = named.setdefault(entity.name, entity)
        if first.id != entity.id:
            yield _finding(
                "W1012", f"the name {entity.name!r} belongs to two {kind}s: {first.id!r} and {entity.id!r}",
                entity.at, "name", f"{_file(first.at)} has the other: give all versions of a {kind} one id",
            )  # fmt: skip
        if entity.name in ids and ids[entity.name].id != entity.id:
            yield _finding(
                "W1013", f"{entity.name!r} is the name of this {kind} and the id of another", entity.at, "name",
                f"{_file(ids[entity.name].at)} has the id: rename one of them",
            )  # fmt: skip


def _scenario_names(workspace: Workspace) -> Iterator[Diagnostic]:
    seen: dict[str, Any] = {}
    for scenario in workspace.scenarios:
        other = seen.setdefault(scenario.name, scenario)
        if other is not scenario:
            yield _finding(
                "W1012", f"two scenarios have the name {scenario.name!r}", scenario.at, "name",
                f"{_file(other.at)} has the other: rename one of them",
            )  # fmt: skip


def _calendar_names(workspace: Workspace) -> Iterator[Diagnostic]:
    seen: dict[str, Any] = {}
    for calendar in workspace.calendars:
        other = seen.setdefault(calendar.name, calendar)
        if other is not calendar:
            yield _finding(
                "W1012", f"two calendars have the name {calendar.name!r}", calendar.at, "name",
                f"{_file(other.at)} has the other: rename one of them",
            )  # fmt: skip


def _defaults(workspace: Workspace) -> Iterator[Diagnostic]:
    resolvers = [r for r in workspace.resolvers if r.is_default]
    groups: tuple[tuple[str, Sequence[Any], Callable[[Any], object]], ...] = (
        ("resolver", resolvers, lambda r: r.id),
        ("calendar", [c for c in workspace.calendars if c.is_default], lambda c: c.name),
    )
    for kind, said, identity in groups:
        for other in said[1:]:
            if identity(other) != identity(said[0]):
                yield _finding(
                    "W1016", f"two {kind}s say that they are the default: {said[0].name!r} and {other.name!r}",
                    other.at, "is_default", f"keep `is_default: true` in {_file(said[0].at)} or here",
                )  # fmt: skip


def _references(workspace: Workspace, unread: Sequence[tuple[str, str]]) -> Iterator[Diagnostic]:
    known: dict[str, list[str]] = {
        "resolver": _known(workspace.resolvers),
        "datasource": _known(workspace.datasources),
        "project": _known(workspace.projects),
        "calendar": [*(c.name for c in workspace.calendars), GREGORIAN.name],
    }
    for kind, said, at, path in _said(workspace):
        hidden = any(kind == other and said in text for other, text in unread)
        if said not in known[kind] and not hidden:
            yield _missing(kind, said, known[kind], at, path)


def _said(workspace: Workspace) -> Iterator[tuple[str, str, SourceMap, str]]:
    """Yield the references in files: kind, what is said, and where."""
    if workspace.settings.default_resolver is not None:
        yield "resolver", workspace.settings.default_resolver, workspace.settings.at, "default_resolver"
    for dataset in workspace.datasets:
        if dataset.resolver_id not in (None, PUBLISHED):
            yield "resolver", str(dataset.resolver_id), dataset.at, "resolver_id"
    for resolver in workspace.resolvers:
        for rule in resolver.rules:
            if rule.strategy.datasource:
                yield "datasource", rule.strategy.datasource, rule.strategy.at, "datasource_id"
    for project in workspace.projects:
        yield "calendar", project.calendar, project.at, "calendar"
        for operation in project.operations:
            if isinstance(operation.arguments, Output) and operation.arguments.destination.datasource:
                to = operation.arguments.destination
                yield "datasource", str(to.datasource), to.at, "datasource_id"
    for scenario in workspace.scenarios:
        if isinstance(scenario.project, LocatedText):
            yield "project", scenario.project.text, scenario.at, "project"
        if scenario.calendar is not None:
            yield "calendar", scenario.calendar, scenario.at, "calendar"


def _known(entities: Sequence[Any]) -> list[str]:
    """Return the names of entities, then their ids: names are what people read in a list."""
    return list(dict.fromkeys([*(entity.name for entity in entities), *(entity.id for entity in entities)]))


def _missing(kind: str, said: str, known: Sequence[str], at: SourceMap, path: str) -> Diagnostic:
    close = find_similar(said, known, most=1)
    if close:
        help = f"did you mean {close[0]!r}?"
    else:
        # Ids that Weft made from names say nothing to a reader.
        shown = [name for name in known if not _UUID.fullmatch(name)]
        help = f"{kind}s are {format_list(shown)}" if shown else f"write one in {kind}s/"
    return _finding("W1020", f"there is no {kind} {said!r}", at, path, help)


def _finding(code: Code, message: str, at: SourceMap, path: str, help: str) -> Diagnostic:
    return Diagnostic(code, message, help=help, at=at.of(path))


def _file(at: SourceMap) -> str:
    return (at.whole.file if at.whole is not None else None) or "another file"
