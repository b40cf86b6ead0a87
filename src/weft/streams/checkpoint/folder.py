"""The checkpoint of a statement of a stream job: the folder with its state and progress.

::

    .weft/streams/<job>/<statement>/current.json     name of the folder that is in use
        <fingerprint>-<n>/job.json                   engine and fingerprints of the statement
                          spark/                     offsets, kept by Spark
                          state/j<k>/                waiting rows, written by the kernel
                          heartbeats/<batch>.json    watermark and clocks of a batch, written before it runs
                          commits/<batch>.json       result of a batch: this file commits it
                          rejects/  tables/  redriven/  sealed.json
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from weft.core.documents import Document
from weft.core.fingerprint import fingerprint
from weft.core.frozen import EMPTY, FrozenMap, freeze, thaw
from weft.errors import StreamError
from weft.io.stores.store_path import Place, StorePath
from weft.streams.kernel.spec import CHECKSUM, is_intact, with_checksum

FORMAT = 2
"""Number of the layout; a checkpoint of a greater one is refused, one of a smaller one is upgraded."""

ENGINE = "kernel"
_CURRENT = "current.json"
_ABOVE = 4  # of <workspace>/.weft/streams/<job>/<statement>
_D = TypeVar("_D", bound=Document)
FRESH = "begin again with `--fresh`, or restore the checkpoint from a backup"


def write_document(path: Place, value: Mapping[str, Any], *, is_new: bool = False) -> None:
    """Write a document with its checksum atomically: to a temporary file that is synced and renamed.

    If the disk is full, nothing remains of it.  A document of a store that must be new raises `FileExistsError` if it
    exists; on a disk the lock makes sure of it.
    """
    content = with_checksum(thaw(value))
    if isinstance(path, StorePath):
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        write = path.store.create if is_new else path.store.put
        write(path.key, text.encode())
        return
    is_first = not path.parent.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".tmp-{path.name}-{uuid.uuid4().hex[:8]}")
    try:
        with beside.open("w", encoding="utf-8") as out:
            json.dump(content, out, indent=1, ensure_ascii=False, allow_nan=False)
            out.write("\n")
            out.flush()
            # The content reaches the disk before the name: after a power cut a rename without it shows an empty file.
            os.fsync(out.fileno())
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    # A rename survives a power cut only once its folder is synced; the entry of a new folder is in the folder above.
    sync_path(path.parent)
    if is_first:
        sync_path(path.parent.parent)


def read_document(path: Place) -> dict[str, Any]:
    """Read a document; raise `StreamError` W2202 if it is missing or damaged."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as cause:
        raise StreamError(
            f"{str(path)!r} cannot be read: {cause}", code="W2202", help=f"the checkpoint is damaged: {FRESH}"
        ) from cause
    if not isinstance(document, dict):
        raise damaged_file(path, f"it contains a {type(document).__name__}, not an object")
    if not is_intact(document):
        raise damaged_file(path, "its content does not match its checksum")
    document.pop(CHECKSUM, None)
    return document


def parse_record(kind: type[_D], document: Mapping[str, Any], path: Place) -> _D:
    """Return a document as a record; raise `StreamError` W2202 if it lacks a field."""
    try:
        return kind.from_dict(document)
    except TypeError as cause:
        raise damaged_file(path, str(cause)) from cause


def damaged_file(path: Place, why: str) -> StreamError:
    """Return the error for a checkpoint file that cannot be used."""
    return StreamError(f"{str(path)!r} cannot be used: {why}", code="W2202", help=f"the checkpoint is damaged: {FRESH}")


def sync_path(folder: Place) -> None:
    """Sync a folder or file to disk; what is in a store is there."""
    if isinstance(folder, StorePath):
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_path(path: Place) -> None:
    """Remove a file or folder if it exists."""
    if isinstance(path, StorePath):
        path.remove_tree()
    elif path.is_dir() and not path.is_symlink():
        # Tasks of a killed process may still write here; what remains is removed by the next start.
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


_P_co = TypeVar("_P_co", bound=Place, covariant=True)


class _HasRoot(Protocol[_P_co]):
    @property
    def root(self) -> _P_co: ...


