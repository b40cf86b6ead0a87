"""A run in a process of its own: ``python run_process.py ROOT``; WEFT_CRASH_AT says where it ends."""

from __future__ import annotations

import sys
from pathlib import Path

from weft.io.spark.session import session_for
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.run.execute import run_project
from weft.pipelines.store.open import open_store


def main(root: Path) -> None:
    workspace = load_workspace(root).workspace
    with (
        open_store(workspace.settings.store, root) as store,
        session_for(workspace.settings.spark, root) as session,
    ):
        report = run_project(workspace, workspace.projects[0], "2026-01", store=store, session=session)
        sys.stdout.write(f"{report.status}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
