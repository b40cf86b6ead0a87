"""Sums: checksums of files and documents, so that a byte that changed on the disk is seen before it is used.

A document carries its own, an index those of the files that it lists.  What an earlier version wrote has none and is
used as it is.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

CHECKSUM = "checksum"
_CHECKED = "_weft_checked"
"""Module of a process that holds which files it has checked; nothing else lives as long as a worker."""


def checksum(content: Any) -> str:
    """Return the checksum of bytes.

    >>> checksum(b"123456789")
    'cbf43926'
    """
    return f"{zlib.crc32(content):08x}"


def with_checksum(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with the checksum of everything else in it."""
    return {**document, CHECKSUM: _of_document(document)}


def is_intact(document: Mapping[str, Any]) -> bool:
    """Whether a document is as it was written; one without a checksum counts as intact.

    >>> (
    ...     is_intact(with_checksum({"a": 1})),
    ...     is_intact({**with_checksum({"a": 1}), "a": 2}),
    ...     is_intact({"a": 1}),
    ... )
    (True, False, True)
    """
    return CHECKSUM not in document or document[CHECKSUM] == _of_document(document)


def _of_document(document: Mapping[str, Any]) -> str:
    # As it reads back, whatever its layout: keys are texts then, and tuples are lists.
    rest = json.loads(json.dumps({k: v for k, v in document.items() if k != CHECKSUM}))
    return checksum(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode())


def checked_files() -> dict[str, dict[str, str]]:
    """Return the files whose checksums this process has compared, by the folder of their group.

    Files of the state never change, so a process that joins many batches reads each of them in full once.
    """
    module: Any = sys.modules.setdefault(_CHECKED, ModuleType(_CHECKED))
    if not hasattr(module, "files"):
        module.files = {}
    files: dict[str, dict[str, str]] = module.files
    return files
