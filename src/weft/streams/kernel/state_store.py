"""The files of the state as bytes: written once under a name of their own, synced, read with a checksum.

A file becomes part of the state when a commit lists it.  Until then nothing reads it, so it needs no temporary name;
what a failed attempt leaves is removed by a later commit.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from weft.streams.kernel.spec import KernelProblem


class StateFiles(Protocol):
    """The files below the folder of a checkpoint, by names relative to it."""

    def path(self, name: str) -> str:
        """Return the full path of a file."""

    def read(self, name: str) -> Any:
        """Return the content of a file as a buffer."""

    def create(self, name: str, put: Callable[[Any], None]) -> str:
        """Write a new file and return its checksum; `put` receives the open stream."""

    def forget(self, name: str) -> None:
        """Remove a copy on this machine, if there is one."""


class StateStore:
    """The files below the folder of a checkpoint on a disk, by names relative to it; they are synced and memory mapped."""

    def __init__(self, root: str) -> None:
        self.root = Path(root).absolute()

    def path(self, name: str) -> str:
        """Return the full path of a file."""
        return str(self.root / name)

    def read(self, name: str) -> Any:
        """Return the content of a file as a buffer, memory mapped."""
        path = self.path(name)
        try:
            if Path(path).stat().st_size == 0:  # an empty file cannot be memory mapped
                return pa.py_buffer(b"")
            return pa.memory_map(path).read_buffer()
        except (OSError, pa.ArrowInvalid) as cause:
            raise damaged_state(path, str(cause)) from cause

    def forget(self, name: str) -> None:
        """Do nothing: there are no copies."""

    def create(self, name: str, put: Callable[[Any], None]) -> str:
        """Write a new file and return its checksum; `put` receives the open stream.  Its folder is not synced."""
        path = Path(self.path(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("xb") as file:
                counted = _Checked(file)
                with pa.PythonFile(counted, mode="w") as stream:
                    put(stream)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):  # nothing lists it, but a full disk needs the room
                path.unlink(missing_ok=True)
            raise
        return f"{counted.sum:08x}"


class _Checked:
    """A file that computes the checksum of what is written to it."""

    closed = False

    def __init__(self, file: Any) -> None:
        self.file = file
        self.sum = 0

    def write(self, content: Any) -> int:
        self.sum = zlib.crc32(content, self.sum)
        written: int = self.file.write(content)
        return written

    def tell(self) -> int:
        position: int = self.file.tell()
        return position

    def flush(self) -> None:
        """Leave that to the end."""

    def close(self) -> None:
        self.closed = True


def damaged_state(path: str, why: str) -> KernelProblem:
    """Return the problem of a state file that cannot be used."""
    return KernelProblem(
        "W2202",
        f"{path!r} cannot be used as the state of a join: {why}",
        "the checkpoint was changed or truncated; restore it from a backup, or start again with --fresh",
    )
