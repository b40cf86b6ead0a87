"""The state of a join in files that never change, and what a batch adds to them.

::

    state/j<join>/<batch>-<task>-<attempt>-left.arrow     new or rewritten rows: __hash, __time, [__batch], children
                                          -left.flags     flags that changed: file, place of the row in it, flag
                                          -left.sessions  start and end of each row's session
                                          -left.seen      keys by which duplicates are detected
    rejects/<side>/<batch>-j<join>-<task>.<attempt>.parquet

A task reports what it wrote, and the commit of the batch lists it; what no commit lists does not exist.  An entry of
that list is the state of one range of hashes::

    {"join": 1, "first": .., "last": .., "batch": 7, "clock": [l, r],
     "left": {"segments": [{"path", "start", "rows", "batch", "min", "max", "bytes", "sum"}],
              "flags": [{"path", "sum", "count"}], "sessions": {"path", "sum"}, "seen": {"path", "sum"}}, "right": ..}

`start` is the first row of the range in the file: after a change of the number of tasks several of them share a file.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weft.streams.kernel.gate import ROUTE, RejectRows, reject_table
from weft.streams.kernel.ranges import ALL, HashRange
from weft.streams.kernel.segments import DEAD, Flags, Segment, find_merge_start
from weft.streams.kernel.spec import (
    MATCHED,
    Clock,
    Counters,
    Entry,
    JoinTask,
    Side,
    SideStats,
    checked_files,
    checksum,
    list_files,
)
from weft.streams.kernel.state_store import StateFiles, damaged_state
from weft.streams.kernel.transition import GroupState, empty_state
from weft.streams.kernel.working import SideState, StateFile

HASH, TIME, BATCH = "__hash", "__time", "__batch"
SIDES: tuple[Side, Side] = ("left", "right")
MAX_FLAG_FILES = 8
"""More files with flags than this are merged."""


@dataclass(frozen=True, slots=True)
class JoinFolder:
    """The folder with the state of one join."""

    store: StateFiles
    join: int

    def name(self, path: str) -> str:
        """Return the name of a file below the checkpoint; paths in entries are relative to the folder of the join."""
        return f"state/j{self.join}/{path}"

    def read(self, path: str) -> Any:
        """Return the content of a file."""
        return self.store.read(self.name(path))

    def damaged(self, path: str, why: str) -> Exception:
        """Return the error for a file that cannot be used."""
        return damaged_state(self.store.path(self.name(path)), why)


# -- reading


def open_state(
    place: JoinFolder, entries: Iterable[Entry], keys: HashRange, task: JoinTask, left_schema: Any, right_schema: Any
) -> GroupState:
    """Return the state of a range of hashes after a batch, or an empty one if there are no entries.

    The entries may be of other ranges: each gives what it has of this one.  The schemas are those of the children;
    the files must have the same.
    """
    mine = [entry for entry in entries if entry["join"] == place.join and range_of_entry(entry).meets(keys)]
    if not mine:
        return empty_state(task, left_schema, right_schema)
    _check_files(place, mine, keys)
    pieces: dict[Side, list[SideState]] = {"left": [], "right": []}
    for entry in mine:
        is_own = range_of_entry(entry) == keys and len(mine) == 1 and "full" not in (*entry["left"], *entry["right"])
        for side, schema in zip(SIDES, (left_schema, right_schema), strict=True):
            one = _open_side(place, entry[side], schema, has_sessions=task.reach.kind == "session")
            pieces[side].append(one if is_own else _cut_side(one, keys))
    left, right = (_start_counting(_join_sides(pieces[side])) for side in SIDES)
    ticks = mine[0]["clock"]
    return GroupState(left=left, right=right, clock=Clock(left=ticks[0], right=ticks[1]), batch=mine[0]["batch"])


def range_of_entry(entry: Entry) -> HashRange:
    """Return the range of hashes that an entry is the state of."""
    return HashRange(entry["first"], entry["last"])


def _check_files(place: JoinFolder, entries: Sequence[Entry], keys: HashRange) -> None:
    """Raise W2202 if a state file does not match its checksum; files of earlier versions may have none."""
    sums = {path: known for entry in entries for path, known in list_files(entry).items() if known}
    # Replaced rather than extended: what a worker remembers must not grow with the number of batches.
    folder = place.store.path(place.name(str(keys.first)))
    known = checked_files().get(folder, {})
    for path, expected in sums.items():
        if known.get(path) != expected and checksum(place.read(path)) != expected:
            # A copy on this machine may be what a power cut left of it.
            place.store.forget(place.name(path))
            if checksum(place.read(path)) != expected:
                raise place.damaged(path, "its content does not match its checksum")
    checked_files()[folder] = sums


def _open_side(place: JoinFolder, entry: Entry, schema: Any, *, has_sessions: bool) -> SideState:
    segments = [_open_segment(place, one, schema) for one in entry["segments"]]
    flags = _read_flags(place, entry, segments)
    sessions = _read_sessions(place, entry, segments) if has_sessions else None
    seen, session = entry.get("seen"), entry.get("sessions")
    return SideState(
        schema=schema,
        segments=tuple(segments),
        flags=tuple(flags),
        stored=tuple(flags),
        sessions=sessions,
        seen=None if seen is None else _with_routes(_read_table(place, seen["path"])),
        flag_files=tuple(StateFile(path=f["path"], sum=f["sum"], count=f["count"]) for f in entry["flags"]),
        session_file=None if session is None else StateFile(path=session["path"], sum=session["sum"]),
        seen_file=None if seen is None else StateFile(path=seen["path"], sum=seen["sum"]),
    )


def _cut_side(whole: SideState, keys: HashRange) -> SideState:
    """Return what a side has in a range; nothing but the rows themselves can be shared with other ranges."""
    segments, flags, sessions = [], [], []
    for number, segment in enumerate(whole.segments):
        start, stop = keys.cut(segment.hashes)
        if start == stop:
            continue
        segments.append(_slice_segment(segment, start, stop))
        flags.append(whole.flags[number][start:stop])
        if whole.sessions is not None:
            sessions.append(whole.sessions[number][:, start:stop])
    seen = whole.seen
    if seen is not None:
        routes = seen.column(ROUTE)
        here = pc.and_(pc.greater_equal(routes, keys.first), pc.less_equal(routes, keys.last))
        # Unknown routes are kept by every range: a key that none of its rows can have does no harm.
        seen = seen.filter(pc.fill_null(here, fill_value=True))
    return SideState(
        schema=whole.schema,
        segments=tuple(segments),
        flags=tuple(flags),
        stored=(None,) * len(segments),
        sessions=None if whole.sessions is None else tuple(sessions),
        seen=seen,
    )


def _join_sides(pieces: Sequence[SideState]) -> SideState:
    """Return the pieces of a range as one side."""
    if len(pieces) == 1:
        return pieces[0]
    first = pieces[0]
    seen = [piece.seen for piece in pieces if piece.seen is not None]
    whole = pa.concat_tables(seen).combine_chunks() if seen else None
    if whole is not None and whole.column(ROUTE).null_count:
        whole = pa.TableGroupBy(whole, whole.column_names, use_threads=False).aggregate([])
    return replace(
        first,
        segments=tuple(s for piece in pieces for s in piece.segments),
        flags=tuple(f for piece in pieces for f in piece.flags),
        stored=tuple(f for piece in pieces for f in piece.stored),
        sessions=None if first.sessions is None else tuple(s for piece in pieces for s in piece.sessions or ()),
        seen=whole,
    )


def _start_counting(side: SideState) -> SideState:
    """Return a side whose counters begin with the rows that wait, counted from their flags."""
    waiting = sum(int(np.count_nonzero((flags & (DEAD | MATCHED)) == 0)) for flags in side.flags)
    return replace(side, counters=Counters(in_=waiting, waiting=waiting))


def _open_segment(place: JoinFolder, entry: Entry, schema: Any) -> Segment:
    table = _read_table(place, entry["path"])
    start, count = entry["start"], entry["rows"]
    if table.num_rows < start + count:
        raise place.damaged(entry["path"], f"it has {table.num_rows} rows, {start + count} are listed")
    own = [n for n in (HASH, TIME, BATCH) if n in table.column_names]
    rows = table.select(table.column_names[len(own) :])
    if schema is None:
        schema = rows.schema
    if rows.schema.names != schema.names or rows.schema.types != schema.types:
        raise place.damaged(entry["path"], f"it has the columns {rows.schema.names}, the join {schema.names}")
    whole = Segment(
        hashes=table.column(HASH).chunk(0).to_numpy(),
        times=table.column(TIME).chunk(0).to_numpy(),
        rows=rows.cast(schema) if rows.schema != schema else rows,  # only nullability can differ
        batch=entry["batch"],
        batches=table.column(BATCH).chunk(0).to_numpy() if BATCH in own else None,
        path=entry["path"],
        sum=entry["sum"],
        least=entry["min"],
        greatest=entry["max"],
        bytes=entry["bytes"],
    )
    if count == table.num_rows:
        return whole
    return replace(_slice_segment(whole, start, start + count), bytes=entry["bytes"])


def _slice_segment(segment: Segment, start: int, stop: int) -> Segment:
    if stop - start == len(segment):
        return segment
    return replace(
        segment,
        hashes=segment.hashes[start:stop],
        times=segment.times[start:stop],
        rows=segment.rows.slice(start, stop - start),
        batches=None if segment.batches is None else segment.batches[start:stop],
        start=segment.start + start,
        bytes=segment.bytes * (stop - start) // len(segment),
    )


def _read_flags(place: JoinFolder, entry: Entry, segments: Sequence[Segment]) -> list[Flags]:
    if "full" in entry:  # a byte for each row, as earlier versions wrote them
        content = _read_array(place, entry["full"]["path"], np.uint8, (sum(map(len, segments)),))
        return list(np.split(content, np.cumsum([len(s) for s in segments])[:-1])) if segments else []
    flags = [np.zeros(len(segment), dtype=np.uint8) for segment in segments]
    for file in entry["flags"]:
        changes = _read_changes(place, file["path"])
        for segment, mine in zip(segments, flags, strict=True):
            places, values = changes.of(segment)
            mine[places - segment.start] = values
    return flags


def _read_sessions(place: JoinFolder, entry: Entry, segments: Sequence[Segment]) -> tuple[Any, ...]:
    if not segments:
        return ()
    shape = (2, sum(map(len, segments)))
    spans = _read_array(place, entry["sessions"]["path"], np.int64, shape)
    return tuple(np.split(spans, np.cumsum([len(s) for s in segments])[:-1], axis=1))


def _read_array(place: JoinFolder, path: str, kind: Any, shape: tuple[int, ...]) -> Any:
    content = np.frombuffer(place.read(path), dtype=np.uint8)
    if content.nbytes != int(np.prod(shape)) * np.dtype(kind).itemsize:
        raise place.damaged(path, f"it has {content.nbytes} bytes for {shape[-1]} rows")
    return content.view(kind).reshape(shape)


def _read_table(place: JoinFolder, path: str) -> Any:
    try:
        with pa.ipc.open_file(place.read(path)) as file:
            return file.read_all()
    except (pa.ArrowException, OSError) as cause:
        raise place.damaged(path, str(cause)) from cause


def _with_routes(seen: Any) -> Any:
    """Return the keys of `seen` with their routes; earlier versions did not store them."""
    return seen if ROUTE in seen.column_names else seen.append_column(ROUTE, pa.nulls(seen.num_rows, pa.int64()))


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """Flags that changed: for each, the number of its file in `paths`, the place of its row there, and its value."""

    paths: tuple[str, ...]
    files: Any
    places: Any
    values: Any

    def of(self, segment: Segment) -> tuple[Any, Any]:
        """Return the changes of a segment's rows."""
        if segment.path not in self.paths:
            return self.places[:0], self.values[:0]
        here = (self.files == self.paths.index(segment.path)) & (self.places >= segment.start)
        here &= self.places < segment.start + len(segment)
        return self.places[here], self.values[here]


