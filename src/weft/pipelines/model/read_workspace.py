"""A workspace from its files: what reads, and everything that is wrong with the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.core.findings import MAX_FINDINGS
from weft.core.source import Source
from weft.errors import Code, Diagnostic, EntityError
from weft.pipelines.model.build import Entity, ReadResult, read_entity
from weft.pipelines.model.compose import compose
from weft.pipelines.model.project import Project
from weft.pipelines.model.references import check_references
from weft.pipelines.model.sugar import Kind
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
"""The folder of each kind of file, in the order in which they are read."""

LARGEST = 20_000_000
"""How many bytes a file may have."""


@dataclass(frozen=True, slots=True)
class LoadedWorkspace:
    """A workspace, and everything found in its files.

    `workspace` holds the entities without an error.  `readable` also holds those that could be read in
    part, so that the rest of their mistakes can be found; nothing is run from it.  `unread` are the
    texts of dataset files that do not read at all.
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
        """Return these findings and those of later checks, in the order of the files.

        Where a file is already known to be wrong, what follows from it is not told again, and of a file
        with errors no warnings are told: they may be about what was left out.
        """
        wrong = {f.at.file for f in self.errors if f.at is not None}
        told = list(self.findings)
        known = {_spot(f) for f in told}
        empty = {_spot(f) for f in told if f.code == "W1007"}
        for finding in more:
            file, start, end = _spot(finding)
            inside = any(f == file and s <= start and end <= e for f, s, e in empty)
            follows = inside or (file, start, end) in known or (finding.severity != "error" and file in wrong)
            if finding.at is None or not follows:
                told.append(finding)
        return tuple(sorted(dict.fromkeys(told), key=_order))


def find_root(start: Path) -> Path:
    """Return the nearest folder at or above `start` that has a ``weft.yml``, else `start`."""
    folder = start.resolve()
    folder = folder if folder.is_dir() else folder.parent
    return next((above for above in (folder, *folder.parents) if (above / SETTINGS).is_file()), folder)


def load_workspace(root: Path, *, only: Path | None = None) -> LoadedWorkspace:
    """Read the files of a workspace; what is wrong with them is told, not raised.

    With `only`, a file or folder, just the findings in it are told; all files are read, because a
    project means nothing without its datasets.
    """
    root = root.resolve()
    readings = {path: (kind, _reading(kind, path, root)) for kind, path in _files(root)}
    findings = [f for _, reading in readings.values() for f in _first(reading.findings)]
    whole = [(kind, r.entity) for kind, r in readings.values() if r.entity is not None]
    sound = [(kind, r.entity) for kind, r in readings.values() if r.entity is not None and r.is_valid]
    workspace = _workspace(root, sound, tuple(readings))
    readable = _workspace(root, whole, tuple(readings))
    unread = [(kind, _raw(path)) for path, (kind, reading) in readings.items() if reading.entity is None]
    findings.extend(check_references(readable, unread))
    if only is not None:
        findings = [f for f in findings if _is_within(f, only.resolve(), root)]
    hidden = tuple(text for kind, text in unread if kind == "dataset")
    return LoadedWorkspace(workspace, readable, tuple(sorted(findings, key=_order)), hidden)


def _first(findings: tuple[Diagnostic, ...]) -> list[Diagnostic]:
    """Return as many findings of a file as are told, errors before others."""
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
    shown = path.relative_to(root).as_posix()
    try:
        text = path.read_bytes().decode("utf-8-sig") if path.stat().st_size <= LARGEST else None
    except (OSError, UnicodeDecodeError) as cause:
        why = (
            "it is not UTF-8 text" if isinstance(cause, UnicodeDecodeError) else cause.strerror or str(cause)
        )
        return _unread("W1001", f"the file cannot be read: {why}", "check its encoding and its rights", shown)
    if text is None:
        return _unread("W1022", f"the file has more than {LARGEST:,} bytes", "split it", shown)
    if kind == "settings" and not _says_anything(text):
        return ReadResult(Settings())
    try:
        root_node = compose(text, shown)
    except EntityError as cause:
        return ReadResult(None, cause.diagnostics)
    return read_entity(kind, root_node)


def _unread(code: Code, message: str, help: str, file: str) -> ReadResult:
    return ReadResult(None, (Diagnostic(code, message, help=help, at=Source("", 0, 0, file)),))


def _raw(path: Path) -> str:
    """Return what can be made out of a file that does not read."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _says_anything(text: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


def _workspace(root: Path, entities: list[tuple[Kind, Entity]], files: tuple[Path, ...]) -> Workspace:
    def of(wanted: Kind) -> tuple[Any, ...]:
        return tuple(entity for kind, entity in entities if kind == wanted)

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
    """Return a project with the calendar of the workspace, unless it names one itself."""
    said = project.at.values.get("calendar")
    return project if default is None or said is not None else replace(project, calendar=default)


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
