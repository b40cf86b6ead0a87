"""Load a workspace from its files, and check names and references across them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.core.calendar import GREGORIAN
from weft.core.findings import MAX_FINDINGS
from weft.core.names import suggest
from weft.core.source import Source, SourceMap
from weft.errors import Code, Diagnostic, EntityError
from weft.io.location import PUBLISHED
from weft.pipelines.model.build import Entity, ReadResult, read_entity
from weft.pipelines.model.compose import compose
from weft.pipelines.model.normalize import Kind
from weft.pipelines.model.operation import Output
from weft.pipelines.model.project import Project
from weft.pipelines.model.values import LocatedText
from weft.pipelines.model.workspace import Settings, Workspace

SETTINGS = "weft.yml"
FOLDERS: dict[Kind, str] = {
    "calendar": "calendars",
    "datasource": "datasources",
    "resolver": "resolvers",
    "dataset": "datasets",
    "project": "projects",
    "scenario": "scenarios",
}
"""The folder of each kind of file, in reading order."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

LARGEST = 20_000_000
"""Maximum size of a file in bytes."""


@dataclass(frozen=True, slots=True)
class LoadedWorkspace:
    """A workspace and all findings about its files.

    `workspace` contains the entities without errors.  `readable` also contains partially valid ones, so
    that their other errors can be reported; it is never run.  `unread` are the texts of dataset files
    that cannot be parsed at all.
    """

    workspace: Workspace
    readable: Workspace
    findings: tuple[Diagnostic, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that are errors."""
        return tuple(f for f in self.findings if f.severity == "error")

    def merge_findings(self, more: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """Return these findings and those of later checks, sorted by file and position.

        A later finding at the location of an earlier one is dropped, since it follows from it.  So are
        warnings about a file with errors, since they may concern parts that were dropped.
        """
        # W1007 is an empty expression: what follows from it is reported inside its location.
        wrong = {f.at.file for f in self.errors if f.at is not None}
        findings = list(self.findings)
        known = {_spot(f) for f in findings}
        empty = {_spot(f) for f in findings if f.code == "W1007"}
        for finding in more:
            file, start, end = _spot(finding)
            inside = any(f == file and s <= start and end <= e for f, s, e in empty)
            follows = inside or (file, start, end) in known or (finding.severity != "error" and file in wrong)
            if finding.at is None or not follows:
                findings.append(finding)
        return tuple(sorted(dict.fromkeys(findings), key=_order))


def find_root(start: Path) -> Path:
    """Return the nearest folder at or above `start` that has a ``weft.yml``, else `start`."""
    folder = start.resolve()
    folder = folder if folder.is_dir() else folder.parent
    return next((above for above in (folder, *folder.parents) if (above / SETTINGS).is_file()), folder)


def load_workspace(root: Path, *, only: Path | None = None) -> LoadedWorkspace:
    """Read the files of a workspace; errors in them are returned as findings, not raised.

    With `only`, a file or folder, only its findings are returned; all files are still read, because a
    project cannot be checked without its datasets.
    """
    root = root.resolve()
    readings = {path: (kind, _reading(kind, path, root)) for kind, path in _files(root)}
    findings = [f for _, reading in readings.values() for f in _first(reading.findings)]
    whole = [(kind, r.entity) for kind, r in readings.values() if r.entity is not None]
    sound = [(kind, r.entity) for kind, r in readings.values() if r.entity is not None and r.is_valid]
    workspace = _workspace(root, sound, tuple(readings))
    readable = _workspace(root, whole, tuple(readings))
    # What is missing elsewhere may be in a file that cannot be read; its text is searched for the name.
    unread = [(kind, _raw(path)) for path, (kind, reading) in readings.items() if reading.entity is None]
    findings.extend(check_references(readable, unread))
    if only is not None:
        findings = [f for f in findings if _is_within(f, only.resolve(), root)]
    hidden = tuple(text for kind, text in unread if kind == "dataset")
    return LoadedWorkspace(workspace, readable, tuple(sorted(findings, key=_order)), hidden)


def _first(findings: tuple[Diagnostic, ...]) -> list[Diagnostic]:
    """Return as many findings of a file as are shown, errors before others."""
    return sorted(findings, key=lambda f: f.severity != "error")[:MAX_FINDINGS]


def _files(root: Path) -> Iterator[tuple[Kind, Path]]:
    if (root / SETTINGS).is_file():
        yield "settings", root / SETTINGS
    for kind, folder in FOLDERS.items():
        for path in sorted((root / folder).rglob("*")) if (root / folder).is_dir() else ():
            hidden = any(part.startswith((".", "_")) for part in path.relative_to(root).parts)
            if path.suffix in (".yml", ".yaml") and not hidden and path.is_file():
                yield kind, path


def _reading(kind: Kind, path: Path, root: Path) -> ReadResult:
    file = path.relative_to(root).as_posix()
    try:
        text = path.read_bytes().decode("utf-8-sig") if path.stat().st_size <= LARGEST else None
    except (OSError, UnicodeDecodeError) as cause:
        why = "it is not UTF-8" if isinstance(cause, UnicodeDecodeError) else cause.strerror or str(cause)
        return _unread("W1001", f"the file cannot be read: {why}", "check its encoding and its permissions", file)
    if text is None:
        return _unread("W1022", f"the file has more than {LARGEST:,} bytes", "split it", file)
    # Every key of weft.yml is optional, so the file may also be empty.
    if kind == "settings" and not _has_content(text):
        return ReadResult(Settings())
    try:
        root_node = compose(text, file)
    except EntityError as cause:
        return ReadResult(None, cause.diagnostics)
    return read_entity(kind, root_node)


def _unread(code: Code, message: str, help: str, file: str) -> ReadResult:
    return ReadResult(None, (Diagnostic(code, message, help=help, at=Source("", 0, 0, file)),))


def _raw(path: Path) -> str:
    """Return the text of an invalid file, as far as it can be decoded."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _has_content(text: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


def _workspace(root: Path, entities: list[tuple[Kind, Entity]], files: tuple[Path, ...]) -> Workspace:
    def of(requested: Kind) -> tuple[Any, ...]:
        return tuple(entity for kind, entity in entities if kind == requested)

    calendars = of("calendar")
    default = next((c.name for c in calendars if c.is_default), None)
    return Workspace(
        root=root,
        settings=next(iter(of("settings")), Settings()),
        calendars=calendars,
        datasources=of("datasource"),
        resolvers=of("resolver"),
        datasets=of("dataset"),
        projects=tuple(_with_calendar(project, default) for project in of("project")),
        scenarios=of("scenario"),
        files=files,
    )


def _with_calendar(project: Project, default: str | None) -> Project:
    """Return a project with the default calendar of the workspace, unless it names one."""
    own = project.at.values.get("calendar")
    return project if default is None or own is not None else replace(project, calendar=default)


def _is_within(finding: Diagnostic, only: Path, root: Path) -> bool:
    if finding.at is None or finding.at.file is None:
        return False
    file = root / finding.at.file
    return file == only or only in file.parents


def _spot(finding: Diagnostic) -> tuple[str | None, tuple[int, int], tuple[int, int]]:
    if finding.at is None:
        return None, (0, 0), (0, 0)
    start, end = finding.at.range["start"], finding.at.range["end"]
    return finding.at.file, (start["line"], start["character"]), (end["line"], end["character"])


def _order(finding: Diagnostic) -> tuple[str, int, int, str]:
    file, start, _ = _spot(finding)
    return file or "", *start, finding.code


def check_references(workspace: Workspace, unread: Sequence[tuple[str, str]] = ()) -> tuple[Diagnostic, ...]:
    """Return findings about names, versions and references across the files of a workspace.

    Datasets that projects name are checked with the catalog, since runs register datasets without a file.
    `unread` are kind and text of the files that cannot be parsed: a missing entity may be in one of them.
    """
    kinds: tuple[tuple[str, Sequence[Any]], ...] = (
        ("dataset", workspace.datasets),
        ("project", workspace.projects),
        ("resolver", workspace.resolvers),
        ("datasource", workspace.datasources),
    )
    findings = [finding for kind, entities in kinds for finding in _names(kind, entities)]
    findings.extend(_duplicate_names("scenario", workspace.scenarios))
    findings.extend(_duplicate_names("calendar", workspace.calendars))
    findings.extend(_defaults(workspace))
    findings.extend(_check_references(workspace, unread))
    return tuple(findings)


def _names(kind: str, entities: Sequence[Any]) -> Iterator[Diagnostic]:
    ids = {entity.id: entity for entity in entities}
    versions: dict[tuple[str, int], Any] = {}
    named: dict[str, Any] = {}
    for entity in entities:
        version = getattr(entity, "version", 1)
        other = versions.setdefault((entity.id, version), entity)
        if other is not entity:
            which, change = f"{kind} {entity.id!r}", "change the id in one of them"
            if hasattr(entity, "version"):
                which = f"version {version} of {kind} {entity.name!r}"
                change = "increase the version in one of them, or remove it"
            yield _finding(
                "W1011", f"{which} is defined in two files", entity.at, "version" if kind == "dataset" else "id",
                f"the other file is {_file(other.at)}: {change}",
            )  # fmt: skip
        first = named.setdefault(entity.name, entity)
        if first.id != entity.id:
            yield _finding(
                "W1012", f"two {kind}s have the name {entity.name!r}: {first.id!r} and {entity.id!r}",
                entity.at, "name", f"the other is in {_file(first.at)}: all versions of a {kind} need the same id",
            )  # fmt: skip
        if entity.name in ids and ids[entity.name].id != entity.id:
            yield _finding(
                "W1013", f"{entity.name!r} is the name of this {kind} and the id of another", entity.at, "name",
                f"the id is in {_file(ids[entity.name].at)}: rename one of them",
            )  # fmt: skip


def _duplicate_names(kind: str, entities: Sequence[Any]) -> Iterator[Diagnostic]:
    first: dict[str, Any] = {}
    for entity in entities:
        other = first.setdefault(entity.name, entity)
        if other is not entity:
            yield _finding(
                "W1012", f"two {kind}s have the name {entity.name!r}", entity.at, "name",
                f"the other is in {_file(other.at)}: rename one of them",
            )  # fmt: skip


def _defaults(workspace: Workspace) -> Iterator[Diagnostic]:
    groups: tuple[tuple[str, str, Sequence[Any]], ...] = (
        ("resolver", "id", workspace.resolvers),
        ("calendar", "name", workspace.calendars),
    )
    for kind, key, entities in groups:
        defaults = [entity for entity in entities if entity.is_default]
        for other in defaults[1:]:
            # Versions of one resolver may all be marked: they are the same default.
            if getattr(other, key) != getattr(defaults[0], key):
                yield _finding(
                    "W1016", f"two {kind}s are marked as default: {defaults[0].name!r} and {other.name!r}",
                    other.at, "is_default", f"keep `is_default: true` in {_file(defaults[0].at)} or here",
                )  # fmt: skip


def _check_references(workspace: Workspace, unread: Sequence[tuple[str, str]]) -> Iterator[Diagnostic]:
    known: dict[str, list[str]] = {
        "resolver": _known(workspace.resolvers),
        "datasource": _known(workspace.datasources),
        "project": _known(workspace.projects),
        "calendar": [*(c.name for c in workspace.calendars), GREGORIAN.name],
    }
    for kind, name, at, path in _list_references(workspace):
        hidden = any(kind == other and name in text for other, text in unread)
        if name not in known[kind] and not hidden:
            yield _missing(kind, name, known[kind], at, path)


def _list_references(workspace: Workspace) -> Iterator[tuple[str, str, SourceMap, str]]:
    """Yield the references in files: kind, name, and location."""
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
    """Return the names of entities, then their ids, so that a list of them starts with the names."""
    return list(dict.fromkeys([*(entity.name for entity in entities), *(entity.id for entity in entities)]))


def _missing(kind: str, name: str, known: Sequence[str], at: SourceMap, path: str) -> Diagnostic:
    # Ids that Weft generated from names mean nothing to a reader.
    readable = [name for name in known if not _UUID.fullmatch(name)]
    help = suggest(name, readable, f"{kind}s are", most=1) if readable else f"add one to {kind}s/"
    return _finding("W1020", f"unknown {kind} {name!r}", at, path, help)


def _finding(code: Code, message: str, at: SourceMap, path: str, help: str) -> Diagnostic:
    return Diagnostic(code, message, help=help, at=at.of(path))


def _file(at: SourceMap) -> str:
    return (at.whole.file if at.whole is not None else None) or "another file"
