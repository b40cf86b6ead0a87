"""Recover: what a start does before anything else, so that a crash leaves nothing behind.

::

    redriven/<number>.json     with this file a redrive has happened: the rejected rows it took, its corrections

A redrive that was cut short before that file left nothing; one that was cut short after it is finished here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.core.documents import Document
from weft.core.frozen import EMPTY, FrozenMap
from weft.errors import StreamError
from weft.streams.checkpoint.commit import finish_moves, is_sealed, seal, sync_staged
from weft.streams.checkpoint.durable import damaged_file, read_document, remove_path, write_document
from weft.streams.checkpoint.folder import Checkpoint, list_checkpoints, list_ids, read_job_record
from weft.streams.checkpoint.manifest import (
    FORMAT,
    Manifest,
    Move,
    format_moves,
    last_batch,
    list_batches,
    read_heartbeat,
    read_manifest,
    read_moves,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveRecord(Document):
    """One redrive: rejected rows it took, by file and place; `taken_back` counts partners by fingerprint."""

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
    """What a redrive of one statement did, or would do."""

    sink: str
    taken: int
    plus: int
    minus: int
    undecided: int
    location: str


def read_redrives(checkpoint: Checkpoint) -> tuple[RedriveRecord, ...]:
    """Return the redrives that have happened, in order."""
    return tuple(_read(checkpoint, number) for number in list_batches(checkpoint.redriven))


def write_redrive(checkpoint: Checkpoint, record: RedriveRecord) -> None:
    """Let a redrive happen and put its files into place; they are on the disk before its record is."""
    sync_staged(record.files)
    files = format_moves(checkpoint, record.files)
    write_document(_file(checkpoint, record.number), {"format": FORMAT, **record.to_dict(), "files": files})
    finish_redrive(record)


def finish_redrive(record: RedriveRecord) -> None:
    """Put the files of a redrive that has happened into place."""
    finish_moves(Manifest(batch=record.number, sink=record.files))


def collect_taken(found: tuple[RedriveRecord, ...]) -> dict[str, set[int]]:
    """Return the rejected rows that earlier redrives took, by file."""
    taken: dict[str, set[int]] = {}
    for record in found:
        for name, places in record.taken.items():
            taken.setdefault(name, set()).update(places)
    return taken


def count_retracted(found: tuple[RedriveRecord, ...]) -> Counter[str]:
    """Return how many padded rows of each partner earlier redrives took back."""
    total: Counter[str] = Counter()
    for record in found:
        total.update(record.taken_back)
    return total


def _file(checkpoint: Checkpoint, number: int) -> Path:
    return checkpoint.redriven / f"{number}.json"


def _read(checkpoint: Checkpoint, number: int) -> RedriveRecord:
    path = _file(checkpoint, number)
    said: Mapping[str, Any] = read_document(path)
    try:
        return replace(RedriveRecord.from_dict(said), files=read_moves(checkpoint, said["files"]))
    except (KeyError, TypeError) as cause:
        raise damaged_file(path, f"{type(cause).__name__} {cause}") from cause


def recover(checkpoint: Checkpoint, staging: Path | None = None, *, sink: Path | None = None) -> int | None:
    """Bring a checkpoint to its last commit and return the number of that batch.

    Files of the last batch go where readers see them, and what later batches began is removed; `staging`
    is the folder in which the sink's files of this checkpoint wait, `sink` the one where they appear.  A
    flush that was committed is sealed.
    """
    record = read_job_record(checkpoint)
    last = last_batch(checkpoint)
    if sink is not None:
        _check_sink(checkpoint, record.id, record.first_batch - 1 if last is None else last, sink)
    if last is not None:
        manifest = read_manifest(checkpoint, last)
        finish_moves(manifest)
        if manifest.final and not is_sealed(checkpoint):
            seal(checkpoint, manifest)
    elif record.replaces is not None:
        remove_output(checkpoint, sink)
    _remove_later(checkpoint, record.first_batch - 1 if last is None else last)
    if staging is not None:
        remove_path(staging)
    return last


def remove_output(checkpoint: Checkpoint, sink: Path | None = None) -> None:
    """Remove what all earlier checkpoints of a statement gave to its sink; it comes again.

    Earlier ones are those that it replaced and those whose offsets were taken over.  What damaged or missing
    checkpoints do not list any more is found in `sink` by its name.
    """
    folder = checkpoint.root.parent
    for earlier in list_checkpoints(folder):
        if earlier != checkpoint:
            _forget(earlier)
    own = read_job_record(checkpoint).id
    if sink is not None:
        for one in list_ids(folder):
            for path in sink.glob(f"part-{one}-*") if one != own else ():
                remove_path(path)


def _forget(earlier: Checkpoint) -> None:
    for batch in list_batches(earlier.commits):
        with suppress(StreamError):
            for move in read_manifest(earlier, batch).sink:
                remove_path(move.to)
    with suppress(StreamError):
        for move in (move for redrive in read_redrives(earlier) for move in redrive.files):
            remove_path(move.to)


def _check_sink(checkpoint: Checkpoint, own: str, last: int, sink: Path) -> None:
    """Raise W2202 when the sink has files of batches that the checkpoint has not committed: they would come twice."""
    named = re.compile(rf"part-{re.escape(own)}-(\d+)-.*")
    ahead = sorted(
        p.name for p in sink.glob(f"part-{own}-*") if (m := named.fullmatch(p.name)) and int(m[1]) > last
    )
    if not ahead:
        return
    raise StreamError(
        f"{str(sink)!r} has {len(ahead)} files of batches after the last commit of {str(checkpoint.root)!r} "
        f"({'none' if last < 0 else f'batch {last}'}), from {ahead[0]!r} on: the checkpoint is an older copy",
        code="W2202",
        help="bring the newest checkpoint back; or move these files away, and the job reads their input again; "
        "or begin again with `--fresh`",
    )


def _remove_later(checkpoint: Checkpoint, last: int) -> None:
    for folder in checkpoint.state.glob("j*/*"):
        if folder.name.startswith(".tmp-") or (folder.name.isdigit() and int(folder.name) > last):
            remove_path(folder)
    for path in checkpoint.rejects.glob("*/*"):
        said = path.name.partition("-")[0]
        if path.name.startswith(".") or (said.isdigit() and int(said) > last):
            remove_path(path)
    for folder in (checkpoint.root, checkpoint.commits, checkpoint.heartbeats):
        for path in folder.glob(".tmp-*"):
            remove_path(path)
    for batch in list_batches(checkpoint.heartbeats):
        if batch > last:
            _forget_flush(checkpoint, batch)


def _forget_flush(checkpoint: Checkpoint, batch: int) -> None:
    # A flush that did not happen must not become the clock of a batch with rows.
    heartbeat = read_heartbeat(checkpoint, batch)
    if heartbeat is not None and heartbeat.final:
        remove_path(checkpoint.heartbeat_file(batch))
