"""Where a run keeps what it has not published yet.

::

    <workspace>/.weft/stage/<run>/20/        the files of output 20, when its target is on that disk
    <workspace>/.weft/stage/<run>/20.before  what was at the target, while it is exchanged
    <workspace>/.weft/stage/<run>/steps/10/  the working set after operation 10
    /mnt/out/.weft_stage/<run>/20/           the files of an output whose target is on another disk
    <workspace>/.weft/old/<time>-<run>-20    what was at a target before, for readers that have the folder open

A folder is exchanged by renaming, and renaming works only within one disk.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from weft.pipelines.store.records import OutputRecord

STAGE = Path(".weft") / "stage"
BESIDE = ".weft_stage"
OLD = Path(".weft") / "old"
GRACE_SECONDS = 60
"""How long the old content of a target is kept at least."""


def stage_root(target: Path, root: Path) -> Path:
    """Return the folder for staged data of a target: in the workspace, or beside a target on another disk."""
    if _disk(target.parent) == _disk(root):
        return root / STAGE
    return target.parent / BESIDE


def _disk(path: Path) -> int:
    existing = next(p for p in (path, *path.parents) if p.exists())
    return existing.stat().st_dev


def output_stage(target: Path, root: Path, run_id: str, seq: int) -> Path:
    """Return the folder in which an output is staged."""
    return stage_root(target, root) / run_id / str(seq)


def output_backup(target: Path, root: Path, run_id: str, seq: int) -> Path:
    """Return where the old content of a target waits until the new one is committed."""
    return stage_root(target, root) / run_id / f"{seq}.before"


def steps_folder(root: Path, run_id: str) -> Path:
    """Return the folder that holds the working set after some operations."""
    return root / STAGE / run_id / "steps"


def table_stage(root: Path, run_id: str, seq: int) -> Path:
    """Return the folder for what an output to a table needs on the disk."""
    return root / STAGE / run_id / str(seq)


def staged_runs(root: Path) -> tuple[str, ...]:
    """Return the runs that have something staged in the workspace."""
    folder = root / STAGE
    return tuple(sorted(p.name for p in folder.iterdir() if p.is_dir())) if folder.is_dir() else ()


def remove_stage(root: Path, run_id: str, outputs: Iterable[OutputRecord] = ()) -> None:
    """Remove everything that a run has staged; what is already gone is fine."""
    folders = {root / STAGE / run_id}
    for output in outputs:
        if output.kind in ("files", "file"):
            folders |= {p for p in Path(output.stage).parents if p.name == run_id}
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.parent.name == BESIDE and folder.parent.is_dir() and not any(folder.parent.iterdir()):
            folder.parent.rmdir()


def keep_for_readers(backup: Path, root: Path, run_id: str, seq: int) -> None:
    """Put the old content of a target where the next commands remove it.

    A reader that opened the folder just before the exchange lists it just after: it must not find it empty.
    """
    if not backup.exists():
        return
    folder = _old_beside(backup) if root / STAGE not in backup.parents else root / OLD
    folder.mkdir(parents=True, exist_ok=True)
    remove_old(folder)
    backup.rename(folder / f"{int(time.time())}-{run_id}-{seq}")


def _old_beside(backup: Path) -> Path:
    return next(p for p in backup.parents if p.name == BESIDE) / OLD.name


def remove_old(folder: Path) -> None:
    """Remove old content that no reader has just opened."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        since = entry.name.partition("-")[0]
        if not since.isdigit() or time.time() - int(since) > GRACE_SECONDS:
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


def shown(path: str | os.PathLike[str], root: Path) -> str:
    """Return a path as users see it: relative to the workspace when it is below it."""
    whole = Path(path)
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else str(whole)
