"""Files that Spark had noted for a batch it never planned: given back before a query goes on.

Spark's file source writes down its next files, source by source, before the batch as a whole has its offsets::

    spark/sources/0/4    noted, one entry for each portion of files; 9.compact holds those up to 9
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
_GATHERED = ".compact"


def give_back(checkpoint: Path) -> None:
    """Remove the entries of file sources that no planned batch has, from a checkpoint that no query uses."""
    planned = _planned(checkpoint / "offsets")
    for number, source in _numbered(checkpoint / "sources").items():
        if planned is not None and number >= len(planned):
            continue
        last = _NOTHING if planned is None else planned[number]
        entries = _numbered(source)
        if last is None or not _is_whole(entries, last):
            continue
        beyond = [entry for n, entry in entries.items() if n > last]
        if all(map(_is_of_files, beyond)):
            for entry in reversed(beyond):
                entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)
                entry.unlink()


def _is_whole(entries: dict[int, Path], last: int) -> bool:
    """Whether the entries up to the last one tell of every file, without any that comes after."""
    number = last
    while number > _NOTHING and number in entries:
        if entries[number].suffix == _GATHERED:
            return True
        number -= 1
    return number == _NOTHING


def _planned(folder: Path) -> list[int | None] | None:
    """Return the last entry of each source that the newest plan has: None for another kind, and before any plan."""
    plans = _numbered(folder)
    if not plans:
        return None
    lines = plans[max(plans)].read_text(encoding="utf-8").splitlines()
    return [_entry(line) for line in lines[_FIRST_OFFSET:]] if lines[:1] == [_VERSION] else []


def _entry(line: str) -> int | None:
    if line == "-":  # the source has given nothing so far
        return _NOTHING
    found = _document(line)
    return int(found["logOffset"]) if isinstance(found, dict) and set(found) == {"logOffset"} else None


def _numbered(folder: Path) -> dict[int, Path]:
    """Return what a folder holds under a number, in the order of the numbers."""
    if not folder.is_dir():
        return {}
    found = {p.name.removesuffix(_GATHERED): p for p in folder.iterdir()}
    return {int(name): found[name] for name in sorted((n for n in found if n.isdigit()), key=int)}


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
