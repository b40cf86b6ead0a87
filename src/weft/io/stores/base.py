"""FileStore: what the rest of Weft may ask of a store, and what all stores have in common.

The interface has no rename, no folders and no lock, because object stores have none.  Two writers are ordered by
`create`, which succeeds for exactly one of them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from weft.core.paths import name_problem
from weft.errors import FileStoreError

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file of a store.

    `version` changes whenever the content changes: an ETag, or what a file system knows of a file.  `modified` is in
    seconds since 1970, by the clock of the store.
    """

    name: str
    size: int
    version: str
    modified: float


class FileStore(Protocol):
    """Files below one root.  Names are relative, with `/` between their parts.

    A missing file raises `FileNotFoundError`, a store that fails raises `FileStoreError`.
    """

    @property
    def root(self) -> str:
        """The address of the root, without credentials."""

    def read(self, name: str) -> bytes:
        """Return the content of a file."""

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Return a part of a file as a slice does: shorter or empty when the file ends before."""

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Write a whole file; readers see the old content or the new one, never a part."""

    def create(self, name: str, data: bytes | memoryview) -> None:
        """Write a whole file unless one with that name exists, which raises `FileExistsError`.

        Of several writers exactly one succeeds, and readers see no file or all of it.  When the answer of a store is
        lost, the request is repeated; a file that exists by then counts as ours if it has our bytes.  Writers that
        compete must therefore write different bytes, for example the id of their attempt.
        """

    def list(self, prefix: str = "") -> list[FileInfo]:
        """Return the files whose names start with a string, sorted by name; files in all folders count."""

    def stat(self, name: str) -> FileInfo | None:
        """Return what is known of a file, or None when it does not exist."""

    def copy(self, name: str, target: str) -> None:
        """Copy a file to another name, which is replaced as by `put`; object stores copy without sending the content."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; those that do not exist are ignored."""

    def open_local(self, name: str) -> memoryview | None:
        """Return the content of a file mapped into memory, or None when the store is not a local disk."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long requests are tried: each for `timeout` seconds, `retries` times after the first."""

    timeout: float = 30.0
    retries: int = 4

    def attempts(self) -> Iterator[bool]:
        """Yield for each attempt whether it is the last one; wait between them, longer each time."""
        for number in range(self.retries + 1):
            if number:
                wait = min(_FIRST_WAIT * 2.0**number, _LONGEST_WAIT)
                # Writers that failed together must not try again together.
                time.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311  # no secret depends on it
            yield number == self.retries


def check_name(name: str, root: str) -> str:
    """Return a name of a file; raise W1901 when not every store could hold it.

    >>> check_name("commits/7.json", "/data")
    'commits/7.json'
    """
    for part in name.split("/"):
        problem = "has an empty part" if not part else name_problem(part)
        if problem is not None:
            raise FileStoreError(
                f"{name!r} cannot be the name of a file below {root}: it {problem}",
                code="W1901",
                help="write relative names with '/' between their parts, without '.', '..', '\\' and control characters",
            )
    return name


def describe_listing(prefix: str) -> str:
    """Return what a listing does, for a message."""
    return f"list the files of {prefix!r}" if prefix else "list the files"


def missing_file_error(name: str, root: str) -> FileNotFoundError:
    """Return the error for a file that does not exist."""
    return FileNotFoundError(f"{root}: no file {name!r}")


def existing_file_error(name: str, root: str) -> FileExistsError:
    """Return the error for a file that exists already."""
    return FileExistsError(f"{root}: the file {name!r} exists")


def unreachable_error(root: str, reason: str) -> FileStoreError:
    """Return the error for a store that does not answer, or answers with a failure of its own."""
    return FileStoreError(
        f"{root} cannot be reached: {reason}",
        code="W1905",
        help="check that the store runs and that this machine can reach it; docs/storage.md lists the settings of its address",
    )


def denied_error(root: str, action: str, reason: str = "") -> FileStoreError:
    """Return the error for credentials that are missing or not sufficient."""
    return FileStoreError(
        f"{root}: access denied, cannot {action}{f': {reason}' if reason else ''}",
        code="W1906",
        help="check the credentials in the environment or in the settings of the store, and what they permit",
    )


def refused_error(root: str, action: str, reason: str) -> FileStoreError:
    """Return the error for a request that the store refuses for another reason."""
    return FileStoreError(
        f"{root}: cannot {action}: {reason}",
        code="W1908",
        help="the store refused the request; correct what it reports and try again",
    )
