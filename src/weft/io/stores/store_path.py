"""StorePath: a file or folder of a store, with those methods of `pathlib.Path` that stores can offer.

::

    as_place("s3://lake/streams/job")      a StorePath
    as_place("/data/streams/job")          a Path

Code that keeps its files either on a disk or in a store is written once, for a `Place`.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

from weft.core.paths import is_file_url
from weft.io.stores.address import parse_address
from weft.io.stores.base import FileStore
from weft.io.stores.hadoop import hadoop_address
from weft.io.stores.opening import open_store


@dataclass(frozen=True, slots=True)
class StorePath:
    """A file or folder of a store; a folder exists while there is a file in it."""

    store: FileStore
    key: str = ""

    def __str__(self) -> str:
        return f"{self.store.root}/{self.key}".rstrip("/")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorePath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: StorePath) -> bool:
        return str(self) < str(other)

    def __reduce__(self) -> tuple[Any, ...]:
        return StorePath, (self.store, self.key)

    def __truediv__(self, name: object) -> StorePath:
        return StorePath(self.store, str(PurePosixPath(self.key, str(name))).removeprefix("./"))

    # -- names

    @property
    def name(self) -> str:
        """The last part."""
        return self._pure.name

    @property
    def stem(self) -> str:
        """The last part without its ending."""
        return self._pure.stem

    @property
    def suffix(self) -> str:
        """The ending of the last part."""
        return self._pure.suffix

    @property
    def parent(self) -> StorePath:
        """The folder above; that of the root is the root."""
        above = str(self._pure.parent)
        return StorePath(self.store, "" if above == "." else above)

    @property
    def parents(self) -> tuple[StorePath, ...]:
        """The folders above, the nearest first."""
        return tuple(StorePath(self.store, "" if str(p) == "." else str(p)) for p in self._pure.parents)

    def with_name(self, name: str) -> StorePath:
        """Return a path beside this one."""
        return self.parent / name

    def as_posix(self) -> str:
        """Return the address."""
        return str(self)

    def absolute(self) -> StorePath:
        """Return the path itself: addresses are absolute."""
        return self

    def resolve(self) -> StorePath:
        """Return the path itself: stores have no links."""
        return self

    @property
    def _pure(self) -> PurePosixPath:
        return PurePosixPath(self.key)

    # -- what there is

    def exists(self) -> bool:
        """Return whether there is a file or a folder."""
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        """Return whether there is a file."""
        return bool(self.key) and self.store.stat(self.key) is not None

    def is_dir(self) -> bool:
        """Return whether there is a folder."""
        return bool(self.store.list(self._below))

    def is_symlink(self) -> bool:
        """Return False: stores have no links."""
        return False

    def stat(self) -> SimpleNamespace:
        """Return size and time of a file."""
        found = self.store.stat(self.key)
        if found is None:
            raise FileNotFoundError(f"no file {self}")
        return SimpleNamespace(st_size=found.size, st_mtime=found.modified)

    def iterdir(self) -> Iterator[StorePath]:
        """Yield the files and folders in a folder."""
        names = (found.name.removeprefix(self._below).partition("/")[0] for found in self.store.list(self._below))
        yield from (self / name for name in dict.fromkeys(names))

    def glob(self, pattern: str) -> Iterator[StorePath]:
        """Yield files and folders below this folder whose names match, part by part."""
        wanted = pattern.split("/")
        seen = set()
        for found in self.store.list(self._below):
            parts = tuple(found.name.removeprefix(self._below).split("/")[: len(wanted)])
            if len(parts) == len(wanted) and parts not in seen and all(map(fnmatchcase, parts, wanted)):
                seen.add(parts)
                yield self / "/".join(parts)

    def rglob(self, pattern: str) -> Iterator[StorePath]:
        """Yield the files at any depth below this folder whose names match."""
        for found in self.store.list(self._below):
            if fnmatchcase(found.name.rpartition("/")[2], pattern):
                yield StorePath(self.store, found.name)

    @property
    def _below(self) -> str:
        return f"{self.key}/" if self.key else ""

    # -- content

    def read_bytes(self) -> bytes:
        """Return the content of a file."""
        return self.store.read(self.key)

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the content of a file as text."""
        return self.read_bytes().decode(encoding, errors)

    def open(self, mode: str = "r", *, encoding: str = "utf-8", newline: str | None = None) -> Any:
        """Open a file for reading; its content is read at once."""
        content = io.BytesIO(self.read_bytes())
        return content if "b" in mode else io.TextIOWrapper(content, encoding=encoding, newline=newline)

    def write_bytes(self, data: bytes) -> None:
        """Write a whole file."""
        self.store.put(self.key, data)

    def write_text(self, text: str, encoding: str = "utf-8") -> None:
        """Write a whole file."""
        self.write_bytes(text.encode(encoding))

    def mkdir(self, *, parents: bool = True, exist_ok: bool = True) -> None:
        """Do nothing: a folder exists while there is a file in it."""

    def replace(self, target: StorePath) -> None:
        """Copy a file of the store to another name, then remove it; both steps may be repeated."""
        try:
            self.store.copy(self.key, str(target).removeprefix(f"{self.store.root}/"))
        except FileNotFoundError:
            if not target.is_file():  # otherwise another process has done it since
                raise
        self.unlink(missing_ok=True)

    def rmdir(self) -> None:
        """Do nothing."""

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove a file."""
        if not missing_ok and not self.is_file():
            raise FileNotFoundError(f"no file {self}")
        self.store.delete([self.key])

    def remove_tree(self) -> None:
        """Remove a file, or all files of a folder."""
        names = [found.name for found in self.store.list(self._below)]
        self.store.delete(names or [self.key])


_ADDRESS = re.compile(r"(?P<root>[A-Za-z][A-Za-z0-9+.-]*://[^/]*)(?P<key>/.*)?")
_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")

Place = Path | StorePath
"""A file or folder on a disk or in a store."""


def as_place(address: str) -> Place:
    """Return the place of an address or of a local path.

    >>> as_place("data/streams").name, as_place("s3://lake/streams/job").name
    ('streams', 'job')
    """
    found = _ADDRESS.fullmatch(address)
    if found is None or is_file_url(address):
        return Path(address)
    parse_address(address)  # refuses credentials anywhere in it
    return StorePath(_open_root(found["root"], _credentials()), (found["key"] or "").strip("/"))


@cache  # a store keeps its connections
def _open_root(root: str, _: object) -> FileStore:
    return open_store(root)


def _credentials() -> tuple[str | None, ...]:
    return tuple(os.environ.get(name) for name in _VARIABLES)


def spark_path(place: Place) -> str:
    """Return a place as Spark's Hadoop client knows it."""
    return hadoop_address(str(place)) if isinstance(place, StorePath) else str(place.absolute())
