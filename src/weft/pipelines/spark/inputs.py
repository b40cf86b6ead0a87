"""Fingerprints of what a run reads, so that a rerun knows whether it reads the same.

No job is needed: local files are hashed here, large ones are told by size and time of change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from weft.core.documents import Document
from weft.io.location import Location, full_path, is_local, list_data_files
from weft.io.staged import file_hash
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.resolver.locate import find_datasource
from weft.pipelines.plan.resolver.service import needs_service, request_location

HASHED_UP_TO = 64 * 1024 * 1024
"""Files of more bytes are told by their size and time of change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePrint(Document):
    """A file as it was read; the hash is None of one that is too large, the time of one that is hashed."""

    path: str
    bytes: int
    mtime_ns: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPrint(Document):
    """What one read finds: local files, and tables or remote paths by name, which nobody can vouch for."""

    files: tuple[FilePrint, ...] = ()
    tables: tuple[str, ...] = ()

    @property
    def bytes(self) -> int | None:
        """How many bytes the files have; None when something else is read too."""
        return None if self.tables else sum(file.bytes for file in self.files)


def fingerprint_inputs(locations: Iterable[Location], catalog: Catalog, root: Path) -> InputPrint:
    """Return the fingerprint of what lies at the locations now; data that is missing has none."""
    files: dict[str, FilePrint] = {}
    tables: dict[str, None] = {}
    for said in locations:
        location = request_location(said, root) if needs_service(said) else said
        source = find_datasource(location, catalog)
        if location.path is None:
            tables[f"{location.datasource_id}:{location}"] = None
            continue
        path = full_path(location, source, root)
        if not is_local(path):
            tables[path] = None
            continue
        for file in list_data_files(path):
            shown = _shown(file, root)
            files[shown] = _print(file, shown)
    return InputPrint(files=tuple(files[p] for p in sorted(files)), tables=tuple(sorted(tables)))


def _shown(file: Path, root: Path) -> str:
    return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)


def _print(file: Path, shown: str) -> FilePrint:
    stat = file.stat()
    if stat.st_size > HASHED_UP_TO:
        return FilePrint(path=shown, bytes=stat.st_size, mtime_ns=stat.st_mtime_ns)
    return FilePrint(path=shown, bytes=stat.st_size, sha256=file_hash(file))


def changes(before: InputPrint, now: InputPrint) -> tuple[str, ...]:
    """Return what differs between two fingerprints, a sentence for each file or table.

    >>> old = InputPrint(files=(FilePrint(path="a.csv", bytes=1, sha256="ab"),))
    >>> changes(old, InputPrint(files=(FilePrint(path="a.csv", bytes=2, sha256="cd"),)))
    ('a.csv changed: 1 bytes, ab -> 2 bytes, cd',)
    """
    old = {file.path: file for file in before.files}
    new = {file.path: file for file in now.files}
    told = [f"{path} is gone" for path in old if path not in new]
    told += [f"{path} is new" for path in new if path not in old]
    told += [
        f"{path} changed: {_told(old[path])} -> {_told(new[path])}"
        for path in old
        if path in new and old[path] != new[path]
    ]
    told += [f"{name} is read no more" for name in before.tables if name not in now.tables]
    told += [f"{name} is read now" for name in now.tables if name not in before.tables]
    return tuple(told)


def _told(file: FilePrint) -> str:
    mark = file.sha256[:12] if file.sha256 else f"changed at {file.mtime_ns}"
    return f"{file.bytes} bytes, {mark}"
