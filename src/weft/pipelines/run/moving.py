"""How staged files replace the content of their target, so that the move can be repeated after a crash.

Before::

    stage/20/part-0          target/part-old

After; the mark names the new folder, so that each state shows what is left to do::

    20.mark  stage/20/part-0      target/part-old                             (marked)
    20.mark  stage/20/part-old    target/part-0                               (exchanged in one step)
    20.mark                       target/part-0      20.before/part-old       (put aside)

Whoever lists the target sees the old files or the new ones, never none.  On a disk that cannot exchange two paths
(NFS) the target is renamed away and the stage renamed in, and is absent for a moment in between.

Where a run keeps data that is not published yet::

    <workspace>/.weft/stage/<run>/20/        the files of output 20, when its target is on that disk
    <workspace>/.weft/stage/<run>/20.before  what was at the target, while it is exchanged
    <workspace>/.weft/stage/<run>/steps/10/  the working set after operation 10
    /mnt/out/.weft_stage/<run>/20/           the files of an output whose target is on another disk
    <workspace>/.weft/old/<time>-<run>-20    what was at a target before, for readers that have the folder open

A folder is exchanged by renaming, and renaming works only within one disk.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weft.core.crash import crash_point
from weft.errors import RunError
from weft.io.datasource import WriteMode
from weft.io.staged import exchange as exchange  # noqa: PLC0414  # a test takes it away
from weft.pipelines.store.records import OutputRecord, short_id

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
        if output.is_files:
            folders |= {p for p in Path(output.stage).parents if p.name == run_id}
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.parent.name == BESIDE and folder.parent.is_dir() and not any(folder.parent.iterdir()):
            folder.parent.rmdir()


def keep_for_readers(backup: Path, root: Path, run_id: str, seq: int) -> None:
    """Put the old content of a target where the next commands remove it.

    A reader that opened the folder just before the exchange may list it just after and must not see it empty.
    """
    if not backup.exists():
        return
    folder = root / OLD
    if root / STAGE not in backup.parents:
        # A rename stays within one disk: what was beside a target on another disk is kept there.
        folder = next(p for p in backup.parents if p.name == BESIDE) / OLD.name
    folder.mkdir(parents=True, exist_ok=True)
    remove_old(folder)
    backup.rename(folder / f"{int(time.time())}-{run_id}-{seq}")


def remove_old(folder: Path) -> None:
    """Remove old content that no reader has just opened."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        since = entry.name.partition("-")[0]
        if not since.isdigit() or time.time() - int(since) > GRACE_SECONDS:
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


def format_location(path: str | os.PathLike[str], root: Path) -> str:
    """Return a path as users see it: relative to the workspace when it is below it."""
    whole = Path(path)
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else str(whole)


Listing = tuple[tuple[str, int, int], ...]
"""The content of a target: path, size and time of change of every file."""


@dataclass(frozen=True, slots=True)
class Move:
    """An output on its way to its target, and its mode.

    `rows_of` are the runs whose rows it replaces where rows are appended: itself, and for a rerun all runs that it
    repeats.  With `again` one of them was published, so a table has the rows already.
    """

    output: OutputRecord
    mode: WriteMode
    rows_of: tuple[str, ...] = ()
    again: bool = False

    @property
    def is_files(self) -> bool:
        """Whether the output is files that are renamed."""
        return self.output.is_files

    @property
    def source(self) -> Path:
        """What is renamed to the target: the staged folder, or the one file in it."""
        folder, target = Path(self.output.stage), Path(self.output.target)
        return folder / target.name if self.output.kind == "file" else folder

    @property
    def target(self) -> Path:
        """Where it goes."""
        return Path(self.output.target)

    @property
    def backup(self) -> Path:
        """Where the old content waits."""
        return Path(self.output.backup)

    @property
    def mark(self) -> Path:
        """The file that says which folder is the new one."""
        return self.backup.with_suffix(".mark")


