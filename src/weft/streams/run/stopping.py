"""Stopping: ask a job to end after its batch, then end it, then kill it; the lock tells when it is gone."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from weft.core.names import shell_word
from weft.errors import StreamError
from weft.streams.checkpoint.lock import Holder, holder, locked
from weft.streams.checkpoint.processes import Process
from weft.streams.checkpoint.supervisor import (
    SupervisorFiles,
    ask_to_stop,
    keeper,
    known_record,
    write_record,
)
from weft.streams.run.supervise import World, runs_already, send

_LOOK = 0.2
_PATIENCE = 15.0


def stop_job(
    files: SupervisorFiles,
    job: str,
    *,
    timeout: float = 60.0,
    force: bool = False,
    world: World | None = None,
) -> str:
    """End a job; return how: after its batch, ended, or killed.  Raise W2215 when it does not run or stays.

    Signals go to the processes that the record and the locks name, and only while they are the same ones.
    """
    world = world or World()
    by = keeper(files)
    if by is None:
        raise _does_not_run(files, job)
    how = _end(files, by, timeout, force=force, world=world)
    if how is None:
        raise _stays(files, job, by, timeout, force=force)
    _note_end(files, job)
    return how


def _end(files: SupervisorFiles, by: Holder, timeout: float, *, force: bool, world: World) -> str | None:
    ask_to_stop(files)
    if _gone(files, by, timeout, world):
        return "after its batch"
    patience = min(timeout, _PATIENCE)
    for number, how in ((signal.SIGTERM, "ended"), (signal.SIGKILL, "killed")):
        if number == signal.SIGKILL and not force:
            return None
        for one in _workers(files):
            send(one, number)
        if _gone(files, by, patience, world):
            return how
    send(by.process, signal.SIGKILL)  # a supervisor that no longer watches
    return "killed" if _gone(files, by, patience, world) else None


def _workers(files: SupervisorFiles) -> list[Process]:
    """Return the processes that run the job: the recorded child, and who holds the lock of a statement."""
    record = known_record(files)
    found = [] if record is None else [record.child]
    return list(dict.fromkeys([*found, *(by.process for by in _statement_holders(files))]))


def _statement_holders(files: SupervisorFiles) -> Iterator[Holder]:
    for lock in sorted(files.job.glob("*/lock")):
        by = holder(lock)
        if lock != files.lock and by is not None:
            yield by


def _gone(files: SupervisorFiles, by: Holder, seconds: float, world: World) -> bool:
    until = world.now() + seconds
    while True:
        now = keeper(files)
        if now is None or (now.process != by.process and now.process.runs):  # ended; perhaps started again
            return True
        if world.now() >= until:
            return False
        # A supervisor that had just taken the lock forgets the wishes of earlier lives, and this one with them.
        ask_to_stop(files)
        world.sleep(_LOOK)


def _note_end(files: SupervisorFiles, job: str) -> None:
    """Note that a job was stopped when its supervisor cannot: it was killed before, or just now."""
    with suppress(StreamError), locked(files.lock, lambda by: runs_already(job, by)):
        record = known_record(files)
        if record is not None and record.at_work:
            write_record(files, replace(record, state="stopped"))


def _does_not_run(files: SupervisorFiles, job: str) -> StreamError:
    record = known_record(files)
    killed = record is not None and record.at_work
    why = ": its processes were killed" if killed else ""
    return StreamError(
        f"the job {job!r} does not run{why}",
        code="W2215",
        help=f"`weft stream start {shell_word(job)}` starts it, `weft stream status` tells of all jobs",
    )


def _stays(files: SupervisorFiles, job: str, by: Holder, timeout: float, *, force: bool) -> StreamError:
    seen = [one for one in (*_workers(files), by.process) if one.runs]
    if force and not seen:
        help = f"its processes are not on this machine: end {by} there"
    elif force:
        help = f"end process {seen[0].pid} by hand; nothing that is committed is lost"
    else:
        help = f"`weft stream stop {shell_word(job)} --force` kills its process; nothing that is committed is lost"
    return StreamError(f"the job {job!r} did not end within {timeout:g} s", code="W2215", help=help)
