"""Fingerprints of the inputs of a run, so that a rerun can tell whether they have changed.

No job is needed: local files are hashed here, large ones are identified by size and time of change, those of a remote
store by what the store reports of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from weft.core.documents import Document
from weft.errors import FileStoreError
from weft.io.location import Location, full_path, is_local, list_data_files
from weft.io.staged import file_hash
from weft.io.stores.data_files import find_stored_files
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.resolver.locate import find_datasource
from weft.pipelines.plan.resolver.service import needs_service, request_location

HASHED_UP_TO = 64 * 1024 * 1024
"""Larger files are identified by their size and time of change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePrint(Document):
    """A file as it was read; a hashed file has no time, a large file no hash, a remote one its version alone."""

    path: str
    bytes: int
    mtime_ns: int | None = None
    sha256: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPrint(Document):
    """The data of one read: files, and the names of tables and of remote paths that cannot be listed; their content is not checked."""

    files: tuple[FilePrint, ...] = ()
    tables: tuple[str, ...] = ()

    @property
    def bytes(self) -> int | None:
        """How many bytes the files have; None when something else is read too."""
        return None if self.tables else sum(file.bytes for file in self.files)


def fingerprint_inputs(locations: Iterable[Location], catalog: Catalog, root: Path) -> InputPrint:
    """Return the fingerprint of the data at the locations; missing data has none."""
    files: dict[str, FilePrint] = {}
    tables: dict[str, None] = {}
    for planned in locations:
        location = request_location(planned, root) if needs_service(planned) else planned
        source = find_datasource(location, catalog)
        if location.path is None:
            tables[f"{location.datasource_id}:{location}"] = None
            continue
        path = full_path(location, source, root)
        if not is_local(path):
            try:
                files |= {
                    f.name: FilePrint(path=f.name, bytes=f.size, version=f.version) for f in find_stored_files(path)
                }
            except FileStoreError:  # Spark may have credentials, or know a store, that Python has not
                tables[path] = None
            continue
        for file in list_data_files(path):
            # Relative, so that a workspace that is moved or checked out elsewhere has the same inputs.
            name = str(file.relative_to(root) if file.is_relative_to(root) else file)
            files[name] = _print(file, name)
    return InputPrint(files=tuple(files[p] for p in sorted(files)), tables=tuple(sorted(tables)))


def _print(file: Path, name: str) -> FilePrint:
    stat = file.stat()
    if stat.st_size > HASHED_UP_TO:
        return FilePrint(path=name, bytes=stat.st_size, mtime_ns=stat.st_mtime_ns)
    # Without its time: a checkout or a copy gives a file a new one, and its content decides.
    return FilePrint(path=name, bytes=stat.st_size, sha256=file_hash(file))


def changes(before: InputPrint, now: InputPrint) -> tuple[str, ...]:
    """Return what differs between two fingerprints, a sentence for each file or table.

    >>> old = InputPrint(files=(FilePrint(path="a.csv", bytes=1, sha256="ab"),))
    >>> changes(old, InputPrint(files=(FilePrint(path="a.csv", bytes=2, sha256="cd"),)))
    ('a.csv changed: 1 bytes, ab -> 2 bytes, cd',)
    """
    old = {file.path: file for file in before.files}
    new = {file.path: file for file in now.files}
    sentences = [f"{path} is missing" for path in old if path not in new]
    sentences += [f"{path} is new" for path in new if path not in old]
    sentences += [
        f"{path} changed: {_describe(old[path])} -> {_describe(new[path])}"
        for path in old
        if path in new and old[path] != new[path]
    ]
    sentences += [f"{name} is no longer read" for name in before.tables if name not in now.tables]
    sentences += [f"{name} is newly read" for name in now.tables if name not in before.tables]
    return tuple(sentences)


def _describe(file: FilePrint) -> str:
    if file.version:
        return f"{file.bytes} bytes, version {file.version}"
    mark = file.sha256[:12] if file.sha256 else f"changed at {file.mtime_ns}"
    return f"{file.bytes} bytes, {mark}"