class Below:
    """An attribute of a class with a `root`: the path of that name below it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: _HasRoot[_P_co], _kind: object = None) -> _P_co:
        return cast("_P_co", owner.root / self.name)


def remove_paths(paths: Iterable[Place]) -> None:
    """Remove files; those of a store with few requests."""
    places = list(paths)
    if places and isinstance(places[0], StorePath):
        places[0].store.delete(place.key for place in places if isinstance(place, StorePath))
    else:
        for place in places:
            remove_path(place)


class HeldLease(Protocol):
    """A lease of this process, see `weft.streams.checkpoint.lease`."""

    @property
    def is_last(self) -> bool:
        """Whether no other process has taken a later lease."""

    def check(self) -> None:
        """Raise `StreamError` W2205 if another process has taken a later lease."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The paths of one checkpoint; `lease` is that of the process that runs it, if it is in a store."""

    root: Place
    lease: HeldLease | None = field(default=None, compare=False)

    job_file = Below("job.json")
    """Document with the plan that the state belongs to."""
    spark = Below("spark")
    """Spark's own checkpoint: offsets and sources."""
    state = Below("state")
    """State of all joins."""
    rejects = Below("rejects")
    """Rejected rows."""
    tables = Below("tables")
    """Copies of the tables that the statement joins."""
    memory = Below("memory")
    """Rows of a sink of connector ``memory``."""
    redriven = Below("redriven")
    """Records of redrives."""
    commits = Below("commits")
    """One manifest for each batch."""
    heartbeats = Below("heartbeats")
    """One heartbeat for each batch."""
    sealed_file = Below("sealed.json")
    """Exists once the input has ended and all rows are emitted."""

    @property
    def name(self) -> str:
        """Name of the folder, ``<fingerprint>-<n>``."""
        return self.root.name

    @property
    def is_used(self) -> bool:
        """Whether a query has written here; an interrupted start leaves only job.json."""
        return any(folder.is_dir() and any(folder.iterdir()) for folder in (self.commits, self.spark))

    @property
    def lock(self) -> Place:
        """Lock of the process that runs the statement; all checkpoints of a statement share it."""
        return self.root.parent / "lock"

    def join_state(self, join: int) -> Place:
        """Return the state folder of one join."""
        return self.state / f"j{join}"

    def commit_file(self, batch: int) -> Place:
        """Return the path of the manifest of a batch."""
        return self.commits / f"{batch}.json"

    def heartbeat_file(self, batch: int) -> Place:
        """Return the path of the heartbeat of a batch."""
        return self.heartbeats / f"{batch}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord(Document):
    """job.json: the statement that the state of a checkpoint belongs to.

    `groups` is the number of tasks that shared its keys at the first start, `parts` are the fingerprints of the parts of the statement, `plan` its readable form, `id` eight unique characters,
    `replaces` the checkpoint that a fresh start replaced, `follows` the one whose offsets it took over, `first_batch`
    the number of its first batch, and `changes` the earlier forms of the statement.
    """

    groups: int
    parts: FrozenMap[str, str] = EMPTY
    plan: FrozenMap[str, Any] = EMPTY
    weft: str = ""
    created: int = 0
    id: str = ""
    replaces: str | None = None
    follows: str | None = None
    first_batch: int = 0
    changes: tuple[FrozenMap[str, Any], ...] = ()
    engine: str = ENGINE
    format: int = FORMAT


def find_checkpoint(folder: Place) -> Checkpoint | None:
    """Return the current checkpoint of a statement, None before its first start.

    Raises `StreamError` W2202 when the pointer is damaged, or missing although checkpoints exist.
    """
    pointer = folder / _CURRENT
    if not pointer.exists():
        # A start that was killed before `activate` leaves an unused checkpoint without a pointer: that is no damage.
        used = [c for c in list_checkpoints(folder) if c.is_used]
        if used:
            raise _missing_pointer_error(pointer, used)
        return None
    name = read_document(pointer).get("checkpoint")
    if not isinstance(name, str) or not (folder / name / "job.json").exists():
        raise damaged_file(pointer, f"it names the checkpoint {name!r}, which does not exist")
    return Checkpoint(folder / name)


def list_checkpoints(folder: Place) -> tuple[Checkpoint, ...]:
    """Return all checkpoints of a statement, the newest last."""
    checkpoints = [Checkpoint(p) for p in folder.glob("*-*") if p.is_dir() and not p.name.startswith(".")]
    return tuple(sorted(checkpoints, key=_age))


def _age(checkpoint: Checkpoint) -> tuple[int, str]:
    with suppress(StreamError):
        return read_job_record(checkpoint).created, checkpoint.name
    return 0, checkpoint.name


def list_ids(folder: Place) -> tuple[str, ...]:
    """Return the ids of all checkpoints of a statement, also of removed ones."""
    listed: list[str] = []
    with suppress(StreamError):
        listed.extend(map(str, read_document(folder / _CURRENT).get("ids") or ()))
    for checkpoint in list_checkpoints(folder):
        with suppress(StreamError):
            listed.append(read_job_record(checkpoint).id)
    return tuple(dict.fromkeys(one for one in listed if one))


def find_replaced(folder: Place) -> str | None:
    """Return the name of the checkpoint that a fresh start replaces, None if there is none."""
    with suppress(StreamError):
        name = read_document(folder / _CURRENT).get("checkpoint")
        if isinstance(name, str):
            return name
    used = [c.name for c in list_checkpoints(folder) if c.is_used]
    return used[-1] if used else None


