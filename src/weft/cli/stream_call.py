"""JobCall: the streaming job of a command, its file, variables and checkpoint folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from weft.cli.call import Call, unknown_name
from weft.core.names import WORD
from weft.core.paths import has_scheme, is_file_url
from weft.errors import WeftError, WorkspaceError

if TYPE_CHECKING:
    from weft.io.stores.store_path import Place
    from weft.pipelines.model.workspace import Settings
    from weft.streams.plan.resolved import JobPlan
    from weft.streams.sql.spec import JobSpec

STREAMS = "streams"
"""Folder of a workspace with its jobs."""

JobArgument = Annotated[str, Argument(metavar="JOB", help="A .sql file, or the name of one here or in streams/.")]
DefineOption = Annotated[
    list[str] | None, Option("-D", metavar="VAR=VALUE", help="Set the value of ${VAR} in the job. Repeatable.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCall:
    """A job as a command names it: its file, its workspace, the values of its variables."""

    file: Path
    root: Path
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def display_path(self) -> str:
        """The file as findings name it: relative to the workspace if it is inside."""
        is_inside = self.file.is_relative_to(self.root)
        return self.file.relative_to(self.root).as_posix() if is_inside else str(self.file)

    def spec(self) -> JobSpec:
        """Return the parsed job; raise all its errors together."""
        from weft.streams.sql.job import read_job_text
        from weft.streams.sql.lower import read_spec

        text = read_job_text(self.file, self.display_path)
        return read_spec(text, file=self.display_path, env=self._env())

    def plan(self) -> JobPlan:
        """Return the resolved job; raise all its errors together."""
        from weft.streams.plan.resolve import plan_text
        from weft.streams.sql.job import read_job_text

        text = read_job_text(self.file, self.display_path)
        return plan_text(text, self.root, file=self.display_path, env=self._env())

    def _env(self) -> dict[str, str]:
        return {**os.environ, **dict(self.variables)}

    def folder(self) -> Place:
        """Return the checkpoint folder, on a disk or in a store; the default one if the job is invalid."""
        # A job that runs must be found and stopped even if its file has errors by now.
        try:
            folder = str(self.spec().settings.get("checkpoint") or "")
        except WeftError:
            folder = ""
        if has_scheme(folder) and not is_file_url(folder):
            from weft.io.stores.store_path import as_place

            return as_place(folder)
        return self.root / folder if folder else self._default_folder()

    def local_folder(self) -> Path:
        """Return the folder on this machine with what its supervisor writes."""
        folder = self.folder()
        return folder if isinstance(folder, Path) else self._default_folder()

    def _default_folder(self) -> Path:
        return self.root / f".weft/{STREAMS}/{self.file.stem}"

    def arguments(self) -> list[str]:
        """Return the arguments that name this job on a command line."""
        defines = [word for name, value in self.variables for word in ("-D", f"{name}={value}")]
        return [str(self.file), *defines]


def find_job(call: Call, name: str, defines: Sequence[str] | None = None) -> JobCall:
    """Return the job of a file or name; raise W1802 if there is none."""
    root, start = call.nearest_root(), call.start.resolve()
    folders = (start, root, root / STREAMS)
    # Messages about a running job use its name, so a name works like a file.
    candidates = [folder / file for file in (name, f"{name}.sql") for folder in folders]
    file = next((path for path in candidates if path.is_file()), None)
    if file is None:
        known = sorted(p.stem for p in (root / STREAMS).glob("*.sql"))
        known += sorted(p.name for p in start.glob("*.sql"))
        raise unknown_name("stream job", name, known, empty="create a file streams/NAME.sql")
    return JobCall(file=file.resolve(), root=root, variables=parse_variables(defines or ()))


def parse_variables(defines: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the variables that ``-D VAR=VALUE`` defines.

    >>> parse_variables(["DAY=2026-01-01", "EMPTY="])
    (('DAY', '2026-01-01'), ('EMPTY', ''))
    """
    variables = []
    for define in defines:
        name, equals, value = define.partition("=")
        if not equals or not WORD.fullmatch(name):
            raise WorkspaceError(f"invalid variable {define!r} for -D", code="W1803", help="write -D VAR=VALUE")
        variables.append((name, value))
    return tuple(variables)


def read_settings(root: Path) -> Settings:
    """Return the settings of ``weft.yml``, or the defaults if it does not exist."""
    from weft.pipelines.model.read_workspace import SETTINGS
    from weft.pipelines.model.workspace import Settings

    if not (root / SETTINGS).is_file():
        return Settings()
    return Call(folder=root).stored_workspace().settings
