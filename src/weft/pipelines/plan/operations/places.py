"""Places that operations read from and write to, normalized so that two names of the same place are equal.

::

    out/gl/, ./out/gl, /work/out/gl, a link to it     one folder
    jdbc:postgresql://DB:5432/x, schema public        the same table as jdbc:postgresql://db/x without a schema
    jdbc:postgresql://db/x?currentSchema=gl           the same table as schema gl
    lake.GL, lake.gl                                  one table of Spark's catalog, which ignores case

A folder also contains every place below it.
"""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from weft.core.names import fold
from weft.io.connectors import find_connector
from weft.io.datasource import DataSource
from weft.io.location import PUBLISHED, Location, is_local, plain_path
from weft.io.options import jdbc_schema, jdbc_url
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.operations.resolved import Target

_PATTERN = re.compile(r"[*?\[]")
_HIDDEN = ("_", ".")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder or file with its links resolved, or a table; `parts` are its path from the root."""

    kind: Literal["files", "table"]
    parts: tuple[str, ...]

    def overlaps(self, other: Place) -> bool:
        """Whether writing to one changes the other: they are equal, or one folder contains the other.

        >>> out, month = Place("files", ("/", "out")), Place("files", ("/", "out", "2026-01"))
        >>> out.overlaps(month), month.overlaps(out), month.overlaps(Place("files", ("/", "out", "2026")))
        (True, True, False)
        """
        if self.kind != other.kind:
            return False
        if self.kind == "table":
            return self.parts == other.parts
        shared = min(len(self.parts), len(other.parts))
        return self.parts[:shared] == other.parts[:shared]

    def is_read_by(self, pattern: Place) -> bool:
        """Whether a read of `pattern`, whose parts may have wildcards, is affected by writing here.

        Files below a folder whose name starts with ``_`` or ``.`` are not read.

        >>> exports = Place("files", ("/", "data", "*.csv"))
        >>> [Place("files", ("/", "data", n)).is_read_by(exports) for n in ("gl.csv", "gl.json")]
        [True, False]
        """
        if self.kind == "table" or pattern.kind == "table":
            return self.overlaps(pattern)
        inside = self.parts[len(pattern.parts) :]
        # As Spark does it: `_temporary` is skipped, but `_period=2026-01` is a partition.
        if any(part.startswith(_HIDDEN) and "=" not in part for part in inside):
            return False
        return all(
            own == part_pattern or fnmatchcase(own, part_pattern)
            for own, part_pattern in zip(self.parts, pattern.parts, strict=False)
        )


def written(target: Target, catalog: Catalog) -> Place:
    """Return the place that an output writes to."""
    if target.kind in ("files", "file"):
        return _files(catalog.workspace.root / target.location)
    source = None if target.datasource_id is None else catalog.datasource(target.datasource_id)
    return _table(target.table or "", target.schema, source)


def read_places(location: Location, catalog: Catalog) -> tuple[Place, ...]:
    """Return the places of a location: itself, and for a pattern also each matching file, with links resolved.

    Locations of services and object stores are left out, because no output writes there.
    """
    datasource_id = location.datasource_id
    source = None if datasource_id in ("", PUBLISHED) else catalog.datasource(datasource_id)
    if location.table is not None:
        return (_table(location.table, location.schema, source),)
    prefix = "" if source is None else str(source.options.get("path_prefix") or "")
    if location.path is None or not is_local(prefix or location.path):
        return ()
    root = catalog.workspace.root
    whole = (root / plain_path(prefix) if prefix else root) / plain_path(location.path)
    # A file whose name contains a bracket is read as it is, not as a pattern.
    if not _PATTERN.search(str(whole)) or whole.exists():
        return (_files(whole),)
    # Links above the first wildcard are resolved; below it there is a link for each match, so matches are listed too.
    number = next(i for i, part in enumerate(whole.parts) if _PATTERN.search(part))
    pattern = Path(*whole.parts[:number]).resolve().joinpath(*whole.parts[number:])
    files = glob.glob(str(whole))  # noqa: PTH207  # Path.glob takes no absolute pattern
    return (Place("files", pattern.parts), *(_files(Path(file)) for file in files))


def _files(path: Path) -> Place:
    return Place("files", path.resolve().parts)


def _table(table: str, schema: str | None, source: DataSource | None) -> Place:
    options = {} if source is None else source.options
    if source is not None and find_connector(source.type).sink == "jdbc":
        # Names in PostgreSQL are quoted and therefore case-sensitive.
        return Place("table", (*_server(source), schema or jdbc_schema(source), table))
    catalog = str(options.get("catalog") or "spark_catalog")
    inside = schema or str(options.get("schema") or "default")
    return Place("table", (fold(catalog), fold(inside), fold(table)))


def _server(source: DataSource) -> tuple[str, ...]:
    """Return what identifies a database, independent of the datasource."""
    url = jdbc_url(source).removeprefix("jdbc:")
    try:
        at = urlsplit(url)
        port = at.port or 5432
    except ValueError:  # the URL is checked with its datasource
        return ("jdbc", url)
    return ("jdbc", at.hostname or "localhost", str(port), unquote(at.path.strip("/")))
