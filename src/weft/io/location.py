"""Location: one place that holds data of one period, and the path that it means.

A path is below the prefix of its datasource and never leaves it::

    path_prefix: data                  2026/orders.csv   ->  <workspace>/data/2026/orders.csv
    path_prefix: s3a://bucket/gl       2026/*.parquet    ->  s3a://bucket/gl/2026/*.parquet
"""

from __future__ import annotations

import glob
import os
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import unquote, urlsplit

from weft.core.documents import Document
from weft.core.frozen import EMPTY, FrozenMap
from weft.core.names import format_list
from weft.core.paths import escapes_folder, is_file_url
from weft.core.source import Source
from weft.errors import ResolutionError
from weft.io.datasource import DataSource

ANY_LEVEL = "any"
"""The data level of a location whose rows are not separated by period."""

PUBLISHED = "weft:published"
"""Id of the built-in resolver of datasets that a run registered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location(Document):
    """One place that holds data of one period.

    `path` is the rendered path of the rule, below the prefix of the datasource.  `catalog` is the request to a
    service that returns the location; for data that a run published it holds the format.  Where `data_level`
    is not ``any``, all rows are of `period_identifier`.
    """

    DOCUMENT: ClassVar = (
        "datasource_id", "path", "table", "schema", "catalog", "period_identifier",
        "data_level", "resolver_id", "resolver_version", "rule_name",
    )  # fmt: skip
    UNLISTED: ClassVar = ("schema", "catalog", "data_level", "resolver_id", "resolver_version", "rule_name")

    datasource_id: str
    path: str | None = None
    table: str | None = None
    schema: str | None = None
    catalog: FrozenMap[str, Any] | None = None
    period_identifier: str
    data_level: str
    resolver_id: str
    resolver_version: int
    rule_name: str
    missing: Literal["fail", "skip"] = "fail"

    def __str__(self) -> str:
        if self.path is not None:
            return self.path
        if self.table is not None:
            return f"{self.schema}.{self.table}" if self.schema else self.table
        return str((self.catalog or EMPTY).get("endpoint", ""))

    @property
    def period(self) -> str | None:
        """The period of every row, None when the data is not separated by period."""
        return None if self.data_level == ANY_LEVEL else self.period_identifier


def missing_data_error(missing: Sequence[tuple[Location, str]]) -> ResolutionError:
    """Return the error for locations without data, each with its full path."""
    lines = [f"{at.period_identifier}: {path}" for at, path in missing]
    periods = format_list(dict.fromkeys(at.period_identifier for at, _ in missing))
    return ResolutionError(
        f"no data for {periods}: {', '.join(path for _, path in missing)}",
        code="W1309",
        help="\n".join(lines) + "\nput the data there, or set `missing: skip` in the rule if a period may have no data",
    )


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_HIDDEN = ("_", ".")
_WILDCARDS = re.compile(r"[*?\[]")


def is_local(path: str) -> bool:
    """Whether a path is one of this machine's file system.

    >>> is_local("/data/gl.csv"), is_local("s3a://bucket/gl.csv"), is_local("file:/data/gl.csv")
    (True, False, True)
    """
    return _SCHEME.match(path) is None or is_file_url(path)


def full_path(location: Location, source: DataSource | None, root: Path, *, at: Source | None = None) -> str:
    """Return the whole path of a location: absolute on this machine, or with its scheme.

    Links are followed, and a path that leads out of the prefix is refused with W1311.  Data that a run published
    may be anywhere.
    """
    path = location.path or ""
    prefix = "" if source is None else str(source.options.get("path_prefix") or "")
    if not is_local(prefix) or (not prefix and not is_local(path)):
        return _remote(prefix, path, at)
    base = root / plain_path(prefix) if prefix else root
    whole = base / plain_path(path)
    if location.datasource_id == PUBLISHED or (not prefix and Path(plain_path(path)).is_absolute()):
        return str(whole)
    _confined(base, whole, path, at)
    return str(whole)


def plain_path(path: str) -> str:
    """Return a path without the ``file:`` scheme that it may be written with."""
    if not is_file_url(path):
        return path
    try:
        return unquote(urlsplit(path).path)
    except ValueError:  # brackets that are not the address of a host
        return unquote(path[5:].lstrip("/"))


def _remote(prefix: str, path: str, at: Source | None) -> str:
    whole = f"{prefix.rstrip('/')}/{path.lstrip('/')}" if prefix else path
    # A remote store has no links, so the text of the path decides; some stores resolve ".." themselves.
    if ".." in whole.split("/") or escapes_folder(path.lstrip("/")):
        raise _outside(path, prefix, at)
    return whole


def _confined(base: Path, whole: Path, path: str, at: Source | None) -> None:
    inside = Path(posixpath.normpath(str(base)))
    if escapes_folder(path.lstrip("/")) or not Path(os.path.normpath(whole)).is_relative_to(inside):
        raise _outside(path, str(base), at)
    real = base.resolve()
    # Links in a pattern are followed up to its first wildcard; each file that it matches is checked on its own.
    matches = glob.glob(str(whole)) if _WILDCARDS.search(str(whole)) else ()  # noqa: PTH207
    for entry in (whole, *map(Path, matches)):
        if not _certain(entry).resolve().is_relative_to(real):
            raise _outside(path, str(base), at)


def _certain(path: Path) -> Path:
    """Return the part of a path before its first pattern, or all of it when it is there."""
    if path.exists():
        return path
    parts = []
    for part in path.parts:
        if _WILDCARDS.search(part):
            break
        parts.append(part)
    return Path(*parts)


def _outside(path: str, base: str, at: Source | None) -> ResolutionError:
    return ResolutionError(
        f"the path {path!r} leads out of {base!r}",
        code="W1311",
        help="write a path below the `path_prefix` of the datasource, without '..' or links that leave it",
        at=at,
    )


def list_data_files(path: str) -> tuple[Path, ...]:
    """Return the files of a local path: the file itself, those in a folder, or those that match a pattern.

    Names that start with ``_`` or ``.`` are not data, as in Spark, unless the path names the file itself.
    """
    entry = Path(plain_path(path))
    if entry.is_file():
        return (entry,)
    if entry.is_dir():
        return tuple(sorted(_below(entry)))
    matches = (Path(p) for p in glob.glob(str(entry)))  # noqa: PTH207  # Path.glob takes no absolute pattern
    visible = (e for e in matches if not e.name.startswith(_HIDDEN))
    return tuple(sorted(f for e in visible for f in ((e,) if e.is_file() else _below(e))))


def _below(folder: Path) -> list[Path]:
    return [
        file
        for file in folder.rglob("*")
        if file.is_file()
        # Folders of partitions, such as `_period=2026-01`, hold data although they start with an underscore.
        and not any(part.startswith(_HIDDEN) and "=" not in part for part in file.relative_to(folder).parts)
    ]
