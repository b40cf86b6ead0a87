"""State on disk: each group has a folder for each batch, which appears complete or not at all.

::

    state/j<join>/<batch>/<group>/index.json      lists all files of the state, also those of earlier batches
                                  left.arrow      new or rewritten rows: __hash, __time, [__batch], children
                                  left.flags      one byte a row of all segments in turn, when one changed
                                  left.sessions   start and end of each row's session
                                  left.seen       keys by which duplicates are detected
    rejects/<side>/<batch>-j<join>-<group>.parquet

`StateStore` reads and writes these files so that a crash never leaves half of one.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from weft.streams.kernel.gate import RejectRows, reject_table
from weft.streams.kernel.segments import DEAD, Segment
from weft.streams.kernel.spec import (
    FORMAT,
    MATCHED,
    Clock,
    Counters,
    JoinTask,
    KernelProblem,
    Side,
    SideStats,
    checked_files,
    checksum,
    is_intact,
    with_checksum,
)
from weft.streams.kernel.transition import GroupState, empty_state
from weft.streams.kernel.working import SideState


class StateStore:
    """A folder on a filesystem of pyarrow; local files are synced and memory mapped."""

    def __init__(self, root: str) -> None:
        if "://" in root:
            self.fs, self.root = pafs.FileSystem.from_uri(root)
        else:
            self.fs, self.root = pafs.LocalFileSystem(), str(Path(root).absolute())
        self.is_local = isinstance(self.fs, pafs.LocalFileSystem)

    def path(self, name: str) -> str:
        """Return the full path of a file below the root."""
        return f"{self.root}/{name}"

    def read(self, name: str) -> Any:
        """Return the content of a file as a buffer, memory mapped where that is possible."""
        try:
            if self.is_local:
                if Path(self.path(name)).stat().st_size == 0:  # an empty file cannot be memory mapped
                    return pa.py_buffer(b"")
                return pa.memory_map(self.path(name)).read_buffer()
            with self.fs.open_input_file(self.path(name)) as file:
                return file.read_buffer()
        except (OSError, pa.ArrowInvalid) as cause:
            raise damaged_state(self.path(name), str(cause)) from cause

    def read_json(self, name: str) -> dict[str, Any]:
        """Return a document."""
        try:
            document: dict[str, Any] = json.loads(self.read(name).to_pybytes())
            intact = is_intact(document)
        except (ValueError, TypeError, AttributeError) as cause:
            raise damaged_state(self.path(name), str(cause)) from cause
        if not intact:
            raise damaged_state(self.path(name), "its content does not match its checksum")
        return document

    def write(self, name: str, put: Callable[[Any], None]) -> None:
        """Write a file; `put` receives the open stream.  The file is not yet synced."""
        path = self.path(name)
        with pa.OSFile(path, "wb") if self.is_local else self.fs.open_output_stream(path) as stream:
            put(stream)

    def folder(self, name: str) -> str:
        """Create a folder for unfinished files below `name` and return its name."""
        staging = f"{name}/.tmp-{uuid.uuid4().hex}"
        self.fs.create_dir(self.path(staging), recursive=True)
        return staging

    def place_folder(self, staging: str, name: str) -> None:
        """Rename a finished folder; if another attempt of the task was first, keep its folder and remove this one."""
        self.fs.create_dir(self.path(name.rpartition("/")[0]), recursive=True)
        if not self.is_local:
            self._place_far(staging, name)
            return
        folder = Path(self.path(staging))
        # Content before the name: after a power failure, a folder that has its final name is complete.
        _sync_all([folder, *folder.iterdir()])
        try:
            # Attempts of one task write the same state, so it does not matter whose folder stays.
            os.rename(self.path(staging), self.path(name))  # noqa: PTH104  # fails if the folder exists
        except OSError:
            if not Path(self.path(name)).is_dir():
                raise
            shutil.rmtree(self.path(staging))
        place = Path(self.path(name))
        _sync_all([place.parent, place.parent.parent])  # the directory entries too, up to that of the batch

    def _place_far(self, staging: str, name: str) -> None:
        if not self._is_there(name):
            try:
                self.fs.move(self.path(staging), self.path(name))
            except OSError:
                # Another attempt may have been faster, between the check and the move.
                if not self._is_there(name):
                    raise
            else:
                return
        self.fs.delete_dir(self.path(staging))

    def _is_there(self, name: str) -> bool:
        return bool(self.fs.get_file_info(self.path(name)).type != pafs.FileType.NotFound)

    def place_file(self, name: str, put: Callable[[Any], None]) -> None:
        """Write a temporary file and rename it."""
        folder, _, last = name.rpartition("/")
        self.fs.create_dir(self.path(folder), recursive=True)
        beside = f"{folder}/.tmp-{uuid.uuid4().hex}-{last}"
        self.write(beside, put)
        if self.is_local:
            _sync(Path(self.path(beside)))
            Path(self.path(beside)).replace(self.path(name))
            _sync_all([Path(self.path(folder)), Path(self.path(folder)).parent])
        else:
            self.fs.move(self.path(beside), self.path(name))


def _sync_all(paths: list[Path]) -> None:
    """Sync files and folders to disk; in parallel they cost little more than one."""
    if len(paths) <= 2:  # not worth the threads
        for path in paths:
            _sync(path)
        return
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(_sync, paths))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def damaged_state(path: str, why: str) -> KernelProblem:
    """Return the problem of a state file that cannot be used."""
    return KernelProblem(
        "W2202",
        f"{path!r} cannot be used as the state of a join: {why}",
        "the checkpoint was changed or truncated; restore it from a backup, or start again with --fresh",
    )


HASH, TIME, BATCH = "__hash", "__time", "__batch"
SIDES: tuple[Side, Side] = ("left", "right")


@dataclass(frozen=True, slots=True)
class GroupFolder:
    """The folder with the state of one group of one join."""

    places: StateStore
    join: int
    group: int

    @property
    def folder(self) -> str:
        """Folder of the join; paths in an index are relative to it."""
        return f"state/j{self.join}"

    def name(self, batch: int) -> str:
        """Return the name of the group's folder after a batch, relative to the join's."""
        return f"{batch}/{self.group}"


def open_group(
    place: GroupFolder, batch: int | None, task: JoinTask, left_schema: Any, right_schema: Any
) -> GroupState:
    """Return the state after a batch, or an empty one before the first batch.

    The schemas are those of the children; the files must have the same.
    """
    if batch is None:
        return empty_state(task, left_schema, right_schema)
    name = f"{place.folder}/{place.name(batch)}/index.json"
    index = place.places.read_json(name)
    try:
        if index["format"] != FORMAT:  # written by another release
            raise damaged_state(place.places.path(name), f"its format is {index['format']}, not {FORMAT}")
        left, right = index["clock"]
        _check_files(place, index)
        return GroupState(
            left=_open_side(place, index, "left", left_schema),
            right=_open_side(place, index, "right", right_schema),
            clock=Clock(left=left, right=right),
            batch=index["batch"],
            sums=index.get("sums") or {},
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, pa.ArrowException) as cause:
        raise damaged_state(place.places.path(name), f"{type(cause).__name__} {cause}") from cause


def _check_files(place: GroupFolder, index: dict[str, Any]) -> None:
    """Raise W2202 if a state file does not match its checksum; files of earlier versions have none."""
    sums: dict[str, str] = index.get("sums") or {}
    # Replaced rather than extended below: what a worker remembers must not grow with the number of batches.
    key = place.places.path(f"{place.folder}/{place.group}")
    known = checked_files().get(key, {})
    for path, expected in sums.items():
        name = f"{place.folder}/{path}"
        if known.get(path) != expected and checksum(place.places.read(name)) != expected:
            raise damaged_state(place.places.path(name), "its content does not match its checksum")
    checked_files()[key] = dict(sums)


def _open_side(place: GroupFolder, index: dict[str, Any], side: Side, schema: Any) -> SideState:
    segments = [_open_segment(place, entry, schema) for entry in index["segments"] if entry["side"] == side]
    sizes = [len(s) for s in segments]
    # Segments never change but flags do, so those of all segments are one small file that is written anew.
    flags_path = index["flags"].get(side) or ""
    flags = _read_array(place, flags_path, np.uint8, (sum(sizes),))
    sessions_path = index["sessions"].get(side)
    sessions = None
    if sessions_path is not None:
        spans = _read_array(place, sessions_path, np.int64, (2, sum(sizes)))
        sessions = tuple(np.split(spans, np.cumsum(sizes)[:-1], axis=1)) if sizes else ()
    seen_path = index["seen"].get(side) or ""
    return SideState(
        schema=schema,
        segments=tuple(segments),
        flags=tuple(np.split(flags, np.cumsum(sizes)[:-1])) if sizes else (),
        sessions=sessions,
        seen=_read_table(place, seen_path) if seen_path else None,
        counters=Counters.from_dict(index["counters"][side]),
        stats=SideStats.from_dict(index["stats"][side]),
        flags_path=flags_path,
        sessions_path=sessions_path or "",
        seen_path=seen_path,
    )


def _read_array(place: GroupFolder, path: str, kind: Any, shape: tuple[int, ...]) -> Any:
    if not path:
        return np.zeros(shape, dtype=kind)
    content = np.frombuffer(place.places.read(f"{place.folder}/{path}"), dtype=np.uint8)
    if content.nbytes != int(np.prod(shape)) * np.dtype(kind).itemsize:
        raise damaged_state(path, f"it has {content.nbytes} bytes for {shape[-1]} rows")
    return content.view(kind).reshape(shape)


def _read_table(place: GroupFolder, path: str) -> Any:
    try:
        with pa.ipc.open_file(place.places.read(f"{place.folder}/{path}")) as file:
            return file.read_all()
    except (pa.ArrowException, OSError) as cause:
        raise damaged_state(path, str(cause)) from cause


def _open_segment(place: GroupFolder, entry: dict[str, Any], schema: Any) -> Segment:
    table = _read_table(place, entry["path"])
    own = [n for n in (HASH, TIME, BATCH) if n in table.column_names]
    rows = table.select(table.column_names[len(own) :])
    if table.num_rows != entry["rows"]:
        raise damaged_state(entry["path"], f"it has {table.num_rows} rows, the index says {entry['rows']}")
    if schema is None:
        schema = rows.schema
    if rows.schema.names != schema.names or rows.schema.types != schema.types:
        raise damaged_state(entry["path"], f"it has the columns {rows.schema.names}, the join {schema.names}")
    return Segment(
        hashes=table.column(HASH).chunk(0).to_numpy(),
        times=table.column(TIME).chunk(0).to_numpy(),
        rows=rows.cast(schema) if rows.schema != schema else rows,  # only nullability can differ
        batch=entry["batch"],
        batches=table.column(BATCH).chunk(0).to_numpy() if BATCH in own else None,
        path=entry["path"],
        least=entry["min"],
        greatest=entry["max"],
        bytes=entry["bytes"],
    )


def save_group(
    place: GroupFolder, state: GroupState, rejects: Sequence[RejectRows] = (), *, watermark: int
) -> GroupState:
    """Write the state of a group after a batch and return it with the paths of its files."""
    # Rejects come first: after a crash the batch is repeated and replaces its files; a state without them would
    # have dropped the rows already.
    save_rejects(place, rejects, state.batch, watermark)
    # Everything is written into a folder with a temporary name; renaming it is the only step that others can see.
    staging = place.places.folder(place.folder)
    left, right = (_save_side(place, staging, state, side) for side in SIDES)
    saved = replace(state, left=left, right=right)
    saved = replace(saved, sums=_collect_sums(place, staging, saved))
    document = json.dumps(with_checksum(_build_index(place, saved)), separators=(",", ":"))
    place.places.write(f"{staging}/index.json", lambda stream: stream.write(document.encode()))
    place.places.place_folder(staging, f"{place.folder}/{place.name(state.batch)}")
    return saved


def _save_side(place: GroupFolder, staging: str, state: GroupState, side: Side) -> SideState:
    mine = state.side(side)
    segments = []
    for number, segment in enumerate(mine.segments):
        if segment.path:
            segments.append(segment)
            continue
        name = f"{side}.arrow" if number == len(mine.segments) - 1 else f"{side}.{number}.arrow"
        place.places.write(f"{staging}/{name}", partial(_put_table, _storage_table(segment)))
        segments.append(replace(segment, path=f"{place.name(state.batch)}/{name}"))

    def save(value: Any, path: str, ending: str, put: Callable[[Any], None]) -> str:
        """Return the path of a file, which is written unless one of an earlier batch is still valid."""
        if not value:
            return ""
        if path:
            return path
        place.places.write(f"{staging}/{side}.{ending}", put)
        return f"{place.name(state.batch)}/{side}.{ending}"

    def put_flags(stream: Any) -> None:
        stream.write(np.concatenate(mine.flags).tobytes())

    def put_sessions(stream: Any) -> None:
        stream.write(np.concatenate(mine.sessions or (), axis=1).tobytes())

    return replace(
        mine,
        segments=tuple(segments),
        flags_path=save(mine.flags, mine.flags_path, "flags", put_flags),
        sessions_path=save(mine.sessions, mine.sessions_path, "sessions", put_sessions),
        seen_path=save(mine.seen is not None, mine.seen_path, "seen", partial(_put_table, mine.seen)),
    )


def _collect_sums(place: GroupFolder, staging: str, state: GroupState) -> dict[str, str]:
    """Return the checksums of all files of a state; files of earlier versions have none."""
    own = f"{place.name(state.batch)}/"
    sums = {}
    sides = (state.left, state.right)
    paths = [s.path for side in sides for s in side.segments]
    paths += [path for side in sides for path in (side.flags_path, side.sessions_path, side.seen_path) if path]
    for path in paths:
        if path.startswith(own):
            sums[path] = checksum(place.places.read(f"{staging}/{path.removeprefix(own)}"))
        elif path in state.sums:
            sums[path] = state.sums[path]
    return sums


def _storage_table(segment: Segment) -> Any:
    names, columns = [HASH, TIME], [pa.array(segment.hashes), pa.array(segment.times)]
    if segment.batches is not None:
        names.append(BATCH)
        columns.append(pa.array(segment.batches))
    return pa.table([*columns, *segment.rows.columns], names=[*names, *segment.rows.column_names])


def _put_table(table: Any, stream: Any) -> None:
    with pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)


def _build_index(place: GroupFolder, state: GroupState) -> dict[str, Any]:
    sides = {side: state.side(side) for side in SIDES}
    return {
        "format": FORMAT,
        "batch": state.batch,
        "group": place.group,
        "clock": [state.clock.left, state.clock.right],
        "segments": [
            {
                "side": side,
                "path": s.path,
                "rows": len(s),
                "batch": s.batch,
                "min": s.least,
                "max": s.greatest,
                "bytes": s.bytes,
            }
            for side, mine in sides.items()
            for s in mine.segments
        ],
        "flags": {side: mine.flags_path for side, mine in sides.items() if mine.flags_path},
        "sessions": {side: mine.sessions_path for side, mine in sides.items() if mine.sessions is not None},
        "seen": {side: mine.seen_path for side, mine in sides.items() if mine.seen_path},
        "sums": dict(state.sums),
        "counters": {side: mine.counters.to_dict() for side, mine in sides.items()},
        "stats": {side: mine.stats.to_dict() for side, mine in sides.items()},
        "max_times": {side: mine.stats.max_time for side, mine in sides.items()},
    }


def read_waiting(place: GroupFolder, batch: int) -> list[RejectRows]:
    """Return the rows that wait for a match after a batch; they are lost when the state is dropped."""
    index = place.places.read_json(f"{place.folder}/{place.name(batch)}/index.json")
    _check_files(place, index)
    waiting = []
    for side in SIDES:
        mine = _open_side(place, index, side, None)
        for segment, flags in zip(mine.segments, mine.flags, strict=True):
            # Rows that have matched are in the output already.
            places = np.flatnonzero((flags & (DEAD | MATCHED)) == 0)
            if len(places):
                waiting.append(RejectRows.of(side, "ABANDONED", segment, places))
    return waiting


def save_rejects(place: GroupFolder, rejects: Sequence[RejectRows], batch: int, watermark: int) -> None:
    """Write rejected rows, one file for each side that has any."""
    for side in SIDES:
        mine = [r for r in rejects if r.side == side]
        if mine:
            table = reject_table(mine, batch=batch, group=place.group, watermark=watermark)
            # The name has no random part, so that a repeated batch replaces the file instead of adding one.
            name = f"rejects/{side}/{batch}-j{place.join}-{place.group}.parquet"
            place.places.place_file(name, partial(pq.write_table, table, write_page_checksum=True))
