"""Connectors: extra jars for Spark, fetched by Maven or copied from a folder.

::

    share/weft/jars/kafka/spark-sql-kafka-0-10_2.13-<version>.jar, kafka-clients-....jar, ...
                         /connector.json       what was installed, and for which Spark

Jars that Spark includes are removed.  A connector is installed atomically: it is assembled in a temporary folder
that is renamed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, ClassVar

from weft.core.documents import Document, Key
from weft.core.names import find_similar, format_list
from weft.errors import ConnectorError, Diagnostic
from weft.io.spark.session import jars_folder

Artifact = tuple[str, str, str]
"""Group, name and version of an artifact."""

_GROUP = "org.apache.spark"
_HADOOP = "org.apache.hadoop"
_SDK = "software.amazon.awssdk"
_NOT_FOUND = ("Could not find artifact", "was not found in", "Could not resolve dependencies")
_WAIT = 900.0
_ABOUT = "connector.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """A connector: `artifact` of `group` is its main jar, `older` are releases that also work with this Spark.

    One for Hadoop's client has the release of Hadoop as its version; `hadoop` has the artifacts of each release.
    """

    name: str
    artifact: str
    what: str
    group: str = _GROUP
    older: tuple[tuple[Artifact, ...], ...] = ()
    hadoop: Mapping[str, tuple[Artifact, ...]] = field(default_factory=dict)


def _s3_artifacts(hadoop: str, sdk: str) -> tuple[Artifact, ...]:
    # Hadoop asks for a jar with the clients of all services of AWS, 686 MB; these are the ones that it uses, 19 MB.
    clients = tuple((_SDK, name, sdk) for name in ("s3", "s3-transfer-manager", "sts"))
    return ((_HADOOP, "hadoop-aws", hadoop), *clients)


CONNECTORS: tuple[Connector, ...] = (
    Connector(
        name="kafka",
        artifact="spark-sql-kafka-0-10_2.13",
        what="streams and sinks of connector 'kafka'",
        older=(
            ((_GROUP, "spark-sql-kafka-0-10_2.13", "4.2.0"), (_GROUP, "spark-token-provider-kafka-0-10_2.13", "4.0.0")),
        ),
    ),
    Connector(
        name="avro",
        artifact="spark-avro_2.13",
        what="files and messages of format 'avro'",
        older=(((_GROUP, "spark-avro_2.13", "4.1.1"),),),
    ),
    Connector(
        name="s3",
        artifact="hadoop-aws",
        what="paths s3:// in Spark",
        group=_HADOOP,
        # Of each release of Hadoop, the release of the SDK that it works with.
        hadoop={
            hadoop: _s3_artifacts(hadoop, sdk)
            for hadoop, sdk in (("3.4.1", "2.25.53"), ("3.4.2", "2.29.52"), ("3.5.0", "2.35.4"))
        },
    ),
)


def _or_none(text: str) -> str | None:
    return text or None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledConnector(Document):
    """An installed connector; `version` is empty if it is not installed."""

    DOCUMENT: ClassVar = ("name", "is_installed", "version", "spark", "folder", "jars")

    name: str
    what: str
    folder: Path
    version: Annotated[str, _or_none] = ""
    spark: Annotated[str, _or_none] = ""
    jars: tuple[str, ...] = ()

    @property
    def is_installed(self) -> Annotated[bool, Key("installed")]:
        """Whether it is installed."""
        return bool(self.version)


def find_connector(name: str) -> Connector:
    """Return the connector with a name; raise `ConnectorError` W2311 if it is unknown."""
    connectors = {c.name: c for c in CONNECTORS}
    if name in connectors:
        return connectors[name]
    close = find_similar(name, connectors, most=1)
    raise ConnectorError(
        f"unknown connector {name!r}",
        code="W2311",
        help=f"did you mean {close[0]!r}?" if close else f"available: {format_list(connectors)}",
    )


def find_installed(connector: Connector, folder: Path | None = None) -> InstalledConnector:
    """Return the installed version and jars of a connector."""
    place = (folder or jars_folder()) / connector.name
    jars = tuple(sorted(p.name for p in place.glob("*.jar")))
    return InstalledConnector(
        name=connector.name,
        what=connector.what,
        folder=place,
        version=_find_version(connector.artifact, jars),
        spark=_read_spark_version(place),
        jars=jars,
    )


def install_connector(
    name: str, *, offline: Path | None = None, folder: Path | None = None
) -> tuple[InstalledConnector, tuple[Diagnostic, ...]]:
    """Install a connector for sessions of Weft; return it and warnings.

    Maven fetches the release of the installed Spark, or an older one that works with it if there is none.
    `offline` is a folder that contains the jars.
    """
    connector = find_connector(name)
    base = folder or jars_folder()
    _check_writable(base)
    # In the same folder, because only a rename within one file system is atomic.
    stage = Path(tempfile.mkdtemp(prefix=f".tmp-{name}-", dir=base))
    try:
        findings = _fetch(connector, stage) if offline is None else ()
        if offline is not None:
            for jar in offline.glob("*.jar"):
                shutil.copy2(jar, stage / jar.name)
        kept = _remove_bundled(stage)
        if not _find_version(connector.artifact, kept):
            raise ConnectorError(
                f"{str(offline or stage)!r} has no {connector.artifact}-<version>.jar",
                code="W2306",
                help="it must contain that jar and its dependencies: "
                f"`mvn dependency:copy-dependencies` of {connector.group}:{connector.artifact}",
            )
        (stage / _ABOUT).write_text(json.dumps({"spark": spark_version(), "jars": kept}), encoding="utf-8")
        stage.chmod(0o755)  # mkdtemp lets only its owner in, and other users may share this installation
        place = base / connector.name
        shutil.rmtree(place, ignore_errors=True)
        stage.rename(place)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return find_installed(connector, base), findings


def spark_version() -> str:
    """Return the version of the installed PySpark; raise W2306 if it is not installed."""
    try:
        return version("pyspark")
    except PackageNotFoundError as cause:
        raise ConnectorError(
            "PySpark is not installed, so the version of the connector is unknown",
            code="W2306",
            help="install it with `pip install pyspark`",
        ) from cause


def maven_project(artifacts: Iterable[Artifact]) -> str:
    """Return the Maven project that fetches artifacts with their dependencies.

    Several artifacts must list the dependencies of their own group explicitly.

    >>> "<version>4.3.0</version>" in maven_project([("org.apache.spark", "spark-avro_2.13", "4.3.0")])
    True
    """
    requested = tuple(artifacts)
    listed = ""
    is_sdk = any(group == _SDK for group, _, _ in requested)
    for group, name, number in requested:
        listed += f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{number}</version>"
        if is_sdk:
            listed += _exclude(_SDK, "bundle")
        elif len(requested) > 1:
            # Otherwise Maven would request these artifacts in other releases too, as dependencies of each other.
            listed += _exclude(group, "*")
        listed += "</dependency>"
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>weft</groupId><artifactId>jars</artifactId>"
        f"<version>1</version><dependencies>{listed}</dependencies></project>"
    )


def _exclude(group: str, name: str) -> str:
    return f"<exclusions><exclusion><groupId>{group}</groupId><artifactId>{name}</artifactId></exclusion></exclusions>"


def _choices(connector: Connector, release: str) -> tuple[tuple[Artifact, ...], ...]:
    """Return what may be fetched for a release of Spark, or of Hadoop, the best first."""
    if not connector.hadoop:
        return (((connector.group, connector.artifact, release),), *connector.older)
    if release not in connector.hadoop:
        raise ConnectorError(
            f"cannot fetch the connector {connector.name!r} for Hadoop {release}, which this Spark includes",
            code="W2306",
            help=f"install a PySpark with Hadoop {format_list(connector.hadoop)}, or download {connector.artifact} {release} and "
            f"its dependencies: `weft connectors install {connector.name} --offline DIR`",
        )
    return (connector.hadoop[release],)


def _hadoop_version() -> str:
    """Return the version of Hadoop's client that Spark includes, an empty string when it includes none."""
    return _find_version("hadoop-client-api", (jar.name for jar in _spark_jars()))


