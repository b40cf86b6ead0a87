"""Redrives that have happened: which rejected rows each took, and the corrections it wrote.

::

    redriven/<number>.json     with this file the redrive has happened; its files are renamed then

A redrive that was cut short before that left nothing; one that was cut short after it is finished by the next.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.core.frozen import EMPTY, FrozenMap, frozen
from weft.streams.checkpoint.commit import finish, sync_staged
from weft.streams.checkpoint.durable import damaged, read_document, write_document
from weft.streams.checkpoint.folder import Checkpoint
from weft.streams.checkpoint.manifest import Manifest, Move, batches


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveRecord:
    """One redrive: rejected rows it took, by file and place; `taken_back` counts partners by fingerprint."""

    number: int
    at: int
    reasons: tuple[str, ...]
    taken: FrozenMap[str, tuple[int, ...]] = EMPTY
    taken_back: FrozenMap[str, int] = EMPTY
    plus: int = 0
    minus: int = 0
    files: tuple[Move, ...] = ()


def redrives(checkpoint: Checkpoint) -> tuple[RedriveRecord, ...]:
    """Return the redrives that have happened, in order."""
    return tuple(_read(checkpoint, number) for number in batches(checkpoint.redriven))


def write_redrive(checkpoint: Checkpoint, record: RedriveRecord) -> None:
    """Let a redrive happen and put its files into place; they are on the disk before its record is."""
    sync_staged(record.files)
    said = {name: getattr(record, name) for name in record.__slots__}
    said["files"] = [
        {"from": _shown(checkpoint, m.source), "to": _shown(checkpoint, m.to), "rows": m.rows}
        for m in record.files
    ]
    write_document(_file(checkpoint, record.number), {"format": 1, **said})
    finish_redrive(record)


def finish_redrive(record: RedriveRecord) -> None:
    """Put the files of a redrive that has happened into place."""
    finish(Manifest(batch=record.number, sink=record.files))


def taken_before(found: tuple[RedriveRecord, ...]) -> dict[str, set[int]]:
    """Return the rejected rows that earlier redrives took, by file."""
    taken: dict[str, set[int]] = {}
    for record in found:
        for name, places in record.taken.items():
            taken.setdefault(name, set()).update(places)
    return taken


def taken_back_before(found: tuple[RedriveRecord, ...]) -> Counter[str]:
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
        files = tuple(
            Move(source=_full(checkpoint, m["from"]), to=_full(checkpoint, m["to"]), rows=m["rows"])
            for m in said["files"]
        )
        known = {n: frozen(said[n]) for n in RedriveRecord.__slots__ if n in said}
        return RedriveRecord(**{**known, "files": files})
    except (KeyError, TypeError) as cause:
        raise damaged(path, f"{type(cause).__name__} {cause}") from cause


def _shown(checkpoint: Checkpoint, path: Path) -> str:
    return Path(os.path.relpath(path.absolute(), checkpoint.root.absolute())).as_posix()


def _full(checkpoint: Checkpoint, said: str) -> Path:
    return Path(os.path.normpath(checkpoint.root.absolute() / said))
