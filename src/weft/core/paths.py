"""Names that become part of a path, and paths that must stay below a folder.

A relative path stays below the folder it is relative to, links followed.  To write elsewhere,
a user gives an absolute path; a name or a link must never cause it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from weft.core.names import is_plain_text

LONGEST_NAME = 255
"""The longest file name, in bytes, on the file systems of Linux, macOS and Windows."""

_SEPARATORS = "/\\"
_PATTERN_SIGNS = "*?[]{}"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
# Spark and Hadoop expand {a,b}, so `{..,in}/x` includes `../x`.
_PARENT = re.compile(r"(?:^|[/{,:])\.\.(?=$|[/},])")


def name_problem(name: str, *, prefix: str = "", patterns: bool = True) -> str | None:
    """Return why a name cannot be one part of a path, or None when it can.

    `prefix` is the start of that part; with `patterns=False` the characters of file patterns are invalid
    too, for names that readers put into paths.

    >>> name_problem("../../x"), name_problem("gl 2026"), name_problem("x" * 250, prefix="period=")
    ("contains '/'", None, 'is longer than 248 bytes')
    """
    if name in (".", ".."):
        return "refers to another folder"
    signs = _SEPARATORS if patterns else _SEPARATORS + _PATTERN_SIGNS
    sign = next((sign for sign in name if sign in signs), None)
    if sign is not None:
        return f"contains {sign!r}"
    if not is_plain_text(name):
        return "contains a control character"
    if len(prefix) + len(name.encode()) > LONGEST_NAME:
        return f"is longer than {LONGEST_NAME - len(prefix)} bytes"
    return None


def has_scheme(path: str) -> bool:
    """Whether a path names its file system.

    >>> has_scheme("s3a://bucket/a"), has_scheme("file:/tmp/a.csv"), has_scheme("data/a.csv")
    (True, True, False)
    """
    return _SCHEME.match(path) is not None


def is_file_url(path: str) -> bool:
    """Whether a path has the scheme of this machine's file system; schemes have no case.

    >>> is_file_url("file:/tmp/a.csv"), is_file_url("FILE:///tmp/a.csv"), is_file_url("s3a://bucket/a")
    (True, True, False)
    """
    return path[:5].lower() == "file:"


def escapes_folder(path: str) -> bool:
    """Whether a relative path, or one with a scheme, leaves the folder it starts at by ``..``.

    A ``file:`` URL without a slash escapes too: it has no folder to be relative to.

    >>> (
    ...     escapes_folder("in/../orders"),
    ...     escapes_folder("../orders"),
    ...     escapes_folder("{..,in}/orders"),
    ...     escapes_folder("/a/.."),
    ...     escapes_folder("file:orders"),
    ... )
    (False, True, True, False, True)
    """
    if is_file_url(path) and path[5:6] != "/":
        return True
    if path.startswith("/") or not _PARENT.search(path):
        return False
    # normpath would change `s3://a` and knows no {a,b}: for these any `..` counts.
    if has_scheme(path) or re.search(r"\{[^}/]*\.\.|\.\.[^{/]*\}", path):
        return True
    return Path(os.path.normpath(path)).parts[0] == ".."


def resolve_outside(base: Path, path: Path) -> Path | None:
    """Return the target of `path`, links followed, when it is not below `base`, else None.

    Parts of `path` that do not exist yet are kept as they are.
    """
    # Both are resolved: the workspace itself may be behind a link.
    real = Path(os.path.realpath(path))  # `resolve` raises for a loop of links
    return None if real.is_relative_to(base.resolve()) else real
