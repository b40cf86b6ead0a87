"""The offsets of Spark: its half of a checkpoint, recorded in every commit and compared at every start.

::

    spark/metadata       id of the query
    spark/offsets/4      planned: up to where batch 4 reads each source, {"logOffset": 3} for files
    spark/commits/4      done, written after the commit of the batch
    spark/sources/0/4    files of source 0, one entry for each portion; 9.compact holds those up to 9

Spark and Weft number batches together.  A committed batch is skipped when Spark repeats it, so a
checkpoint whose halves are of different times would skip rows that were never read.

Spark's file source logs its next files, source by source, before the offsets of the whole batch are written.  A
process that ends in between would find entry 4 after a restart and add one portion to the batch: rows that should be
late would be on time.  `drop_unplanned` removes such entries, and the source lists the same files again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from weft.core.frozen import EMPTY, FrozenMap
from weft.core.names import format_list
from weft.errors import StreamError
from weft.io.stores.store_path import Place
from weft.streams.checkpoint.folder import FRESH, Checkpoint, move_file, read_job_record
from weft.streams.checkpoint.manifest import Manifest, last_manifest, list_batches

VERSION = "v1"
NO_OFFSET = "-"
"""Offset of a source without rows so far."""

_FIRST_OFFSET = 2  # after the version and the settings
_NO_ENTRY = -1
_APART = f"files of the checkpoint were removed or restored separately: {FRESH}"
_COMPACT = ".compact"
_ENTRY = re.compile(r'"batchId"\s*:\s*(\d+)')


def list_entries(folder: Place) -> dict[int, Place]:
    """Return the entries of a log of Spark by number, in order; the name may end with ``.compact``."""
    if not folder.is_dir():
        return {}
    names = {p.name.removesuffix(_COMPACT): p for p in folder.iterdir()}
    return {int(name): names[name] for name in sorted((n for n in names if n.isdigit()), key=int)}


def planned_offsets(spark: Place, batch: int) -> tuple[str, ...] | None:
    """Return the offsets that Spark planned for a batch, one for each source; None when there is no such plan."""
    try:
        lines = (spark / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    return tuple(lines[_FIRST_OFFSET:]) if lines[:1] == [VERSION] else ()


def parse_entry(offset: str) -> int | None:
    """Return the log entry of an offset of a file source: -1 for none, None for other kinds of sources.

    >>> parse_entry('{"logOffset":3}'), parse_entry("-"), parse_entry('{"orders":{"0":7}}')
    (3, -1, None)
    """
    if offset == NO_OFFSET:
        return _NO_ENTRY
    known = _parse_json(offset)
    return int(known["logOffset"]) if isinstance(known, dict) and set(known) == {"logOffset"} else None


def describe_reading(spark: Place, batch: int) -> FrozenMap[str, Any]:
    """Return what Spark planned a batch to read: `query`, offsets `since` and `until`, and `files` of file sources.

    Files are recorded as their number and a hash of Spark's log entries.
    """
    until = planned_offsets(spark, batch)
    if until is None:
        return EMPTY
    since = planned_offsets(spark, batch - 1) or (NO_OFFSET,) * len(until)
    return FrozenMap(query=_read_query_id(spark), since=since, until=until, files=_hash_files(spark, since, until))


def check_offsets(checkpoint: Checkpoint) -> None:
    """Raise `StreamError` W2202 when Spark's offsets and the commits of a checkpoint are not of the same time."""
    check_commits(checkpoint)
    last, batch = _last_commit(checkpoint)
    if last is not None and last.final:
        return  # no rows are read after the end of the input
    # Spark plans a batch, Weft commits it, Spark records that it is done.  A kill at any point leaves planned in
    # (batch, batch + 1) and done in (batch - 1, batch); everything else is not the result of a kill.
    done = max(list_entries(checkpoint.spark / "commits"), default=-1)
    planned = max(list_entries(checkpoint.spark / "offsets"), default=-1)
    if done > batch or planned > batch + 1:
        raise _mismatch_error(checkpoint, max(done, planned - 1), batch, "the commits are older, or some are missing")
    if batch >= 0 and planned < batch:
        why = "'spark' is missing" if planned < 0 else "'spark' is older"
        raise _mismatch_error(checkpoint, planned, batch, f"{why}: rows that were read would be read again or skipped")
    if done < batch - 1:
        raise _mismatch_error(checkpoint, done, batch, "'spark/commits' is older, or some of its files are missing")
    if last is not None:
        check_reading(checkpoint, last)
    _check_sources(checkpoint)


