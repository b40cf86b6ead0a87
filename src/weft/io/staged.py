"""What a sink wrote before it is published."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """A file of a staged output; `path` is relative to the staged folder."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """What an output wrote before it is published."""

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
