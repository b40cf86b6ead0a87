"""The status of stream jobs, read from their files; nothing is started."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

from weft.core.documents import OPEN_WORD, Document, Key, format_micros
from weft.core.frozen import EMPTY, FrozenMap
from weft.core.names import quote_for_shell
from weft.errors import Diagnostic, StreamError
from weft.io.stores.store_path import Place
from weft.streams.checkpoint.commit import is_sealed
from weft.streams.checkpoint.folder import Checkpoint, find_checkpoint, read_job_record
from weft.streams.checkpoint.lease import find_runner
from weft.streams.checkpoint.ledger import SIDES, LedgerDocument, side_name
from weft.streams.checkpoint.lock import Holder
from weft.streams.checkpoint.manifest import Heartbeat, Manifest, last_manifest, list_batches, read_heartbeat
from weft.streams.checkpoint.supervisor import SupervisorFiles, SupervisorRecord, find_keeper, read_record
from weft.streams.plan.kernel_spec import build_layout, is_raw
from weft.streams.plan.resolved import Input, KernelStep, StatementPlan

State = Literal["running", "stopped", "failed", "sealed"]
Micros = Annotated[int, format_micros]
WARN_AT = 80
"""Per cent of a limit on rows at which the status warns."""

_MILLISECOND = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SideStatus(Document):
    """One side of a join: its size and its watermark; times are microseconds.

    `watermark` is the greatest event time of its stream minus the delay, `last_rows` the wall-clock time of
    its last rows.  A side that is the result of an earlier join has no alias.
    """

    DOCUMENT: ClassVar = (
        "side", "name", "watermark", "last_rows", "idle_since", "state_rows", "state_bytes", "limit", "fill"
    )  # fmt: skip

    side: str
    name: str
    alias: str | None = None
    watermark: Micros | None = None
    last_rows: Micros | None = None
    idle_since: Micros | None = None
    state_rows: int = 0
    state_bytes: int = 0
    limit: int | None = None

    @property
    def fill(self) -> Annotated[int | None, Key("fill_percent")]:
        """How full the side is, in per cent of its limit; None without one."""
        return None if not self.limit else self.state_rows * 100 // self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementStatus(Document):
    """The status of one statement; `held_back_by` names the stream that the watermark waits for."""

    UNLISTED: ClassVar = (
        "pid", "location", "checkpoint", "batches", "watermark", "held_back_by", "held_since", "sides"
    )  # fmt: skip

    name: Annotated[str, Key("sink")]
    state: Annotated[State, OPEN_WORD]
    pid: int | None = None
    location: str = ""
    checkpoint: Path
    batches: int = 0
    rows: int = 0
    watermark: Micros | None = None
    held_back_by: str | None = None
    held_since: Micros | None = None
    ledger: LedgerDocument = EMPTY
    sides: tuple[SideStatus, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about sides that are close to their limit."""
        return tuple(
            f"{side.name} of {self.name!r} keeps {side.state_rows:,} rows, {side.fill} % of its limit of {side.limit:,}"
            for side in self.sides
            if (side.fill or 0) >= WARN_AT
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus(Document):
    """The status of a job: its processes and its statements.

    `problems` are its damaged files; `is_orphan` means that its process outlived its supervisor.
    """

    DOCUMENT: ClassVar = (
        "name", "state", "pid", "supervisor", "since", "restarts", "error", "folder", "statements"
    )  # fmt: skip
    UNLISTED: ClassVar = ("supervisor", "since")

    name: Annotated[str, Key("job")]
    state: State
    folder: Annotated[Path, Key("checkpoint")]
    pid: int | None = None
    supervisor: int | None = None
    since: Micros | None = None
    restarts: int = 0
    error: FrozenMap[str, Any] | None = None
    statements: tuple[StatementStatus, ...] = ()
    problems: tuple[Diagnostic, ...] = ()
    is_orphan: bool = False


def plan_facts(plan: StatementPlan) -> FrozenMap[str, Any]:
    """Return the parts of a plan that `status` needs; job.json keeps them, so that status needs only files."""
    limits = {side_name(step.number, side): step.limits.max_state_rows for step in plan.kernel_steps for side in SIDES}
    connector = plan.sink.connector
    return FrozenMap(
        sides=FrozenMap(name_sides(plan)),
        aliases=FrozenMap(_iter_aliases(plan)),
        delays=FrozenMap({i.alias: i.stream.delay.microseconds for i in plan.inputs}),
        limits=FrozenMap(limits),
        children=FrozenMap(_iter_children(plan)),
        has_watermark=plan.has_watermark,
        location=str(connector.get("path") or connector.get("topic") or ""),
    )


def name_sides(plan: StatementPlan) -> dict[str, str]:
    """Return a display name for each side of the ledger: its stream or table, or the join before it.

    A stream that is read twice is shown with its alias.
    """
    numbers = [*(i.number for i in plan.inputs), *(t.number for t in plan.tables)]
    names = [_relation_name(plan, n) for n in numbers]
    sides: dict[str, str] = {}
    for step in plan.steps:
        left = _display_name(plan, step.left[0], names) if len(step.left) == 1 else f"join {step.number - 1}"
        sides[side_name(step.number, "left")] = left
        if isinstance(step, KernelStep):
            sides[side_name(step.number, "right")] = _display_name(plan, step.right, names)
    return sides


def _relation_name(plan: StatementPlan, number: int) -> str:
    source = plan.source(number)
    return source.stream.name if isinstance(source, Input) else source.table.name


def _display_name(plan: StatementPlan, number: int, names: list[str]) -> str:
    name = _relation_name(plan, number)
    return name if names.count(name) == 1 else f"{name} {plan.source(number).alias}"


def _iter_aliases(plan: StatementPlan) -> Iterator[tuple[str, str]]:
    for step in plan.kernel_steps:
        for side, numbers in zip(SIDES, (step.left, (step.right,)), strict=True):
            source = plan.source(numbers[0])
            if len(numbers) == 1 and isinstance(source, Input):
                yield side_name(step.number, side), source.alias


def source_sides(plan: StatementPlan) -> FrozenMap[str, str]:
    """Return the sides of the ledger that take rows from a source, with its alias."""
    sides: dict[str, str] = {}
    for step in plan.kernel_steps:
        for side, numbers in zip(SIDES, (step.left, (step.right,)), strict=True):
            for source in plan.inputs:
                if source.number in numbers and is_raw(plan, step, source.number):
                    sides[side_name(step.number, side)] = source.alias
    # Without a join that has state, the first step or the statement itself counts its stream as the left side.
    return FrozenMap(sides or {"left": plan.inputs[0].alias})


def _iter_children(plan: StatementPlan) -> Iterator[tuple[str, FrozenMap[str, str]]]:
    """Yield for each side of a join the column names of its children."""
    for step in plan.kernel_steps:
        layout = build_layout(plan, step)
        for side, children in zip(SIDES, (layout.left, layout.right), strict=True):
            named = {c.name: _column_name(plan, c.slot[1], c.slot[2]) for c in children if c.slot[0] == "i"}
            yield side_name(step.number, side), FrozenMap(named)


def _column_name(plan: StatementPlan, number: int, index: int) -> str:
    source = plan.source(number)
    columns = source.stream.columns if isinstance(source, Input) else source.table.columns
    return columns.fields[index].name


def list_jobs(base: Path) -> tuple[str, ...]:
    """Return the names of the jobs that have files in a folder."""
    entries = base.iterdir() if base.is_dir() else ()
    return tuple(sorted(p.name for p in entries if p.is_dir() and not p.name.startswith(".")))


def read_job_status(name: str, folder: Place, files: SupervisorFiles | None = None) -> JobStatus:
    """Read the status of the job in a folder; `files` are those of its supervisor, in the folder if it is on a disk.

    Its locks decide whether it is running.  Damaged files are listed in the problems and do not hide the rest.
    """
    files = files or SupervisorFiles(cast("Path", folder))
    problems: list[Diagnostic] = []
    record = _try_read_record(files, problems)
    by = find_keeper(files)
    # The last record says that it runs, but no process holds the lock: none was left to record the end.
    killed = record is not None and record.at_work and by is None
    failed = killed or (record is not None and record.state == "failed")
    statements = tuple(_iter_statements(folder, problems, failed=failed))
    state: State = "stopped"
    if by is not None or any(s.state == "running" for s in statements):
        state = "running"
    elif failed:
        state = "failed"
    elif statements and all(s.state == "sealed" for s in statements):
        state = "sealed"
    holding = next((s.pid for s in statements if s.pid), None)
    return JobStatus(
        name=name,
        state=state,
        folder=cast("Path", folder),  # or a place in a store
        pid=record.child_pid if record is not None and record.child.runs else holding,
        supervisor=None if by is None else _supervisor_pid(record, by),
        since=None if record is None else record.since,
        restarts=0 if record is None else len(record.restarts),
        error=_killed_error(name) if killed else None if record is None else record.error,
        statements=statements,
        problems=tuple(problems),
        is_orphan=by is not None and _supervisor_pid(record, by) is None,
    )


def _try_read_record(files: SupervisorFiles, problems: list[Diagnostic]) -> SupervisorRecord | None:
    try:
        return read_record(files)
    except StreamError as damaged:
        problems.extend(replace(d, severity="warning") for d in damaged.diagnostics)
        return None


def _supervisor_pid(record: SupervisorRecord | None, by: Holder) -> int | None:
    """Return the process id of the supervisor, None if it was killed and only the child is running."""
    if record is not None and by.process == record.child:
        return None
    return by.process.pid if by.process.runs or by.host != socket.gethostname() else None


def _killed_error(name: str) -> FrozenMap[str, Any]:
    return FrozenMap(
        code="W2225",
        message=f"the processes of the job {name!r} were killed, or the machine stopped",
        help=f"nothing that is committed is lost; `weft stream start {quote_for_shell(name)}` continues after the last commit",
    )


def _iter_statements(folder: Place, problems: list[Diagnostic], *, failed: bool) -> Iterator[StatementStatus]:
    for statement in _statement_folders(folder):
        try:
            checkpoint = find_checkpoint(statement)
            if checkpoint is not None:
                yield read_statement_status(checkpoint, failed=failed)
        except StreamError as damaged:  # the other statements are still shown
            problems.extend(damaged.diagnostics)


def iter_checkpoints(folder: Place) -> Iterator[Checkpoint]:
    """Yield the current checkpoint of each statement of a job."""
    for statement in _statement_folders(folder):
        checkpoint = find_checkpoint(statement)
        if checkpoint is not None:
            yield checkpoint


def _statement_folders(folder: Place) -> list[Place]:
    entries: Iterable[Place] = folder.iterdir() if folder.is_dir() else ()
    return sorted(p for p in entries if p.is_dir() and not p.name.startswith("."))


def read_statement_status(checkpoint: Checkpoint, *, failed: bool = False) -> StatementStatus:
    """Read the status of a statement; `failed` means that its job failed and is not restarted."""
    record = read_job_record(checkpoint)
    # Without the lock: a batch may commit meanwhile, but every file is replaced atomically.
    manifest = last_manifest(checkpoint) or Manifest(batch=-1)
    by = find_runner(checkpoint.lock)
    state: State = "failed" if failed else "stopped"
    if by is not None:
        state = "running"
    elif is_sealed(checkpoint):
        state = "sealed"
    plan: Mapping[str, Any] = record.plan
    beat = read_heartbeat(checkpoint, manifest.batch) if manifest.batch >= 0 else None
    sides = _side_statuses(plan, manifest, beat)
    back = _find_held_back(plan, sides)
    return StatementStatus(
        name=checkpoint.root.parent.name,
        state=state,
        checkpoint=cast("Path", checkpoint.root),  # or a place in a store
        pid=by.process.pid if by is not None else None,
        location=str(plan.get("location", "")),
        batches=len(list_batches(checkpoint.commits)),
        rows=manifest.total_rows,
        watermark=None if manifest.final else manifest.watermark,
        held_back_by=None if back is None or manifest.final else back.name,
        held_since=None if back is None or manifest.final else back.last_rows,
        ledger=manifest.ledger,
        sides=sides,
    )


def _side_statuses(plan: Mapping[str, Any], manifest: Manifest, beat: Heartbeat | None) -> tuple[SideStatus, ...]:
    aliases, delays = plan.get("aliases", EMPTY), plan.get("delays", EMPTY)
    names, limits = plan.get("sides", EMPTY), plan.get("limits", EMPTY)
    idle = EMPTY if beat is None else beat.idle
    statuses = []
    for side in dict.fromkeys((*names, *manifest.ledger)):
        alias = aliases.get(side)
        max_time = None if alias is None else manifest.max_times.get(alias)
        stats = manifest.stats.get(side, EMPTY)
        statuses.append(
            SideStatus(
                side=side,
                name=names.get(side, side),
                alias=alias,
                # Whole milliseconds, as the watermark of the statement has them.
                watermark=None if max_time is None else max_time // _MILLISECOND * _MILLISECOND - delays.get(alias, 0),
                last_rows=None if alias is None else manifest.last_rows.get(alias),
                idle_since=idle.get(alias, EMPTY).get("since") if alias is not None else None,
                state_rows=stats.get("current_size") or 0,
                state_bytes=stats.get("current_bytes") or 0,
                limit=limits.get(side),
            )
        )
    return tuple(statuses)


def _find_held_back(plan: Mapping[str, Any], sides: tuple[SideStatus, ...]) -> SideStatus | None:
    """Return the stream that the watermark waits for: one without rows so far, or the one with the least watermark."""
    if not plan.get("has_watermark", False):
        return None
    # Of sides without a watermark the first, else the one with the least.
    waited = [s for s in sides if s.alias is not None and s.idle_since is None]
    return min(waited, key=lambda s: (s.watermark is not None, s.watermark or 0), default=None)
