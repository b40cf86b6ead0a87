"""What a job writes, compared with what it reads and with its other sinks.

Folders are compared with their links resolved, and a folder contains everything below it::

    sink 'out'         and sink './out/'      the rows of both are mixed
    stream 'in'        and sink 'in/out'      the job reads its own output
    stream 'data/*'    and sink 'data/out'    the same
    stream 'out/in'    and sink 'out'         readers of the output read the input too
    stream 'a/*.csv'   and sink 'a/out'       two places
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import combinations, islice
from pathlib import Path

from weft.core.findings import Findings
from weft.core.paths import has_scheme
from weft.streams.sql.spec import SinkSpec, StreamSpec, TableSpec

Parts = tuple[str, ...]
"""A path from the root; those of a stream or table may have wildcards."""

_HIDDEN = ("_", ".")
_SIGNS = re.compile(r"[{}\[\]*?\\]")
_GROUP = re.compile(r"(?<!\\)\{([^{}]*)\}")
_MAX_PATHS = 256  # of one pattern with groups in braces, which multiply
_MAX_MATCHES = 10_000


def check_shared_paths(
    inputs: Iterable[StreamSpec | TableSpec], sinks: Iterable[SinkSpec], root: Path, findings: Findings
) -> None:
    """Report sinks in one folder (W2123), and sinks that write to what the job reads (W2108)."""
    sinks = tuple(sinks)
    folders = [(sink, _resolve(root / path)) for sink in sinks if (path := _local_path(sink)) is not None]
    for (first, one), (second, other) in combinations(folders, 2):
        if _is_prefix(one, other) or _is_prefix(other, one):
            findings.add(
                "W2123",
                f"sink {second.name!r} writes to {second.connector['path']!r} and sink {first.name!r} to"
                f" {first.connector['path']!r}: "
                + ("these are one folder" if one == other else "one of these folders contains the other"),
                second.at,
                "give each sink a folder of its own, for example two folders below one parent",
            )
    for source in inputs:
        path = _local_path(source)
        places = [] if path is None else list(_list_places(path, root))
        topics = _list_topics(source)
        for sink, folder in folders:
            if any(_is_read(folder, place, str(sink.connector.get("format"))) for place in places):
                _add_finding(source, sink, "path", "a folder outside of it", findings)
        for sink in sinks:
            if topics & _list_topics(sink):
                _add_finding(source, sink, "topic", "another topic", findings)


def _add_finding(source: StreamSpec | TableSpec, sink: SinkSpec, key: str, other: str, findings: Findings) -> None:
    kind = "stream" if isinstance(source, StreamSpec) else "table"
    findings.add(
        "W2108",
        f"{kind} {source.name!r} reads {source.connector[key]!r} and sink {sink.name!r} writes to"
        f" {sink.connector[key]!r}: input and output would mix",
        sink.at,
        f"let the sink write to {other}",
    )


def _local_path(spec: StreamSpec | TableSpec | SinkSpec) -> str | None:
    """Return the path of files on this machine; sinks on other file systems are refused when they are opened."""
    path = str(spec.connector.get("path") or "")
    if spec.connector.get("connector") != "files" or not path:
        return None
    if path.startswith("file:"):
        return re.sub(r"^file:/*", "/", path)
    return None if has_scheme(path) else path


def _list_topics(spec: StreamSpec | TableSpec | SinkSpec) -> set[tuple[str, str]]:
    """Return the topics of a stream or sink, each with its brokers."""
    topic = spec.connector.get("topic") if spec.connector.get("connector") == "kafka" else None
    servers = str(spec.connector.get("bootstrap.servers"))
    return {(servers, name.strip()) for name in str(topic).split(",")} if topic else set()


def _resolve(path: Path) -> Parts:
    try:
        return Path(os.path.realpath(path)).parts
    except OSError:  # a link that may not be read
        return Path(os.path.normpath(path)).parts


def _list_places(path: str, root: Path) -> Iterator[Parts]:
    """Yield what a stream or table reads: a file or folder, or the patterns that its path stands for."""
    if not _SIGNS.search(path) or os.path.exists(root / path):  # noqa: PTH110  # no error for a name that is too long
        yield _resolve(root / path)
        return
    for pattern in islice(_expand_groups(path), _MAX_PATHS):
        parts = (root / _translate(pattern)).parts
        fixed = next((i for i, part in enumerate(parts) if _SIGNS.search(part)), len(parts))
        start = Path(*_resolve(Path(*parts[:fixed])))
        yield (*start.parts, *parts[fixed:])
        for match in islice(glob.iglob(str(start.joinpath(*parts[fixed:]))), _MAX_MATCHES):  # noqa: PTH207  # Path.glob takes no absolute pattern
            if os.path.islink(match):  # noqa: PTH114  # iglob yields strings
                yield _resolve(Path(match))


def _expand_groups(pattern: str) -> Iterator[str]:
    """Yield the patterns that a pattern with groups stands for: ``{a,b}/x`` is ``a/x`` and ``b/x``."""
    group = _GROUP.search(pattern)
    if group is None:
        yield pattern
        return
    for choice in group[1].split(","):
        yield from _expand_groups(pattern[: group.start()] + choice + pattern[group.end() :])


def _translate(pattern: str) -> str:
    """Return a pattern of Hadoop as Python writes it: ``[!a]`` for ``[^a]``, ``[*]`` for an escaped star."""
    pattern = re.sub(r"(?<!\\)\[\^", "[!", pattern)
    return re.sub(r"\\(.)", lambda sign: f"[{sign[1]}]" if _SIGNS.match(sign[1]) else sign[1], pattern)


def _is_prefix(one: Parts, other: Parts) -> bool:
    return other[: len(one)] == one


def _is_read(folder: Parts, place: Parts, form: str) -> bool:
    """Return whether input and output mix when a job writes files of a format to a folder and reads a place."""
    if len(place) > len(folder):
        if _is_prefix(folder, place):
            return True
        # A pattern of files reads the sink only if it matches the names of its files.
        folder = (*folder, f"part-0123abcd-000000-00000.{form}")
        return len(place) == len(folder) and _matches(folder, place)
    inside = folder[len(place) :]
    return _matches(folder, place) and not any(part.startswith(_HIDDEN) and "=" not in part for part in inside)


def _matches(path: Parts, pattern: Parts) -> bool:
    return all(a == b or fnmatchcase(a, b) for a, b in zip(path, pattern, strict=False))
