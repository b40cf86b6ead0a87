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

from weft.streams.checkpoint.offsets import NOTHING, VERSION, entry_of, numbered, planned_offsets

_NOTHING = -1
_GATHERED = ".compact"


def give_back(checkpoint: Path) -> None:
    """Remove the entries of file sources that no planned batch has, from a checkpoint that no query uses."""
    planned = _planned(checkpoint)
    for number, source in numbered(checkpoint / "sources").items():
        if planned is not None and number >= len(planned):
            continue
        last = _NOTHING if planned is None else planned[number]
        entries = numbered(source)
        if last is None or not _is_whole(entries, last):
            continue
        beyond = [entry for n, entry in entries.items() if n > last]
        if all(map(_is_of_files, beyond)):
            for entry in reversed(beyond):
                entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)
                entry.unlink()


def planned_sources(checkpoint: Path) -> int | None:
    """Return how many sources the newest plan of a checkpoint has, None before the first plan."""
    plans = numbered(checkpoint / "offsets")
    return len(planned_offsets(checkpoint, max(plans)) or ()) if plans else None


def add_source(checkpoint: Path) -> None:
    """Let the newest plans of a checkpoint have one source more, which has given nothing so far.

    Spark reads the last two: the newest one, and the one before it when the newest is not done.
    """
    plans = numbered(checkpoint / "offsets")
    for number in sorted(plans)[-2:]:
        plan = plans[number]
        beside = plan.with_name(f".tmp-{plan.name}")
        beside.write_text(f"{plan.read_text(encoding='utf-8').rstrip()}\n{NOTHING}", encoding="utf-8")
        plan.with_name(f".{plan.name}.crc").unlink(missing_ok=True)
        beside.replace(plan)


def _is_whole(entries: dict[int, Path], last: int) -> bool:
    """Whether the entries up to the last one tell of every file, without any that comes after."""
    number = last
    while number > _NOTHING and number in entries:
        if entries[number].suffix == _GATHERED:
            return True
        number -= 1
    return number == _NOTHING


def _planned(checkpoint: Path) -> list[int | None] | None:
    """Return the last entry of each source that the newest plan has: None for another kind, and before any plan."""
    plans = numbered(checkpoint / "offsets")
    if not plans:
        return None
    return [entry_of(offset) for offset in planned_offsets(checkpoint, max(plans)) or ()]


def _is_of_files(entry: Path) -> bool:
    lines = entry.read_text(encoding="utf-8").splitlines()
    files = [_document(line) for line in lines[1:]]
    return lines[:1] == [VERSION] and all(
        isinstance(f, dict) and {"path", "batchId"} <= set(f) for f in files
    )


def _document(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
