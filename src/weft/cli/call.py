"""Call: the options that every command shares, and access to its workspace, store and Spark session."""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option

from weft.cli.terminal import show_waiting
from weft.core.names import format_list, suggest
from weft.errors import Code, Diagnostic, EntityError, StoreError, WeftError, WorkspaceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weft.core.calendar import Period
    from weft.io.spark.session import Session
    from weft.pipelines.model.project import Project
    from weft.pipelines.model.read_workspace import LoadedWorkspace
    from weft.pipelines.model.workspace import Workspace
    from weft.pipelines.plan.catalog import Catalog
    from weft.pipelines.run.execute import Opener
    from weft.pipelines.run.progress import Progress
    from weft.pipelines.store.reader import StoreReader
    from weft.pipelines.store.writer import Store

SQLITE = "sqlite:///"
_ADD_PROJECT = "add a file to projects/, or start with `weft init`"

PeriodOption = Annotated[str | None, Option("-p", "--period", metavar="PERIOD", help="Period, for example 2026-01.")]
KnownAtOption = Annotated[
    str | None, Option("--known-at", metavar="TIME", help="Use the data as it was known at this time (UTC).")
]
RunArgument = Annotated[str, Argument(metavar="RUN", help="Run id, the beginning of one, or LAST.", show_default=False)]
ProjectArgument = Annotated[
    str | None, Argument(metavar="PROJECT", help="Project name or id; optional if there is only one.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The options of every command; `spark` is an existing session to use."""

    folder: Path | None = None
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    no_input: bool = False
    spark: SparkSession | None = None

    @property
    def start(self) -> Path:
        """The folder where the search for the workspace starts."""
        return self.folder or Path.cwd()

    @property
    def is_silent(self) -> bool:
        """Whether progress is hidden; with ``--json`` it needs ``--verbose``."""
        return self.quiet or (self.json and not self.verbose)

    def waiting(self, text: str, *, hint: str = "", has_line: bool = True) -> AbstractContextManager[None]:
        """Show what the command is busy with, unless progress is hidden."""
        return nullcontext() if self.is_silent else show_waiting(text, hint=hint, has_line=has_line)

    def nearest_root(self) -> Path:
        """Return the nearest folder with a ``weft.yml``, else the start folder itself."""
        from weft.pipelines.model.read_workspace import find_root

        if not self.start.is_dir():
            raise WorkspaceError(f"folder {self.start} does not exist", help="set the workspace with `-C DIR`")
        return find_root(self.start)

    def root(self) -> Path:
        """Return the folder of the workspace; raise W1801 if it is not a workspace."""
        from weft.pipelines.model.read_workspace import FOLDERS, SETTINGS

        root = self.nearest_root()
        entries = (root / SETTINGS, *(root / folder for folder in FOLDERS.values()))
        if not any(path.exists() for path in entries):
            raise WorkspaceError(
                f"{root} is not a workspace: it has no weft.yml and no workspace folder",
                help="create one with `weft init`, or set another folder with `-C DIR`",
            )
        return root

    def load(self, only: Path | None = None) -> LoadedWorkspace:
        """Return the workspace with all findings about its files."""
        from weft.pipelines.model.read_workspace import load_workspace

        return load_workspace(self.root(), only=only)

    def workspace(self) -> Workspace:
        """Return the workspace; raise the errors in its files, except those in projects and scenarios."""
        return require_valid(self.load())

    def stored_workspace(self) -> Workspace:
        """Return the workspace for commands about past runs: only ``weft.yml`` must be valid.

        The store holds all that such a command needs, so errors in other files do not matter.
        """
        from weft.pipelines.model.read_workspace import SETTINGS

        loaded = self.load()
        errors = [f for f in loaded.errors if f.at is not None and f.at.file == SETTINGS]
        if errors:
            raise EntityError(errors)
        return loaded.workspace

    def project(self, name: str | None) -> tuple[Workspace, Project]:
        """Return the workspace and its project of a name or id, by default its only project."""
        loaded = self.load()
        try:
            project = find_project(loaded.readable, name)
        except WorkspaceError:
            # An invalid project file has no name to find it by: its errors are more useful than "unknown".
            invalid = [f for f in loaded.errors if f.at and (f.at.file or "").startswith("projects/")]
            if invalid:
                raise EntityError(invalid) from None
            raise
        workspace = require_valid(loaded, project)
        return workspace, next(p for p in workspace.projects if p.id == project.id)

    def progress(self) -> Progress:
        """Return the progress display of a run."""
        from weft.cli.terminal import TerminalProgress, has_colour
        from weft.pipelines.run.progress import Silent

        return Silent() if self.is_silent else TerminalProgress(bars=has_colour(sys.stderr))


def get_call(context: Context) -> Call:
    """Return the call that a command belongs to."""
    return context.obj if isinstance(context.obj, Call) else Call()


def require_valid(loaded: LoadedWorkspace, project: Project | None = None) -> Workspace:
    """Return a loaded workspace; raise its errors unless they are in scenarios or in other projects."""
    # Other projects and scenarios do not take part in this run, so their errors must not stop it.
    own = None if project is None or project.at.whole is None else project.at.whole.file
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
    if project is not None and all(p.id != project.id for p in loaded.workspace.projects):
        raise EntityError(
            f"project {project.name!r} in {loaded.workspace.root} is invalid", help="`weft validate` lists its errors"
        )
    return loaded.workspace


def find_project(workspace: Workspace, name: str | None) -> Project:
    """Return the newest version of the project of a name or id, by default of the only one; raise W1802."""
    names = tuple(dict.fromkeys(p.name for p in workspace.projects))
    if name is None:
        if len(names) == 1:
            return max(workspace.projects, key=lambda p: p.version)
        raise WorkspaceError(
            "the workspace has several projects" if names else "the workspace has no project",
            code="W1802",
            help=f"name one of {format_list(names)}" if names else _ADD_PROJECT,
        )
    # Ids come first: a project may be named like the id of another one.
    matches = [p for p in workspace.projects if p.id == name] or [p for p in workspace.projects if p.name == name]
    if not matches:
        raise unknown_name("project", name, names, empty=_ADD_PROJECT)
    return max(matches, key=lambda p: p.version)


def unknown_name(
    what: str, name: str, known: Iterable[str], *, empty: str = "there is none", code: Code = "W1802"
) -> WorkspaceError:
    """Return the error for a name that does not exist: its help has the nearest name, or all of them."""
    names = list(known)
    help = suggest(name, names, "use one of", most=1) if names else empty
    return WorkspaceError(f"unknown {what} {name!r}", code=code, help=help)


def check_choice(option: str, value: str, choices: Iterable[str]) -> None:
    """Raise W1803 unless an option has one of its values."""
    names = list(choices)
    if value not in names:
        raise WorkspaceError(
            f"invalid value {value!r} for {option}", code="W1803", help=f"use one of {format_list(names)}"
        )


def parse_period(text: str | None, project: Project, catalog: Catalog) -> Period:
    """Return the period that an option names in the calendar of a project; raise W1803 without one."""
    if text is None:
        raise WorkspaceError(
            f"project {project.name!r} needs a period", code="W1803", help="add one, for example -p 2026-01"
        )
    return catalog.calendar(project.calendar).parse(text)


def parse_time(text: str | None, option: str) -> dt.datetime | None:
    """Return the time that an option holds; without a zone it is UTC.

    >>> parse_time("2026-02-01", "--known-at").isoformat()
    '2026-02-01T00:00:00+00:00'
    """
    if text is None:
        return None
    try:
        time = dt.datetime.fromisoformat(text)
        return (time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time).astimezone(dt.UTC)
    except (ValueError, OverflowError) as cause:
        raise WorkspaceError(
            f"invalid time {text!r} for {option}", code="W1803", help="write it as 2026-02-01 or 2026-02-01T08:30:00Z"
        ) from cause


def parse_date(text: str | None, option: str) -> dt.date | None:
    """Return the date that an option holds."""
    if text is None:
        return None
    try:
        return dt.date.fromisoformat(text)
    except ValueError as cause:
        raise WorkspaceError(
            f"invalid date {text!r} for {option}", code="W1803", help="write it as 2026-02-01"
        ) from cause


@contextmanager
def read_store(workspace: Workspace, *, patience: float | None = None) -> Iterator[StoreReader | None]:
    """Open the store for reading, None if it does not exist yet; `patience` is how long to wait for it."""
    url, root = workspace.settings.store, workspace.root
    # os.path.exists is False for a name that is too long for the disk; Path.exists would raise.
    # An address with options is read by SQLAlchemy, which takes longer to import.
    is_plain = url.startswith(SQLITE) and "?" not in url
    if is_plain and not os.path.exists(root / url.removeprefix(SQLITE)):  # noqa: PTH110
        yield None
        return
    from weft.pipelines.store.connections import PATIENCE
    from weft.pipelines.store.open import open_reader

    reader = open_reader(url, root, patience=PATIENCE if patience is None else patience)
    try:
        yield reader
    finally:
        if reader is not None:
            reader.close()


def require_store(reader: StoreReader | None) -> StoreReader:
    """Return the store; raise W1606 if it does not exist yet."""
    if reader is None:
        raise StoreError("no runs yet", code="W1606", help="run a project with `weft run`")
    return reader


@contextmanager
def write_store(workspace: Workspace) -> Iterator[Store]:
    """Open the store for writing; create a store in a file if it does not exist."""
    from weft.pipelines.store.open import open_store

    with open_store(workspace.settings.store, workspace.root) as store:
        yield store


@contextmanager
def lazy_session(call: Call, workspace: Workspace) -> Iterator[Opener]:
    """Provide a function that starts the Spark session of a workspace; stop the session at the end."""
    from weft.io.spark.session import session_for

    with ExitStack() as stack:

        def start(*, is_small: bool = False) -> Session:
            with call.waiting("starting Spark", hint=_how_to_start_faster()) if call.spark is None else nullcontext():
                opened = session_for(workspace.settings.spark, workspace.root, spark=call.spark, is_small=is_small)
                return stack.enter_context(opened)

        # Started by the first call: a run that is refused, or only resumes a publication, needs no JVM.
        yield start


def _how_to_start_faster() -> str:
    from weft.io.spark.class_archive import archive_path

    return "" if archive_path().exists() else "(`weft doctor --fast-start` saves a third of this)"


@contextmanager
def report_unwritable(path: Path, *, help: str, code: Code = "W1803") -> Iterator[None]:
    """Turn a failure to write below a path into an error of the command."""
    try:
        yield
    except OSError as cause:
        raise WorkspaceError(f"cannot write to {path}: {cause.strerror}", code=code, help=help) from cause


def write_report(path: Path, text: str) -> None:
    """Write what a command prints to the file of its ``--out``."""
    with report_unwritable(path, help="choose another file with --out"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def as_warnings(error: WeftError) -> tuple[Diagnostic, ...]:
    """Return the findings of an error that does not stop the command."""
    return tuple(replace(d, severity="warning") for d in error.diagnostics)
