"""What stream commands share: where the job is, what it says, where it keeps its files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.call import Call
from weft.core.names import find_similar, format_list
from weft.errors import StreamSqlError, WeftError, WorkspaceError

if TYPE_CHECKING:
    from weft.pipelines.model.workspace import Settings
    from weft.streams.plan.resolved import JobPlan
    from weft.streams.sql.spec import JobSpec

STREAMS = "streams"
"""Folder of a workspace in which jobs are found by their names."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
Job = Annotated[str, typer.Argument(metavar="JOB", help="A .sql file, or its name: here or in streams/.")]
Define = Annotated[
    list[str] | None,
    typer.Option("-D", metavar="VAR=VALUE", help="The value of ${VAR} in the job; repeatable."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCall:
    """A job as a command names it: its file, the workspace it lies in, the values of its variables."""

    file: Path
    root: Path
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def shown(self) -> str:
        """The file as findings name it: below the workspace where it can be said so."""
        return (
            self.file.relative_to(self.root).as_posix()
            if self.file.is_relative_to(self.root)
            else str(self.file)
        )

    def spec(self) -> JobSpec:
        """Return what the file says; every mistake in it is raised together."""
        from weft.streams.sql.job import read_job_text
        from weft.streams.sql.lower import read_spec

        return read_spec(read_job_text(self.file, self.shown), file=self.shown, env=self._env())

    def plan(self) -> JobPlan:
        """Return the job with everything settled; every mistake is raised together."""
        from weft.streams.plan.resolve import plan_text
        from weft.streams.sql.job import read_job_text

        return plan_text(read_job_text(self.file, self.shown), self.root, file=self.shown, env=self._env())

    def _env(self) -> dict[str, str]:
        return {**os.environ, **dict(self.variables)}

    def folder(self) -> Path:
        """Return where the job keeps its checkpoints; a job that does not read keeps them where most do."""
        try:
            said = self.spec().settings.get("checkpoint")
        except (StreamSqlError, WeftError):
            said = None
        return self.root / (str(said) if said else f".weft/{STREAMS}/{self.file.stem}")

    def words(self) -> list[str]:
        """Return the words that name this job to another process."""
        defined = [word for name, value in self.variables for word in ("-D", f"{name}={value}")]
        return [str(self.file), *defined]


def stream_root(call: Call) -> Path:
    """Return the workspace of a stream command: the nearest folder with a ``weft.yml``, else the folder itself."""
    from weft.pipelines.model.read_workspace import find_root

    if not call.start.is_dir():
        raise WorkspaceError(f"there is no folder {call.start}", help="`-C DIR` names the workspace")
    return find_root(call.start)


def job_of(call: Call, said: str, defined: Sequence[str] | None = None) -> JobCall:
    """Return the job that a command names; raise W1802 when there is none."""
    root, start = stream_root(call), call.start.resolve()
    folders = (start, root, root / STREAMS)
    # By name as well: messages about a job that runs name it so.
    places = [folder / name for name in (said, f"{said}.sql") for folder in folders]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise _unknown(said, root, start)
    return JobCall(file=found.resolve(), root=root, variables=variables(defined or ()))


def _unknown(said: str, root: Path, start: Path) -> WorkspaceError:
    named = sorted(p.stem for p in (root / STREAMS).glob("*.sql"))
    beside = sorted(p.name for p in start.glob("*.sql"))
    close = find_similar(said, [*named, *beside], most=1)
    known = [*named, *beside]
    if close:
        help = f"did you mean {close[0]!r}?"
    else:
        help = f"there are {format_list(known)}" if known else "write one as streams/NAME.sql"
    return WorkspaceError(f"there is no stream job {said!r}", code="W1802", help=help)


def variables(defined: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the variables that ``-D VAR=VALUE`` defines.

    >>> variables(["DAY=2026-01-01", "EMPTY="])
    (('DAY', '2026-01-01'), ('EMPTY', ''))
    """
    found = []
    for said in defined:
        name, sign, value = said.partition("=")
        if not sign or not _VARIABLE.fullmatch(name):
            raise WorkspaceError(
                f"-D {said!r} defines no variable", code="W1803", help="as in -D DAY=2026-01-01"
            )
        found.append((name, value))
    return tuple(found)


def settings_of(root: Path) -> Settings:
    """Return the settings of ``weft.yml``, or the defaults where there is none."""
    from weft.pipelines.model.read_workspace import SETTINGS
    from weft.pipelines.model.workspace import Settings

    if not (root / SETTINGS).is_file():
        return Settings()
    return Call(folder=root).remembered().settings
