"""Connectors are installed completely or not at all, for the installed Spark; Maven is replaced here."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from command_line import weft
from weft.errors import ConnectorError
from weft.io.spark import session
from weft.streams.run import connectors
from weft.streams.run.connectors import (
    CONNECTORS,
    find_connector,
    find_installed,
    install_connector,
    maven_project,
    spark_version,
)

VERSION = spark_version()
MAIN = f"spark-sql-kafka-0-10_2.13-{VERSION}.jar"
# A Maven that "fetches" the files that its environment lists, when the project asks for a version that it has.
MAVEN = """#!/bin/sh
for word in "$@"; do
  case "$word" in
    -DoutputDirectory=*) out=${word#-DoutputDirectory=} ;;
    --file) next=1 ;;
    *) if [ "$next" = 1 ]; then project=$word; next=; fi ;;
  esac
done
cat "$project" >> "$MAVEN_LOG"
echo >> "$MAVEN_LOG"
for version in $MAVEN_HAS; do
  if grep -q "<version>$version</version>" "$project"; then
    for jar in $MAVEN_JARS; do echo jar > "$out/$jar"; done
    exit 0
  fi
done
echo "[ERROR] $MAVEN_SAYS"
exit 1
"""


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "mvn"
    program.parent.mkdir()
    program.write_text(MAVEN)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MAVEN_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("MAVEN_HAS", VERSION)
    monkeypatch.setenv("MAVEN_JARS", f"{MAIN} kafka-clients-3.9.2.jar spark-sql_2.13-{VERSION}.jar")
    monkeypatch.setenv("MAVEN_SAYS", "Could not find artifact x in central (https://host/path) -> [Help 1]")
    return tmp_path / "log"


def test_a_connector_is_fetched_for_the_spark_that_is_there(maven: Path, tmp_path: Path) -> None:
    found, reported = install_connector("kafka", folder=tmp_path / "jars")
    assert (found.version, found.spark, reported) == (VERSION, VERSION, ())
    assert maven.read_text().count("<artifactId>spark-sql-kafka-0-10_2.13</artifactId>") == 1
    # What Spark brings itself does not come twice.
    assert found.jars == ("kafka-clients-3.9.2.jar", MAIN)
    assert find_installed(find_connector("kafka"), tmp_path / "jars") == found
    assert [p.name for p in (tmp_path / "jars").iterdir()] == ["kafka"]


def test_an_older_release_is_used_with_a_note_where_there_is_no_other(
    maven: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAVEN_HAS", "4.2.0")
    monkeypatch.setenv("MAVEN_JARS", "spark-sql-kafka-0-10_2.13-4.2.0.jar")
    found, (reported,) = install_connector("kafka", folder=tmp_path / "jars")
    assert found.version == "4.2.0"
    assert (reported.code, reported.severity) == ("W2306", "warning")
    assert VERSION in reported.message
    assert maven.read_text().count("<project>") == 2


def test_what_cannot_be_fetched_leaves_what_was_there(
    maven: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, _ = install_connector("kafka", folder=tmp_path / "jars")
    monkeypatch.setenv("MAVEN_HAS", "")
    for says, tries in (("Could not find artifact a", 2), ("Unknown host: network is unreachable", 1)):
        maven.write_text("")
        monkeypatch.setenv("MAVEN_SAYS", says)
        with pytest.raises(ConnectorError) as caught:
            install_connector("kafka", folder=tmp_path / "jars")
        assert caught.value.code == "W2306"
        assert says in caught.value.message
        assert "--offline" in caught.value.help
        assert maven.read_text().count("<project>") == tries
        assert find_installed(find_connector("kafka"), tmp_path / "jars") == before
        assert [p.name for p in (tmp_path / "jars").iterdir()] == ["kafka"]


def test_messages_of_maven_are_shown_without_the_places_it_searched(
    maven: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert maven.parent == tmp_path
    monkeypatch.setenv("MAVEN_HAS", "")
    with pytest.raises(ConnectorError) as caught:
        install_connector("avro", folder=tmp_path / "jars")
    assert "://" not in caught.value.message
    assert "Help 1" not in caught.value.message


def test_without_maven_the_help_says_how_to_install_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConnectorError) as caught:
        install_connector("kafka", folder=tmp_path / "jars")
    assert caught.value.code == "W2306"
    assert "--offline DIR" in caught.value.help


def test_a_connector_is_taken_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    there = tmp_path / "there"
    there.mkdir()
    (there / "kafka-clients-3.9.2.jar").write_text("jar")
    for folder in (there, tmp_path / "nowhere"):
        with pytest.raises(ConnectorError) as caught:
            install_connector("kafka", offline=folder, folder=tmp_path / "jars")
        assert caught.value.code == "W2306"
    (there / MAIN).write_text("jar")
    found, reported = install_connector("kafka", offline=there, folder=tmp_path / "jars")
    assert (found.version, reported) == (VERSION, ())


def test_hadoop_is_fetched_as_spark_includes_it(maven: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hadoop = connectors._hadoop_version()
    monkeypatch.setenv("MAVEN_HAS", hadoop)
    monkeypatch.setenv("MAVEN_JARS", f"hadoop-aws-{hadoop}.jar s3-2.35.4.jar hadoop-client-api-{hadoop}.jar")
    found, reported = install_connector("s3", folder=tmp_path / "jars")
    assert (found.version, found.jars, reported) == (hadoop, (f"hadoop-aws-{hadoop}.jar", "s3-2.35.4.jar"), ())
    project = maven.read_text()
    assert project.count("<artifactId>bundle</artifactId>") == 4
    assert "<artifactId>*</artifactId>" not in project
    monkeypatch.setattr(connectors, "_hadoop_version", lambda: "2.7.7")
    with pytest.raises(ConnectorError) as caught:
        install_connector("s3", folder=tmp_path / "jars")
    assert (caught.value.code, "--offline" in caught.value.help) == ("W2306", True)
    assert find_installed(find_connector("s3"), tmp_path / "jars") == found


def test_a_name_that_is_not_a_connector_is_reported_with_the_nearest() -> None:
    with pytest.raises(ConnectorError) as caught:
        find_connector("kafak")
    assert (caught.value.code, caught.value.help) == ("W2311", "did you mean 'kafka'?")


def test_a_project_excludes_parts_of_spark_when_its_parts_are_named() -> None:
    alone = maven_project([("org.apache.spark", "spark-avro_2.13", "1")])
    assert "exclusion" not in alone
    both = maven_project([("a", "b", "1"), ("a", "c", "2")])
    assert both.count("<artifactId>*</artifactId>") == 2


def test_sessions_find_jars_in_folders_and_not_those_of_unfinished_installs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "jars_folder", lambda: tmp_path)
    for name in ("driver.jar", "kafka/a.jar", ".tmp-avro-1/b.jar", "kafka/connector.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [str(p.relative_to(tmp_path)) for p in session.installed_jars()] == ["driver.jar", "kafka/a.jar"]


def test_the_commands_tell_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def folder() -> Any:
        return tmp_path / "jars"

    monkeypatch.setattr(connectors, "jars_folder", folder)
    ran = weft("connectors", "list", "--json")
    assert [c["installed"] for c in ran.data["connectors"]] == [False] * len(CONNECTORS)
    assert ran.document["next"] == [f"weft connectors install {name}" for name in ("kafka", "avro", "s3")]
    (tmp_path / MAIN).write_text("jar")
    done = weft("connectors", "install", "kafka", "--offline", tmp_path, "--json")
    assert (done.code, done.data["version"]) == (0, VERSION)
    assert f"kafka      {VERSION}" in weft("connectors", "list").out
    wrong = weft("connectors", "install", "kafk", "--json")
    assert (wrong.code, wrong.codes) == (1, ["W2311"])
