"""Cluster: what the workers of a session have and reach; used by `weft doctor --cluster`.

One small job asks every worker, a second one compares the clocks::

    driver writes a marker to each folder and store
      -> tasks, two for each core: versions, packages, markers, a file of their own in each store
      -> reports, one for each worker, that is for each host and folder of an executor
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer
from types import ModuleType
from typing import Any
from uuid import uuid4

from pyspark import cloudpickle

import weft.codes
import weft.core
import weft.errors
import weft.io.datasource
import weft.io.stores
import weft.redaction
from weft.core.documents import Document
from weft.core.frozen import FrozenMap
from weft.errors import WeftError, WorkerError
from weft.expr.spark.frames import functions_of
from weft.io.location import is_local
from weft.io.spark.failures import data_failure
from weft.io.spark.session import Session
from weft.io.stores import FileStore, hadoop_address, open_store
from weft.io.stores.base import refused_error
from weft.joins.spark.workers import WORKERS_NEED
from weft.pipelines.run import on_worker
from weft.pipelines.run.workers import explain_worker_failure
from weft.redaction import redact

ASKED = (*WORKERS_NEED, "obstore", "pyspark")
"""The packages whose versions workers report; that of pyspark is the Spark of the executor."""
_SECONDS = 120.0
_TAG = "weft-doctor-cluster"
_HOLD = 1.0
"""Seconds that a task takes on a cluster, so that tasks are left for workers that join late."""
_ROWS = 1 << 16  # enough for a row in each partition of any cluster
_STORE_SETTINGS = {"timeout": "5", "retries": "1"}
_SHIPPED: tuple[ModuleType, ...] = (
    on_worker, weft.codes, weft.core, weft.errors, weft.redaction, weft.io.datasource, weft.io.stores,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder or store that a workspace uses; streams reach a store from Python, runs by Spark alone."""

    address: str
    writes: bool = False
    is_stream: bool = False

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of a local or mounted disk."""
        return is_local(self.address)


@dataclass(frozen=True, slots=True)
class Offset(Document):
    """How far a clock is ahead of another one, in seconds: at least and at most."""

    least: float
    most: float

    def is_beyond(self, seconds: float) -> bool:
        """Whether the clocks certainly differ by more than some seconds."""
        return self.least > seconds or self.most < -seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAnswer(Document):
    """What a worker can do with a store: nothing when there is a code; `clock` compares it with the store."""

    code: str = ""
    message: str = ""
    help: str = ""
    clock: Offset | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport(Document):
    """One worker: an executor, or this machine. `packages` that it does not have are null."""

    host: str
    folder: str
    python: str
    path: str
    packages: FrozenMap[str, str | None]
    clock: Offset | None
    folders: FrozenMap[str, bool]
    stores: FrozenMap[str, StoreAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The reports of all workers, and of the driver; `spark_stores` has the error of Spark for each store, None if it can read it.

    `problems` are places that were not tried, with the reason.
    """

    workers: tuple[WorkerReport, ...]
    driver: WorkerReport
    spark: str
    spark_stores: Mapping[str, WeftError | None]
    problems: Mapping[str, WeftError]


def survey_workers(session: Session, places: Sequence[Place]) -> Survey:
    """Return what each worker of a session reports; raise what stops the job."""
    marker = f"weft-doctor-{uuid4().hex[:12]}"
    stores, problems = _open_stores(places)
    with ExitStack() as stack:
        folders = {
            place.address: str(path)
            for place in places
            if place.is_folder and (path := stack.enter_context(_marked_folder(Path(place.address), marker)))
        }
        payload = pack_question(ASKED, marker, folders, stores)
        hold = 0.0 if _is_local(session) else _HOLD
        answers, _ = _ask(session, payload, hold, is_first=True)
        # Sessions and Python are warm now, so that this job bounds the clocks closely.
        clocks, (before, after) = _ask(session, pack_question((), marker, {}, {}), hold / 2)
        driver = on_worker.report_worker(ASKED, marker, folders, stores, 0.0)
        spark_stores = _read_with_spark(session, stores, marker)
    workers = merge_reports(answers, measure_clocks(clocks, before, after))
    (own,) = merge_reports([driver], {})
    return Survey(
        workers=workers, driver=own, spark=session.spark.version, spark_stores=spark_stores, problems=problems
    )


def pack_question(
    packages: Sequence[str], marker: str, folders: Mapping[str, str], stores: Mapping[str, tuple[FileStore, bool]]
) -> bytes:
    """Return the pickled function that a worker calls with a number of seconds, without need of Weft there."""
    with _by_value(_SHIPPED):
        packed: bytes = cloudpickle.dumps(  # type: ignore[no-untyped-call]  # pyspark ships it untyped
            (on_worker.report_worker, (tuple(packages), marker, dict(folders), dict(stores)))
        )
    return packed


@contextmanager
def _by_value(modules: Iterable[ModuleType]) -> Iterator[None]:
    """Pickle what modules define by value in the block; what others have registered stays."""
    with ExitStack() as stack:
        for module in modules:
            if module.__name__ not in cloudpickle.list_registry_pickle_by_value():  # type: ignore[no-untyped-call]
                cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
                stack.callback(cloudpickle.unregister_pickle_by_value, module)
        yield


def _is_local(session: Session) -> bool:
    return not session.is_connect and str(session.spark.conf.get("spark.master", "")).startswith("local")