def _fetch(connector: Connector, stage: Path) -> tuple[Diagnostic, ...]:
    release = _hadoop_version() if connector.hadoop else spark_version()
    choices = _choices(connector, release)
    program = shutil.which("mvn")
    if program is None:
        raise ConnectorError(
            f"cannot fetch the connector {connector.name!r}: mvn is not installed",
            code="W2306",
            help="install Maven, or download the jars elsewhere and pass their folder: "
            f"`weft connectors install {connector.name} --offline DIR`",
        )
    output = ""
    for choice in choices:
        done, output = fetch_artifacts(program, choice, stage)
        if done:
            return () if choice[0][2] == release else (_older_release(connector, release, choice[0][2]),)
        # An older release helps only if this one does not exist, not if the network is down.
        if not any(mark in output for mark in _NOT_FOUND):
            break
    raise ConnectorError(
        f"Maven could not fetch {connector.artifact} {release}: {_last_error(output)}",
        code="W2306",
        help="check that this machine can reach the Maven repositories, or download the jars elsewhere and pass their "
        f"folder: `weft connectors install {connector.name} --offline DIR`",
    )


def fetch_artifacts(program: str, artifacts: tuple[Artifact, ...], stage: Path) -> tuple[bool, str]:
    """Copy artifacts with their dependencies into a folder by Maven; return success and its output."""
    with tempfile.TemporaryDirectory(prefix="weft-connector-") as work:
        project = Path(work, "pom.xml")
        project.write_text(maven_project(artifacts), encoding="utf-8")
        command = [program, "--quiet", "--batch-mode", "--file", str(project), "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={stage.resolve()}"]
        try:
            # No argument comes from a user: the Maven program, our file and a folder.
            ran = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, check=False, timeout=_WAIT, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            return False, f"[ERROR] not finished after {_WAIT / 60:.0f} minutes"
    return ran.returncode == 0, ran.stdout + ran.stderr


