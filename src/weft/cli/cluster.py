"""What `weft doctor --cluster` looks at, and what it says about the answers of the workers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weft.cli.machine import Check
from weft.core.names import format_list
from weft.errors import WeftError
from weft.redaction import redact

if TYPE_CHECKING:
    from weft.pipelines.model.workspace import Workspace
    from weft.pipelines.run.cluster import Offset, Place, StoreAnswer, Survey, WorkerReport

CLOCK_SECONDS = 2.0
"""How far clocks may be apart."""
_SPARK = "pyspark"
_VARYING = re.compile(r"\{\{|[*?\[{]")
_SHARE = "use a folder that all machines mount under the same path, or an address such as s3://bucket/folder"
_SYNC = "let all machines set their clocks by NTP, for example: systemctl restart chrony"


def list_places(workspace: Workspace) -> tuple[tuple[Place, ...], tuple[Check, ...]]:
    """Return the folders and stores that a workspace uses, and the streaming jobs that cannot be read."""
    places = [*_pipeline_places(workspace)]
    unread = []
    for path in sorted(workspace.root.glob("streams/*.sql")):
        try:
            places += _stream_places(path, workspace.root)
        except WeftError as error:
            name = path.relative_to(workspace.root)
            unread.append(Check("streams", ok=True, found=f"{name} is not checked: {error.message}"))
    return merge_places(places), tuple(unread)


def _pipeline_places(workspace: Workspace) -> Iterator[Place]:
    from weft.io.connectors import file_kinds
    from weft.pipelines.model.operation import OutputOperation

    targets = [
        operation.arguments.destination
        for project in workspace.projects
        for operation in project.operations
        if isinstance(operation, OutputOperation)
    ]
    written = {target.datasource for target in targets}
    for source in workspace.datasources:
        prefix = str(source.options.get("path_prefix") or "")
        if prefix or source.type in file_kinds():
            yield _place(prefix, workspace.root, writes=source.id in written)
    for target in targets:
        if target.datasource is None:
            yield _place(target.path or "", workspace.root, writes=True)


def _stream_places(file: Path, root: Path) -> Iterator[Place]:
    from weft.streams.sql.job import read_job_text
    from weft.streams.sql.lower import read_spec

    name = file.relative_to(root).as_posix()
    job = read_spec(read_job_text(file, name), file=name, env=dict(os.environ))
    yield replace(_place(str(job.settings.get("checkpoint") or ".weft"), root, writes=True), is_stream=True)
    inputs = [stream.connector for stream in job.streams.values()] + [table.connector for table in job.tables.values()]
    for connector in inputs:
        if path := connector.get("path"):
            yield _place(str(path), root)
    for statement in job.statements:
        if path := statement.sink.connector.get("path"):
            yield replace(_place(str(path), root, writes=True), is_stream=True)


def _place(path: str, root: Path, *, writes: bool = False) -> Place:
    from weft.io.location import is_local, plain_path
    from weft.pipelines.run.cluster import Place

    # What varies with the period or matches many files is below a folder that does not.
    varying = _VARYING.search(path)
    fixed = path if varying is None else path[: varying.start()].rpartition("/")[0]
    if is_local(fixed):
        return Place(address=str(root.absolute() / plain_path(fixed)), writes=writes)
    return Place(address=fixed.rstrip("/"), writes=writes)


def merge_places(places: Sequence[Place]) -> tuple[Place, ...]:
    """Return each store once, and of folders inside each other the outermost one."""
    from weft.io.location import is_local

    merged: dict[str, Place] = {}
    for place in sorted(places, key=lambda place: len(place.address)):
        outer = (at for at in merged if is_local(at) and is_local(place.address) and _is_below(place.address, at))
        known = merged.get(next(outer, place.address), place)
        merged[known.address] = replace(
            known, writes=known.writes or place.writes, is_stream=known.is_stream or place.is_stream
        )
    return tuple(merged.values())


def _is_below(path: str, folder: str) -> bool:
    return Path(os.path.normpath(path)).is_relative_to(os.path.normpath(folder))


def check_survey(survey: Survey, places: Sequence[Place]) -> Iterator[Check]:
    """Return what the workers reported, each problem with its code and what to type."""
    labels = _label(survey.workers)
    for worker in survey.workers:
        yield _check_worker(worker, labels[worker], survey.spark)
    yield from _check_clocks(survey, labels)
    for place in places:
        yield from _check_folder(place, survey, labels) if place.is_folder else _check_store(place, survey, labels)


def _label(workers: Sequence[WorkerReport]) -> Mapping[WorkerReport, str]:
    """Return a name for each worker: its host, and the folder of its executor if the host has several."""
    hosts = [worker.host for worker in workers]
    return {
        worker: worker.host if hosts.count(worker.host) == 1 else f"{worker.host} (executor {Path(worker.folder).name})"
        for worker in workers
    }


def _check_worker(worker: WorkerReport, label: str, spark: str) -> Check:
    from weft.joins.spark.workers import WORKERS_NEED, format_worker_help, parse_release
    from weft.pipelines.run.workers import check_python

    shown = [f"{name} {release or 'missing'}" for name, release in worker.packages.items() if name != _SPARK]
    executor = worker.packages.get(_SPARK) or ""
    parts = [f"{label}: Python {worker.python} at {worker.path}", *shown, f"Spark {executor or 'unknown'}"]
    if worker.clock is not None:
        parts.append(f"clock within {_format_seconds(_bound(worker.clock))} of this machine")
    needed = {name: worker.packages.get(name) for name in WORKERS_NEED}
    answer = check_python(f"Python {worker.python} at {worker.path}", worker.python, needed)
    problem, help = answer.problem, answer.help
    if not problem and executor and parse_release(executor)[:2] != parse_release(spark)[:2]:
        problem, help = f"its PySpark is {executor} and Spark is {spark}", format_worker_help()
    if problem:
        return Check("worker", ok=False, found=f"W1809: {label}: {problem}", help=help)
    return Check("worker", ok=True, found=", ".join(parts))


def _check_clocks(survey: Survey, labels: Mapping[WorkerReport, str]) -> Iterator[Check]:
    for worker in survey.workers:
        if worker.clock is not None and worker.clock.is_beyond(CLOCK_SECONDS):
            yield _late_clock(f"the clock of {labels[worker]}", worker.clock, "that of this machine")
    for worker in (survey.driver, *survey.workers):
        name = labels.get(worker, "this machine")
        for address, store in worker.stores.items():
            if store.clock is not None and store.clock.is_beyond(CLOCK_SECONDS):
                yield _late_clock(f"the clock of {name}", store.clock, f"that of {address}")


def _late_clock(clock: str, offset: Offset, other: str) -> Check:
    seconds, word = (offset.least, "ahead of") if offset.least > 0 else (-offset.most, "behind")
    found = f"W1810: {clock} is at least {_format_seconds(seconds)} {word} {other}"
    return Check("clock", ok=False, found=found, help=_SYNC)


def _check_folder(place: Place, survey: Survey, labels: Mapping[WorkerReport, str]) -> Iterator[Check]:
    blind = [labels[worker] for worker in survey.workers if worker.folders.get(place.address) is False]
    if place.address not in survey.driver.folders:
        yield Check(
            "shared", ok=not place.writes, found=f"{place.address} is not checked: this machine cannot write to it"
        )
    elif blind:
        found = f"W1811: {place.address} is not shared: a file that this machine wrote there is missing on {format_list(blind)}"
        yield Check("shared", ok=False, found=found, help=_SHARE)
    else:
        yield Check("shared", ok=True, found=f"{place.address} is the same folder on all workers")


def _check_store(place: Place, survey: Survey, labels: Mapping[WorkerReport, str]) -> Iterator[Check]:
    address = place.address
    if (problem := survey.problems.get(address)) is not None:
        yield Check("files", ok=False, found=f"{problem.code}: {redact(problem.message)}", help=problem.help)
        return
    if (refused := survey.spark_stores.get(address)) is not None:
        found = f"{refused.code}: Spark cannot read {address}: {redact(refused.message)}"
        yield Check("files", ok=False, found=found, help=refused.help)
    failed = [(labels[worker], worker.stores[address]) for worker in survey.workers if worker.stores[address].message]
    if failed:
        yield _unreached(place, failed)
    elif refused is None:
        verb = "read and written" if place.writes else "read"
        yield Check("files", ok=True, found=f"{address} can be {verb} by all workers, and read by Spark")


def _unreached(place: Place, failed: Sequence[tuple[str, StoreAnswer]]) -> Check:
    """Return the finding for workers whose Python cannot use a store, which only streams need."""
    workers, first = format_list([name for name, _ in failed]), failed[0][1]
    reason = f"{first.code}: {first.message}" if first.code else first.message
    if place.is_stream:
        return Check("files", ok=False, found=f"{reason} (on {workers})", help=first.help)
    found = f"{place.address} can be read by Spark; the Python of {workers}, which only streams need, cannot: {reason}"
    return Check("files", ok=True, found=found)


def _bound(offset: Offset) -> float:
    return max(abs(offset.least), abs(offset.most))


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.1f} s"
