"""Commit: writing the manifest of a batch commits it.

::

    reports of all tasks       checked: the ledger must balance, or nothing is committed
    staged sink files          synced to disk
    commits/<batch>.json       written atomically: from here on the batch is committed
    sink files                 renamed to their final paths; after a crash the next start completes this
    state that is unused       removed
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from weft.core.crash import crash_point
from weft.core.frozen import EMPTY, FrozenMap
from weft.errors import ConnectorError, StreamError
from weft.io.stores.store_path import Place, StorePath
from weft.streams.checkpoint.earlier_state import list_state
from weft.streams.checkpoint.folder import (
    Checkpoint,
    damaged_file,
    move_file,
    remove_path,
    remove_paths,
    sync_path,
    write_document,
)
from weft.streams.checkpoint.ledger import (
    TaskReport,
    add_ledgers,
    add_stats,
    check_report,
    check_total,
    check_waiting,
    max_event_times,
    sum_counts,
)
from weft.streams.checkpoint.manifest import (
    Heartbeat,
    Ledger,
    Manifest,
    Move,
    last_manifest,
    read_heartbeat,
    write_heartbeat,
    write_manifest,
)
from weft.streams.kernel.spec import FOREVER, Clock, list_files
from weft.streams.plan.clocks import compute_clocks, compute_watermark
from weft.streams.plan.resolved import StatementPlan

STAGING = ".weft-staging"
"""Folder in a sink with the files of uncommitted batches; readers ignore it."""

_HEARTBEATS = 100  # kept for `status` and for questions about recent batches


def decide_heartbeat(
    checkpoint: Checkpoint,
    plan: StatementPlan,
    batch: int,
    before: Manifest | None,
    *,
    idle: FrozenMap[str, Any],
    wall_clock: int,
    final: bool,
) -> Heartbeat:
    """Return the watermark and clocks of a batch: those of its first attempt, else new ones, which are written."""
    known = read_heartbeat(checkpoint, batch)
    # A repeated batch must give the same rows.  A flush and a batch with rows are different batches of one number.
    if known is not None and known.final == final:
        return known
    earlier = before or Manifest(batch=-1)
    watermark = compute_watermark(plan, earlier.max_times, earlier.watermark, idle=tuple(idle))
    past = tuple(Clock(left=left, right=right) for left, right in earlier.clocks)
    now = compute_clocks(plan, FOREVER if final else watermark, past)
    heartbeat = Heartbeat(
        batch=batch,
        wall_clock=wall_clock,
        watermark=watermark,
        clocks=tuple((c.left, c.right) for c in now),
        idle=idle,
        final=final,
    )
    # On disk before it is used: rows that were late for the first attempt must be late for the second.
    write_heartbeat(checkpoint, heartbeat)
    return heartbeat


def commit_batch(
    checkpoint: Checkpoint,
    batch: int,
    reports: Iterable[TaskReport],
    staged: tuple[Move, ...] = (),
    *,
    heartbeat: Heartbeat,
    before: Manifest | None = None,
    inputs: Mapping[str, str] = EMPTY,
    tables: Ledger = EMPTY,
    rows: int | None = None,
    read: FrozenMap[str, Any] = EMPTY,
    seconds: float = 0.0,
) -> Manifest:
    """Commit a batch and return its manifest.

    `before` is the last manifest, read if it is None; `inputs` maps the sides that read a stream to its alias, `tables`
    are the counts of joins with tables in this batch, `rows` is the number of rows written to a sink without files, and
    `read` is what Spark planned the batch to read.
    """
    wrote = tuple(reports)
    # Spark runs one batch at a time and the lock keeps other processes out, so nothing else commits meanwhile.
    before = before or last_manifest(checkpoint) or Manifest(batch=-1)
    for report in wrote:
        check_report(report)
    check_waiting(wrote, before.ledger, batch)
    ledger = add_ledgers(before.ledger, add_ledgers(sum_counts(wrote), tables))
    check_total(ledger, batch, before.ledger)
    crash_point("stream_counted")
    # A manifest that survives a power cut must not list files that do not.
    _sync(checkpoint, wrote, staged)
    written = sum(m.rows or 0 for m in staged) if rows is None else rows
    arrived = FrozenMap(
        {a: ledger[s]["in"] - before.ledger.get(s, EMPTY).get("in", 0) for s, a in inputs.items() if s in ledger}
    )
    stats = add_stats(before.stats, wrote)
    manifest = Manifest(
        batch=batch,
        max_times=max_event_times(stats, inputs, before.max_times),
        watermark=heartbeat.watermark,
        clocks=heartbeat.clocks,
        ledger=ledger,
        stats=stats,
        sink=staged,
        rows=written,
        total_rows=before.total_rows + written,
        rows_in=arrived,
        last_rows=FrozenMap({**before.last_rows, **{a: heartbeat.wall_clock for a, n in arrived.items() if n}}),
        aliases=FrozenMap(inputs),
        read=read,
        seconds=round(seconds, 3),
        final=heartbeat.final,
        state=tuple(report.state for report in wrote),
        rejects=FrozenMap({name: known for report in wrote for name, known in report.rejects.items()}),
    )
    write_manifest(checkpoint, manifest)
    crash_point("stream_manifest")
    # After the manifest: were the files visible before it, a repeated batch would write their rows a second time.
    finish_moves(manifest)
    crash_point("stream_renamed")
    # Last: until the manifest exists, a repeated batch starts from this state.
    remove_unused(checkpoint, manifest, before)
    remove_path(checkpoint.heartbeat_file(batch - _HEARTBEATS))
    crash_point("stream_cleaned")
    return manifest


def finish_moves(manifest: Manifest) -> None:
    """Rename the sink files of a committed batch to their final paths, unless this was done.

    Files are renamed in order, and a reader may remove one as soon as it is renamed.  So a file that is neither
    staged nor at its final path was removed by a reader, unless one before it is still staged: then it was lost.
    """
    folders: set[Place] = set()
    for move in manifest.sink:
        if move.source.exists():
            # After a power cut both names may exist: they are one file, and only the staged name has to go.
            _rename(move)
            folders.add(move.to.parent)
            crash_point("stream_renaming")
        elif folders and not move.to.exists():
            raise damaged_file(
                move.source, f"batch {manifest.batch} lists it and it is neither staged nor at {str(move.to)!r}"
            )
    # Before the staging folders go, or a power cut could lose both names of a file.
    for folder in folders:
        sync_path(folder)
    for staging in {move.source.parent for move in manifest.sink}:
        remove_path(staging)


def remove_unused(checkpoint: Checkpoint, manifest: Manifest, before: Manifest | None = None) -> None:
    """Remove files of state that neither a commit nor the one before it lists, and rejects of failed attempts."""
    listed = {
        checkpoint.join_state(entry["join"]) / name
        for one in (manifest, before or manifest)
        for entry in list_state(checkpoint, one)
        for name in list_files(entry)
    }
    if checkpoint.lease is not None and not checkpoint.lease.is_last:
        return  # another process goes on from this commit, and removes what it does not need
    places = [path for path in checkpoint.state.rglob("*") if path not in listed]
    remove_paths(path for path in places if _is_until(path, manifest.batch) and not _is_folder(path))
    # Only earlier versions made folders for batches and groups.
    for folder in sorted((path for path in places if _is_folder(path)), reverse=True, key=str):
        if folder.parent != checkpoint.state and not any(folder.iterdir()):
            folder.rmdir()
    rejects = checkpoint.rejects.glob(f"*/{manifest.batch}-j*.*.parquet")
    remove_paths(path for path in rejects if f"{path.parent.name}/{path.name}" not in (manifest.rejects or EMPTY))


def _is_folder(path: Place) -> bool:
    return isinstance(path, Path) and path.is_dir()


def _is_until(path: Place, batch: int) -> bool:
    """Return whether a file of the state is of a batch, or of one before it; earlier versions had folders of batches."""
    number = path.name.partition("-")[0]
    return not number.isdigit() or int(number) <= batch


def seal(checkpoint: Checkpoint, manifest: Manifest) -> None:
    """Record that the input has ended and all rows are emitted."""
    write_document(
        checkpoint.sealed_file, {"batch": manifest.batch, "rows": manifest.total_rows, "ledger": manifest.ledger}
    )
    crash_point("stream_sealed")


def is_sealed(checkpoint: Checkpoint) -> bool:
    """Return whether the input of a checkpoint has ended."""
    return checkpoint.sealed_file.exists()


def check_open(checkpoint: Checkpoint, statement: str) -> None:
    """Raise `StreamError` W2204 when the checkpoint is sealed."""
    if is_sealed(checkpoint):
        raise StreamError(
            f"the input of {statement!r} was ended by a final run: its checkpoint {str(checkpoint.root)!r} is sealed",
            code="W2204",
            help="`--fresh` reads everything again and replaces the output",
        )


def _rename(move: Move) -> None:
    try:
        move.to.parent.mkdir(parents=True, exist_ok=True)
        move_file(move.source, move.to)
    except OSError as cause:
        raise ConnectorError(
            f"{str(move.source)!r} cannot be renamed to {str(move.to)!r}: {cause}",
            code="W2309",
            help="the batch is committed; check the permissions of the folder and start the job again to finish it",
        ) from cause


def _sync(checkpoint: Checkpoint, reports: Iterable[TaskReport], staged: tuple[Move, ...]) -> None:
    """Sync everything that a manifest lists before it is written: files and their folders."""
    if isinstance(checkpoint.root, StorePath):
        return  # what is in a store is there
    # The kernel syncs its own files, on the worker; the folders are shared by all tasks.
    sync_staged(staged)
    folders = {checkpoint.root, checkpoint.state, checkpoint.rejects, *checkpoint.rejects.glob("*")}
    folders |= {checkpoint.join_state(report.join) for report in reports}
    for folder in sorted(folders):
        if folder.is_dir():
            sync_path(folder)


def sync_staged(staged: Iterable[Move]) -> None:
    """Sync staged files and their folders up to the folder of the sink."""
    folders: set[Place] = set()
    for move in staged:
        # Spark closes its files without a sync.
        sync_path(move.source)
        sink = move.to.parent
        folders |= {f for f in move.source.parents if f == sink or sink in f.parents} | {sink.parent}
    for folder in sorted(folders):
        sync_path(folder)