def _ask(
    session: Session, payload: bytes, hold: float, *, is_first: bool = False
) -> tuple[list[dict[str, Any]], tuple[float, float]]:
    """Run tasks on all cores and return their answers, and the time of the driver before and after."""
    asked: list[int] = []  # pickled with the function, so that each task has its own

    def answer(row: int) -> str | None:
        if asked:
            return None
        asked.append(row)
        function, arguments = pickle.loads(payload)  # noqa: S301  # our own
        return json.dumps(function(*arguments, hold))

    spark = session.spark
    limit = Timer(_SECONDS, session.interrupt, [_TAG])
    limit.start()
    try:
        with session.tagged(_TAG), _explained():
            if is_first and hold:
                spark.range(1).count()  # waits for a worker; Spark knows its cores from then on
                time.sleep(hold)
            rows = spark.range(_ROWS).union(spark.range(_ROWS))
            F: Any = functions_of(rows)
            # Without Arrow: a worker that has no pyarrow answers too.
            # Not deterministic: Spark would call it once for the filter and once for the column.
            called = F.udf(answer, "string", useArrow=False).asNondeterministic()(F.col("id"))
            before = time.time()
            found = rows.select(called.alias("answer")).filter(F.col("answer").isNotNull()).collect()
            return [json.loads(row["answer"]) for row in found], (before, time.time())
    finally:
        limit.cancel()


@contextmanager
def _explained() -> Iterator[None]:
    """Raise what stops the job as an error with a code."""
    try:
        yield
    except Exception as failure:
        answer = explain_worker_failure(failure, _SECONDS)
        raise WorkerError(answer.problem, code="W1809", help=answer.help) from failure


def measure_clocks(answers: Iterable[Mapping[str, Any]], before: float, after: float) -> dict[tuple[str, str], Offset]:
    """Return for each worker how far its clock is ahead of the driver's, whose time was read around the tasks.

    >>> task = {"host": "node1", "folder": "/work/0", "start": 107.0, "end": 107.5}
    >>> measure_clocks([task], 100.0, 101.0)
    {('node1', '/work/0'): Offset(least=6.5, most=7.0)}
    """
    offsets: dict[tuple[str, str], Offset] = {}
    for task in answers:
        key = task["host"], task["folder"]
        known = offsets.get(key, Offset(float("-inf"), float("inf")))
        offsets[key] = Offset(max(known.least, task["end"] - after), min(known.most, task["start"] - before))
    return offsets


def merge_reports(
    answers: Iterable[Mapping[str, Any]], clocks: Mapping[tuple[str, str], Offset]
) -> tuple[WorkerReport, ...]:
    """Return one report for each worker: of what several tasks of one found, a problem counts."""
    reports: dict[tuple[str, str], WorkerReport] = {}
    for answer in answers:
        report = _read_report(answer, clocks)
        key = report.host, report.folder
        known = reports.setdefault(key, report)
        folders = {at: known.folders[at] and is_there for at, is_there in report.folders.items()}
        stores = {at: known.stores[at] if known.stores[at].message else store for at, store in report.stores.items()}
        reports[key] = replace(known, folders=FrozenMap(folders), stores=FrozenMap(stores))
    return tuple(reports[key] for key in sorted(reports))


def _read_report(answer: Mapping[str, Any], clocks: Mapping[tuple[str, str], Offset]) -> WorkerReport:
    key = answer["host"], answer["folder"]
    return WorkerReport(
        host=key[0],
        folder=key[1],
        python=answer["python"],
        path=answer["path"],
        packages=FrozenMap(answer["packages"]),
        clock=clocks.get(key),
        folders=FrozenMap(answer["folders"]),
        stores=FrozenMap({at: _read_store(store) for at, store in answer["stores"].items()}),
    )


def _read_store(answer: Mapping[str, Any]) -> StoreAnswer:
    if "message" in answer:
        return StoreAnswer(code=answer["code"], message=redact(answer["message"]), help=answer["help"])
    return StoreAnswer(clock=Offset(answer["least"], answer["most"]) if "least" in answer else None)


def _open_stores(
    places: Sequence[Place],
) -> tuple[dict[str, tuple[FileStore, bool]], dict[str, WeftError]]:
    """Return the store of each remote place and whether it is written to, and what is invalid in the others."""
    stores: dict[str, tuple[FileStore, bool]] = {}
    problems: dict[str, WeftError] = {}
    for place in places:
        if not place.is_folder:
            try:
                stores[place.address] = open_store(place.address, _STORE_SETTINGS), place.writes
            except WeftError as error:
                problems[place.address] = error
    return stores, problems


@contextmanager
def _marked_folder(folder: Path, marker: str) -> Iterator[Path | None]:
    """Write a marker to a folder, or to the one above that exists; yield its path, None if it cannot be written."""
    present = next(path for path in (folder, *folder.parents) if path.is_dir())
    path = present / f".{marker}"
    try:
        path.write_text(marker, encoding="ascii")
    except OSError:
        yield None
        return
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _read_with_spark(
    session: Session, stores: Mapping[str, tuple[FileStore, bool]], marker: str
) -> dict[str, WeftError | None]:
    """Return what stops Spark's own client, on a worker, from reading a marker in each store; None where it can."""
    return {address: _read_file(session, address, store, marker) for address, (store, _) in stores.items()}


def _read_file(session: Session, address: str, store: FileStore, marker: str) -> WeftError | None:
    # Where this process may not write, Spark looks for a file that is not there, which asks the store as well.
    with suppress(WeftError, OSError):
        store.create(marker, b"weft\n")
    try:
        session.spark.read.text(f"{hadoop_address(address)}/{marker}").collect()
    except WeftError as error:
        return error
    except Exception as failure:  # noqa: BLE001  # any failure is the result
        known = data_failure(failure)
        if known is not None:
            return None if known.code == "W1309" else known
        return refused_error(address, "read a file with Spark", str(failure).strip().partition("\n")[0])
    finally:
        with suppress(WeftError, OSError):
            store.delete([marker])
    return None
