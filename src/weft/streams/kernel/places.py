"""Places: files and folders of a checkpoint, written so that a crash leaves all of one or nothing."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from weft.streams.kernel.spec import KernelProblem
from weft.streams.kernel.sums import checksum, is_intact


class Places:
    """A folder on a filesystem that pyarrow knows; local ones are synced and memory mapped."""

    def __init__(self, root: str) -> None:
        if "://" in root:
            self.fs, self.root = pafs.FileSystem.from_uri(root)
        else:
            self.fs, self.root = pafs.LocalFileSystem(), str(Path(root).absolute())
        self.is_local = isinstance(self.fs, pafs.LocalFileSystem)

    def path(self, name: str) -> str:
        """Return the full path of a file below the root."""
        return f"{self.root}/{name}"

    def read(self, name: str) -> Any:
        """Return the content of a file as a buffer, memory mapped where that is possible."""
        try:
            if self.is_local:
                if Path(self.path(name)).stat().st_size == 0:
                    return pa.py_buffer(b"")
                return pa.memory_map(self.path(name)).read_buffer()
            with self.fs.open_input_file(self.path(name)) as file:
                return file.read_buffer()
        except (OSError, pa.ArrowInvalid) as cause:
            raise damaged(self.path(name), str(cause)) from cause

    def read_json(self, name: str) -> dict[str, Any]:
        """Return a document."""
        try:
            document: dict[str, Any] = json.loads(self.read(name).to_pybytes())
            intact = is_intact(document)
        except (ValueError, TypeError, AttributeError) as cause:
            raise damaged(self.path(name), str(cause)) from cause
        if not intact:
            raise damaged(self.path(name), "its content does not match its checksum")
        return document

    def checksum(self, name: str) -> str:
        """Return the checksum of a file."""
        return checksum(self.read(name))

    def write(self, name: str, put: Callable[[Any], None]) -> None:
        """Write a file; `put` gets the open stream.  It is not yet brought to the disk."""
        path = self.path(name)
        with pa.OSFile(path, "wb") if self.is_local else self.fs.open_output_stream(path) as stream:
            put(stream)

    def folder(self, name: str) -> str:
        """Make a folder for unfinished files below `name` and return its name."""
        made = f"{name}/.tmp-{uuid.uuid4().hex}"
        self.fs.create_dir(self.path(made), recursive=True)
        return made

    def place_folder(self, made: str, name: str) -> None:
        """Rename a finished folder; when another attempt was first, its folder stays and ours goes."""
        self.fs.create_dir(self.path(name.rpartition("/")[0]), recursive=True)
        if not self.is_local:
            self._place_far(made, name)
            return
        folder = Path(self.path(made))
        _all_synced([folder, *folder.iterdir()])
        try:
            os.rename(self.path(made), self.path(name))  # noqa: PTH104  # a folder that is there is refused
        except OSError:
            if not Path(self.path(name)).is_dir():
                raise
            shutil.rmtree(self.path(made))
        place = Path(self.path(name))
        _all_synced([place.parent, place.parent.parent])  # the names too, the batch's own among them

    def _place_far(self, made: str, name: str) -> None:
        if not self._is_there(name):
            try:
                self.fs.move(self.path(made), self.path(name))
            except OSError:
                if not self._is_there(name):
                    raise
            else:
                return
        self.fs.delete_dir(self.path(made))

    def _is_there(self, name: str) -> bool:
        return bool(self.fs.get_file_info(self.path(name)).type != pafs.FileType.NotFound)

    def place_file(self, name: str, put: Callable[[Any], None]) -> None:
        """Write a file beside its place and rename it."""
        folder, _, last = name.rpartition("/")
        self.fs.create_dir(self.path(folder), recursive=True)
        beside = f"{folder}/.tmp-{uuid.uuid4().hex}-{last}"
        self.write(beside, put)
        if self.is_local:
            _synced(Path(self.path(beside)))
            Path(self.path(beside)).replace(self.path(name))
            _all_synced([Path(self.path(folder)), Path(self.path(folder)).parent])
        else:
            self.fs.move(self.path(beside), self.path(name))


def _all_synced(paths: list[Path]) -> None:
    """Bring files and names in folders to the disk; together they cost little more than one."""
    if len(paths) <= 2:  # not worth the threads
        for path in paths:
            _synced(path)
        return
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(_synced, paths))


def _synced(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def damaged(path: str, why: str) -> KernelProblem:
    """Return the problem of a file of the state that does not read."""
    return KernelProblem(
        "W2202",
        f"{path!r} cannot be used as the state of a join: {why}",
        "the checkpoint was changed or cut short; bring it back from a copy, or begin again with --fresh",
    )
