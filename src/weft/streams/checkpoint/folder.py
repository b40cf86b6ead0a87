"""Checkpoint: the folder in which a statement of a stream job remembers where it is.

::

    .weft/streams/<job>/<statement>/current.json     which of the folders beside it is in use
        <fingerprint>-<n>/job.json                   engine, groups and fingerprints: what the state is of
                          spark/                     offsets, kept by Spark
                          state/j<k>/<batch>/<group> rows that wait, written by the kernel
                          heartbeats/<batch>.json    what a batch was judged with, written before it
                          commits/<batch>.json       what a batch did: with this file it has happened
                          rejects/  tables/  redriven/  sealed.json
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.core.documents import Document
from weft.core.fingerprint import fingerprint
from weft.core.frozen import EMPTY, FrozenMap, freeze
from weft.errors import StreamError
from weft.streams.checkpoint.durable import FRESH, damaged_file, read_document, sync_folder, write_document

FORMAT = 1
"""Number of the layout; a checkpoint of a greater one is refused."""

ENGINE = "kernel"
_CURRENT = "current.json"
_ABOVE = 4  # of <workspace>/.weft/streams/<job>/<statement>


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The places below one checkpoint folder."""

    root: Path

    @property
    def name(self) -> str:
        """Name of the folder, ``<fingerprint>-<n>``."""
        return self.root.name

    @property
    def job_file(self) -> Path:
        """What the state is of."""
        return self.root / "job.json"

    @property
    def spark(self) -> Path:
        """Spark's own checkpoint: offsets and sources."""
        return self.root / "spark"

    @property
    def state(self) -> Path:
        """State of all joins."""
        return self.root / "state"

    @property
    def rejects(self) -> Path:
        """Rows that took no part."""
        return self.root / "rejects"

    @property
    def tables(self) -> Path:
        """Copies of the tables that the statement joins."""
        return self.root / "tables"

    @property
    def memory(self) -> Path:
        """Rows of a sink of connector ``memory``."""
        return self.root / "memory"

    @property
    def redriven(self) -> Path:
        """What was processed again."""
        return self.root / "redriven"

    @property
    def commits(self) -> Path:
        """One manifest a batch."""
        return self.root / "commits"

    @property
    def heartbeats(self) -> Path:
        """One heartbeat a batch."""
        return self.root / "heartbeats"

    @property
    def sealed_file(self) -> Path:
        """There when the input has ended and everything is out."""
        return self.root / "sealed.json"

    @property
    def is_used(self) -> bool:
        """Whether a query has begun to write here; a start that was cut short leaves no more than job.json."""
        return any(folder.is_dir() and any(folder.iterdir()) for folder in (self.commits, self.spark))

    @property
    def lock(self) -> Path:
        """Held by the process that runs the statement; all checkpoints of a statement have one."""
        return self.root.parent / "lock"

    def join_state(self, join: int) -> Path:
        """Return the state folder of one join."""
        return self.state / f"j{join}"

    def group_state(self, join: int, batch: int, group: int) -> Path:
        """Return the state folder of one group as a batch left it."""
        return self.join_state(join) / str(batch) / str(group)

    def commit_file(self, batch: int) -> Path:
        """Return the place of the manifest of a batch."""
        return self.commits / f"{batch}.json"

    def heartbeat_file(self, batch: int) -> Path:
        """Return the place of the heartbeat of a batch."""
        return self.heartbeats / f"{batch}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord(Document):
    """job.json: what the state of a checkpoint is of.

    `parts` are the fingerprints of the statement part by part, `plan` what a person may read of it,
    `id` eight characters that no other checkpoint has, `replaces` the checkpoint that this one
    began again from, `follows` the one whose offsets it took over, `first_batch` the number of its first batch, and
    `changes` what was changed while it went on.
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


def statement_folder(base: Path, statement: str) -> Path:
    """Return the folder of a statement below the checkpoint of its job."""
    return base / statement


def find_checkpoint(folder: Path) -> Checkpoint | None:
    """Return the checkpoint in use of a statement, None before its first start.

    Raises `StreamError` W2202 when the pointer is damaged, or missing beside checkpoints that have been used.
    """
    pointer = folder / _CURRENT
    if not pointer.exists():
        used = [c for c in list_checkpoints(folder) if c.is_used]
        if used:
            raise _pointer_missing(pointer, used)
        return None
    name = read_document(pointer).get("checkpoint")
    if not isinstance(name, str) or not (folder / name / "job.json").exists():
        raise damaged_file(pointer, f"it names the checkpoint {name!r}, which is not there")
    return Checkpoint(folder / name)


def list_checkpoints(folder: Path) -> tuple[Checkpoint, ...]:
    """Return every checkpoint that a statement has had, in use or not; the newest last."""
    made = [Checkpoint(p) for p in folder.glob("*-*") if p.is_dir() and not p.name.startswith(".")]
    return tuple(sorted(made, key=_age))


def _age(checkpoint: Checkpoint) -> tuple[int, str]:
    with suppress(StreamError):
        return read_job_record(checkpoint).created, checkpoint.name
    return 0, checkpoint.name


def list_ids(folder: Path) -> tuple[str, ...]:
    """Return the ids of all checkpoints that a statement has had, also of folders that are gone."""
    listed: list[str] = []
    with suppress(StreamError):
        listed.extend(map(str, read_document(folder / _CURRENT).get("ids") or ()))
    for checkpoint in list_checkpoints(folder):
        with suppress(StreamError):
            listed.append(read_job_record(checkpoint).id)
    return tuple(dict.fromkeys(one for one in listed if one))


def find_replaced(folder: Path) -> str | None:
    """Return the name of the checkpoint that a statement begins again from, None when it never had one."""
    with suppress(StreamError):
        name = read_document(folder / _CURRENT).get("checkpoint")
        if isinstance(name, str):
            return name
    used = [c.name for c in list_checkpoints(folder) if c.is_used]
    return used[-1] if used else None


def _pointer_missing(pointer: Path, used: list[Checkpoint]) -> StreamError:
    # The newest one is the likeliest; a person who knows better names another.
    name = used[-1].name
    names = ", ".join(repr(c.name) for c in used)
    return StreamError(
        f"{str(pointer)!r} is missing, and checkpoints that have been used are beside it: {names}",
        code="W2202",
        help=f"""to go on with {name!r}: echo '{{"checkpoint": "{name}"}}' > {shlex.quote(str(pointer))}; """
        "or begin again with `--fresh`, which replaces the output of all of them",
    )


def read_job_record(checkpoint: Checkpoint) -> JobRecord:
    """Return what a checkpoint is of; raise `StreamError` W2202 when it is of another format."""
    said = read_document(checkpoint.job_file)
    if said.get("format") != FORMAT or said.get("engine") != ENGINE:
        raise StreamError(
            f"the checkpoint {str(checkpoint.root)!r} has format {said.get('format')!r} of engine "
            f"{said.get('engine')!r}; this version of Weft reads format {FORMAT} of engine {ENGINE!r}",
            code="W2202",
            help=f"run it with the version of Weft that made it ({said.get('weft') or 'not recorded'}), or {FRESH}",
        )
    try:
        return JobRecord.from_dict(said)
    except TypeError as cause:
        raise damaged_file(checkpoint.job_file, str(cause)) from cause


def create_checkpoint(folder: Path, record: JobRecord) -> Checkpoint:
    """Make a new checkpoint of a statement; `activate` puts it into use."""
    stem = fingerprint(dict(record.parts))[:12]
    number = 1 + max((_number(p, stem) for p in folder.glob(f"{stem}-*")), default=0)
    checkpoint = Checkpoint(folder / f"{stem}-{number}")
    created = record.created or time.time_ns() // 1000
    unique = fingerprint([checkpoint.name, str(folder.resolve()), created])[:8]
    write_document(checkpoint.job_file, replace(record, created=created, id=record.id or unique).to_dict())
    # Up to the workspace: a power cut must not take the folders that lead to it.
    for above in (folder, *folder.absolute().parents[:_ABOVE]):
        sync_folder(above)
    return checkpoint


def activate(checkpoint: Checkpoint) -> None:
    """Make a checkpoint the one in use of its statement; the ids of all that it had stay known."""
    folder = checkpoint.root.parent
    write_document(folder / _CURRENT, {"checkpoint": checkpoint.name, "ids": list_ids(folder)})


def record_change(
    checkpoint: Checkpoint, parts: Mapping[str, str], plan: Mapping[str, Any], kept: str
) -> None:
    """Write into job.json that the statement goes on as another plan, and what it was before."""
    before = read_job_record(checkpoint)
    told: FrozenMap[str, Any] = FrozenMap(at=time.time_ns() // 1000, kept=kept, parts=before.parts)
    after = replace(before, parts=FrozenMap(parts), plan=freeze(dict(plan)), changes=(*before.changes, told))
    write_document(checkpoint.job_file, after.to_dict())


def update_plan(checkpoint: Checkpoint, plan: Mapping[str, Any]) -> None:
    """Write into job.json how an unchanged statement reads now; nothing is written when it reads as before."""
    record = read_job_record(checkpoint)
    now = freeze(dict(plan))
    if record.plan != now:
        write_document(checkpoint.job_file, replace(record, plan=now).to_dict())


def _number(path: Path, stem: str) -> int:
    said = path.name.removeprefix(f"{stem}-")
    return int(said) if said.isdigit() else 0