def move_in(move: Move) -> None:
    """Bring staged files to their target; a move that was interrupted is finished."""
    source, target, backup = move.source, move.target, move.backup
    if _is_in(move):
        return
    if not source.exists():
        if target.exists():
            return
        raise _unpublishable(move, "it is neither staged nor at its target")
    if move.mode == "fail_if_exists" and target.exists():
        raise already_there(target)
    with _no_space(move):
        if move.mode == "append" and target.is_dir():
            _link_kept_files(move)
        _sync(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        backup.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and backup.exists():
            # Another program wrote the target while the old content was put aside: both are data of the user.
            raise _unpublishable(move, f"{target} reappeared while it was exchanged")
        _write_mark(move)
        crash_point("marked")
        if not target.exists():
            source.rename(target)
        elif exchange(source, target):
            _flush(target.parent)
            crash_point("exchanged")
            source.rename(backup)
        else:
            target.rename(backup)
            _flush(target.parent)
            crash_point("renamed_away")
            source.rename(target)
        # A rename is durable when the folder with the name is flushed.
        _flush(target.parent)
    crash_point("renamed_in")


def move_back(move: Move) -> None:
    """Undo a move: what was at the target is there again, and the new files are staged again."""
    source, target, backup = move.source, move.target, move.backup
    with _no_space(move):
        if _is_in(move):
            # The old content is in the backup, or in the stage when a crash came right after the exchange.
            old = backup if backup.exists() else source
            if not old.exists() or not exchange(old, target):
                source.parent.mkdir(parents=True, exist_ok=True)
                target.rename(source)
            elif old == backup:
                crash_point("exchanged_back")
                backup.rename(source)
        if backup.exists() and not target.exists():
            backup.rename(target)
        # The mark goes last: until then a repeated call sees which of the two folders is the new one.
        move.mark.unlink(missing_ok=True)


def _is_in(move: Move) -> bool:
    """Whether the new files are at their target."""
    if _is_marked(move, move.target):
        return True
    # A release without marks renamed twice: then a stage that is gone is at the target.
    return not move.mark.exists() and not move.source.exists() and move.target.exists()


def _is_marked(move: Move, path: Path) -> bool:
    """Whether the mark names this folder or file, wherever it has been renamed to."""
    try:
        return move.mark.read_text(encoding="utf-8") == _identity(path)
    except OSError:
        return False


def _identity(path: Path) -> str:
    # A rename keeps device and inode, so they tell the new folder from the old one at whichever path it is.
    stat = path.lstat()
    return f"{stat.st_dev}:{stat.st_ino}"


def _write_mark(move: Move) -> None:
    """Write the identity of the new folder to the disk before the folder moves."""
    part = move.mark.with_suffix(".part")
    part.write_text(_identity(move.source), encoding="utf-8")
    _sync(part)
    part.replace(move.mark)
    _flush(part.parent)


def _link_kept_files(move: Move) -> None:
    """Link the files to keep into the staged folder; files of an earlier attempt or of the repeated run are left out."""
    own = tuple(f"part-{run}-" for run in (move.output.run_id, *move.rows_of))
    for file in sorted(p for p in move.target.rglob("*") if p.is_file()):
        beside = move.source / file.relative_to(move.target)
        if file.name.startswith(own) or beside.exists():
            continue
        beside.parent.mkdir(parents=True, exist_ok=True)
        # A link costs no space, and the file stays in the old folder for its readers.
        try:
            os.link(file, beside)
        except OSError as cause:  # a file system without hard links
            if cause.errno == errno.ENOSPC:
                raise
            shutil.copy2(file, beside)


def verify(move: Move) -> None:
    """Raise W1512 unless every staged file is there as it was written."""
    folder = Path(move.output.stage)
    if not move.source.exists():
        raise _unpublishable(move, f"{move.source} is missing")
    for file in move.output.manifest:
        if why := file.problem(folder):
            raise _unpublishable(move, why)


def listing(target: Path) -> Listing:
    """Return the content of a target: every file with its size and time of change."""
    files = (p for p in target.rglob("*") if p.is_file()) if target.is_dir() else (target,)
    return tuple(sorted((str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in files if p.is_file()))


def is_whole(move: Move) -> bool:
    """Whether an output can be published: staged as it was written, or at its target already."""
    if _is_in(move):
        return True
    try:
        if _is_marked(move, move.backup):  # undoing the move was interrupted: the new files are still in the backup
            with _no_space(move):
                move.backup.rename(move.source)
        verify(move)
    except RunError:
        return False
    return True


def is_untouched(move: Move) -> bool:
    """Whether an output is still staged, and its target was not changed yet."""
    if move.backup.exists() or not move.source.exists():
        return False
    # Right after the exchange the stage holds the old content, which the mark does not name.
    return not move.mark.exists() or _is_marked(move, move.source)


def already_there(target: Path | str) -> RunError:
    """Return the error for a target that must not exist yet."""
    return RunError(
        f"{target} already exists, and the output has `mode: fail_if_exists`",
        code="W1507",
        help="remove it, or write with `mode: replace_period`",
    )


def _unpublishable(move: Move, why: str) -> RunError:
    return RunError(
        f"output {move.output.seq} of run {short_id(move.output.run_id)} cannot be published: {why}",
        code="W1512",
        help=f"`weft rerun {short_id(move.output.run_id)}` computes it again from the snapshot",
    )


@contextmanager
def _no_space(move: Move) -> Iterator[None]:
    try:
        yield
    except OSError as cause:
        if cause.errno in (errno.ENOSPC, errno.EDQUOT):
            raise no_space(str(move.target), cause.strerror or "no space left") from cause
        raise RunError(
            f"output {move.output.seq} cannot be moved to {move.target}: {cause.strerror or cause}",
            code="W1512",
            help="check the permissions of the folder, then `weft run --resume RUN`",
        ) from cause


def unfinished(run_id: str, why: str) -> RunError:
    """Return the error for a publication that only `recover` can finish."""
    short = short_id(run_id)
    return RunError(
        f"run {short} was interrupted while it published: {why}",
        code="W1516",
        help=f"remove the cause; then `weft runs show {short}` completes it",
    )


def no_space(where: str, why: str) -> RunError:
    """Return the error for a disk that is full."""
    return RunError(f"no space for {where}: {why}", code="W1508", help="free space on the disk; nothing was published")


def _sync(path: Path) -> None:
    """Flush files to the disk, so that a rename never becomes durable before its content."""
    for file in (p for p in path.rglob("*") if p.is_file()) if path.is_dir() else (path,):
        _flush(file)
    _flush(path if path.is_dir() else path.parent)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
