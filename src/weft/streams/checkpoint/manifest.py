"""Manifests and heartbeats: what a batch did, and what it was judged with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.core.documents import Document
from weft.core.frozen import EMPTY, FrozenMap
from weft.streams.checkpoint.durable import damaged_file, read_document, write_document
from weft.streams.checkpoint.folder import Checkpoint

FORMAT = 1
"""Number of the form of manifests, heartbeats and redrives."""

Counts = FrozenMap[str, int]
"""``in``, ``matched``, ``waiting``, ``unmatched``, ``late``, ``rejected``, ``evicted`` of one side."""

Ledger = FrozenMap[str, Counts]
"""Counts by side: ``left`` and ``right`` of the first join, ``join2.left`` and so on of further ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A sink file from its staging place to the place where readers see it."""

    source: Path
    to: Path
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(Document):
    """What a batch is judged with, decided before it and read again when it is replayed.

    `idle` maps the alias of each side that is left out of the watermark to since when, `watermark`
    is None while a side has shown no row, `clocks` are left and right of each join in order.
    """

    batch: int
    wall_clock: int
    watermark: int | None
    clocks: tuple[tuple[int, int], ...] = ()
    idle: FrozenMap[str, Any] = EMPTY
    final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(Document):
    """What a committed batch did.

    The ledger, `max_times`, `stats` and `total_rows` count from the first batch on; `rows` and `rows_in`
    (by alias) are of this batch, and `last_rows` says when each alias showed rows, by the clock on the wall.
    `aliases` says which alias each side of the ledger had, `read` what Spark planned the batch to read (empty in
    commits of earlier versions and of a flush).
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


def list_batches(folder: Path) -> tuple[int, ...]:
    """Return the numbers of the batches that have a document in a folder, in order."""
    return tuple(sorted(int(p.stem) for p in folder.glob("*.json") if p.stem.isdigit()))


def last_batch(checkpoint: Checkpoint) -> int | None:
    """Return the number of the last committed batch, None when there is none."""
    found = list_batches(checkpoint.commits)
    return found[-1] if found else None


def last_manifest(checkpoint: Checkpoint) -> Manifest | None:
    """Return what the last committed batch did."""
    batch = last_batch(checkpoint)
    return None if batch is None else read_manifest(checkpoint, batch)


def write_manifest(checkpoint: Checkpoint, manifest: Manifest) -> None:
    """Write a manifest; when this returns the batch has happened."""
    sink = format_moves(checkpoint, manifest.sink)
    said = {"format": FORMAT, **manifest.to_dict(), "sink": sink}
    write_document(checkpoint.commit_file(manifest.batch), said)


def read_manifest(checkpoint: Checkpoint, batch: int) -> Manifest:
    """Return what a committed batch did; raise `StreamError` W2202 when the file does not read."""
    path = checkpoint.commit_file(batch)
    said = read_document(path)
    try:
        return replace(Manifest.from_dict(said), sink=read_moves(checkpoint, said["sink"]))
    except (KeyError, TypeError) as cause:
        raise damaged_file(path, f"{type(cause).__name__} {cause}") from cause


def with_aliases(manifest: Manifest, aliases: Mapping[str, str]) -> Manifest:
    """Return a manifest whose inputs are called as they are now: a statement may rename them and go on."""
    renamed = {old: aliases.get(side, old) for side, old in manifest.aliases.items()}
    if all(old == now for old, now in renamed.items()):
        return manifest

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
    """Write what a batch is judged with."""
    write_document(checkpoint.heartbeat_file(heartbeat.batch), {"format": FORMAT, **heartbeat.to_dict()})


def read_heartbeat(checkpoint: Checkpoint, batch: int) -> Heartbeat | None:
    """Return what a batch was judged with, None when it was not begun."""
    path = checkpoint.heartbeat_file(batch)
    if not path.exists():
        return None
    said = read_document(path)
    try:
        return Heartbeat.from_dict(said)
    except TypeError as cause:
        raise damaged_file(path, str(cause)) from cause


def sink_files(checkpoint: Checkpoint) -> tuple[Path, ...]:
    """Return every file that committed batches gave to the sink."""
    found = (read_manifest(checkpoint, b) for b in list_batches(checkpoint.commits))
    return tuple(move.to for manifest in found for move in manifest.sink)


def format_moves(checkpoint: Checkpoint, moves: tuple[Move, ...]) -> list[dict[str, Any]]:
    """Return moves as files of a checkpoint have them."""
    return [
        {"from": _shown(checkpoint, m.source), "to": _shown(checkpoint, m.to), "rows": m.rows} for m in moves
    ]


def read_moves(checkpoint: Checkpoint, said: Iterable[Mapping[str, Any]]) -> tuple[Move, ...]:
    """Return the moves that `format_moves` wrote."""
    return tuple(
        Move(source=_full(checkpoint, m["from"]), to=_full(checkpoint, m["to"]), rows=m["rows"]) for m in said
    )


def _shown(checkpoint: Checkpoint, path: Path) -> str:
    # Relative, so that a workspace may be moved as a whole.
    return Path(os.path.relpath(path.absolute(), checkpoint.root.absolute())).as_posix()


def _full(checkpoint: Checkpoint, said: str) -> Path:
    return Path(os.path.normpath(checkpoint.root.absolute() / said))