def _read_changes(place: JoinFolder, path: str) -> _Changes:
    table = _read_table(place, path)
    paths = tuple(json.loads(table.schema.metadata[b"paths"]))
    files, places, values = (table.column(name).combine_chunks().to_numpy() for name in ("file", "place", "flag"))
    return _Changes(paths, files, places, values)


# -- writing


@dataclass(frozen=True, slots=True, eq=False)
class _Attempt:
    """Writes the files of one attempt of a task; no other attempt uses their names."""

    place: JoinFolder
    batch: int
    task: int
    id: str

    def write(self, ending: str, put: Any) -> StateFile:
        path = f"{self.batch}-{self.task}-{self.id}-{ending}"
        return StateFile(path=path, sum=self.place.store.create(self.place.name(path), put))

    def write_table(self, ending: str, table: Any) -> StateFile:
        return self.write(ending, partial(_put_table, table))


def save_state(
    place: JoinFolder,
    before: GroupState,
    state: GroupState,
    rejects: Sequence[RejectRows] = (),
    *,
    watermark: int,
    keys: HashRange = ALL,
    task: int = 0,
) -> tuple[GroupState, dict[str, Any]]:
    """Write what a batch changed; return the state with its files, and the report for the commit of the batch."""
    attempt = _Attempt(place, state.batch, task, uuid.uuid4().hex[:12])
    rejected = save_rejects(place, rejects, state.batch, watermark, task=task, attempt=attempt.id)
    left, right = (_save_side(attempt, state.side(side), side) for side in SIDES)
    saved = replace(state, left=left, right=right)
    entry: dict[str, Any] = {
        "join": place.join,
        "first": keys.first,
        "last": keys.last,
        "batch": state.batch,
        "clock": [state.clock.left, state.clock.right],
        **{side: _describe_side(saved.side(side)) for side in SIDES},
    }
    return saved, {
        "join": place.join,
        "task": task,
        "batch": state.batch,
        "state": entry,
        "counters": {s: _subtract(before.side(s).counters, state.side(s).counters) for s in SIDES},
        "waited": {s: before.side(s).counters.waiting for s in SIDES},
        "stats": {s: count_batch(before.side(s).stats, state.side(s).stats) for s in SIDES},
        "rejects": rejected,
    }


