"""The rows that a sink wrote before they are published, and the exchange of two paths that publishes files.

Two paths change places in one step of the file system, so that neither is ever absent::

    Linux    renameat2(..., RENAME_EXCHANGE)      ext4, xfs, btrfs, tmpfs, overlayfs; not NFS
    macOS    renamex_np(..., RENAME_SWAP)         APFS

Elsewhere `exchange` returns False and changes nothing; the caller renames twice then.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.io.stores.store_path import Place

_CHUNK = 1 << 20
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_RENAME_SWAP = 2
_NOT_POSSIBLE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EXDEV)
"""Errors of file systems that cannot exchange two paths; both stay as they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """A file of a staged output; `path` is relative to the staged folder."""

    path: str
    bytes: int
    sha256: str

    def problem(self, folder: Path) -> str:
        """Return how the file in the staged folder differs from what was written, an empty string when it does not."""
        path = folder / self.path
        if not path.is_file():
            return f"the file {self.path} is missing"
        # The size comes first: a file that was cut off is detected without reading it.
        if path.stat().st_size != self.bytes or file_hash(path) != self.sha256:
            return f"the file {self.path} has changed since it was written"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The rows of an output that are written and not yet published."""

    location: str
    rows: int
    columns: tuple[str, ...]
    files: tuple[StagedFile, ...]


def file_hash(file: Place) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    hashed = hashlib.sha256()
    with file.open("rb") as data:
        while chunk := data.read(_CHUNK):
            hashed.update(chunk)
    return hashed.hexdigest()


def exchange(one: Path, other: Path) -> bool:
    """Let two paths that exist change places at once; False where the system or the disk cannot."""
    done = _call(os.fsencode(one), os.fsencode(other))
    if done is None:
        return False
    if done == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_POSSIBLE:
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))


def _call(one: bytes, other: bytes) -> int | None:
    """Return the result of the system call, None where it does not exist."""
    # Python's os module has no exchange; `use_errno` keeps the error number of the call for `ctypes.get_errno`.
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        if sys.platform.startswith("linux"):
            return int(libc.renameat2(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE))
        if sys.platform == "darwin":
            return int(libc.renamex_np(one, other, _RENAME_SWAP))
    except AttributeError:  # a C library that is older than the call
        return None
    return None
