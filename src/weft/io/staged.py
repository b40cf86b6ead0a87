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


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The rows of an output that are written and not yet published."""

    location: str
    rows: int
    columns: tuple[str, ...]
    files: tuple[StagedFile, ...]


def file_hash(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    hashed = hashlib.sha256()
    with file.open("rb") as data:
        while chunk := data.read(_CHUNK):
            hashed.update(chunk)
    return hashed.hexdigest()


def broken_files(staged: Staged) -> tuple[str, ...]:
    """Return a sentence for each staged file that is missing, unexpected, or changed since it was written."""
    folder = Path(staged.location)
    there = {f.name for f in folder.iterdir()} if folder.is_dir() else set()
    problems = [f"{name} was not written" for name in sorted(there - {f.path for f in staged.files})]
    for file in staged.files:
        path = folder / file.path
        if file.path not in there:
            problems.append(f"{file.path} is gone")
        elif path.stat().st_size != file.bytes or file_hash(path) != file.sha256:
            problems.append(f"{file.path} is not what was written")
    return tuple(problems)


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
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        if sys.platform.startswith("linux"):
            return int(libc.renameat2(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE))
        if sys.platform == "darwin":
            return int(libc.renamex_np(one, other, _RENAME_SWAP))
    except AttributeError:  # a C library that is older than the call
        return None
    return None
