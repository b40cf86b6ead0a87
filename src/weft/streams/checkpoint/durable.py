"""Small JSON documents that are written atomically."""

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

FRESH = "begin again with `--fresh`, or restore the checkpoint from a backup"


def write_document(path: Path, value: Mapping[str, Any]) -> None:
    """Write a document with its checksum atomically: to a temporary file that is synced and renamed.

    If the disk is full, nothing remains of it.
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
    if is_first:  # the entry of a new folder too
        sync_folder(path.parent.parent)


def read_document(path: Path) -> dict[str, Any]:
    """Read a document; raise `StreamError` W2202 if it is missing or damaged."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as cause:
        raise StreamError(
            f"{str(path)!r} cannot be read: {cause}", code="W2202", help=f"the checkpoint is damaged: {FRESH}"
        ) from cause
    if not isinstance(document, dict):
        raise damaged_file(path, f"it holds {type(document).__name__}, not an object")
    if not is_intact(document):
        raise damaged_file(path, "its content does not match its checksum")
    document.pop(CHECKSUM, None)
    return document


def damaged_file(path: Path, why: str) -> StreamError:
    """Return the error for a checkpoint file that cannot be used."""
    return StreamError(
        f"{str(path)!r} cannot be used: {why}", code="W2202", help=f"the checkpoint is damaged: {FRESH}"
    )


def sync_folder(folder: Path) -> None:
    """Sync a folder or file to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_path(path: Path) -> None:
    """Remove a file or folder if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