def check_commits(checkpoint: Checkpoint) -> None:
    """Raise `StreamError` W2202 when a commit before the last one is missing.

    Commits list the files of the sink: without one of them a redrive after the end would write its rows again.
    """
    batches = list_batches(checkpoint.commits)
    missing = sorted({*range(read_job_record(checkpoint).first_batch, max(batches, default=-1))} - {*batches})
    if missing:
        raise StreamError(
            f"{str(checkpoint.commits)!r} has commits up to batch {batches[-1]}, but none of "
            f"{'batch' if len(missing) == 1 else 'batches'} {format_list(missing)}",
            code="W2202",
            help=_APART,
        )


def _check_sources(checkpoint: Checkpoint) -> None:
    """Raise unless the log of each file source holds every entry up to the newest plan.

    A commit says only what its own batch read.  Without older entries Spark lists all files again under the numbers
    that it takes for read: new files among them would never be read.
    """
    for number, last in enumerate(_planned_entries(checkpoint.spark) or ()):
        if last is not None and not _is_complete(list_entries(checkpoint.spark / "sources" / str(number)), last):
            raise StreamError(
                f"a half of the checkpoint {str(checkpoint.root)!r} is incomplete: 'spark/sources/{number}' does not list"
                f" all files of the plan, which has {last + 1} entries of it",
                code="W2202",
                help=f"files of the checkpoint were removed or restored apart from each other: {FRESH}",
            )


def check_reading(checkpoint: Checkpoint, commit: Manifest) -> None:
    """Raise `StreamError` W2202 if Spark's plan of a committed batch differs from its commit."""
    known = commit.read
    if not known:  # written by a version that did not record it
        return
    spark = checkpoint.spark
    now = planned_offsets(spark, commit.batch)
    if now is None:
        why = "Spark has no plan of it"
    elif _read_query_id(spark) != known["query"]:
        why = f"Spark's offsets are of the query {_read_query_id(spark)}, the commit is of {known['query']}"
    elif _trim(now) != _trim(known["until"]):
        why = f"Spark planned to read up to {_format_offsets(now)}, the commit read up to {_format_offsets(known['until'])}"
    elif _trim(_hash_files(spark, known["since"], known["until"])) != _trim(known["files"]):
        # Offsets of file sources are only numbers of log entries, so equal offsets may mean other files.
        why = "the files that Spark lists for it in 'spark/sources' are not those of the commit"
    else:
        return
    raise StreamError(
        f"the halves of the checkpoint {str(checkpoint.root)!r} disagree about batch {commit.batch}: {why}",
        code="W2202",
        help=_APART,
    )


def _last_commit(checkpoint: Checkpoint) -> tuple[Manifest | None, int]:
    """Return the last commit and its batch; before the first one, that of the checkpoint whose offsets it took over."""
    last = last_manifest(checkpoint)
    if last is not None:
        return last, last.batch
    record = read_job_record(checkpoint)
    if record.follows is not None:
        earlier = Checkpoint(checkpoint.root.parent / record.follows)
        last = last_manifest(earlier)
    return (last if last is not None and last.batch == record.first_batch - 1 else None), record.first_batch - 1


