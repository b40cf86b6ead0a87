"""Two paths that change places in one step of the file system, so that neither is ever absent.

::

    Linux    renameat2(..., RENAME_EXCHANGE)      ext4, xfs, btrfs, tmpfs, overlayfs; not NFS
    macOS    renamex_np(..., RENAME_SWAP)         APFS

Elsewhere `exchange` returns False and changes nothing; the caller renames twice then.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_RENAME_SWAP = 2
_NOT_POSSIBLE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EXDEV)
"""What a file system says that cannot exchange two paths; each of them leaves both as they were."""


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
    """Return what the system call answers, None where there is no such call."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        if sys.platform.startswith("linux"):
            return int(libc.renameat2(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE))
        if sys.platform == "darwin":
            return int(libc.renamex_np(one, other, _RENAME_SWAP))
    except AttributeError:  # a C library that is older than the call
        return None
    return None