def _save_side(attempt: _Attempt, mine: SideState, side: Side) -> SideState:
    segments = []
    for number, segment in enumerate(mine.segments):
        if segment.path:
            segments.append(segment)
            continue
        ending = f"{side}.arrow" if number == len(mine.segments) - 1 else f"{side}.{number}.arrow"
        file = attempt.write_table(ending, _storage_table(segment))
        segments.append(replace(segment, path=file.path, sum=file.sum))
    session, seen = mine.session_file, mine.seen_file
    if mine.sessions and session is None:
        content = np.ascontiguousarray(np.concatenate(mine.sessions, axis=1))
        session = attempt.write(f"{side}.sessions", lambda stream: stream.write(content.tobytes()))
    if mine.seen is not None and seen is None:
        seen = attempt.write_table(f"{side}.seen", mine.seen)
    saved = replace(
        mine,
        segments=tuple(segments),
        session_file=session if mine.sessions else None,
        seen_file=seen if mine.seen is not None else None,
    )
    return replace(saved, flag_files=_save_flags(attempt, saved, side), stored=saved.flags)


def _save_flags(attempt: _Attempt, mine: SideState, side: Side) -> tuple[StateFile, ...]:
    """Write the flags that differ from the stored ones, and merge files of few flags."""
    if not any(len(flags) for flags in mine.flags):
        return ()
    changes = [_find_changes(s, f, old) for s, f, old in zip(mine.segments, mine.flags, mine.stored, strict=True)]
    count = sum(len(places) for _, places, _ in changes)
    if not count:
        return mine.flag_files
    kept: tuple[StateFile, ...] = mine.flag_files
    if len(kept) >= MAX_FLAG_FILES:
        first = find_merge_start([*(file.count for file in kept), count])
        older = [_read_changes(attempt.place, file.path) for file in kept[first:]]
        earlier = [(s.path, *old.of(s)) for old in older for s in mine.segments]
        changes, kept = [*earlier, *changes], kept[:first]
    table = _changes_table(changes)
    file = attempt.write_table(f"{side}.flags", table)
    return (*kept, replace(file, count=table.num_rows))


