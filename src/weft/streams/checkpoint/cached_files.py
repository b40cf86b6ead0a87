"""CachedFiles: files of a store that never change, kept on the disk of each machine that uses them.

A file is sent once by the task that writes it, and once to each other machine that reads it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
import uuid
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from weft.io.stores.opening import open_store
from weft.io.stores.store_path import Place, StorePath
from weft.streams.kernel.state_store import StateFiles, StateStore, damaged_state

_UNUSED_SECONDS = 900.0  # after the last use; the state of a job that runs is used in each batch
_FOLDER = "weft-cache"
_COPIES = "*state_j*"


class CachedFiles:
    """Files below the root of a store, by names relative to it; names are never used again."""

    def __init__(self, root: str) -> None:
        self.store = open_store(root)
        self.folder = _own_folder(hashlib.sha256(self.store.root.encode()).hexdigest()[:16])
        _forget_unused(self.folder.parent)

    def path(self, name: str) -> str:
        """Return the address of a file."""
        return f"{self.store.root}/{name}"

    def read(self, name: str) -> Any:
        """Return the content of a file as a buffer, memory mapped if there is room for a copy on this machine."""
        place = self._place(name)
        with suppress(OSError):
            os.utime(place)  # used now
            return _map(place)
        try:
            content = self.store.read(name)
        except FileNotFoundError as cause:
            raise damaged_state(self.path(name), str(cause)) from cause
        self._keep(place, content)
        return pa.py_buffer(content)

    def create(self, name: str, put: Callable[[Any], None]) -> str:
        """Write a new file and return its checksum; `put` receives the open stream."""
        stream = pa.BufferOutputStream()
        put(stream)
        content = stream.getvalue().to_pybytes()
        self.store.create(name, content)
        self._keep(self._place(name), content)
        return f"{zlib.crc32(content):08x}"

    def forget(self, name: str) -> None:
        """Remove the copy of a file, which is not what the store has."""
        self._place(name).unlink(missing_ok=True)

    def _place(self, name: str) -> Path:
        return self.folder / name.replace("/", "_")

    def _keep(self, place: Path, content: bytes) -> None:
        beside = place.with_name(f".{place.name}-{uuid.uuid4().hex}")
        # Without room for it the file is read from the store again.
        try:
            beside.write_bytes(content)
            beside.replace(place)
        except OSError:
            beside.unlink(missing_ok=True)


def _map(place: Path) -> Any:
    if place.stat().st_size == 0:  # an empty file cannot be memory mapped
        return pa.py_buffer(b"")
    return pa.memory_map(str(place)).read_buffer()


def _own_folder(name: str) -> Path:
    """Return a folder that nobody else can write to, for the copies of a store's files."""
    above = Path(tempfile.gettempdir(), f"{_FOLDER}-{os.getuid()}")
    with suppress(FileExistsError):
        above.mkdir(mode=0o700)
    found = above.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        return Path(tempfile.mkdtemp(prefix=f"{_FOLDER}-"))  # somebody else was there first
    folder = above / name
    folder.mkdir(exist_ok=True, mode=0o700)
    return folder


def _forget_unused(folders: Path) -> None:
    """Remove the copies of all stores that nothing has used for a while."""
    now = time.time()
    for place in folders.glob(f"*/{_COPIES}"):
        # A file that is mapped stays readable for whoever has it open.
        with suppress(OSError):
            if now - place.lstat().st_mtime > _UNUSED_SECONDS:
                place.unlink()


def open_files(root: Place) -> StateFiles:
    """Return the files of the state of a checkpoint."""
    return CachedFiles(str(root)) if isinstance(root, StorePath) else StateStore(str(root.absolute()))
