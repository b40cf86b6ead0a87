"""Session: where a run finds Spark, and the only module that starts one.

Sessions that Weft starts compare names by case, use UTC and reject values that do not fit.  A session of the
caller is used as it is and is not stopped.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TextIO

from py4j.protocol import Py4JError, Py4JJavaError

from weft.errors import RunError
from weft.io.options import SparkSettings
from weft.io.spark.class_archive import java_options
from weft.io.stores.hadoop import hadoop_defaults
from weft.joins.spark.workers import PYTHON, PYTHON_CONF

if TYPE_CHECKING:
    from pyspark import Accumulator, AccumulatorParam
    from pyspark.sql import SparkSession


def jars_folder() -> Path:
    """Return the folder of the Python environment that holds them; connectors have folders of their own in it."""
    return Path(sys.prefix, "share", "weft", "jars")


def installed_jars() -> tuple[Path, ...]:
    """Return the jars below ``share/weft/jars``; ``scripts/jars`` and ``weft connectors install`` put them there.

    They go into ``spark.jars`` of a session that Weft starts.
    """
    return tuple(sorted(p for p in jars_folder().rglob("*.jar") if ".tmp-" not in str(p)))


REMOTE = "SPARK_REMOTE"
OURS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "true",
}
_START: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # PySpark would send the JVM the place of each column expression: several messages for each.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Spark's default of 96 bits is read as nanoseconds by other readers, which end in the year 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
LOG = Path(".weft") / "logs" / "spark.log"
"""The log of Spark, below the workspace."""

JVM_GONE: tuple[type[Exception], ...] = (Py4JError, ConnectionError)
"""What calls of a classic session raise when its JVM was killed."""


def is_jvm_gone(failure: BaseException) -> bool:
    """Return whether a call into the JVM failed because its process has ended.

    A JVM that is alive answers with an exception (`Py4JJavaError`) or with the trace of why the call is invalid.  One
    that was killed ends whichever call is under way, so the messages of py4j vary with the moment.
    """
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, ConnectionError):
            return True
        if isinstance(cause, Py4JError) and not isinstance(cause, Py4JJavaError):
            return "Trace:" not in str(cause)
        cause = cause.__cause__
    return False


_POLL_SECONDS = 0.2
_STDERR, _LONG_LOG = 2, 10_000_000
_NO_JAVA = ("JAVA_GATEWAY_EXITED", "JAVA_HOME", "No such file or directory: 'java'")


@dataclass(frozen=True, slots=True)
class Session:
    """A Spark session, and whether it is ours to stop."""

    spark: SparkSession
    owned: bool = False

    @property
    def is_connect(self) -> bool:
        """Whether it talks to a Connect server."""
        return type(self.spark).__module__.startswith("pyspark.sql.connect.")

    def described(self) -> dict[str, Any]:
        """Return the settings of the session that snapshots keep; those that can change a result come first."""
        conf = self.spark.conf
        return {
            "timeZone": conf.get("spark.sql.session.timeZone"),
            "caseSensitive": conf.get("spark.sql.caseSensitive"),
            "ansi": conf.get("spark.sql.ansi.enabled"),
            "spark_version": self.spark.version,
            "shuffle_partitions": conf.get("spark.sql.shuffle.partitions"),
            "connect": self.is_connect,
        }

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        """Let the jobs of this thread carry a tag, by which they can be interrupted and watched."""
        self.spark.addTag(tag)
        # Job groups too: the status tracker of a classic session finds jobs by group, not by tag.
        if not self.is_connect:
            self.spark.sparkContext.setJobGroup(tag, f"weft run {tag}")
        try:
            yield
        finally:
            # A JVM that was killed has no tags left, and the failure that it caused must not be replaced by this one.
            with suppress(*JVM_GONE):
                self.spark.removeTag(tag)
                if not self.is_connect:
                    for name in ("spark.jobGroup.id", "spark.job.description"):
                        self.spark.sparkContext.setLocalProperty(name, None)  # type: ignore[arg-type]

    def interrupt(self, tag: str) -> None:
        """Stop the jobs that carry a tag."""
        self.spark.interruptTag(tag)

    def stop_jobs(self, tag: str, seconds: float) -> bool:
        """Stop the jobs that carry a tag and wait for their tasks; return whether none is left.

        Spark reports a job as cancelled while its tasks still run, and a task that runs creates the folder it
        writes to.  Connect does not report tasks: there the jobs are stopped and nothing is waited for.
        """
        until = time.monotonic() + seconds
        with suppress(Exception):  # a session that has ended has no tasks
            self.interrupt(tag)
            while not self.is_connect and self._is_at_work(tag):
                if time.monotonic() >= until:
                    return False
                time.sleep(_POLL_SECONDS)
                self.interrupt(tag)
        return True

    def close(self) -> None:
        """Stop a session that is ours; one that was handed in stays."""
        if self.owned:
            with suppress(*JVM_GONE):  # a JVM that has ended needs no stop, and its failure is raised already
                self.spark.stop()

    def _is_at_work(self, tag: str) -> bool:
        tracker = self.spark.sparkContext.statusTracker()
        jobs = [job for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(tag)) if job is not None]
        stages = map(tracker.getStageInfo, {stage for job in jobs for stage in job.stageIds})
        return any(job.status == "RUNNING" for job in jobs) or any(
            stage.numActiveTasks for stage in stages if stage is not None
        )

    def done_tasks(self, tag: str, since: int = -1) -> tuple[int, int]:
        """Return how many tasks of the jobs of a tag are done, and how many there are; classic sessions only.

        Jobs up to the number `since` are excluded.
        """
        tracker = self.spark.sparkContext.statusTracker()
        stages = {
            stage
            for job in tracker.getJobIdsForGroup(tag)
            if job > since and (info := tracker.getJobInfo(job)) is not None
            for stage in info.stageIds
        }
        infos = [s for s in map(tracker.getStageInfo, stages) if s is not None]
        return sum(s.numCompletedTasks for s in infos), sum(s.numTasks for s in infos)

    def last_job(self, tag: str) -> int:
        """Return the number of the last job of a tag, -1 when it has none; classic sessions only."""
        return max(self.spark.sparkContext.statusTracker().getJobIdsForGroup(tag), default=-1)


def collect_from_tasks(
    spark: SparkSession, how: AccumulatorParam[list[dict[str, Any]]]
) -> Accumulator[list[dict[str, Any]]]:
    """Return a list to which tasks add; Spark takes what an attempt added when it has succeeded."""
    return spark.sparkContext.accumulator([], how)


def count_cores(spark: SparkSession) -> int:
    """Return how many tasks a classic session runs at once."""
    return int(spark.sparkContext.defaultParallelism)


@contextmanager
def session_for(
    settings: SparkSettings, root: Path, *, spark: SparkSession | None = None, is_small: bool = False
) -> Iterator[Session]:
    """Open the session that ``weft.yml`` configures; a session of the caller is used as it is.

    With `is_small` a JVM that is started for it starts faster, and computes large data slower.
    """
    if spark is not None:
        yield Session(spark)
        return
    session = _started(settings, root, is_small=is_small)
    try:
        yield session
    finally:
        session.close()


def _started(settings: SparkSettings, root: Path, *, is_small: bool) -> Session:
    # Python turns timestamps into local time; the process of a run counts in UTC as Spark does.
    os.environ["TZ"] = "UTC"
    time.tzset()
    remote = settings.remote or os.environ.get(REMOTE)
    try:
        return _connected(remote, settings) if remote else _classic(settings, root, is_small=is_small)
    except RunError:
        raise
    except Exception as cause:
        raise _not_started(settings, remote, cause) from cause


def _connected(remote: str, settings: SparkSettings) -> Session:
    try:
        from pyspark.sql.connect.session import SparkSession as Remote  # noqa: PLC0415  # needs grpc
    except ImportError as cause:
        raise RunError(
            f"a client of the Spark Connect server at {remote} needs packages that are not installed: {_first_line(cause)}",
            code="W1314",
            help="pip install 'weft[connect]'",
        ) from cause
    spark: Any = Remote.builder.remote(remote).create()
    for key, value in {**dict(settings.conf), **OURS}.items():
        try:
            spark.conf.set(key, value)
        except Exception as cause:
            spark.stop()
            raise RunError(
                f"the server at {remote} rejects the setting {key} = {value}: {_first_line(cause)}",
                code="W1808",
                help="leave it out of `spark.conf` in weft.yml: the server has its own",
            ) from cause
    return Session(spark, owned=True)


def _classic(settings: SparkSettings, root: Path, *, is_small: bool) -> Session:
    from pyspark.sql import SparkSession as Classic  # noqa: PLC0415  # commands that need none load no pyspark

    active = Classic.getActiveSession()
    if active is not None and not type(active).__module__.startswith("pyspark.sql.connect."):
        # The process already runs Spark: a second session leaves the settings of the first one alone.
        beside = active.newSession()
        for key, value in OURS.items():
            beside.conf.set(key, value)
        return Session(beside)
    # Without a name Spark starts the `python3` of the PATH, which may have neither our packages nor our version.
    os.environ[PYTHON] = worker_python(settings)
    master = settings.master or "local[*]"
    builder = Classic.builder.master(master).appName("weft")
    conf = dict(_START) | {"spark.sql.warehouse.dir": str(root / ".weft" / "warehouse")}
    conf |= {f"spark.hadoop.{key}": value for key, value in hadoop_defaults().items()}
    conf |= java_options(settings.conf, is_small=is_small)
    if jars := installed_jars():
        conf |= {"spark.jars": ",".join(map(str, jars))}
    if master.startswith("local"):
        # A name of this machine that does not resolve, as on laptops and in containers, would stop Spark from starting.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        conf |= {"spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1))}
    # The settings of weft.yml override the defaults, but not those that the results depend on.
    for key, value in {**conf, **dict(settings.conf), **OURS}.items():
        builder = builder.config(key, value)
    Thread(target=_import_early, daemon=True).start()
    with _logged(root / LOG):
        return Session(builder.getOrCreate(), owned=True)


def _import_early() -> None:
    """Import what PySpark imports with its first call into the JVM, while the JVM starts: with pandas, a second."""
    with suppress(Exception):  # the import that needs it raises it again
        importlib.import_module("pyspark.testing.utils")


def worker_python(settings: SparkSettings) -> str:
    """Return the Python of the workers of a session that Weft starts: what is set, else the one that runs this.

    PySpark reads the environment variable alone, so the Spark setting of ``weft.yml`` is passed on by it.
    """
    return os.environ.get(PYTHON) or settings.conf.get(PYTHON_CONF) or sys.executable


@contextmanager
def _logged(log: Path) -> Iterator[None]:
    """Let a JVM that is started in the block write its messages into a file; ours stay on the terminal."""
    # The JVM inherits the file descriptor, so replacing `sys.stderr` would not redirect it.
    terminal = os.dup(_STDERR)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        is_long = log.exists() and log.stat().st_size > _LONG_LOG
        target = os.open(log, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if is_long else os.O_APPEND), 0o644)
    except OSError:  # a workspace that cannot be written to has no log
        target = os.open(os.devnull, os.O_WRONLY)
    python = sys.stderr
    try:
        # What Python writes in the meantime, such as the progress of a command, has another way to the terminal.
        if python is not None and _number_of(python) == _STDERR:
            sys.stderr = os.fdopen(terminal, "w", buffering=1, encoding="utf-8", closefd=False)
        os.dup2(target, _STDERR)
        yield
    finally:
        os.dup2(terminal, _STDERR)
        sys.stderr = python
        os.close(terminal)
        os.close(target)


def _number_of(stream: TextIO) -> int | None:
    """Return the number of the file of a stream, None for one in memory."""
    try:
        return stream.fileno()
    except OSError:  # io.UnsupportedOperation, for example of a captured stream
        return None


def _first_line(cause: Exception) -> str:
    return str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__


def _not_started(settings: SparkSettings, remote: str | None, cause: Exception) -> RunError:
    reason = _first_line(cause)
    if remote or settings.master:
        where = remote or settings.master
        return RunError(
            f"Spark at {where} cannot be reached: {reason}",
            code="W1808",
            help="check that it runs, or leave `spark` out of weft.yml to use this machine; `weft doctor` checks it",
        )
    if any(mark in f"{type(cause).__name__} {cause}" for mark in _NO_JAVA):
        return RunError(
            f"Spark does not start: {reason}",
            code="W1807",
            help="Spark needs Java 17 or newer; `weft doctor` shows the installed version",
        )
    return RunError(
        f"Spark does not start: {reason}", code="W1808", help=f"see {LOG}; `weft doctor` looks for the cause"
    )
