"""Changes that a file of the workspace and the store make together, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from weft.core.sites import Sites
from weft.errors import EntityError
from weft.pipelines.model.compose import compose
from weft.pipelines.model.project import Project
from weft.pipelines.model.rewrite import set_keys
from weft.pipelines.model.sugar import unwrapped
from weft.pipelines.model.workspace import Workspace
from weft.pipelines.model.yaml_nodes import plain
from weft.pipelines.store.connections import Database


def file_of(workspace: Workspace, at: Sites, what: str) -> Path:
    """Return the file that an entity was read from."""
    if at.whole is None or at.whole.file is None:
        raise EntityError(
            f"{what} stands in no file of the workspace",
            code="W1020",
            help="write it into a file; `weft init` shows the folders",
        )
    return workspace.root / at.whole.file


def pinned_keys(file: Path, project: Project, version: int) -> dict[str, Any]:
    """Return the keys that pin the input of a project; ``input: gl@3`` loses the version it says."""
    root = unwrapped(compose(file.read_bytes().decode("utf-8-sig"), str(file)), "project", [])
    changes: dict[str, Any] = {"input_dataset_version": version}
    for key in ("input", "input_dataset_id"):
        said = root.get(key)
        if said is not None and plain(said) != project.input.said:
            changes[key] = project.input.said
    return changes


def change_both(
    database: Database, file: Path, keys: Mapping[str, Any], work: Callable[[Connection], None]
) -> None:
    """Write to the store and set keys of a file; when either fails, both stay as they were."""
    before = file.read_bytes()

    def together(connection: Connection) -> None:
        work(connection)
        set_keys(file, keys)

    try:
        database.write(together)
    except BaseException:
        if file.read_bytes() != before:
            _restore(file, before)
        raise


def _restore(file: Path, text: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    with os.fdopen(handle, "wb") as out:
        out.write(text)
    Path(name).chmod(file.stat().st_mode & 0o777)
    Path(name).replace(file)
