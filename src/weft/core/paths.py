"""Names that become part of a path, and paths that must stay below a folder.

A relative path stays below the folder it is relative to, links followed.  A user who wants to write
elsewhere says so with an absolute path; a name or a link must never decide it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from weft.core.names import is_plain_text

LONGEST_NAME = 255
"""How many bytes the file systems of Linux, macOS and Windows take as the name of a file."""

_SEPARATORS = "/\\"
_PATTERN_SIGNS = "*?[]{}"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
# Spark and Hadoop expand {a,b}: `{..,in}/x` also means `../x`.
_PARENT = re.compile(r"(?:^|[/{,])\.\.(?=$|[/},])")


def name_problem(name: str, *, prefix: str = "", patterns: bool = True) -> str | None:
    """Return why a name cannot be one part of a path, or None when it can.

    `prefix` is what stands before it in that part; with `patterns=False` the signs of file patterns are
    refused too, for names that readers put into paths.

    >>> name_problem("../../x"), name_problem("gl 2026"), name_problem("x" * 250, prefix="period=")
    ("contains '/'", None, 'is longer than 248 bytes')
    """
    if name in (".", ".."):
        return "means another folder"
    signs = _SEPARATORS if patterns else _SEPARATORS + _PATTERN_SIGNS
    used = next((sign for sign in name if sign in signs), None)
    if used is not None:
        return f"contains {used!r}"
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


def escapes_folder(path: str) -> bool:
    """Whether a relative path, or one with a scheme, leaves the folder it starts at by ``..``.

    >>> (
    ...     escapes_folder("in/../orders"),
    ...     escapes_folder("../orders"),
    ...     escapes_folder("{..,in}/orders"),
    ...     escapes_folder("/a/.."),
    ... )
    (False, True, True, False)
    """
    if path.startswith("/"):
        return False
    if not _PARENT.search(path):
        return False
    if has_scheme(path) or re.search(r"\{[^}/]*\.\.|\.\.[^{/]*\}", path):
        return True
    return Path(os.path.normpath(path)).parts[0] == ".."


def resolve_outside(base: Path, path: Path) -> Path | None:
    """Return where `path` leads, links followed, when that is not below `base`; None when it is below.

    The parts of `path` that do not exist yet are taken as they are written.
    """
    real = path.resolve()
    return None if real.is_relative_to(base.resolve()) else real