def _last_error(output: str) -> str:
    lines = [line.removeprefix("[ERROR]").strip() for line in output.splitlines() if line.startswith("[ERROR]")]
    first = next(filter(None, lines), "no error message")
    # Leave out the URLs of the repositories, which come from Maven's settings.
    return re.sub(r"\s*(?:\(?https?://\S+\)?|-> \[Help \d+\])", "", first)[:400]


def _older_release(connector: Connector, release: str, older: str) -> Diagnostic:
    return Diagnostic(
        "W2306",
        f"Maven has no {connector.artifact} {release}: {older} was installed, which works with Spark {release}",
        help=f"`weft connectors install {connector.name}` installs {release} once it is available",
        severity="warning",
    )


def _remove_bundled(stage: Path) -> list[str]:
    """Remove the jars that Spark includes; two releases of a library on one classpath conflict."""
    known = {_stem(p.name) for p in _spark_jars()}
    for jar in stage.glob("*.jar"):
        if _stem(jar.name) in known:
            jar.unlink()
    return sorted(p.name for p in stage.glob("*.jar"))


def _spark_jars() -> tuple[Path, ...]:
    spec = find_spec("pyspark")
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    return tuple(jar for place in places for jar in Path(place, "jars").glob("*.jar"))


def _stem(jar: str) -> str:
    """Return the name of a jar without its version.

    >>> _stem("spark-sql-kafka-0-10_2.13-4.2.0.jar"), _stem("kafka-clients-3.9.2.jar")
    ('spark-sql-kafka-0-10_2.13', 'kafka-clients')
    """
    return re.sub(r"-\d+(?:\.\d+)+[^/]*\.jar$", "", jar)


def _find_version(artifact: str, jars: Iterable[str]) -> str:
    for jar in jars:
        if jar.startswith(f"{artifact}-") and jar.endswith(".jar"):
            return jar.removeprefix(f"{artifact}-").removesuffix(".jar")
    return ""


def _read_spark_version(place: Path) -> str:
    try:
        return str(json.loads((place / _ABOUT).read_text(encoding="utf-8"))["spark"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _check_writable(base: Path) -> None:
    try:
        base.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise _not_writable_error(base, cause.strerror or "") from cause
    if not os.access(base, os.W_OK):
        raise _not_writable_error(base, "permission denied")


def _not_writable_error(base: Path, why: str) -> ConnectorError:
    return ConnectorError(
        f"{str(base)!r} cannot be written: {why}",
        code="W2306",
        help="connectors are installed into the Python environment of Weft: use one that you can write to",
    )