def _missing_pointer_error(pointer: Place, used: list[Checkpoint]) -> StreamError:
    # The newest one is the most likely; the user may choose another.
    name = used[-1].name
    names = ", ".join(repr(c.name) for c in used)
    return StreamError(
        f"{str(pointer)!r} is missing, but these checkpoints exist: {names}",
        code="W2202",
        help=f"""to continue with {name!r}: echo '{{"checkpoint": "{name}"}}' > {shlex.quote(str(pointer))}; """
        "or begin again with `--fresh`, which replaces the output of all of them",
    )


def read_job_record(checkpoint: Checkpoint) -> JobRecord:
    """Read job.json of a checkpoint; raise `StreamError` W2202 if it has another format."""
    document = read_document(checkpoint.job_file)
    if document.get("format") not in range(1, FORMAT + 1) or document.get("engine") != ENGINE:
        raise StreamError(
            f"the checkpoint {str(checkpoint.root)!r} has format {document.get('format')!r} of engine "
            f"{document.get('engine')!r}; this version of Weft reads formats up to {FORMAT} of engine {ENGINE!r}",
            code="W2202",
            help=f"run it with the version of Weft that made it ({document.get('weft') or 'not recorded'}), or {FRESH}",
        )
    return parse_record(JobRecord, document, checkpoint.job_file)


def create_checkpoint(folder: Place, record: JobRecord) -> Checkpoint:
    """Create a checkpoint of a statement; `activate` makes it the current one."""
    stem = fingerprint(dict(record.parts))[:12]
    # A number, because a fresh start with the same plan must not reuse the folder of an earlier one.
    number = 1 + max((_parse_number(p, stem) for p in folder.glob(f"{stem}-*")), default=0)
    checkpoint = Checkpoint(folder / f"{stem}-{number}")
    created = record.created or time.time_ns() // 1000
    unique = fingerprint([checkpoint.name, str(folder.resolve()), created])[:8]
    write_document(checkpoint.job_file, replace(record, created=created, id=record.id or unique).to_dict())
    # A power cut must not remove a folder that leads to the checkpoint: sync up to the workspace.
    for above in (folder, *folder.absolute().parents[:_ABOVE]):
        sync_path(above)
    return checkpoint


def copy_folder(source: Place, target: Place) -> None:
    """Copy a folder; nothing may use the copy before this returns."""
    if isinstance(source, Path) and isinstance(target, Path):
        # Renamed when it is complete: Spark would continue from half of a copy without an error.
        beside = target.with_name(f".tmp-{target.name}-{uuid.uuid4().hex[:8]}")
        shutil.copytree(source, beside)
        beside.rename(target)
        return
    for path in source.rglob("*"):
        if path.is_file():
            place = target / str(path).removeprefix(f"{source}/")
            place.write_bytes(path.read_bytes())


def move_file(source: Place, target: Place) -> None:
    """Rename a file; in a store it is copied within the store, and removed."""
    if isinstance(source, StorePath) or isinstance(target, StorePath):
        cast("StorePath", source).replace(cast("StorePath", target))
    else:
        source.replace(target)


def activate(checkpoint: Checkpoint) -> None:
    """Make a checkpoint the current one of its statement, and keep the ids of all earlier ones."""
    folder = checkpoint.root.parent
    # The ids name the output files of earlier checkpoints, also of those whose folders were removed by hand.
    write_document(folder / _CURRENT, {"checkpoint": checkpoint.name, "ids": list_ids(folder)})


def record_change(checkpoint: Checkpoint, parts: Mapping[str, str], plan: Mapping[str, Any], kept: str) -> None:
    """Record in job.json that the statement continues with a changed plan."""
    before = read_job_record(checkpoint)
    change: FrozenMap[str, Any] = FrozenMap(at=time.time_ns() // 1000, kept=kept, parts=before.parts)
    changes = (*before.changes, change)
    after = replace(before, parts=FrozenMap(parts), plan=freeze(dict(plan)), changes=changes, format=FORMAT)
    write_document(checkpoint.job_file, after.to_dict())


def update_plan(checkpoint: Checkpoint, plan: Mapping[str, Any]) -> None:
    """Update the readable plan and the format in job.json if they differ."""
    record = read_job_record(checkpoint)
    now = freeze(dict(plan))
    # The format first: an earlier version must refuse the checkpoint before it contains a batch of this one.
    if record.plan != now or record.format != FORMAT:
        write_document(checkpoint.job_file, replace(record, plan=now, format=FORMAT).to_dict())


def _parse_number(path: Place, stem: str) -> int:
    suffix = path.name.removeprefix(f"{stem}-")
    return int(suffix) if suffix.isdigit() else 0