def _read_query_id(spark: Place) -> str:
    try:
        return str(json.loads((spark / "metadata").read_text(encoding="utf-8"))["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _hash_files(spark: Place, since: Sequence[str], until: Sequence[str]) -> tuple[str, ...]:
    """Return for each source how many files a batch read and a hash of their entries; empty for other sources."""
    hashes = []
    for number, (low, high) in enumerate(zip(_pad(since, len(until)), until, strict=True)):
        first, last = parse_entry(low), parse_entry(high)
        if first is None or last is None:
            hashes.append("")
            continue
        # Sorted: a compacted file may have the lines of an entry in another order.
        lines = sorted(_iter_lines(list_entries(spark / "sources" / str(number)), first, last))
        digest = hashlib.blake2b("\n".join(lines).encode(), digest_size=12).hexdigest()
        hashes.append(f"{len(lines)} {digest}")
    return tuple(hashes)


def _iter_lines(entries: dict[int, Place], first: int, last: int) -> Iterable[str]:
    """Yield the lines of the entries after `first` up to `last`, also from compacted files."""
    for number in range(first + 1, last + 1):
        # Spark deletes entries some time after a compacted file has gathered them.
        place = entries.get(number) or next(
            (p for n, p in entries.items() if n > number and p.suffix == _COMPACT), None
        )
        if place is None:
            continue
        for line in place.read_text(encoding="utf-8", errors="replace").splitlines()[1:]:
            of = _ENTRY.search(line)
            if of is not None and int(of[1]) == number:
                yield line


def _pad(offsets: Sequence[str], count: int) -> tuple[str, ...]:
    return (*offsets, *(NO_OFFSET,) * (count - len(offsets)))[:count]


def _trim(offsets: Sequence[str]) -> tuple[str, ...]:
    """Return offsets without trailing sources that have no rows: a source may have been added later."""
    kept = list(offsets)
    while kept and kept[-1] in (NO_OFFSET, "", _NO_FILES):
        kept.pop()
    return tuple(kept)


_NO_FILES = f"0 {hashlib.blake2b(b'', digest_size=12).hexdigest()}"


def _format_offsets(offsets: Sequence[str]) -> str:
    return ", ".join(offsets) or "nothing"


def _mismatch_error(checkpoint: Checkpoint, reached: int, batch: int, why: str) -> StreamError:
    ends = ["before the first batch" if b < 0 else f"with batch {b}" for b in (reached, batch)]
    return StreamError(
        f"Spark's offsets in {str(checkpoint.spark)!r} end {ends[0]}, the commits of the checkpoint {ends[1]}: {why}",
        code="W2202",
        help=_APART,
    )


def drop_unplanned(checkpoint: Place) -> None:
    """Remove log entries of file sources that belong to no planned batch; no query may be running."""
    planned = _planned_entries(checkpoint)
    for number, source in list_entries(checkpoint / "sources").items():
        if planned is not None and number >= len(planned):
            continue  # a source that the newest plan does not have yet
        last = _NO_ENTRY if planned is None else planned[number]
        entries = list_entries(source)
        if last is None or not _is_complete(entries, last):
            continue
        beyond = [entry for n, entry in entries.items() if n > last]
        # Other sources keep other things there: only files that are certainly logs of file sources are removed.
        if all(map(_is_file_entry, beyond)):
            # The newest first, so that a kill in between leaves no gap, which Spark would refuse.
            for entry in reversed(beyond):
                # Hadoop verifies a file with the checksum beside it; one of a removed entry would fail the next one.
                entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)
                entry.unlink()


def count_sources(checkpoint: Place) -> int | None:
    """Return how many sources the newest plan of a checkpoint has, None before the first plan."""
    plans = list_entries(checkpoint / "offsets")
    return len(planned_offsets(checkpoint, max(plans)) or ()) if plans else None


def add_source(checkpoint: Place) -> None:
    """Add a source without rows to the newest plans of a checkpoint.

    Spark reads the last two: the newest one, and the one before it if the newest is not finished.
    """
    plans = list_entries(checkpoint / "offsets")
    for number in sorted(plans)[-2:]:
        plan = plans[number]
        beside = plan.with_name(f".tmp-{plan.name}")
        beside.write_text(f"{plan.read_text(encoding='utf-8').rstrip()}\n{NO_OFFSET}", encoding="utf-8")
        plan.with_name(f".{plan.name}.crc").unlink(missing_ok=True)
        move_file(beside, plan)


def _is_complete(entries: dict[int, Place], last: int) -> bool:
    """Return whether the entries up to the last one list every file without later ones."""
    number = last
    while number > _NO_ENTRY and number in entries:
        if entries[number].suffix == _COMPACT:
            return True
        number -= 1
    return number == _NO_ENTRY


def _planned_entries(checkpoint: Place) -> list[int | None] | None:
    """Return the last entry of each source that the newest plan has: None for another kind, and before any plan."""
    plans = list_entries(checkpoint / "offsets")
    if not plans:
        return None
    return [parse_entry(offset) for offset in planned_offsets(checkpoint, max(plans)) or ()]


def _is_file_entry(entry: Place) -> bool:
    lines = entry.read_text(encoding="utf-8").splitlines()
    files = [_parse_json(line) for line in lines[1:]]
    return lines[:1] == [VERSION] and all(isinstance(f, dict) and {"path", "batchId"} <= set(f) for f in files)


def _parse_json(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
