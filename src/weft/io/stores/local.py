"""LocalFiles: a folder of a local disk.

::

    put       write .weft-tmp-1234, sync it, rename it to the name, sync the folder
    create    the same with a link instead of the rename: a link to a name that exists fails

A process that is killed leaves its temporary file behind; no listing shows it.
"""

from __future__ import annotations

import errno
import mmap
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from weft.errors import FileStoreError
from weft.io.stores.base import (
    FileInfo,
    check_name,
    denied_error,
    describe_listing,
    existing_file_error,
    missing_file_error,
    refused_error,
)

_TEMPORARY = ".weft-tmp-"
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
_NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """A folder of a local disk, or of a file system that is mounted like one."""

    root: str

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        with self._translated(f"read {name!r}", name):
            return self._path(name).read_bytes()

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Return a part of a file."""
        with self._translated(f"read {name!r}", name), self._path(name).open("rb") as file:
            file.seek(start)
            return file.read(max(length, 0))

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Write a whole file and sync it to the disk."""
        with self._translated(f"write {name!r}"):
            self._write(name, data, os.replace)

    def create(self, name: str, data: bytes | memoryview) -> None:
        """Write a whole file unless it exists, and sync it to the disk."""
        try:
            with self._translated(f"create {name!r}"):
                self._write(name, data, _link)
        except FileExistsError as cause:
            raise existing_file_error(name, self.root) from cause

    def list(self, prefix: str = "") -> list[FileInfo]:
        """Return the files whose names start with a string."""
        folder = prefix.rpartition("/")[0]
        with self._translated(describe_listing(prefix)):
            start = Path(self.root, check_name(folder, self.root)) if folder else Path(self.root)
            found = _walk(start, f"{folder}/" if folder else "")
            return sorted((info for info in found if info.name.startswith(prefix)), key=lambda info: info.name)

    def stat(self, name: str) -> FileInfo | None:
        """Return what is known of a file."""
        path = self._path(name)
        with self._translated(f"read {name!r}"), suppress(FileNotFoundError, NotADirectoryError):
            if path.is_file():
                return _describe(name, path.stat())
        return None

    def copy(self, name: str, target: str) -> None:
        """Copy a file to another name."""
        self.put(target, self.read(name))

    def delete(self, names: Iterable[str]) -> None:
        """Delete files."""
        for name in names:
            with self._translated(f"delete {name!r}"), suppress(*_NO_FILE):
                self._path(name).unlink()

    def open_local(self, name: str) -> memoryview | None:
        """Return the content of a file mapped into memory."""
        with self._translated(f"read {name!r}", name), self._path(name).open("rb") as file:
            if not os.fstat(file.fileno()).st_size:  # an empty file cannot be mapped
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def _path(self, name: str) -> Path:
        return Path(self.root, check_name(name, self.root))

    def _write(self, name: str, data: bytes | memoryview, publish: Callable[[Path, Path], None]) -> None:
        target = self._path(name)
        _make_folder(target.parent)
        temporary = target.with_name(f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}")
        try:
            with temporary.open("xb", buffering=0) as file:
                rest = memoryview(data).cast("B")
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
            publish(temporary, target)
        finally:
            with suppress(FileNotFoundError):  # renamed
                temporary.unlink()
        _sync_folder(target.parent)

    @contextmanager
    def _translated(self, action: str, missing: str | None = None) -> Iterator[None]:
        """Turn an error of the operating system into ours; `missing` is the file that must exist."""
        try:
            yield
        except FileExistsError:
            raise
        except OSError as cause:
            if missing is not None and cause.errno in _ABSENT:
                raise missing_file_error(missing, self.root) from cause
            raise self._failure(action, cause) from cause

    def _failure(self, action: str, cause: OSError) -> FileStoreError:
        reason = cause.strerror or str(cause)
        if cause.errno in _DENIED:
            return denied_error(self.root, action, reason)
        return refused_error(self.root, action, reason)


def _link(temporary: Path, target: Path) -> None:
    try:
        os.link(temporary, target)
    except FileExistsError:
        # A network file system repeats a request whose answer was lost; then the second name is ours.
        if temporary.stat().st_nlink < 2:
            raise


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, each synced, so that a power failure does not lose the files below."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir()
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _walk(folder: Path, prefix: str) -> Iterator[FileInfo]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            # Links to folders are not followed: they may form a loop.
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path), f"{prefix}{entry.name}/")
            elif not entry.name.startswith(_TEMPORARY):
                with suppress(FileNotFoundError):  # deleted since
                    if entry.is_file():
                        yield _describe(prefix + entry.name, entry.stat())


def _describe(name: str, found: os.stat_result) -> FileInfo:
    # A replaced file has another inode, so the version changes also within the resolution of its time.
    version = f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"
    return FileInfo(name, found.st_size, version, found.st_mtime)
