"""Spark sessions for tests: started when first needed, shared by all, stopped at the end.

``spark`` is a classic session, ``connect`` a Spark Connect one in the same process, and a test that
takes ``any_spark`` runs once with each.  A test that takes none of them needs no JVM; those run first.

``golden`` compares a text with a file below ``tests/golden`` and ``make golden`` rewrites those files.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from hdfs_cluster import Hdfs, running_hdfs
from installs import Environment, build_wheel, empty_environment
from needed import stop_without
from s3_gateway import Gateway, running_gateway
from weft.io.spark.class_archive import JAVA_OPTIONS, java_options
from weft.io.spark.session import installed_jars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

# PySpark turns timestamps into Python values in the zone of the process; workers inherit it.
os.environ["TZ"] = "UTC"
time.tzset()
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
# A developer's own settings must not turn the classic session into a Connect one.
for _name in (
    "SPARK_REMOTE",
    "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_LOCAL_REMOTE",
    "SPARK_HOME",
    "SPARK_CONF_DIR",
):
    os.environ.pop(_name, None)

# Most of what a JVM of a test runs, it runs once: the second compiler and a collector beside it cost more than they give.
# The archive of classes, which `weft doctor --fast-start` writes, takes another 3 of the 7 s of CPU that a JVM costs.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS", f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {java_options({}).get(JAVA_OPTIONS, '')}".rstrip()
)

# A busy machine is not a failure, and a build must not depend on chance.
hypothesis.settings.register_profile("weft", deadline=None, derandomize=os.environ.get("CI") == "true")
hypothesis.settings.load_profile("weft")

GOLDEN = Path(__file__).parent / "golden"
MASTER = "local[2]"
START_SECONDS = 120
KILLS = 10
"""How many kills of streams, and how many of runs, a build has time for."""

NEEDED_JAVA = 17
_STARTED = re.compile(r"Spark Connect server started at: \S*:(\d+)")


def settings(folder: Path) -> dict[str, str]:
    """Return the Spark settings of both sessions, which write below `folder` only."""
    jars = ",".join(map(str, installed_jars()))
    return {
        **({"spark.jars": jars} if jars else {}),
        "spark.driver.memory": "2g",
        # Thousands of queries run in one session: what Spark keeps of each for its UI fills the memory.
        "spark.sql.ui.retainedExecutions": "2",
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "500",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # PySpark would tell the JVM where each column expression was written: several messages for each.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }


def java_problem() -> str | None:
    """Return a sentence that says why no JVM can be started, or None."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return "Spark needs Java 17 or newer and there is no java: `make setup` installs it or says how"
    reported = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', reported)
    if found is None or int(found[1]) < NEEDED_JAVA:
        return f"Spark needs Java 17 or newer and {java} says {reported.splitlines()[:1]}"
    return None


@pytest.fixture(scope="session")
def jvm() -> None:
    """Skip where no JVM can be started; in CI that is a failure."""
    problem = java_problem()
    if problem is not None:
        stop_without(problem)


