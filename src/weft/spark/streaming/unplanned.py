"""Files that Spark had noted for a batch it never planned: given back before a query goes on.

Spark's file source writes down its next files, source by source, before the batch as a whole has its offsets::

    spark/sources/0/4    noted, one entry for each portion of files
    spark/offsets/3      planned: {"logOffset": 3} for source 0

A process that ends in between would find entry 4 noted when it starts again and take one portion more into the
batch: rows that would have been late would come in time.  Without the entry the source lists the same files again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_VERSION = "v1"
_FIRST_OFFSET = 2  # after the version and the settings
_NOTHING = -1


def give_back(checkpoint: Path) -> None:
    """Remove the entries of file sources that no planned batch has, from a checkpoint that no query uses."""
    planned = _planned(checkpoint / "offsets")
    for source in _numbered(checkpoint / "sources"):
        entries = _numbered(source)
        if planned is not None and int(source.name) >= len(planned):
            continue
        last = _NOTHING if planned is None else planned[int(source.name)]
        beyond = [e for e in entries if last is not None and int(e.name) > last]
        # An entry that gathers older ones (4.compact) may be all that is left of them: it stays, with what follows.
        if not beyond or _has_gathered(source, last) or not all(map(_is_of_files, beyond)):
            continue
        for entry in reversed(beyond):
            entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)
            entry.unlink()


def _planned(folder: Path) -> list[int | None] | None:
    """Return the last entry of each source that the newest plan has: None for another kind, and before any plan."""
    plans = _numbered(folder)
    if not plans:
        return None
    lines = plans[-1].read_text(encoding="utf-8").splitlines()
    return [_entry(line) for line in lines[_FIRST_OFFSET:]] if lines[:1] == [_VERSION] else []


def _entry(line: str) -> int | None:
    if line == "-":  # the source has given nothing so far
        return _NOTHING
    found = _document(line)
    return int(found["logOffset"]) if isinstance(found, dict) and set(found) == {"logOffset"} else None


def _numbered(folder: Path) -> list[Path]:
    """Return what a folder holds under a number, in the order of the numbers."""
    if not folder.is_dir():
        return []
    return sorted((p for p in folder.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))


def _has_gathered(source: Path, last: int | None) -> bool:
    numbers = [p.name.removesuffix(".compact") for p in source.glob("*.compact")]
    return any(n.isdigit() and last is not None and int(n) > last for n in numbers)


def _is_of_files(entry: Path) -> bool:
    lines = entry.read_text(encoding="utf-8").splitlines()
    files = [_document(line) for line in lines[1:]]
    return lines[:1] == [_VERSION] and all(
        isinstance(f, dict) and {"path", "batchId"} <= set(f) for f in files
    )


def _document(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
