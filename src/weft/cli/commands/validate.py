"""``weft validate``: every mistake in the files of a workspace, with its place; nothing is started."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from weft.cli.call import as_warnings, call_of, reading
from weft.cli.envelope import INVALID, OK, Envelope
from weft.cli.terminal import many
from weft.errors import Diagnostic, StoreError, WorkspaceError

if TYPE_CHECKING:
    from weft.pipelines.model.read_workspace import LoadedWorkspace
    from weft.pipelines.plan.catalog import Catalog


_PATIENCE = 1.0


def validate(
    context: typer.Context,
    path: Annotated[
        Path | None, typer.Argument(help="A file or folder to report on; all by default.")
    ] = None,
    *,
    format: Annotated[str, typer.Option("--format", help="human or github (annotations).")] = "human",
) -> Envelope:
    """Report every mistake in the files of the workspace."""
    call, started = call_of(context), time.monotonic()
    if format not in ("human", "github"):
        raise WorkspaceError(f"there is no format {format!r}", code="W1803", help="human or github")
    only = None if path is None else _there(path, call.start)
    loaded = call.loaded(only)
    found = findings(loaded, only)
    counts = Counter(f.severity for f in found)
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
    told = [many(counts[s], s) for s in ("error", "warning", "note") if counts[s]]
    text = f"{', '.join(told) or 'no mistakes'} in {many(len(files), 'file')} ({seconds:.1f} s)"
    if format == "github":
        text = "\n".join([*map(_annotation, found), text])
    return Envelope(
        command="validate",
        data=data,
        diagnostics=found if format == "human" or call.json else (),
        text=text,
        exit_code=INVALID if counts["error"] else OK,
        next=tuple(f"weft explain {code}" for code in sorted({f.code for f in found})[:1]),
    )


def _there(path: Path, start: Path) -> Path:
    """Return the path that a user means: from here, else from the workspace."""
    for whole in (Path.cwd() / path, start / path):
        if whole.exists():
            return whole.resolve()
    raise WorkspaceError(
        f"there is no file or folder {str(path)!r}", code="W1802", help="name one of the workspace"
    )


def findings(loaded: LoadedWorkspace, only: Path | None = None) -> tuple[Diagnostic, ...]:
    """Return everything that is wrong in a workspace, without running anything."""
    from weft.pipelines.plan.check import add_promised, check_workspace
    from weft.pipelines.scenarios.planning import check_scenarios

    catalog, troubles = _catalog(loaded)
    catalog = replace(catalog, unread=loaded.unread)
    told = [*troubles, *check_workspace(catalog)]
    wrong = {f.at.file for f in (*loaded.findings, *told) if f.severity == "error" and f.at is not None}
    told += check_scenarios(add_promised(catalog), wrong)
    if troubles:
        told = [_perhaps_there(found) for found in told]
    if only is not None:
        told = [f for f in told if _is_within(f, only, loaded.readable.root)]
    return loaded.merge_findings(told)


def _catalog(loaded: LoadedWorkspace) -> tuple[Catalog, tuple[Diagnostic, ...]]:
    from weft.pipelines.plan.catalog import Catalog

    workspace = loaded.readable
    try:
        # Files can be judged without the store: a server that does not answer is not waited for.
        with reading(workspace.settings, workspace.root, patience=_PATIENCE) as reader:
            if reader is None:
                return Catalog.of(workspace), ()
            from weft.pipelines.store.lifecycle import build_catalog

            return build_catalog(workspace, reader), ()
    except (
        StoreError
    ) as problem:  # files can be judged without it; datasets that runs made are not known then
        place = workspace.settings.at.of("store")
        return Catalog.of(workspace), tuple(
            replace(d, at=place) if d.at is None else d for d in as_warnings(problem)
        )


def _perhaps_there(found: Diagnostic) -> Diagnostic:
    """Return a finding about a missing dataset as a warning: the store that may know it did not answer."""
    if found.code not in ("W1201", "W1203", "W1213") or "disabled" in found.message:
        return found
    return replace(
        found,
        severity="warning",
        help=f"a run may have registered it, and the store was not read; {found.help}",
    )


def _is_within(found: Diagnostic, only: Path, root: Path) -> bool:
    if found.at is None or found.at.file is None:
        return False
    file = root / found.at.file
    return file == only or only in file.parents


_LEVELS: dict[str, Literal["error", "warning", "notice"]] = {
    "error": "error",
    "warning": "warning",
    "note": "notice",
}


def _annotation(found: Diagnostic) -> str:
    """Return a finding as GitHub's runners read it."""
    said = f"{found.message} ({found.help})" if found.help else found.message
    text = said.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    place = ""
    if found.at is not None:
        start, end = found.at.range["start"], found.at.range["end"]
        place = f" file={found.at.file},line={start['line'] + 1},col={start['character'] + 1}"
        place += f",endLine={end['line'] + 1},endColumn={end['character'] + 1},title={found.code}"
    return f"::{_LEVELS[found.severity]}{place}::{text}"
