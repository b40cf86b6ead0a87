"""find_stored_files: the files that Spark reads at a remote path, with what identifies their content.

::

    s3://lake/gl/2026             the file, or all files below the folder
    s3://lake/gl/2026-*/{a,b}     the same for everything that the pattern matches

Nothing is read: a store reports the size and the ETag or version of each file with the listing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from weft.io.stores.base import FileInfo
from weft.io.stores.opening import open_store

_WILDCARD = re.compile(r"[*?\[{]")
_TOKEN = re.compile(r"\*+|\?|\[(?P<not>[!^]?)(?P<set>[^\]/]+)\]|\{(?P<any>[^{}/]+)\}|.", re.DOTALL)
_HIDDEN = ("_", ".")


def find_stored_files(path: str, settings: Mapping[str, str] | None = None) -> tuple[FileInfo, ...]:
    """Return the files that a remote path means, each with its whole address as name; empty when there are none.

    Names that start with ``_`` or ``.`` are not data, as in Spark, unless the path itself contains them.

    Parameters
    ----------
    path
        A file, a folder or a pattern with ``*``, ``?``, ``[ab]`` or ``{a,b}``, such as ``s3://lake/gl/2026-*``.
    settings
        The settings of the store, see `open_store`.
    """
    folder, pattern = _split(path.rstrip("/"))
    store = open_store(folder, settings)
    wanted = re.compile(
        f"(?P<named>{_translate(pattern)})(?P<below>/.*)?" if pattern else "(?P<named>)(?P<below>.*)", re.DOTALL
    )
    found = []
    for info in store.list(_WILDCARD.split(pattern)[0]):
        match = wanted.fullmatch(info.name)
        if match is not None and _is_visible(match, pattern):
            found.append(replace(info, name=f"{store.root}/{info.name}"))
    return tuple(found)


def _split(path: str) -> tuple[str, str]:
    """Return the folder before the last part, or before the first part with a wildcard, and the rest.

    >>> _split("s3://lake/gl/2026-*/a.csv"), _split("s3://lake/gl"), _split("s3://lake")
    (('s3://lake/gl', '2026-*/a.csv'), ('s3://lake', 'gl'), ('s3://lake', ''))
    """
    scheme, _, rest = path.partition("://")
    host, *parts = rest.split("/")
    first = next((n for n, part in enumerate(parts) if _WILDCARD.search(part)), max(len(parts) - 1, 0))
    return "/".join((f"{scheme}://{host}", *parts[:first])), "/".join(parts[first:])


def _translate(pattern: str) -> str:
    """Return a pattern of Hadoop as a regular expression."""
    return "".join(map(_expression, _TOKEN.finditer(pattern)))


def _expression(token: re.Match[str]) -> str:
    text = token[0]
    if text.startswith("*"):
        return "[^/]*"
    if text == "?":
        return "[^/]"
    if token["set"] is not None:
        negated = "^/" if token["not"] else ""
        return f"[{negated}{re.escape(token['set']).replace(re.escape('-'), '-')}]"
    if token["any"] is not None:
        return f"(?:{'|'.join(map(_translate, token['any'].split(',')))})"
    return re.escape(text)


def _is_visible(match: re.Match[str], pattern: str) -> bool:
    below = (match["below"] or "").split("/")
    # What the pattern writes out is wanted; what a wildcard or a folder brings along is not when it is hidden.
    by_wildcard = [n for n, p in zip(match["named"].split("/"), pattern.split("/"), strict=True) if p[:1] in "*?[{"]
    # Folders of partitions, such as `_period=2026-01`, hold data although they start with an underscore.
    return not any(part.startswith(_HIDDEN) and "=" not in part for part in (*by_wildcard, *below))
