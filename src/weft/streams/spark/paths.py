"""Paths of stream files: from the text of a job to what Spark's file source reads."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from weft.core.names import find_similar, format_list
from weft.core.paths import escapes_folder, has_scheme, is_file_url, resolve_outside
from weft.errors import ConnectorError, SourceLocation
from weft.io.spark.files import escaped

_SIGNS = frozenset("{}[]*?\\")


def resolve_path(path: str, root: Path) -> str:
    """Return a path of a job as an absolute path; paths of remote file systems are unchanged.

    Raises `ConnectorError` W2017 when a relative path leaves the workspace, by ``..`` or by a link.
    """
    if is_file_url(path) and not escapes_folder(path):
        return re.sub(r"^file:/*", "/", path, flags=re.IGNORECASE)
    if is_remote(path):
        return path
    whole = (root / path).absolute()
    target = whole if is_file_url(path) else None if Path(path).is_absolute() else resolve_outside(root, whole)
    if target is not None:
        raise ConnectorError(
            f"the path {path!r} leads out of the workspace, to {str(target)!r}",
            code="W2017",
            help="write an absolute path for files outside of the workspace",
        )
    return str(whole)


def is_remote(path: str) -> bool:
    """Return whether a path has the scheme of a remote file system.

    >>> is_remote("s3a://bucket/a"), is_remote("data/a.csv"), is_remote("file:/tmp/a.csv")
    (True, False, False)
    """
    return has_scheme(path) and not is_file_url(path)


def is_pattern(path: str) -> bool:
    """Return whether a path contains pattern characters.

    >>> is_pattern("data/2026-*/a.csv"), is_pattern("data/a.csv")
    (True, False)
    """
    return any(sign in _SIGNS for sign in path)


def list_files(path: str) -> tuple[Path, ...]:
    """Return the current data files of a local path, oldest first, without those that Spark hides."""
    place = Path(path)
    if place.is_file():
        candidates = [place]
    elif is_pattern(path) and not place.exists():  # a folder may have such a name
        matched = sorted(Path("/").glob(_replace_groups(path).lstrip("/")))
        candidates = [f for m in matched for f in ([m] if m.is_file() else sorted(m.rglob("*")))]
    else:
        candidates = sorted(place.rglob("*")) if place.is_dir() else []
    visible = [f for f in candidates if f.is_file() and not _is_hidden(f, place)]
    return tuple(sorted(visible, key=lambda f: (f.stat().st_mtime_ns, str(f))))


def _replace_groups(path: str) -> str:
    # Python's glob has no {a,b}; the files are only inspected, so extra ones do no harm.
    return re.sub(r"\{[^}]*\}", "*", path)


def _is_hidden(file: Path, below: Path) -> bool:
    inner = file.relative_to(below).parts if below in file.parents else (file.name,)
    return any(part.startswith(("_", ".")) for part in inner)


def check_exists(path: str, what: str, at: SourceLocation | None) -> None:
    """Raise `ConnectorError` W2301 if a local path does not exist."""
    place = Path(path)
    if is_remote(path) or place.exists():
        return
    if is_pattern(path):
        fixed = place
        while is_pattern(str(fixed)):
            fixed = fixed.parent
        if fixed.exists():
            return
        place = fixed
    beside = sorted(p.name for p in place.parent.iterdir()) if place.parent.is_dir() else []
    close = find_similar(place.name, beside, most=3)
    hint = f"did you mean {format_list(close)}?" if close else "paths are relative to the workspace"
    raise ConnectorError(
        f"{what} reads {path!r}, which does not exist", code="W2301", help=f"{hint}; a folder may be empty", at=at
    )


def source_path(path: str) -> str:
    """Return a path for Spark's file source: a single file becomes a pattern that matches only this file.

    The source accepts folders and patterns, but not a single file.
    """
    place = Path(path)
    if is_remote(path) or not place.is_file():
        return path
    return f"{escaped(str(place.parent))}/{_single_file_pattern(place.name)}"


def _single_file_pattern(name: str) -> str:
    # Inside brackets ^, - and ! have a meaning of their own.
    first = next((i for i, sign in enumerate(name) if sign not in _SIGNS and sign not in "^-!"), 0)
    return f"{escaped(name[:first])}[{name[first]}]{escaped(name[first + 1 :])}"


def find_equal_times(files: Sequence[Path]) -> tuple[Path, Path] | None:
    """Return two files that were written in the same millisecond, which is as far as Spark compares; or None."""
    for one, other in itertools.pairwise(files):
        if one.stat().st_mtime_ns // 1_000_000 == other.stat().st_mtime_ns // 1_000_000:
            return one, other
    return None
