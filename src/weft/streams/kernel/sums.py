"""Checksums of files and documents, which detect bytes that changed on disk before they are used.

A document contains its own checksum, an index those of the files that it lists.  Files of earlier versions have none
and are used unchecked.
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
"""Module that holds the files a process has checked; nothing else lives as long as a worker."""


def checksum(content: Any) -> str:
    """Return the checksum of bytes.

    >>> checksum(b"123456789")
    'cbf43926'
    """
    return f"{zlib.crc32(content):08x}"


def with_checksum(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with the checksum of everything else in it."""
    return {**document, CHECKSUM: _document_checksum(document)}


def is_intact(document: Mapping[str, Any]) -> bool:
    """Return whether a document is unchanged; one without a checksum counts as intact.

    >>> (
    ...     is_intact(with_checksum({"a": 1})),
    ...     is_intact({**with_checksum({"a": 1}), "a": 2}),
    ...     is_intact({"a": 1}),
    ... )
    (True, False, True)
    """
    return CHECKSUM not in document or document[CHECKSUM] == _document_checksum(document)


def _document_checksum(document: Mapping[str, Any]) -> str:
    # Compare what JSON reads back: keys are strings then, and tuples are lists.
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
