"""Recover: what a start does before anything else, so that a crash leaves nothing behind."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from weft.errors import StreamError
from weft.store.streams.checkpoint import Checkpoint, record_of
from weft.store.streams.commit import finish, is_sealed, seal
from weft.store.streams.durable import FRESH, remove
from weft.store.streams.manifest import (
    batches,
    last_batch,
    read_heartbeat,
    read_manifest,
)
from weft.store.streams.redriven import redrives


def recover(checkpoint: Checkpoint, staging: Path | None = None, *, sink: Path | None = None) -> int | None:
    """Bring a checkpoint to its last commit and return the number of that batch.

    Files of the last batch go where readers see them, and what later batches began is removed; `staging`
    is the folder in which the sink's files of this checkpoint wait, `sink` the one where they appear.  A
    flush that was committed is sealed.
    """
    record = record_of(checkpoint)
    last = last_batch(checkpoint)
    _check_offsets(checkpoint, last, record.first_batch)
    if last is not None:
        manifest = read_manifest(checkpoint, last)
        finish(manifest)
        if manifest.final and not is_sealed(checkpoint):
            seal(checkpoint, manifest)
    elif record.replaces is not None:
        forget_output(Checkpoint(checkpoint.root.parent / record.replaces), sink)
    _remove_later(checkpoint, record.first_batch - 1 if last is None else last)
    if staging is not None:
        remove(staging)
    return last


def forget_output(replaced: Checkpoint, sink: Path | None = None) -> None:
    """Remove what a checkpoint gave to its sink, and what those gave that it replaced; it comes again.

    What a damaged checkpoint does not tell any more is found in `sink` by its name.
    """
    seen: set[str] = set()
    name: str | None = replaced.name
    while name is not None and name not in seen:
        seen.add(name)
        name = _forget(Checkpoint(replaced.root.parent / name), sink)


def _forget(replaced: Checkpoint, sink: Path | None) -> str | None:
    try:
        record = record_of(replaced)
    except StreamError:
        return None
    if sink is not None and record.id:
        for path in sink.glob(f"part-{record.id}-*"):
            remove(path)
    for batch in batches(replaced.commits):
        try:
            moves = read_manifest(replaced, batch).sink
        except StreamError:
            continue
        for move in moves:
            remove(move.to)
    with suppress(StreamError):
        for move in (move for redrive in redrives(replaced) for move in redrive.files):
            remove(move.to)
    return record.replaces


def _check_offsets(checkpoint: Checkpoint, last: int | None, first: int) -> None:
    """Raise W2202 when Spark went past the last commit: rows in between would be lost."""
    done = [int(p.name) for p in (checkpoint.spark / "commits").glob("*") if p.name.isdigit()]
    reached = first - 1 if last is None else last
    if done and max(done) > reached:
        raise StreamError(
            f"Spark's offsets in {str(checkpoint.spark)!r} end with batch {max(done)}, "
            f"the commits of the checkpoint with {'none' if last is None else f'batch {last}'}",
            code="W2202",
            help=f"files of the checkpoint were removed or brought back apart from each other: {FRESH}",
        )


def _remove_later(checkpoint: Checkpoint, last: int) -> None:
    for folder in checkpoint.state.glob("j*/*"):
        if folder.name.startswith(".tmp-") or (folder.name.isdigit() and int(folder.name) > last):
            remove(folder)
    for path in checkpoint.rejects.glob("*/*"):
        said = path.name.partition("-")[0]
        if path.name.startswith(".") or (said.isdigit() and int(said) > last):
            remove(path)
    for folder in (checkpoint.root, checkpoint.commits, checkpoint.heartbeats):
        for path in folder.glob(".tmp-*"):
            remove(path)
    for batch in batches(checkpoint.heartbeats):
        if batch > last:
            _forget_flush(checkpoint, batch)


def _forget_flush(checkpoint: Checkpoint, batch: int) -> None:
    # A flush that did not happen must not become the clock of a batch with rows.
    heartbeat = read_heartbeat(checkpoint, batch)
    if heartbeat is not None and heartbeat.final:
        remove(checkpoint.heartbeat_file(batch))
