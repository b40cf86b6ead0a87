"""Opening a statement: find its checkpoint, compare it with the plan, and lock it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from weft.core import engine_version
from weft.core.findings import ErrorCollector
from weft.core.frozen import EMPTY, FrozenMap
from weft.core.names import format_list
from weft.errors import StreamError
from weft.io.stores.store_path import Place, as_place
from weft.streams.checkpoint.cached_files import open_files
from weft.streams.checkpoint.commit import check_open, is_sealed
from weft.streams.checkpoint.earlier_state import list_state
from weft.streams.checkpoint.folder import (
    Checkpoint,
    JobRecord,
    activate,
    copy_folder,
    create_checkpoint,
    damaged_file,
    find_checkpoint,
    find_replaced,
    read_job_record,
    record_change,
    sync_path,
    update_plan,
)
from weft.streams.checkpoint.lease import lock_statement
from weft.streams.checkpoint.manifest import last_batch, read_manifest
from weft.streams.checkpoint.offsets import check_offsets
from weft.streams.checkpoint.status import plan_facts
from weft.streams.kernel.spec import MAX_GROUP_BYTES, NEVER, list_files
from weft.streams.kernel.state_files import JoinFolder, read_waiting, save_rejects
from weft.streams.plan.explain import explain_job
from weft.streams.plan.identity import Change, compare_parts, describe_parts
from weft.streams.plan.resolved import JobPlan, StatementPlan
from weft.streams.run.endpoints import check_sink
from weft.streams.spark.paths import is_remote

Keep = Literal["state", "offsets"]
_TASK_BYTES = MAX_GROUP_BYTES // 4  # of state; the new rows of a batch come on top


def job_folder(job: JobPlan) -> Place:
    """Return the folder below which the statements of a job have their checkpoints: on a disk or in a store."""
    folder = job.settings.get("checkpoint")
    if folder and is_remote(str(folder)):
        return as_place(str(folder))
    return job.root / str(folder) if folder else local_folder(job)


def local_folder(job: JobPlan) -> Path:
    """Return the folder of a job on the machine that runs it."""
    return job.root / f".weft/streams/{job.name}"


def find_sealed(
    job: JobPlan, chosen: Sequence[StatementPlan], *, fresh: bool = False, keep: Keep | None = None
) -> FrozenMap[str, Checkpoint]:
    """Return the checkpoints of statements that an earlier final run sealed; they are not run again.

    Raises all errors that prevent any statement from running, before the first one runs:
    W2203, W2205, W2308, W2309, and W2204 if no statement remains to run.
    """
    mistakes = ErrorCollector()
    ended: dict[str, Checkpoint] = {}
    for plan in chosen:
        with mistakes.collect():
            checkpoint = _check_statement(job, plan, fresh=fresh, keep=keep)
            if checkpoint is not None:
                ended[plan.name] = checkpoint
    if len(ended) == len(chosen):
        for name, checkpoint in ended.items():
            with mistakes.collect():
                check_open(checkpoint, name)
    mistakes.raise_all()
    return FrozenMap(ended)


def _check_statement(job: JobPlan, plan: StatementPlan, *, fresh: bool, keep: Keep | None) -> Checkpoint | None:
    """Return the checkpoint of a statement when it is sealed; raise if the statement cannot run."""
    folder = job_folder(job) / plan.name
    # Held for the check only: `open_checkpoint` takes the lock again and compares again.
    with lock_statement(folder / "lock", plan.name):
        check_sink(plan.sink, job.root)
        checkpoint = _find_current(folder, fresh=fresh)
    if checkpoint is None:
        return None
    change = _compare_plan(plan, checkpoint)
    if is_sealed(checkpoint):
        if change.needs_consent:
            check_open(checkpoint, plan.name)
        return checkpoint
    _check_continuable(plan, checkpoint, change, keep)
    return None


def _compare_plan(plan: StatementPlan, checkpoint: Checkpoint) -> Change:
    """Return what changed since the checkpoint was created."""
    return compare_parts(read_job_record(checkpoint).parts, describe_parts(plan))


def _check_continuable(plan: StatementPlan, checkpoint: Checkpoint, change: Change, keep: Keep | None) -> None:
    """Raise W2203 if the statement changed in a way that `keep` does not cover, W2202 if offsets do not fit."""
    keeps_state = not change.needs_consent or (change.keeps == "state" and keep == "state")
    if not keeps_state and (keep != "offsets" or _has_other_inputs(change)):
        raise _changed_error(plan, checkpoint, change, keep)
    check_offsets(checkpoint)


@contextmanager
def open_checkpoint(
    job: JobPlan, plan: StatementPlan, *, cores: int, fresh: bool = False, keep: Keep | None = None
) -> Iterator[Checkpoint]:
    """Yield the checkpoint of a statement, with its lease in a store, and hold its lock in the block.

    Raises `StreamError`: W2203 if the statement changed in a way that `keep` does not cover,
    W2204 if the checkpoint is sealed, W2205 if another process holds it.
    """
    folder = job_folder(job) / plan.name
    with lock_statement(folder / "lock", plan.name) as lease:
        checkpoint = _find_current(folder, fresh=fresh)
        if checkpoint is None:
            replaces = find_replaced(folder) if fresh else None
            record = _new_record(job, plan, choose_tasks(job, cores))
            checkpoint = create_checkpoint(folder, replace(record, replaces=replaces))
            activate(checkpoint)
        else:
            checkpoint = _continue(job, plan, checkpoint, cores=cores, keep=keep)
        yield replace(checkpoint, lease=lease)


def _find_current(folder: Place, *, fresh: bool) -> Checkpoint | None:
    # A fresh start must work with a damaged checkpoint, so the old one is not read.
    return None if fresh else find_checkpoint(folder)


def choose_tasks(job: JobPlan, cores: int, stats: Mapping[str, Any] = EMPTY) -> int:
    """Return how many tasks share the keys in the next batch: one for each core, more if the state is large."""
    groups = job.settings.get("groups")
    most = None if groups is None else int(groups)
    held = sum(int(side.get("current_bytes") or 0) for side in stats.values())
    tasks = max(cores, 1, -(-held // _TASK_BYTES))
    return tasks if most is None else min(tasks, most)


def _new_record(job: JobPlan, plan: StatementPlan, tasks: int) -> JobRecord:
    return JobRecord(
        groups=tasks,
        parts=describe_parts(plan),
        plan=_plan_document(job, plan),
        weft=engine_version(),
    )


def _plan_document(job: JobPlan, plan: StatementPlan) -> FrozenMap[str, Any]:
    """Return the readable plan: its text, and the facts that `status` needs."""
    return FrozenMap({"text": explain_job(job, plan.name).text, **plan_facts(plan)})


def _continue(
    job: JobPlan, plan: StatementPlan, checkpoint: Checkpoint, *, cores: int, keep: Keep | None
) -> Checkpoint:
    check_open(checkpoint, plan.name)
    change = _compare_plan(plan, checkpoint)
    _check_continuable(plan, checkpoint, change, keep)
    if change.keeps == "same":
        update_plan(checkpoint, _plan_document(job, plan))
        return checkpoint
    if change.keeps == "offsets" or (change.keeps == "state" and keep == "offsets"):
        return _begin_with_offsets(job, plan, checkpoint, choose_tasks(job, cores))
    record_change(checkpoint, describe_parts(plan), _plan_document(job, plan), keep or "all")
    return checkpoint


def _has_other_inputs(change: Change) -> bool:
    return any(part.part == "inputs" for part in change.parts)


def _begin_with_offsets(job: JobPlan, plan: StatementPlan, old: Checkpoint, tasks: int) -> Checkpoint:
    """Create a checkpoint with an empty state whose sources continue at the offsets of the old one."""
    last = last_batch(old)
    before = read_job_record(old)
    # Without a commit the old one has done nothing yet: what it was to replace or to follow is passed on.
    is_unused = last is None
    if last is not None:
        _check_state(old, last)
    record = replace(
        _new_record(job, plan, tasks),
        replaces=before.replaces if is_unused else None,
        follows=(before.follows if is_unused else None) or old.name,
        first_batch=before.first_batch if last is None else last + 1,
    )
    checkpoint = create_checkpoint(old.root.parent, record)
    if old.spark.exists():
        copy_folder(old.spark, checkpoint.spark)
    if last is not None:
        save_abandoned(old, checkpoint, last)
    elif old.rejects.exists():  # rows that the old one abandoned when it took over its offsets
        copy_folder(old.rejects, checkpoint.rejects)
    # Last: until then the old checkpoint is the current one, and a killed start leaves only an unused folder.
    activate(checkpoint)
    return checkpoint


def _check_state(checkpoint: Checkpoint, batch: int) -> None:
    """Raise `StreamError` W2202 when a file of the state is missing: its waiting rows would be lost."""
    for entry in list_state(checkpoint, read_manifest(checkpoint, batch)):
        for name in list_files(entry):
            path = checkpoint.join_state(entry["join"]) / name
            if not path.exists():
                raise damaged_file(path, f"it is missing, and batch {batch} lists it")


def save_abandoned(old: Checkpoint, new: Checkpoint, batch: int) -> None:
    """Write the waiting rows of `old` as rejects of `new`."""
    for number, entry in enumerate(list_state(old, read_manifest(old, batch))):
        rows = read_waiting(JoinFolder(open_files(old.root), entry["join"]), entry)
        place = JoinFolder(open_files(new.root), entry["join"])
        save_rejects(place, rows, batch, NEVER, task=number, attempt=uuid.uuid4().hex[:12])
    for folder in (*new.rejects.glob("*"), new.rejects, new.root):
        if folder.is_dir():
            sync_path(folder)


def describe_changes(change: Change, *, with_reasons: bool) -> tuple[str, list[str]]:
    """Return the parts of a statement that do not keep the state, and lines with each before and after."""
    changed = [part for part in change.parts if part.keeps not in ("same", "all")]
    lines = []
    for part in changed:
        lines.append(f"{part.part} was: {part.old or '(nothing)'}")
        lines.append(f"{' ' * len(part.part)}  is: {part.new or '(nothing)'}")
        lines += [f"    {part.why}"] if with_reasons else []
    return format_list([part.part for part in changed]), lines


def _changed_error(plan: StatementPlan, checkpoint: Checkpoint, change: Change, keep: Keep | None) -> StreamError:
    names, lines = describe_changes(change, with_reasons=True)
    ways = []
    if change.keeps == "state":
        ways.append("`--keep state` continues with the state and the offsets")
    if not _has_other_inputs(change):
        ways.append("`--keep offsets` continues with an empty state; waiting rows become rejects (ABANDONED)")
    ways.append("`--fresh` reads everything again and replaces the output")
    refusal = f", and --keep {keep} does not cover it" if keep else ""
    return StreamError(
        f"the query of {plan.name!r} is not the one of its checkpoint {checkpoint.name}: it changed in {names}{refusal}",
        code="W2203",
        help="\n".join((*lines, *ways)),
    )