def _find_changes(segment: Segment, flags: Flags, stored: Flags | None) -> tuple[str, Any, Any]:
    places = np.flatnonzero(flags if stored is None else flags != stored)
    return segment.path, places + segment.start, flags[places]


def _changes_table(changes: Sequence[tuple[str, Any, Any]]) -> Any:
    """Return changes as a table; the last one of a row counts."""
    paths = list(dict.fromkeys(path for path, places, _ in changes if len(places)))
    numbers = {path: number for number, path in enumerate(paths)}
    files = np.concatenate([np.full(len(p), numbers.get(path, 0), dtype=np.int32) for path, p, _ in changes])
    places = np.concatenate([p for _, p, _ in changes]).astype(np.int64)
    values = np.concatenate([v for _, _, v in changes]).astype(np.uint8)
    _, last = np.unique(((files.astype(np.int64) << 32) | places)[::-1], return_index=True)
    chosen = len(files) - 1 - last
    fields = [("file", pa.int32()), ("place", pa.int32()), ("flag", pa.uint8())]
    schema = pa.schema(fields).with_metadata({b"paths": json.dumps(paths).encode()})
    columns = [files[chosen], places[chosen].astype(np.int32), values[chosen]]
    return pa.table([pa.array(column) for column in columns], schema=schema)


