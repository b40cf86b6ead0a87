"""Small JSON documents that are there whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from weft.core.frozen import thaw
from weft.errors import StreamError
from weft.streams.kernel.sums import CHECKSUM, is_intact, with_checksum

FRESH = "begin again with `--fresh`, or bring the checkpoint back from a backup"


def write_document(path: Path, value: Mapping[str, Any]) -> None:
    """Write a document beside its place, bring it to the disk and put it into place in one step.

    It carries a checksum of its content.  On a disk that is full nothing is left of it.
    """
    is_first = not path.parent.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".tmp-{path.name}-{uuid.uuid4().hex[:8]}")
    try:
        with beside.open("w", encoding="utf-8") as out:
            json.dump(with_checksum(thaw(value)), out, indent=1, ensure_ascii=False, allow_nan=False)
            out.write("\n")
            out.flush()
            os.fsync(out.fileno())
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    if is_first:  # the name of a new folder too
        sync_folder(path.parent.parent)


def read_document(path: Path) -> dict[str, Any]:
    """Return a document that must be there; raise `StreamError` W2202 when it does not read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as cause:
        raise StreamError(
            f"{str(path)!r} does not read: {cause}", code="W2202", help=f"the checkpoint is damaged: {FRESH}"
        ) from cause
    if not isinstance(found, dict):
        raise damaged_file(path, f"it holds {type(found).__name__}, not an object")
    if not is_intact(found):
        raise damaged_file(path, "its content does not match its checksum")
    found.pop(CHECKSUM, None)
    return found


def damaged_file(path: Path, why: str) -> StreamError:
    """Return the error that says that a file of a checkpoint cannot be used."""
    return StreamError(
        f"{str(path)!r} cannot be used: {why}", code="W2202", help=f"the checkpoint is damaged: {FRESH}"
    )


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_path(path: Path) -> None:
    """Remove a file or folder; one that is not there is removed already."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
