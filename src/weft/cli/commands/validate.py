"""``weft validate``: all errors in the files of a workspace, with their locations; starts no JVM."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option

from weft.cli.call import as_warnings, check_choice, get_call, read_store
from weft.cli.envelope import INVALID, OK, Envelope
from weft.cli.terminal import format_count
from weft.errors import Diagnostic, StoreError, WorkspaceError

if TYPE_CHECKING:
    from weft.pipelines.model.read_workspace import LoadedWorkspace
    from weft.pipelines.plan.catalog import Catalog

_STORE_PATIENCE = 1.0
_GITHUB_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}


def validate(
    context: Context,
    path: Annotated[Path | None, Argument(metavar="PATH", help="File or folder to check; all by default.")] = None,
    *,
    format: Annotated[str, Option("--format", metavar="FORMAT", help="human, or github for annotations.")] = "human",
) -> Envelope:
    """Check all files of the workspace and report every error."""
    call, started = get_call(context), time.monotonic()
    check_choice("--format", format, ("human", "github"))
    only = None if path is None else _find_path(path, call.start)
    loaded = call.load(only)
    findings = collect_findings(loaded, only)
    counts = Counter(f.severity for f in findings)
    seconds = time.monotonic() - started
    files = [f for f in loaded.workspace.files if only is None or f == only or only in f.parents]
    data = {
        "files": len(files),
        "projects": [p.name for p in loaded.readable.projects],
        "datasets": [f"{d.name}@{d.version}" for d in loaded.readable.datasets],
        "errors": counts["error"],
        "warnings": counts["warning"],
        "seconds": round(seconds, 3),
    }
    totals = [format_count(counts[s], s) for s in ("error", "warning", "note") if counts[s]]
    text = f"{', '.join(totals) or 'no errors'} in {format_count(len(files), 'file')} ({seconds:.1f} s)"
    if format == "github":
        text = "\n".join([*map(_format_annotation, findings), text])
    return Envelope(
        command="validate",
        data=data,
        diagnostics=findings if format == "human" or call.json else (),
        text=text,
        exit_code=INVALID if counts["error"] else OK,
        next=tuple(f"weft explain {code}" for code in sorted({f.code for f in findings})[:1]),
    )


def _find_path(path: Path, start: Path) -> Path:
    """Return a path relative to the current folder, or else to the workspace."""
    for candidate in (Path.cwd() / path, start / path):
        if candidate.exists():
            return candidate.resolve()
    raise WorkspaceError(
        f"file or folder {str(path)!r} does not exist", code="W1802", help="choose a path in the workspace"
    )


def collect_findings(loaded: LoadedWorkspace, only: Path | None = None) -> tuple[Diagnostic, ...]:
    """Return everything that is wrong in a workspace, without running anything."""
    from weft.pipelines.plan.check import add_promised, check_workspace
    from weft.pipelines.scenarios.planning import check_scenarios

    catalog, store_warnings = _read_catalog(loaded)
    catalog = replace(catalog, unread=loaded.unread)
    findings = [*store_warnings, *check_workspace(catalog)]
    # A scenario of an invalid file would repeat the errors of that file.
    invalid = {f.at.file for f in (*loaded.findings, *findings) if f.severity == "error" and f.at is not None}
    findings += check_scenarios(add_promised(catalog), invalid)
    if store_warnings:
        findings = [_soften_unknown_dataset(finding) for finding in findings]
    if only is not None:
        findings = [f for f in findings if _is_within(f, only, loaded.readable.root)]
    return loaded.merge_findings(findings)


def _read_catalog(loaded: LoadedWorkspace) -> tuple[Catalog, tuple[Diagnostic, ...]]:
    from weft.pipelines.plan.catalog import Catalog

    workspace = loaded.readable
    try:
        with read_store(workspace, patience=_STORE_PATIENCE) as reader:
            if reader is None:
                return Catalog.of(workspace), ()
            from weft.pipelines.store.lifecycle import build_catalog  # slow to import: it needs SQLAlchemy

            return build_catalog(workspace, reader), ()
    except StoreError as error:
        # Files can be checked without the store; only the datasets that runs registered are unknown then.
        at = workspace.settings.at.of("store")
        return Catalog.of(workspace), tuple(replace(d, at=at) if d.at is None else d for d in as_warnings(error))


def _soften_unknown_dataset(finding: Diagnostic) -> Diagnostic:
    """Return an error about an unknown dataset as a warning, because the store that may know it is unavailable."""
    if finding.code not in ("W1201", "W1203", "W1213") or "disabled" in finding.message:
        return finding
    return replace(
        finding,
        severity="warning",
        help=f"the store is not available, but a run may have registered it; {finding.help}",
    )


def _is_within(finding: Diagnostic, only: Path, root: Path) -> bool:
    if finding.at is None or finding.at.file is None:
        return False
    file = root / finding.at.file
    return file == only or only in file.parents


def _format_annotation(finding: Diagnostic) -> str:
    """Return a finding as an annotation of GitHub Actions."""
    message = f"{finding.message} ({finding.help})" if finding.help else finding.message
    text = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    location = ""
    if finding.at is not None:
        start, end = finding.at.range["start"], finding.at.range["end"]
        location = f" file={finding.at.file},line={start['line'] + 1},col={start['character'] + 1}"
        location += f",endLine={end['line'] + 1},endColumn={end['character'] + 1},title={finding.code}"
    return f"::{_GITHUB_LEVELS[finding.severity]}{location}::{text}"