def _storage_table(segment: Segment) -> Any:
    names, columns = [HASH, TIME], [pa.array(segment.hashes), pa.array(segment.times)]
    if segment.batches is not None:
        names.append(BATCH)
        columns.append(pa.array(segment.batches))
    return pa.table([*columns, *segment.rows.columns], names=[*names, *segment.rows.column_names])


def _put_table(table: Any, stream: Any) -> None:
    with pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)


def _describe_side(mine: SideState) -> dict[str, Any]:
    def describe(file: StateFile | None) -> dict[str, str] | None:
        return None if file is None else {"path": file.path, "sum": file.sum}

    return {
        "segments": [
            {
                "path": s.path,
                "start": s.start,
                "rows": len(s),
                "batch": s.batch,
                "min": s.least,
                "max": s.greatest,
                "bytes": s.bytes,
                "sum": s.sum,
            }
            for s in mine.segments
        ],
        "flags": [asdict(file) for file in mine.flag_files],
        "sessions": describe(mine.session_file),
        "seen": describe(mine.seen_file),
    }


def _subtract(before: Counters, after: Counters) -> dict[str, int]:
    old = before.to_dict()
    return {name: value - old[name] for name, value in after.to_dict().items()}


_OF_NOW = ("current_size", "current_keys", "current_bytes", "peak_size", "min_time", "max_time", "max_lateness")


def count_batch(before: SideStats, after: SideStats) -> dict[str, int | None]:
    """Return the statistics of a batch: what it added, and sizes and times as they are after it."""
    old, new = before.to_dict(), after.to_dict()
    return {name: value if name in _OF_NOW else (value or 0) - (old[name] or 0) for name, value in new.items()}


# -- rejected rows


def read_waiting(place: JoinFolder, entry: Entry) -> list[RejectRows]:
    """Return the rows of an entry that wait for a match; they are lost when the state is dropped."""
    _check_files(place, [entry], range_of_entry(entry))
    waiting = []
    for side in SIDES:
        mine = _open_side(place, entry[side], None, has_sessions=False)
        for segment, flags in zip(mine.segments, mine.flags, strict=True):
            # Rows that have matched are in the output already.
            places = np.flatnonzero((flags & (DEAD | MATCHED)) == 0)
            if len(places):
                waiting.append(RejectRows.of(side, "ABANDONED", segment, places))
    return waiting


def save_rejects(
    place: JoinFolder, rejects: Sequence[RejectRows], batch: int, watermark: int, *, task: int, attempt: str
) -> dict[str, str]:
    """Write rejected rows, one file for each side that has any; return the files below ``rejects`` with checksums."""
    files = {}
    for side in SIDES:
        mine = [r for r in rejects if r.side == side]
        if mine:
            table = reject_table(mine, batch=batch, group=task, watermark=watermark)
            name = f"{side}/{batch}-j{place.join}-{task}.{attempt}.parquet"
            put = partial(pq.write_table, table, write_page_checksum=True)
            files[name] = place.store.create(f"rejects/{name}", put)
    return files
