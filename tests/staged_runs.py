"""A run whose outputs are staged by hand, so that publishing is tested without Spark.

``python staged_runs.py ROOT`` stages two outputs of the FX project in a process of its own and publishes
them; WEFT_CRASH_AT says where that process ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from engine_data import CONVERT, WRITE, project_text
from weft.io.staged import StagedFile, file_hash
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.operations.resolved import ResolvedOutput
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.run import moving
from weft.pipelines.run.moving import Move, output_backup, output_stage
from weft.pipelines.run.prepare import Prepared, prepare
from weft.pipelines.run.publish import moves_of, publish, recover, registrations
from weft.pipelines.run.tables import Tables
from weft.pipelines.store.locks import this_process
from weft.pipelines.store.open import open_store
from weft.pipelines.store.records import NewRun, OutputRecord, run_id
from weft.pipelines.store.snapshot import build_snapshot
from weft.pipelines.store.writer import Store

SECOND = """\
- seq: 30
  name: Export
  type: output
  arguments:
    destination: {path: exports/gl, format: csv}
    columns: [journal_id, amount_reporting]
"""
TWO_OUTPUTS = project_text([CONVERT, WRITE, SECOND])
TARGETS = ("out/processed_gl/period=2026-01", "exports/gl/period=2026-01")


@dataclass
class StagedRun:
    """A run that waits to be published."""

    root: Path
    store: Store
    run_id: str
    plan: ProjectPlan
    catalog: Catalog
    moves: tuple[Move, ...]

    def publish(self, merged: Mapping[int, moving.Listing] | None = None) -> None:
        """Publish it as a run does; `merged` is what was at targets when they were read."""
        publish(
            self.moves,
            self.store,
            self.run_id,
            root=self.root,
            tables=Tables(self.plan, self.catalog, self.root),
            registrations=registrations(self.plan, self.catalog, self.run_id, self.root),
            merged=merged,
        )


def opened(root: Path) -> AbstractContextManager[Store]:
    """Return the store of a workspace."""
    return open_store("sqlite:///.weft/weft.db", root, patience=1.0)


def staged_run(
    root: Path, store: Store, content: str = "new", number: int = 1, rerun_of: str | None = None
) -> StagedRun:
    """Begin a run of the only project and stage a small file for each of its outputs."""
    workspace = load_workspace(root).workspace
    prepared = prepare(workspace, workspace.projects[0], "2026-01", store=store)
    if rerun_of is not None:
        prepared = replace(prepared, rerun_of=rerun_of, known_at=store.run(rerun_of).known_at)
    run = store.create_run(_new(prepared, number))
    store.set_running(run.id)
    records = [_staged(op, root, run.id, content) for op in prepared.plan.operations if isinstance(op, ResolvedOutput)]
    for record in records:
        store.output_staged(record)
    modes = {op.seq: op.mode for op in prepared.plan.operations if isinstance(op, ResolvedOutput)}
    return StagedRun(root, store, run.id, prepared.plan, prepared.catalog, moves_of(records, modes, run, store))


def _new(prepared: Prepared, number: int) -> NewRun:
    host, pid = this_process()
    snapshot = build_snapshot(
        prepared.plan,
        prepared.catalog,
        engine_version="test",
        session={"timeZone": "UTC"},
        inputs=prepared.inputs,
        today=prepared.today,
        known_at=prepared.known_at,
        run_at=prepared.run_at,
    )
    return NewRun(
        run_id=run_id(1_763_200_000_000 + number, number.to_bytes(10, "big")),
        project=prepared.project,
        period=prepared.period,
        snapshot=snapshot,
        sandbox=prepared.plan.draft,
        known_at=prepared.known_at,
        run_at=prepared.run_at,
        trigger="test",
        triggered_by="ann",
        host=host,
        pid=pid,
        rerun_of=prepared.rerun_of,
    )


def _staged(op: ResolvedOutput, root: Path, run: str, content: str) -> OutputRecord:
    target = root / op.target.location
    folder = output_stage(target, root, run, op.seq)
    folder.mkdir(parents=True)
    name = target.name if op.target.kind == "file" else f"part-{run}-00000.{op.target.format}"
    file = folder / name
    file.write_text(f"{content} {op.seq}", encoding="utf-8")
    return OutputRecord(
        run_id=run,
        seq=op.seq,
        state="staged",
        stage=str(folder),
        target=str(target),
        backup=str(output_backup(target, root, run, op.seq)),
        kind=op.target.kind,
        format=op.target.format,
        rows=1,
        columns=op.columns,
        manifest=(StagedFile(path=name, bytes=file.stat().st_size, sha256=file_hash(file)),),
        register_as=op.register_as,
    )


def contents(root: Path, target: str) -> list[str]:
    """Return what the files at a target say."""
    place = root / target
    return sorted(file.read_text(encoding="utf-8") for file in place.rglob("*") if file.is_file())


def killed(root: Path, at: str, *, can_exchange: bool = True) -> None:
    """Publish in a process of its own that ends at a point as by a power cut.

    A disk that cannot exchange two folders, such as one of NFS, renames them one after the other.
    """
    _killed([str(root), *([] if can_exchange else ["renaming"])], at)


def killed_recovering(root: Path) -> None:
    """Recover in a process of its own that ends when it has taken the first folder back."""
    _killed([str(root), "recovering"], "exchanged_back")


def _killed(words: list[str], at: str) -> None:
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, __file__, *words],
        env=os.environ | {"WEFT_CRASH_AT": at, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def main(root: str, given: str = "") -> None:
    if given == "renaming":
        moving.exchange = lambda *_: False
    with opened(Path(root)) as store:
        if given == "recovering":
            recover(store, Path(root))
        else:
            staged_run(Path(root), store, number=2).publish()


if __name__ == "__main__":
    main(*sys.argv[1:])
