"""Call: what every command knows, and how it comes to its workspace, store and session."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from weft.core.names import find_similar, format_list
from weft.errors import Diagnostic, EntityError, WeftError, WorkspaceError

if TYPE_CHECKING:
    import typer
    from pyspark.sql import SparkSession

    from weft.core.calendar import Period
    from weft.io.spark.session import Session
    from weft.pipelines.model.project import Project
    from weft.pipelines.model.read_workspace import LoadedWorkspace
    from weft.pipelines.model.workspace import Settings, Workspace
    from weft.pipelines.plan.catalog import Catalog
    from weft.pipelines.run.progress import Progress
    from weft.pipelines.store.reader import StoreReader
    from weft.pipelines.store.writer import Store

E = TypeVar("E")
SQLITE = "sqlite:///"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The options of every command; `spark` is a session that somebody hands in."""

    folder: Path | None = None
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    no_input: bool = False
    spark: SparkSession | None = None

    @property
    def start(self) -> Path:
        """The folder where the command looks for its workspace."""
        return self.folder or Path.cwd()

    def root(self) -> Path:
        """Return the folder of the workspace; raise W1801 when there is none."""
        from weft.pipelines.model.read_workspace import FOLDERS, SETTINGS, find_root

        start = self.start
        if not start.is_dir():
            raise WorkspaceError(f"there is no folder {start}", help="`-C DIR` names the workspace")
        root = find_root(start)
        known = (root / SETTINGS, *(root / folder for folder in FOLDERS.values()))
        if not any(path.exists() for path in known):
            raise WorkspaceError(
                f"there is no workspace in {root}: it has no weft.yml and no folder of one",
                help="`weft init` makes one, `-C DIR` names another folder",
            )
        return root

    def loaded(self, only: Path | None = None) -> LoadedWorkspace:
        """Return the workspace with everything that is wrong in its files."""
        from weft.pipelines.model.read_workspace import load_workspace

        return load_workspace(self.root(), only=only)

    def workspace(self, *, wanted: Project | None = None) -> Workspace:
        """Return a workspace that can be run from; errors in its files are raised.

        What is wrong with scenarios and with projects other than `wanted` is in nobody's way.
        """
        return sound(self.loaded(), wanted)

    def remembered(self) -> Workspace:
        """Return the workspace for commands about runs: only its settings must be without errors.

        A run is told, resumed and repeated from what the store holds of it, whatever files say by now.
        """
        from weft.pipelines.model.read_workspace import SETTINGS

        loaded = self.loaded()
        wrong = [f for f in loaded.errors if f.at is not None and f.at.file == SETTINGS]
        if wrong:
            raise EntityError(wrong)
        return loaded.workspace

    def project(self, said: str | None) -> tuple[Workspace, Project]:
        """Return the project of a name or id, or the only one, and the workspace it runs in."""
        loaded = self.loaded()
        try:
            project = project_of(loaded.readable, said)
        except WorkspaceError:
            unread = [f for f in loaded.errors if f.at and (f.at.file or "").startswith("projects/")]
            if unread:  # the project may be the one that does not read
                raise EntityError(unread) from None
            raise
        workspace = sound(loaded, project)
        return workspace, next(p for p in workspace.projects if p.id == project.id)

    def progress(self) -> Progress:
        """Return who tells people how far a run is."""
        from weft.cli.terminal import Watcher, has_colour
        from weft.pipelines.run.progress import Silent

        if self.quiet or (self.json and not self.verbose):
            return Silent()
        return Watcher(bars=has_colour(sys.stderr))


def call_of(context: typer.Context) -> Call:
    """Return the call that a command belongs to."""
    found = context.obj
    return found if isinstance(found, Call) else Call()


def sound(loaded: LoadedWorkspace, wanted: Project | None = None) -> Workspace:
    """Return a loaded workspace unless its files have errors that concern a project."""
    root = loaded.workspace.root
    own = None if wanted is None or wanted.at.whole is None else wanted.at.whole.file
    errors = [
        f
        for f in loaded.errors
        if f.at is None
        or f.at.file is None
        or f.at.file == own
        or not f.at.file.startswith(("projects/", "scenarios/"))
    ]
    if errors:
        raise EntityError(errors)
    if wanted is not None and all(p.id != wanted.id for p in loaded.workspace.projects):
        raise EntityError(
            f"project {wanted.name!r} in {root} does not read", help="`weft validate` says what is wrong"
        )
    return loaded.workspace


def project_of(workspace: Workspace, said: str | None) -> Project:
    """Return the newest version of the project of a name or id, or the only project; raise W1802."""
    names = tuple(dict.fromkeys(p.name for p in workspace.projects))
    if said is None:
        if len(names) == 1:
            return max(workspace.projects, key=lambda p: p.version)
        raise WorkspaceError(
            "name a project" if names else "the workspace has no project",
            code="W1802",
            help=f"it has {format_list(names)}" if names else "write one in projects/, or see `weft init`",
        )
    found = [p for p in workspace.projects if p.id == said] or [
        p for p in workspace.projects if p.name == said
    ]
    if found:
        return max(found, key=lambda p: p.version)
    close = find_similar(said, names, most=1)
    raise WorkspaceError(
        f"there is no project {said!r}",
        code="W1802",
        help=f"did you mean {close[0]!r}?"
        if close
        else (
            f"projects are {format_list(names)}" if names else "write one in projects/, or see `weft init`"
        ),
    )


def period_of(said: str | None, project: Project, catalog: Catalog) -> Period:
    """Return the period that an option names in the calendar of a project; raise W1803 without one."""
    if said is None:
        raise WorkspaceError(
            f"say for which period {project.name!r} is to be run", code="W1803", help="as in -p 2026-01"
        )
    return catalog.calendar(project.calendar).parse(said)


@contextmanager
def reading(settings: Settings, root: Path, *, patience: float | None = None) -> Iterator[StoreReader | None]:
    """Give the store for reading, or None when there is none yet; `patience` is how long to wait for it."""
    # A name that is too long for the disk is one that is not there; Path.exists would raise.
    if settings.store.startswith(SQLITE) and not os.path.exists(  # noqa: PTH110
        root / settings.store.removeprefix(SQLITE)
    ):
        yield None
        return
    from weft.pipelines.store.connections import PATIENCE
    from weft.pipelines.store.open import open_reader

    reader = open_reader(settings.store, root, patience=PATIENCE if patience is None else patience)
    try:
        yield reader
    finally:
        if reader is not None:
            reader.close()


@contextmanager
def writing(settings: Settings, root: Path) -> Iterator[Store]:
    """Give the store for writing; one in a file is made when it is not there."""
    from weft.pipelines.store.open import open_store

    with open_store(settings.store, root) as store:
        yield store


@contextmanager
def sessions(call: Call, workspace: Workspace) -> Iterator[Callable[[], Session]]:
    """Give what opens the Spark session of a workspace when it is needed; it is stopped at the end."""
    from weft.io.spark.session import session_for

    with ExitStack() as stack:
        yield lambda: stack.enter_context(
            session_for(workspace.settings.spark, workspace.root, spark=call.spark)
        )


def as_warnings(error: WeftError) -> tuple[Diagnostic, ...]:
    """Return the findings of an error that a command can do without."""
    return tuple(replace(d, severity="warning") for d in error.diagnostics)
