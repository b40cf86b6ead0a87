"""Paths of stream files: what a job says, as Spark's file source reads it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from weft.core.names import find_similar, format_list
from weft.core.paths import has_scheme, resolve_outside
from weft.errors import ConnectorError, SourceLocation

_SIGNS = frozenset("{}[]*?\\")


def resolve_path(path: str, root: Path) -> str:
    """Return a path of a job as an absolute one; other file systems than this machine's stay as said.

    Raises `ConnectorError` W2017 when a relative path leaves the workspace, by ``..`` or by a link.
    """
    if path.startswith("file:"):
        return re.sub(r"^file:/*", "/", path)
    if is_remote(path):
        return path
    whole = (root / path).absolute()
    led = None if Path(path).is_absolute() else resolve_outside(root, whole)
    if led is not None:
        raise ConnectorError(
            f"the path {path!r} leads out of the workspace, to {str(led)!r}",
            code="W2017",
            help="write an absolute path where rows may come from or go to",
        )
    return str(whole)


def is_remote(path: str) -> bool:
    """Whether a path names a file system of its own.

    >>> is_remote("s3a://bucket/a"), is_remote("data/a.csv"), is_remote("file:/tmp/a.csv")
    (True, False, False)
    """
    return has_scheme(path) and not path.startswith("file:")


def is_pattern(path: str) -> bool:
    """Whether a path has signs of a pattern.

    >>> is_pattern("data/2026-*/a.csv"), is_pattern("data/a.csv")
    (True, False)
    """
    return any(sign in _SIGNS for sign in path)


def list_files(path: str) -> tuple[Path, ...]:
    """Return the data files that a local path means now, oldest first; names that Spark hides are left out."""
    place = Path(path)
    if place.is_file():
        candidates = [place]
    elif is_pattern(path) and not place.exists():
        matched = sorted(Path("/").glob(_replace_groups(path).lstrip("/")))
        candidates = [f for m in matched for f in ([m] if m.is_file() else sorted(m.rglob("*")))]
    else:
        candidates = sorted(place.rglob("*")) if place.is_dir() else []
    visible = [f for f in candidates if f.is_file() and not _is_hidden(f, place)]
    return tuple(sorted(visible, key=lambda f: (f.stat().st_mtime_ns, str(f))))


def _replace_groups(path: str) -> str:
    # Python's glob has no {a,b}; the files are only looked at, so more of them do no harm.
    return re.sub(r"\{[^}]*\}", "*", path)


def _is_hidden(file: Path, below: Path) -> bool:
    inner = file.relative_to(below).parts if below in file.parents else (file.name,)
    return any(part.startswith(("_", ".")) for part in inner)


def check_exists(path: str, what: str, at: SourceLocation | None) -> None:
    """Raise `ConnectorError` W2301 when a local path leads nowhere."""
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
        f"{what} reads {path!r}, which does not exist",
        code="W2301",
        help=f"{hint}; a folder may be empty",
        at=at,
    )


def source_path(path: str) -> str:
    """Return a path as Spark's file source takes it: folders and patterns as they are, a file as a pattern of itself.

    The source refuses a single file, because it is no folder, but takes a pattern that only this file fits.
    """
    place = Path(path)
    if is_remote(path) or not place.is_file():
        return path
    return f"{escape_pattern(str(place.parent))}/{_single_file_pattern(place.name)}"


def _single_file_pattern(name: str) -> str:
    first = next((i for i, sign in enumerate(name) if sign not in _SIGNS and sign not in "^-!"), 0)
    return f"{escape_pattern(name[:first])}[{name[first]}]{escape_pattern(name[first + 1 :])}"


def escape_pattern(path: str) -> str:
    r"""Return a path in which no sign is a pattern.

    >>> print(escape_pattern("/data/a[1].csv"))
    /data/a\[1\].csv
    """
    return "".join(f"\\{sign}" if sign in _SIGNS else sign for sign in path)


def find_equal_times(files: Sequence[Path]) -> tuple[Path, Path] | None:
    """Return two files that were last written at the same millisecond, None when there are none."""
    for one, other in itertools.pairwise(files):
        if one.stat().st_mtime_ns // 1_000_000 == other.stat().st_mtime_ns // 1_000_000:
            return one, other
    return None
