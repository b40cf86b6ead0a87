"""Recovery: what a start does first, so that a crash has no effect.

::

    redriven/<number>.json     commits a redrive: the rejected rows it took, its corrections

A redrive that was interrupted before that file has no effect; one that was interrupted after it is completed here.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weft.core.documents import Document
from weft.core.frozen import EMPTY, FrozenMap
from weft.errors import StreamError
from weft.io.stores.store_path import Place, StorePath
from weft.streams.checkpoint.commit import STAGING, finish_moves, is_sealed, remove_unused, seal, sync_staged
from weft.streams.checkpoint.folder import (
    Checkpoint,
    damaged_file,
    list_checkpoints,
    list_ids,
    read_job_record,
    remove_path,
)
from weft.streams.checkpoint.manifest import (
    Manifest,
    Move,
    last_batch,
    list_batches,
    read_heartbeat,
    read_manifest,
    read_with_moves,
    write_with_moves,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveRecord(Document):
    """One redrive: the rejected rows it took, by file and position; `taken_back` counts retracted rows by fingerprint."""

    number: int
    at: int
    reasons: tuple[str, ...]
    taken: FrozenMap[str, tuple[int, ...]] = EMPTY
    taken_back: FrozenMap[str, int] = EMPTY
    plus: int = 0
    minus: int = 0
    files: tuple[Move, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveReport(Document):
    """The result of a redrive of one statement, or of a dry run."""

    sink: str
    taken: int
    plus: int
    minus: int
    undecided: int
    location: str


def read_redrives(checkpoint: Checkpoint) -> tuple[RedriveRecord, ...]:
    """Read all committed redrives, in order; raise `StreamError` W2202 if one before the last is missing."""
    numbers = list_batches(checkpoint.redriven)
    for expected, number in enumerate(numbers, 1):
        if number != expected:
            # The next redrive would replace a record, and take the rows of the missing one again.
            raise damaged_file(_redrive_path(checkpoint, expected), "it is missing, and later redrives exist")
    return tuple(_read_redrive(checkpoint, number) for number in numbers)


def _read_redrive(checkpoint: Checkpoint, number: int) -> RedriveRecord:
    return read_with_moves(checkpoint, _redrive_path(checkpoint, number), RedriveRecord, "files")


def write_redrive(checkpoint: Checkpoint, record: RedriveRecord) -> None:
    """Commit a redrive and rename its files, which are synced before its record is written."""
    sync_staged(record.files)
    if checkpoint.lease is not None:
        checkpoint.lease.check()
    write_with_moves(checkpoint, _redrive_path(checkpoint, record.number), record, files=record.files)
    finish_redrive(record)


def finish_redrive(record: RedriveRecord) -> None:
    """Rename the files of a committed redrive to their final paths."""
    finish_moves(Manifest(batch=record.number, sink=record.files))


def collect_taken(records: tuple[RedriveRecord, ...]) -> dict[str, set[int]]:
    """Return the rejected rows that earlier redrives took, by file."""
    taken: dict[str, set[int]] = {}
    for record in records:
        for name, places in record.taken.items():
            taken.setdefault(name, set()).update(places)
    return taken


def count_retracted(records: tuple[RedriveRecord, ...]) -> Counter[str]:
    """Return how many rows of each fingerprint earlier redrives retracted."""
    total: Counter[str] = Counter()
    for record in records:
        total.update(record.taken_back)
    return total


def _redrive_path(checkpoint: Checkpoint, number: int) -> Place:
    return checkpoint.redriven / f"{number}.json"


def recover(checkpoint: Checkpoint, staging: Place | None = None, *, sink: Place | None = None) -> int | None:
    """Restore a checkpoint to its last commit and return the number of that batch.

    Files of the last batch are renamed to their final paths, and files of later batches are removed; `staging` is
    the folder of the sink's staged files, `sink` the one of its final files.  A committed flush is sealed.
    """
    record = read_job_record(checkpoint)
    last = last_batch(checkpoint)
    done = record.first_batch - 1 if last is None else last
    if sink is not None:
        # Before anything is changed: with an older copy of the checkpoint all files must stay as they are.
        _check_sink(checkpoint, record.id, done, sink)
    if last is not None:
        # Only the last commit can be unfinished: a batch starts after the one before it has renamed its files.
        manifest = read_manifest(checkpoint, last)
        finish_moves(manifest)
        if manifest.state is not None and isinstance(checkpoint.root, Path):
            remove_unused(checkpoint, manifest, _read_before(checkpoint, last))
        if manifest.final and not is_sealed(checkpoint):
            seal(checkpoint, manifest)
    elif record.replaces is not None:
        # At every start until the first commit: a fresh start that is killed in between is completed by the next one.
        remove_output(checkpoint, sink)
    if isinstance(checkpoint.root, StorePath):
        # A process that was cut off may still commit the next batch.  What it wrote is removed by the next commit.
        return last
    _remove_later(checkpoint, done)
    # After `finish_moves`, which takes files of the last commit from there; the rest belongs to no commit.
    if staging is not None:
        remove_path(staging)
    return last


def remove_output(checkpoint: Checkpoint, sink: Place | None = None) -> None:
    """Remove the output of all earlier checkpoints of a statement, because it is written again.

    Earlier ones are those that it replaced and those whose offsets were taken over.  Files that damaged or missing
    checkpoints no longer list are recognized in `sink` by their names.
    """
    folder = checkpoint.root.parent
    if checkpoint.lease is not None:
        checkpoint.lease.check()
    own = read_job_record(checkpoint).id
    for earlier in list_checkpoints(folder):
        if earlier.root == checkpoint.root:
            break  # later ones are not ours to replace
        _remove_files(earlier)
    if sink is not None:
        for one in list_ids(folder):
            if one != own:
                remove_path(sink / STAGING / one)
            for path in sink.glob(f"part-{one}-*") if one != own else ():
                remove_path(path)


def _remove_files(earlier: Checkpoint) -> None:
    for batch in list_batches(earlier.commits):
        with suppress(StreamError):
            for move in read_manifest(earlier, batch).sink:
                remove_path(move.to)
    for number in list_batches(earlier.redriven):
        with suppress(StreamError):
            for move in _read_redrive(earlier, number).files:
                remove_path(move.to)


def _check_sink(checkpoint: Checkpoint, own: str, last: int, sink: Place) -> None:
    """Raise W2202 if the sink has files of uncommitted batches: their rows would be written twice."""
    named = re.compile(rf"part-{re.escape(own)}-(\d+)-.*")
    ahead = sorted(p.name for p in sink.glob(f"part-{own}-*") if (m := named.fullmatch(p.name)) and int(m[1]) > last)
    if not ahead:
        return
    raise StreamError(
        f"{str(sink)!r} has {len(ahead)} files of batches after the last commit of {str(checkpoint.root)!r} "
        f"({'none' if last < 0 else f'batch {last}'}), from {ahead[0]!r} on: the checkpoint is an older copy",
        code="W2202",
        help="restore the newest checkpoint; or move these files away, and the job reads their input again; "
        "or begin again with `--fresh`",
    )


def _read_before(checkpoint: Checkpoint, batch: int) -> Manifest | None:
    """Read the commit before a batch, None if there is none that lists its state."""
    if not checkpoint.commit_file(batch - 1).exists():
        return None
    with suppress(StreamError):  # nothing but what it lists depends on it
        manifest = read_manifest(checkpoint, batch - 1)
        return manifest if manifest.state is not None else None
    return None


def _remove_later(checkpoint: Checkpoint, last: int) -> None:
    """Remove what batches after the last commit left; a repeated batch must not read any of it."""
    # Files of the state begin with their batch; earlier versions had a folder for each batch.
    for path in (*checkpoint.state.glob("j*/*"), *checkpoint.rejects.glob("*/*")):
        batch_text = path.name.partition("-")[0]
        if path.name.startswith(".") or (batch_text.isdigit() and int(batch_text) > last):
            remove_path(path)
    for folder in (checkpoint.root, checkpoint.commits, checkpoint.heartbeats):
        for path in folder.glob(".tmp-*"):
            remove_path(path)
    for batch in list_batches(checkpoint.heartbeats):
        if batch > last:
            _remove_flush(checkpoint, batch)


def _remove_flush(checkpoint: Checkpoint, batch: int) -> None:
    # A heartbeat is kept so that a repeated batch has the same clocks, but those of an uncommitted flush must not
    # apply to a batch with rows: the next run may find new input.
    heartbeat = read_heartbeat(checkpoint, batch)
    if heartbeat is not None and heartbeat.final:
        remove_path(checkpoint.heartbeat_file(batch))
