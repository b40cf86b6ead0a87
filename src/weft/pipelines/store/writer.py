"""Store: write access to a store; each method is one transaction that may be retried."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from sqlalchemy import Connection, func, select, update

from weft.errors import RunError
from weft.pipelines.model.values import ProjectStatus
from weft.pipelines.plan.impact import ConflictReport
from weft.pipelines.store import locks, run_rows, tables, version_rows
from weft.pipelines.store.column_types import first_of
from weft.pipelines.store.connections import Database
from weft.pipelines.store.locks import Heartbeat
from weft.pipelines.store.reader import StoreReader, find_run
from weft.pipelines.store.records import (
    NewRun,
    OperationCounts,
    OutputRecord,
    Registration,
    RunFailure,
    RunRecord,
    short_id,
)
from weft.pipelines.store.run_rows import death_failure, locked_error, lost_error, not_resumable_error, stopping_error
from weft.pipelines.store.version_rows import Entity

T = TypeVar("T")
_STOPPING_SECONDS = 600
"""How long a process of this host that cancelled its run is believed to be stopping."""
Clock = Callable[[], dt.datetime]


class _FasterError(Exception):
    """Another process took the locks first; undoes the transaction."""


class Store(StoreReader):
    """A store that can be changed: runs, versions, the state of projects.

    Writes to a run by a process that has lost the locks of the run are refused.
    """

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        super().__init__(database)
        self.clock = clock
        self.host, self.pid = locks.this_process()
        # The runs that this process has started or taken over, with the host and pid of their locks.
        self._mine: dict[str, tuple[str, int]] = {}

    def now(self, connection: Connection) -> dt.datetime:
        """Return the time: that of a shared database, so that the clocks of hosts need not agree."""
        if self.clock is not None:
            return self.clock()
        if connection.dialect.name == "postgresql":
            moment: dt.datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
            return moment
        return dt.datetime.now(dt.UTC)

    def create_run(self, new: NewRun) -> RunRecord:
        """Create a run: its row and its lock, both or neither.

        A lock whose holder died is taken over, and that run is marked as failed.
        """
        lease = locks.Lease(
            name=locks.run_lock(new.project.id, new.period.identifier, sandbox=new.sandbox),
            run_id=new.run_id,
            owner=new.triggered_by,
            host=new.host,
            pid=new.pid,
        )

        def work(connection: Connection) -> RunRecord:
            now = self.now(connection)
            # The transaction may be repeated after a commit whose answer was lost; the run exists then.
            if run_rows.run_row(connection, new.run_id) is None:
                run_rows.insert_run(connection, new, now)
                self._lock(connection, lease, now)
            return find_run(connection, new.run_id)

        run = self.database.write(work)
        self._mine[run.id] = (new.host, new.pid)
        return run

    def _lock(self, connection: Connection, lease: locks.Lease, now: dt.datetime) -> None:
        holder = locks.acquire(connection, lease, now)
        if holder is None:
            return
        why = locks.stale(holder, now, lease.host)
        if not why:
            raise locked_error(connection, holder)
        if any(o.state == "publishing" for o in run_rows.outputs_of(connection, holder.run_id)):
            # Failing that run here would leave some of its targets new and some old: only `recover` may end it.
            raise RunError(
                f"run {short_id(holder.run_id)} died while it published: {why}",
                code="W1502",
                help=f"`weft runs show {short_id(holder.run_id)}` completes it; then start again",
            )
        if not locks.take(connection, holder, lease, now):
            raise locked_error(connection, holder)
        if holder.run_id != lease.run_id:
            run_rows.fail_run(connection, holder.run_id, death_failure(why), now)

    def set_running(self, run_id: str) -> RunRecord:
        """Set a queued run to running."""

        def work(connection: Connection) -> RunRecord:
            started = first_of(tables.RUNS.c.started_at, self.now(connection))
            run_rows.change_status(connection, run_id, "running", ("queued",), started_at=started)
            return find_run(connection, run_id)

        return self._held(run_id, work)

    def operation_started(self, run_id: str, seq: int) -> None:
        """Record the start of an operation."""
        self._held(run_id, lambda c: run_rows.start_step(c, run_id, seq, self.now(c)))

    def operation_done(self, run_id: str, counts: OperationCounts) -> None:
        """Record the end of an operation and its counts."""
        self._held(run_id, lambda c: run_rows.finish_step(c, run_id, counts, self.now(c)))

    def record_row_fingerprints(self, run_id: str, fingerprints: Mapping[str, str]) -> None:
        """Record fingerprints of the rows of reads, in addition to those of their files."""

        def work(connection: Connection) -> None:
            for name, rows in fingerprints.items():
                run_rows.put_row_fingerprint(connection, run_id, name, rows)

        self._held(run_id, work)

    def output_staged(self, output: OutputRecord) -> None:
        """Record an output that is written and verified."""
        self._held(output.run_id, lambda c: run_rows.put_output(c, output))

    def begin_publish(self, run_id: str, outputs: Iterable[OutputRecord]) -> None:
        """Set all outputs to publishing in one transaction.

        Each target is locked, so that two projects do not move the same folder.
        """
        moved = tuple(outputs)

        def work(connection: Connection) -> None:
            now = self.now(connection)
            run = find_run(connection, run_id)
            # In one order for all runs: two that share several targets cannot wait for each other.
            for target in sorted({output.target for output in moved}):
                lease = locks.Lease(
                    name=locks.publish_lock(target), run_id=run_id, owner=run.triggered_by, host=run.host, pid=run.pid
                )
                self._lock(connection, lease, now)
            for output in moved:
                run_rows.put_output(connection, output)
            run_rows.set_outputs(connection, run_id, "publishing", but=("published", "discarded"))

        self._held(run_id, work)

    def complete(self, run_id: str, registrations: Iterable[Registration] = ()) -> RunRecord:
        """Complete a run in one transaction: outputs published, datasets registered, locks released."""
        new_datasets = tuple(registrations)

        def work(connection: Connection) -> RunRecord:
            now = self.now(connection)
            run_rows.set_outputs(connection, run_id, "published", but=("discarded",))
            outputs = tables.RUN_OUTPUTS
            for new in new_datasets:
                version = version_rows.add_registered(connection, new, run_id, now)
                connection.execute(
                    update(outputs)
                    .where(outputs.c.run_id == run_id, outputs.c.seq == new.seq)
                    .values(dataset_id=new.dataset.id, dataset_name=new.dataset.name, dataset_version=version)
                )
            # The time of the first attempt, when this transaction is repeated.
            ended = first_of(tables.RUNS.c.completed_at, now)
            run_rows.change_status(connection, run_id, "completed", ("running",), completed_at=ended)
            locks.release(connection, run_id)
            return find_run(connection, run_id)

        return self._ended(run_id, work)

    def fail(self, run_id: str, failure: RunFailure) -> RunRecord:
        """Set a run to failed; its staged data stays, so that it can be resumed."""

        def work(connection: Connection) -> RunRecord:
            run_rows.fail_run(connection, run_id, failure, self.now(connection))
            return find_run(connection, run_id)

        return self._ended(run_id, work)

    def cancel(self, run_id: str) -> RunRecord:
        """Cancel a run; its process notices within seconds."""

        def work(connection: Connection) -> RunRecord:
            run = find_run(connection, run_id)
            if run.status == "cancelled":
                return run
            if any(o.state == "publishing" for o in run_rows.outputs_of(connection, run.id)):
                raise RunError(
                    f"run {short_id(run.id)} is publishing and can no longer be cancelled",
                    code="W1102",
                    help="wait until it has ended",
                )
            now = self.now(connection)
            run_rows.change_status(connection, run.id, "cancelled", ("queued", "running"), completed_at=now)
            run_rows.stop_operations(connection, run.id)
            run_rows.set_outputs(connection, run.id, "discarded")
            locks.release(connection, run.id)
            return find_run(connection, run.id)

        return self.database.write(work)

    def resume(self, run_id: str, owner: str | None = None) -> RunRecord:
        """Resume a run that failed or was cancelled: the same run and snapshot, one more attempt."""

        def work(connection: Connection) -> RunRecord:
            now, run = self.now(connection), find_run(connection, run_id)
            if run.status == "running" and locks.holds(connection, run.id, self.host, self.pid):
                return run
            if run.status not in ("failed", "cancelled"):
                raise not_resumable_error(run)
            if self._is_stopping(run, now):
                raise stopping_error(run)
            self._lock(connection, self._run_lease(run, owner or run.triggered_by), now)
            run_rows.revive(connection, run, self.host, self.pid, now)
            return find_run(connection, run.id)

        resumed = self.database.write(work)
        self._mine[resumed.id] = (self.host, self.pid)
        return resumed

    def _is_stopping(self, run: RunRecord, now: dt.datetime) -> bool:
        """Whether the process of a cancelled run may still write to its stage."""
        if run.status != "cancelled" or not run.host or (run.host, run.pid) == (self.host, self.pid):
            return False
        since = (now - (run.completed_at or run.created_at)).total_seconds()
        if run.host == self.host:  # after a while the pid may belong to another process
            return since < _STOPPING_SECONDS and locks.is_alive(run.pid)
        return since < locks.LEASE_SECONDS

    def is_stopping(self, run_id: str) -> bool:
        """Return whether the process of a cancelled run has not stopped yet."""
        return self.database.read(lambda c: self._is_stopping(find_run(c, run_id), self.now(c)))

    def abandoned(self) -> tuple[RunRecord, ...]:
        """Return the runs that have not ended although their process died."""

        def work(connection: Connection) -> tuple[RunRecord, ...]:
            now = self.now(connection)
            open_runs = run_rows.open_runs(connection)
            held = {run.id: run_rows.leases_of(connection, run.id) for run in open_runs}
            # A run without any lock counts as abandoned too: `all` of nothing is true.
            return tuple(run for run in open_runs if all(locks.stale(lease, now, self.host) for lease in held[run.id]))

        return self.database.read(work)

    def take_over(self, run_id: str, owner: str = "") -> RunRecord | None:
        """Take the locks of an abandoned run; None when its process is alive or another process was faster."""

        def work(connection: Connection) -> RunRecord | None:
            now, run = self.now(connection), find_run(connection, run_id)
            if run.is_over:
                return None
            held = run_rows.leases_of(connection, run.id)
            name = self._run_lease(run, owner or run.triggered_by)
            if not held and locks.acquire(connection, name, now) is not None:
                return None
            for seen in held:
                mine = (seen.host, seen.pid) == (self.host, self.pid) and run.id in self._mine
                mine_now = locks.Lease(name=seen.name, run_id=run.id, owner=name.owner, host=self.host, pid=self.pid)
                fresh = not mine and not locks.stale(seen, now, self.host)
                if fresh or not locks.take(connection, seen, mine_now, now):
                    # An exception, so that the locks taken so far are given up with the transaction.
                    raise _FasterError
            run_rows.move_run(connection, run.id, self.host, self.pid)
            return find_run(connection, run.id)

        try:
            taken = self.database.write(work)
        except _FasterError:
            return None
        if taken is not None:
            self._mine[taken.id] = (self.host, self.pid)
        return taken

    def heartbeat(self, run_id: str, every: float = locks.BEAT_SECONDS) -> Heartbeat:
        """Return a context in which a thread renews the locks of the run."""

        def beat() -> None:
            self._held(run_id, lambda c: locks.beat(c, run_id, *self._mine[run_id], self.now(c)))

        def look() -> None:
            self.database.read(lambda c: self._check_held(c, run_id, keep=False))

        return Heartbeat(beat, every, look)

    def mark_stopped(self, run_id: str) -> None:
        """Record that the process of a cancelled run has stopped and no longer writes."""
        host, pid = self._mine.get(run_id, (self.host, self.pid))

        def work(connection: Connection) -> None:
            run = find_run(connection, run_id)
            # Another process may have resumed the run in the meantime: then it is not this one's to change.
            if run.status == "cancelled" and (run.host, run.pid) == (host, pid):
                run_rows.move_run(connection, run_id, "", 0)

        self.database.write(work)

    def remove_run(self, run_id: str) -> None:
        """Remove a run that has ended; its published data stays."""

        def work(connection: Connection) -> None:
            run = run_rows.run_row(connection, run_id)
            if run is not None and not run.is_over:
                raise RunError(
                    f"run {short_id(run_id)} is {run.status}: only a run that has ended can be removed",
                    code="W1102",
                    help=f"`weft runs cancel {short_id(run_id)}` first",
                )
            run_rows.delete_run(connection, run_id)

        self.database.write(work)

    def _run_lease(self, run: RunRecord, owner: str) -> locks.Lease:
        name = locks.run_lock(run.project_id, run.period, sandbox=run.sandbox)
        return locks.Lease(name=name, run_id=run.id, owner=owner, host=self.host, pid=self.pid)

    def _check_held(self, connection: Connection, run_id: str, *, keep: bool = True) -> None:
        """Raise W1502 when this process has lost the locks of a run that it started or took over."""
        mine = self._mine.get(run_id)
        if mine is not None and not locks.holds(connection, run_id, *mine, keep=keep):
            raise lost_error(connection, run_id)

    def _held(self, run_id: str, work: Callable[[Connection], T]) -> T:
        """Run work that only the holder of a run's locks may do."""

        def guarded(connection: Connection) -> T:
            self._check_held(connection, run_id)
            return work(connection)

        return self.database.write(guarded)

    def _ended(self, run_id: str, work: Callable[[Connection], RunRecord]) -> RunRecord:
        """Run the work that ends a run; a run that has ended stays as it is."""

        def guarded(connection: Connection) -> RunRecord:
            run = find_run(connection, run_id)
            if run.is_over:
                return run
            self._check_held(connection, run_id)
            return work(connection)

        return self.database.write(guarded)

    # versions

    def record(self, entity: Entity, at: dt.datetime | None = None) -> None:
        """Keep a version of a dataset, project or resolver; a changed body of a known version is rejected."""
        self.database.write(lambda c: version_rows.put_version(c, entity, at or self.now(c)))

    # the state of projects

    def set_state(
        self, project_id: str, status: ProjectStatus, *, active_version: int | None = None, pinned: int | None = None
    ) -> None:
        """Record that a project is a draft, active or inactive; this clears an open conflict."""
        self.database.write(
            lambda c: version_rows.put_state(
                c, project_id, status, self.now(c), active_version=active_version, pinned=pinned
            )
        )

    def set_conflict(self, project_id: str, report: ConflictReport) -> None:
        """Record the conflict of a project; it cannot run until that is resolved."""
        self.database.write(lambda c: version_rows.put_state(c, project_id, "conflict", self.now(c), conflict=report))
