"""What a worker reports about itself: runs on workers, where nothing may be installed but Python.

The functions are sent by value, and the stores with them, so this module imports the standard library alone.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from weft.io.stores import FileStore


def report_worker(
    packages: Sequence[str],
    marker: str,
    folders: Mapping[str, str],
    stores: Mapping[str, tuple[FileStore, bool]],
    seconds: float,
) -> dict[str, Any]:
    """Return what this process has and reaches, as plain values; it takes at least some seconds.

    `folders` have the path of a marker for each folder, `stores` whether the workspace writes to the store.
    """
    start = time.time()
    until = time.monotonic() + seconds
    report = {
        "host": socket.gethostname(),
        "folder": str(Path.cwd()),
        "python": platform.python_version(),
        "path": sys.executable,
        "packages": {name: _find_version(name) for name in packages},
        "folders": {folder: _is_there(path, marker) for folder, path in folders.items()},
        "stores": {address: _try_store(store, marker, writes) for address, (store, writes) in stores.items()},
        "start": start,
    }
    # Tasks that end at once would all run on the first worker that is free.
    time.sleep(max(0.0, until - time.monotonic()))
    return {**report, "end": time.time()}


def _find_version(name: str) -> str | None:
    try:
        return str(import_module(name).__version__)
    except Exception:  # noqa: BLE001  # a package that cannot be imported is as good as none
        return None


def _is_there(path: str, marker: str) -> bool:
    try:
        return Path(path).read_text(encoding="ascii") == marker
    except (OSError, UnicodeError):
        return False


def _try_store(store: FileStore, marker: str, writes: bool) -> dict[str, Any]:  # noqa: FBT001  # of plain values
    name = f"{marker}-{os.getpid()}-{uuid4().hex[:8]}"
    try:
        return _write_marker(store, name) if writes else _read_marker(store, name)
    except Exception as failure:  # noqa: BLE001  # any failure is the result
        code, help = getattr(failure, "code", ""), getattr(failure, "help", "")
        message = getattr(failure, "message", "") or f"{type(failure).__name__}: {failure}"
        return {"code": str(code), "message": str(message), "help": str(help or "")}


def _read_marker(store: FileStore, name: str) -> dict[str, Any]:
    # Of a file that does not exist a store says whether its bucket does, and whether we may read there.
    with suppress(FileNotFoundError):
        store.read(name)
    return {}


def _write_marker(store: FileStore, name: str) -> dict[str, Any]:
    before = time.time()
    store.create(name, name.encode("ascii"))
    after = time.time()
    try:
        info = store.stat(name)
    finally:
        store.delete([name])
    # Stores cut off fractions of a second, so the file may be up to a second younger.
    return {} if info is None else {"least": before - info.modified - 1, "most": after - info.modified}
