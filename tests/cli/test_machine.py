"""What `weft doctor` says about a machine and a workspace: each check on one that is fine and one that is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zoneinfo
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from command_line import Ran, weft
from s3_gateway import BUCKET, Gateway
from weft.cli import machine
from weft.cli.commands.doctor import check_java
from weft.io.spark import class_archive, session

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def _no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the environment of these tests as it is."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.setattr(machine, "_CGROUP_LIMITS", (tmp_path / "memory.max",))


def fx(tmp_path: Path, settings: str = "") -> Path:
    root = tmp_path / "fx"
    assert weft("init", root).code == 0
    with (root / "weft.yml").open("a", encoding="utf-8") as file:
        file.write(settings)
    return root


def answer(ran: Ran, name: str) -> tuple[bool, str, str]:
    (check,) = (c for c in ran.data["checks"] if c["name"] == name)
    return check["ok"], check["found"], check["help"]


def test_a_new_workspace_on_this_machine_is_fine(tmp_path: Path) -> None:
    ran = weft("doctor", "--json", root=fx(tmp_path))
    assert ran.code == 0, ran.out
    names = [check["name"] for check in ran.data["checks"]]
    wanted = "python java pyspark pyarrow spark start memory disk folder store workers workspace".split()
    assert {*wanted, "time zone", "temp files", "schemas"} <= set(names)


def other_spark(tmp_path: Path, release: str) -> Path:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / f"spark-core_2.13-{release}.jar").touch()
    return tmp_path / "spark"


def test_a_spark_home_of_another_release_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(other_spark(tmp_path, "3.5.1")))
    check = machine.check_spark()
    assert not check.ok
    assert check.found.startswith("3.5.1 at SPARK_HOME")
    assert check.help == "unset SPARK_HOME, or pip install 'pyspark~=3.5.1'"
    monkeypatch.setenv("SPARK_HOME", str(other_spark(tmp_path / "same", version("pyspark"))))
    assert machine.check_spark().ok
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert machine.check_spark().help == "unset SPARK_HOME"


@pytest.mark.parametrize(
    ("zone", "help"),
    [("Europe/Berlin", ""), ("UTC", ""), ("CET-1CEST", ""), (":/etc/localtime", ""), ("Mars/Base", "export TZ=UTC")],
)
def test_a_time_zone_that_python_would_take_for_utc_is_seen(
    zone: str, help: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    check = machine.check_time_zone()
    assert (check.ok, check.help) == (not help, help)


def test_python_without_time_zones_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.delenv("TZ")
    monkeypatch.setattr(zoneinfo, "ZoneInfo", missing)
    assert machine.check_time_zone() == machine.Check(
        "time zone", False, "unknown time zone Europe/Berlin", "pip install tzdata"
    )


def test_a_driver_larger_than_the_memory_of_the_container_is_seen(tmp_path: Path) -> None:
    assert machine.check_memory({}).ok
    (tmp_path / "memory.max").write_text(f"{2**31}\n")
    assert machine.check_memory({"spark.driver.memory": "1536m"}).ok
    check = machine.check_memory({"spark.driver.memory": "3g"})
    assert (check.ok, check.found) == (False, "2.0 GB, of which 3.0 GB for Spark")
    assert "spark.driver.memory: 1024m" in check.help
    assert machine.check_memory({"spark.driver.memory": "lots"}).help == "write for example 4g"
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.check_memory({}).ok


def test_a_full_disk_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = tmp_path / "small"
    small.mkdir()
    real = shutil.disk_usage
    usage: Callable[[Path], object] = lambda p: SimpleNamespace(free=5 * 2**20) if p == small else real(p)  # noqa: E731
    monkeypatch.setattr(shutil, "disk_usage", usage)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{small / 'missing'},/elsewhere")
    here, there = machine.check_disk(tmp_path, {})
    assert here.ok
    assert (there.ok, there.found) == (False, f"5 MB free in {small}")
    assert "export SPARK_LOCAL_DIRS" in there.help
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    assert not [*machine.check_disk(tmp_path, {"spark.local.dir": str(small)})][1].ok
    assert not next(machine.check_disk(small, {})).ok


def test_a_folder_that_cannot_be_written_to_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = fx(tmp_path)
    real = tempfile.TemporaryFile

    def refused(*, dir: Path) -> object:
        if dir.name == ".weft":  # root may write anywhere, so the refusal is that of a read-only disk
            raise OSError(30, "Read-only file system")
        return real(dir=dir)

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    ok, found, help = answer(weft("doctor", "--json", root=root), "folder")
    assert not ok
    assert found == f"cannot write to {root / '.weft'}: Read-only file system"
    assert help.startswith(f"chmod u+w {root / '.weft'}")


LAKE = "datasource:\n  id: lake\n  type: parquet\n  options: {path_prefix: 's3a://lake/gl'}\n"
JDBC = "datasource:\n  id: books\n  type: jdbc\n  options: {url: 'jdbc:postgresql://db/books'}\n"
KAFKA = "CREATE STREAM a (id STRING) WITH ('connector' = 'kafka', 'topic'='a', 'format'='avro');\n"


def test_drivers_that_the_workspace_needs_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = fx(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    jars = session.jars_folder()
    names = {c["name"] for c in weft("doctor", "--json", root=root).data["checks"]}
    assert not names & {"postgresql", "kafka", "avro", "s3"}
    (root / "datasources" / "books.yml").write_text(JDBC)
    (root / "datasources" / "lake.yml").write_text(LAKE)
    (root / "streams").mkdir()
    (root / "streams" / "job.sql").write_text(KAFKA)
    ran = weft("doctor", "--json", root=root)
    assert ran.code == 1
    assert answer(ran, "postgresql")[2].endswith(f"to {jars}")
    for name in ("kafka", "avro", "s3"):
        assert answer(ran, name) == (
            False,
            "not installed, but the workspace needs it",
            f"weft connectors install {name}",
        )
    (jars / "kafka").mkdir(parents=True)
    (jars / "kafka" / "spark-sql-kafka-0-10_2.13-4.0.0.jar").touch()
    (jars / "kafka" / "connector.json").write_text('{"spark": "4.0.0"}')
    (jars / "postgresql-42.7.7.jar").touch()
    ran = weft("doctor", "--json", root=root)
    assert answer(ran, "postgresql")[:2] == (True, "postgresql-42.7.7.jar")
    assert answer(ran, "kafka")[:2] == (False, "4.0.0, installed for Spark 4.0.0")
    with (root / "weft.yml").open("a") as file:
        file.write("spark: {conf: {spark.jars: /drivers/books.jar}}\n")
    assert answer(weft("doctor", "--json", root=root), "drivers")[0]


def test_stores_that_datasources_name_are_read(s3_gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in s3_gateway.environment.items():
        monkeypatch.setenv(key, value)

    def check(*prefixes: str) -> list[tuple[bool, str]]:
        sources = [SimpleNamespace(options={"path_prefix": prefix}) for prefix in (*prefixes, "data", None)]
        workspace: Any = SimpleNamespace(datasources=sources)
        return [(c.ok, c.found) for c in machine.check_stores(workspace) if c.name == "files" and (c.ok or c.help)]

    assert check(f"s3a://{BUCKET}/gl", f"s3a://{BUCKET}/gl") == [(True, f"s3://{BUCKET}/gl can be read")]
    ((ok, found),) = check("s3://nowhere/gl")
    assert (ok, found[:5]) == (False, "W1907")
    ((ok, found),) = check("hdfs://name:8020/gl")
    assert (ok, found.startswith("hdfs://name:8020/gl is not checked: the HTTP address")) == (True, True)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    ((ok, found),) = check(f"s3://{BUCKET}/gl")
    assert (ok, found[:5], "hunter2" in found) == (False, "W1906", False)


def test_schemas_that_an_editor_would_miss_are_seen(tmp_path: Path) -> None:
    root = fx(tmp_path)
    subprocess.run(["git", "init", "--quiet", root], check=True)
    assert answer(weft("doctor", "--json", root=root), "schemas")[0]
    (root / ".gitignore").write_text(".weft/\n")
    ok, found, _ = answer(weft("doctor", "--json", root=root), "schemas")
    assert (ok, found) == (False, "git ignores them: a colleague's editor misses them")
    (root / ".weft" / "schema" / "project.json").write_text("{}\n")
    ok, found, help = answer(weft("doctor", "--json", root=root), "schemas")
    assert (ok, found) == (False, "'project' of another release of Weft")
    shutil.rmtree(root / ".weft")
    ok, found, help = answer(weft("doctor", "--json", root=root), "schemas")
    assert not ok
    assert found.startswith("no schema for 'dataset', ")
    assert help == f"weft -C {root} schema export"
    assert weft("schema", "export", root=root).code == 0
    (root / ".gitignore").write_text("/.weft/*\n!/.weft/schema/\n")
    assert answer(weft("doctor", "--json", root=root), "schemas")[0]


def test_every_check_that_fails_says_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "Mars/Base")
    root = fx(tmp_path, "spark: {conf: {spark.driver.memory: lots}}\n")
    failed = [c for c in weft("doctor", "--json", root=root).data["checks"] if not c["ok"]]
    assert {"java", "spark", "time zone", "memory"} <= {c["name"] for c in failed}
    assert all(c["help"] for c in failed)


def test_sessions_read_an_archive_that_is_there_and_a_setting_of_the_user_comes_first() -> None:
    assert class_archive.java_options({}) == {}
    archive = class_archive.archive_path()
    archive.parent.mkdir(parents=True)
    archive.touch()
    options = class_archive.java_options({})[class_archive.JAVA_OPTIONS]
    assert f"-XX:SharedArchiveFile={archive}" in options
    assert "-Xlog:disable" in options  # Java would print to stdout that the archive does not fit
    assert class_archive.java_options({class_archive.JAVA_OPTIONS: ""}) == {}
    assert class_archive.java_options({class_archive.JAVA_OPTIONS: ""}, is_small=True) == {}
    assert "another Java" in machine.check_start("openjdk 17").found
    class_archive.java_of_archive(archive).write_text("openjdk 17")
    assert machine.check_start("openjdk 17").found.startswith("from the class archive")


def test_java_starts_fast_for_little_data_unless_a_user_has_options_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    fast = {class_archive.JAVA_OPTIONS: "-XX:TieredStopAtLevel=1"}
    assert (class_archive.java_options({}), class_archive.java_options({}, is_small=True)) == ({}, fast)
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.memory 2g\n")
    assert class_archive.java_options({}, is_small=True) == fast
    (tmp_path / "spark-defaults.conf").write_text(f"{class_archive.JAVA_OPTIONS} -Xss8m\n")
    assert class_archive.java_options({}, is_small=True) == {}


def test_an_archive_that_cannot_be_written_is_a_coded_error(tmp_path: Path) -> None:
    (tmp_path / "prefix").write_text("a file where a folder should be")
    ran = weft("doctor", "--fast-start", root=tmp_path)
    assert ran.code == 1
    assert "error[W1808]: cannot write the class archive to" in ran.err


@pytest.mark.slow
@pytest.mark.usefixtures("jvm")
def test_the_doctor_writes_an_archive_that_the_next_session_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SPARK_SUBMIT_OPTS", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    ran = weft("doctor", "--fast-start", root=tmp_path)
    archive = class_archive.archive_path()
    assert ran.code == 0, ran.out + ran.err
    assert f"from the class archive {archive}" in ran.out
    assert [path.name for path in archive.parent.iterdir() if path.name.startswith(".tmp-")] == []
    assert class_archive.java_of_archive(archive).read_text() == check_java().found
    option = class_archive.java_options({})[class_archive.JAVA_OPTIONS].split()[0]
    # Sessions of PySpark start through this script, which orders the jars.
    shown = subprocess.run(
        [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--version"],
        env=os.environ | {"SPARK_SUBMIT_OPTS": f"{option} -Xlog:class+load"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "org.apache.spark.deploy.SparkSubmit source: shared objects file (top)" in shown.stdout