@pytest.fixture(scope="session")
def spark(jvm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:  # noqa: ARG001
    """Return the classic session."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    assert SparkContext._gateway is None, "a test before this one started a JVM, whose settings stay"
    builder = SparkSession.builder.master(MASTER).appName("weft tests")
    for key, value in settings(tmp_path_factory.mktemp("spark")).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect_server(jvm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:  # noqa: ARG001
    """Return the ``sc://`` address of a Connect server in a process of its own."""
    with _server(tmp_path_factory.mktemp("connect")) as address:
        yield address


@pytest.fixture(scope="session")
def connect(connect_server: str) -> Iterator[SparkSession]:
    """Return the Connect session; its functions are in ``pyspark.sql.connect.functions``."""
    from pyspark.sql.connect.session import SparkSession

    # The Connect builder, because SparkSession.builder would switch the whole process to Connect.
    session: Any = SparkSession.builder.remote(connect_server).create()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def s3_gateway() -> Iterator[Gateway]:
    """Return an S3 server; a test that kills it starts it again."""
    with running_gateway() as gateway:
        yield gateway


@pytest.fixture(scope="session")
def hdfs() -> Iterator[Hdfs]:
    """Return an HDFS with one data node."""
    with running_hdfs() as cluster:
        yield cluster


@pytest.fixture(scope="session", params=["classic", "connect"])
def any_spark(request: pytest.FixtureRequest) -> SparkSession:
    """Return each kind of session in turn."""
    session: SparkSession = request.getfixturevalue("spark" if request.param == "classic" else "connect")
    return session


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an environment with the wheel and what the wheel asks for."""
    wheel = build_wheel(tmp_path_factory.mktemp("wheel"))
    made = empty_environment(tmp_path_factory.mktemp("plain") / "env", wheel)
    made.install(str(wheel))
    return made


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Return a check that the file of a name, such as ``errors/caret.txt``, holds a text."""

    def check(name: str, text: str) -> None:
        file = GOLDEN / name
        wanted = text.rstrip("\n") + "\n"
        if request.config.getoption("--rewrite-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(wanted, encoding="utf-8")
        assert file.exists(), f"there is no {file}: `make golden` writes it"
        assert wanted == file.read_text(encoding="utf-8"), f"{file} differs: see the diff, or `make golden`"

    return check


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that `make golden` uses, and those for long searches and many kills."""
    parser.addoption("--rewrite-golden", action="store_true", help="write golden texts instead of comparing them")
    parser.addoption("--streams-long", action="store_true", help="2,000 random runs of streams instead of 200")
    parser.addoption("--mutations-long", action="store_true", help="10,000 files with random faults instead of 240")
    parser.addoption(
        "--kills",
        type=int,
        default=KILLS,
        metavar="N",
        help=f"kill processes of streams N times, and processes of runs N times; {KILLS} unless given",
    )
    parser.addoption("--kill-seed", type=int, default=1, metavar="S", help="the seed of the moments of these kills")


def pytest_report_header(config: pytest.Config) -> str:
    """Print what repeats the kills of this run."""
    return f"kills: --kills {config.getoption('--kills')} --kill-seed {config.getoption('--kill-seed')}"


@pytest.fixture(scope="session")
def kills(pytestconfig: pytest.Config) -> int:
    """Return how many times a test of streams, or one of runs, kills processes."""
    number: int = pytestconfig.getoption("--kills")
    return number


@pytest.fixture(scope="session")
def kill_seed(pytestconfig: pytest.Config) -> int:
    """Return the seed of the moments at which processes are killed."""
    number: int = pytestconfig.getoption("--kill-seed")
    return number


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    import pyspark

    home = Path(pyspark.__file__).parent
    # Port 0 lets the system choose; the server's log tells which it was.
    wanted = settings(folder) | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
    }
    command = [str(home / "bin" / "spark-submit"), "--master", MASTER, "--name", "weft tests (connect)"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for key, value in wanted.items():
        command += ["--conf", f"{key}={value}"]
    log = folder / "server.log"
    with log.open("wb") as out:
        # A session of its own, so that Ctrl-C reaches pytest, which then stops the server.
        process = subprocess.Popen(
            [*command, "spark-internal"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=os.environ | {"SPARK_HOME": str(home)},
            start_new_session=True,
        )
    try:
        yield f"sc://127.0.0.1:{_port(process, log)}"
    finally:
        _stop(process)


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if found := _STARTED.search(log.read_text(errors="replace")):
            return int(found[1])
        time.sleep(0.1)
    last = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
    return pytest.fail(f"the Spark Connect server did not start; its log ends:\n{last}", pytrace=False)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def _rank(item: pytest.Item) -> int:
    """Return 0 for a pure test, 1 for a classic one, 2 for one that needs Connect."""
    names = set(getattr(item, "fixturenames", ()))
    if "any_spark" in names:
        chosen = getattr(item, "callspec").params["any_spark"]  # noqa: B009  # only functions have one
        names.add("connect" if chosen == "connect" else "spark")
    if names & {"connect", "connect_server"}:
        return 2
    return 1 if names & {"spark", "jvm"} else 0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the session they use, and run those without one first."""
    for item in items:
        rank = _rank(item)
        if rank >= 1:
            item.add_marker("spark")
        if rank == 2:
            item.add_marker("connect")
        if "golden" in getattr(item, "fixturenames", ()):
            item.add_marker("golden")
    items.sort(key=_rank)
