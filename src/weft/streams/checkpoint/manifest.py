"""Manifests and heartbeats: the result of a batch, and the watermark and clocks it ran with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from weft.core.documents import Document
from weft.core.frozen import EMPTY, FrozenMap
from weft.core.paths import has_scheme
from weft.errors import StreamError
from weft.io.stores.store_path import Place, StorePath, as_place
from weft.streams.checkpoint.folder import Checkpoint, damaged_file, parse_record, read_document, write_document

FORMAT = 2
"""Format version of manifests, heartbeats and redrives."""

_D = TypeVar("_D", bound=Document)

Counts = FrozenMap[str, int]
"""``in``, ``matched``, ``waiting``, ``unmatched``, ``late``, ``rejected``, ``evicted`` of one side."""

Ledger = FrozenMap[str, Counts]
"""Counts by side: ``left`` and ``right`` of the first join, ``join2.left`` and so on of further ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The rename of a sink file from its staging path to its final path."""

    source: Place
    to: Place
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(Document):
    """The watermark and clocks of a batch, decided before it runs and reused when it is repeated.

    `idle` maps the alias of each side that the watermark ignores to the start of its idle time, `watermark`
    is None while a side has had no row, `clocks` are left and right of each join in order.
    """

    batch: int
    wall_clock: int
    watermark: int | None
    clocks: tuple[tuple[int, int], ...] = ()
    idle: FrozenMap[str, Any] = EMPTY
    final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(Document):
    """The result of a committed batch.

    The ledger, `max_times`, `stats` and `total_rows` count from the first batch on; `rows` and `rows_in`
    (by alias) are of this batch, and `last_rows` is the wall-clock time of the last rows of each alias.
    `aliases` maps the sides of the ledger to aliases, `read` is what Spark planned the batch to read (empty in
    commits of earlier versions and of a flush).  `state` lists the state of all joins by range of hashes, `rejects` the
    files of rejected rows with their checksums; both are None in commits of earlier versions.
    """

    batch: int
    max_times: FrozenMap[str, int] = EMPTY
    watermark: int | None = None
    clocks: tuple[tuple[int, int], ...] = ()
    ledger: Ledger = EMPTY
    stats: FrozenMap[str, Any] = EMPTY
    sink: tuple[Move, ...] = ()
    rows: int = 0
    total_rows: int = 0
    rows_in: FrozenMap[str, int] = EMPTY
    last_rows: FrozenMap[str, int] = EMPTY
    aliases: FrozenMap[str, str] = EMPTY
    read: FrozenMap[str, Any] = EMPTY
    seconds: float = 0.0
    final: bool = False
    state: tuple[FrozenMap[str, Any], ...] | None = None
    rejects: FrozenMap[str, str] | None = None


def list_batches(folder: Place) -> tuple[int, ...]:
    """Return the numbers of the batches that have a document in a folder, in order."""
    return tuple(sorted(int(p.stem) for p in folder.glob("*.json") if p.stem.isdigit()))


def last_batch(checkpoint: Checkpoint) -> int | None:
    """Return the number of the last committed batch, None when there is none."""
    # Commits are never removed: sinks, redrives and `--fresh` need the files that each of them lists.
    batches = list_batches(checkpoint.commits)
    return batches[-1] if batches else None


def last_manifest(checkpoint: Checkpoint) -> Manifest | None:
    """Read the manifest of the last committed batch, None if there is none."""
    batch = last_batch(checkpoint)
    return None if batch is None else read_manifest(checkpoint, batch)


def write_manifest(checkpoint: Checkpoint, manifest: Manifest) -> None:
    """Write a manifest, which commits its batch; in a store, raise W2205 if another process has committed it."""
    if checkpoint.lease is not None:
        checkpoint.lease.check()
    try:
        write_with_moves(checkpoint, checkpoint.commit_file(manifest.batch), manifest, sink=manifest.sink)
    except FileExistsError as cause:
        raise StreamError(
            f"another process has committed batch {manifest.batch} of {str(checkpoint.root)!r}",
            code="W2205",
            help="nothing of this batch is committed; the other process continues after the last commit",
        ) from cause


def read_manifest(checkpoint: Checkpoint, batch: int) -> Manifest:
    """Read the manifest of a batch; raise `StreamError` W2202 if it is damaged."""
    return read_with_moves(checkpoint, checkpoint.commit_file(batch), Manifest, "sink")


def with_aliases(manifest: Manifest, aliases: Mapping[str, str]) -> Manifest:
    """Return a manifest with the current aliases of its inputs, which a statement may rename."""
    renamed = {old: aliases.get(side, old) for side, old in manifest.aliases.items()}
    if all(old == now for old, now in renamed.items()):
        return manifest  # also a manifest of an earlier version, which has no aliases

    def named(values: FrozenMap[str, int]) -> FrozenMap[str, int]:
        return FrozenMap({renamed.get(alias, alias): value for alias, value in values.items()})

    return replace(
        manifest,
        max_times=named(manifest.max_times),
        last_rows=named(manifest.last_rows),
        rows_in=named(manifest.rows_in),
        aliases=FrozenMap(aliases),
    )


def write_heartbeat(checkpoint: Checkpoint, heartbeat: Heartbeat) -> None:
    """Write the heartbeat of a batch."""
    write_document(checkpoint.heartbeat_file(heartbeat.batch), {"format": FORMAT, **heartbeat.to_dict()})


def read_heartbeat(checkpoint: Checkpoint, batch: int) -> Heartbeat | None:
    """Read the heartbeat of a batch, None if the batch was not started."""
    path = checkpoint.heartbeat_file(batch)
    return parse_record(Heartbeat, read_document(path), path) if path.exists() else None


def sink_files(checkpoint: Checkpoint) -> tuple[Place, ...]:
    """Return all files that committed batches wrote to the sink."""
    manifests = (read_manifest(checkpoint, b) for b in list_batches(checkpoint.commits))
    return tuple(move.to for manifest in manifests for move in manifest.sink)


def write_with_moves(checkpoint: Checkpoint, path: Place, record: Document, **moves: tuple[Move, ...]) -> None:
    """Write a record whose field in `moves` lists renames; their paths are relative to the checkpoint.

    A workspace may therefore be moved as a whole.
    """
    root = checkpoint.root.absolute()

    def relative(to: Place) -> str:
        if isinstance(to, StorePath) or isinstance(root, StorePath):
            return str(to.absolute())
        return Path(os.path.relpath(to.absolute(), root)).as_posix()

    listed = {
        key: [{"from": relative(m.source), "to": relative(m.to), "rows": m.rows} for m in entries]
        for key, entries in moves.items()
    }
    write_document(path, {"format": FORMAT, **record.to_dict(), **listed}, is_new=True)


def read_with_moves(checkpoint: Checkpoint, path: Place, kind: type[_D], key: str) -> _D:
    """Read what `write_with_moves` wrote; raise `StreamError` W2202 if it is damaged."""
    document = read_document(path)
    root = checkpoint.root.absolute()

    def absolute(name: str) -> Place:
        if has_scheme(name) or isinstance(root, StorePath):
            return as_place(name)
        # Not `resolve`: a folder of the workspace may be a link, and messages show the path as the user knows it.
        return Path(os.path.normpath(root / name))

    try:
        moves = [Move(source=absolute(m["from"]), to=absolute(m["to"]), rows=m["rows"]) for m in document[key]]
    except (KeyError, TypeError) as cause:
        raise damaged_file(path, f"{type(cause).__name__} {cause}") from cause
    return parse_record(kind, document | {key: moves}, path)
