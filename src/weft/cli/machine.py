"""What a machine needs for runs: Spark, memory, space, permissions, time zones, drivers, schemas of editors."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import zoneinfo
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from weft.core.documents import Document
from weft.core.names import format_list, quote_for_shell
from weft.errors import WeftError
from weft.redaction import redact

if TYPE_CHECKING:
    from weft.pipelines.model.workspace import Workspace

GIGABYTE = 2**30
_UNITS = {"": 2**20, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}  # Spark reads a bare number as megabytes
_DRIVER_MEMORY = "spark.driver.memory"
_BESIDE_DRIVER = GIGABYTE // 2
"""Memory that Python and the workers need beside the JVM."""
_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_MORE_JARS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
"""Settings with jars that Weft has not installed."""


@dataclass(frozen=True, slots=True)
class Check(Document):
    """One check of the machine; `help` says how to fix what failed."""

    name: str
    ok: bool
    found: str
    help: str = ""


def check_spark() -> Check:
    """Check that the Spark that would start is the one that the installed PySpark belongs to."""
    ours = version("pyspark")
    home = os.environ.get("SPARK_HOME")
    if not home:
        return Check("spark", ok=True, found=f"{ours}, installed with pyspark")
    jars = sorted(Path(home, "jars").glob("spark-core_*.jar"))
    if not jars:
        return Check("spark", ok=False, found=f"SPARK_HOME {home} has no jars of Spark", help="unset SPARK_HOME")
    theirs = jars[0].stem.rpartition("-")[2]
    same = theirs.split(".")[:2] == ours.split(".")[:2]
    found = f"{theirs} at SPARK_HOME {home}" + ("" if same else f", but pyspark is {ours}")
    return Check("spark", ok=same, found=found, help=f"unset SPARK_HOME, or pip install 'pyspark~={theirs}'")


def check_start(java: str) -> Check:
    """Say whether sessions start from a class archive; `java` is the installed Java. Without one all works, slower."""
    from weft.io.spark.class_archive import archive_path, java_of_archive

    archive = archive_path()
    if not archive.exists():
        return Check("start", ok=True, found="without a class archive; `weft doctor --fast-start` writes one")
    made = java_of_archive(archive)
    writer = made.read_text(encoding="utf-8") if made.exists() else "another Java"
    if writer != java:
        found = f"the class archive is of {writer}, so Java ignores it; `weft doctor --fast-start` writes it again"
        return Check("start", ok=True, found=found)
    return Check("start", ok=True, found=f"from the class archive {archive}, {_format_size(archive.stat().st_size)}")


def check_time_zone() -> Check:
    """Check that Python knows time zones, and the one that TZ names."""
    ours = os.environ.get("TZ", "").removeprefix(":")
    for name in filter(None, ("Europe/Berlin", ours)):
        try:
            zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            if name == ours and re.fullmatch(r"[A-Za-z]{3,}[-+]?\d.*|/.+", name):
                continue  # a rule of POSIX such as CET-1CEST, or a file
            help = "export TZ=UTC" if name == ours else "pip install tzdata"
            return Check("time zone", ok=False, found=f"unknown time zone {name}", help=help)
    return Check("time zone", ok=True, found=f"runs use UTC; this machine {ours or _machine_zone()}")


def _machine_zone() -> str:
    target = os.path.realpath("/etc/localtime")
    return target.partition("zoneinfo/")[2] or "UTC"


def check_memory(conf: Mapping[str, str]) -> Check:
    """Check that the driver that Spark would start, and Python beside it, fit into the memory."""
    driver = parse_size(conf.get(_DRIVER_MEMORY, "1g"))
    total = _memory()
    if driver is None:
        found = f"invalid {_DRIVER_MEMORY} {conf[_DRIVER_MEMORY]!r}"
        return Check("memory", ok=False, found=found, help="write for example 4g")
    fits = driver + _BESIDE_DRIVER <= total
    found = f"{_format_size(total)}, of which {_format_size(driver)} for Spark"
    help = f"set `spark: {{conf: {{{_DRIVER_MEMORY}: {max(total - GIGABYTE, 2**29) // 2**20}m}}}}` in weft.yml"
    return Check("memory", fits, found, help)


def parse_size(text: str) -> int | None:
    """Return the number of bytes of a size as Spark writes it, None if it is invalid.

    >>> parse_size("2g"), parse_size("512"), parse_size("lots")
    (2147483648, 536870912, None)
    """
    found = re.fullmatch(r"(\d+)([bkmgt]?)b?", text.strip().lower())
    return None if found is None else int(found[1]) * _UNITS[found[2]]


def _memory() -> int:
    """Return the memory that this process may use; a container may have less than its machine."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for file in _CGROUP_LIMITS:
        text = file.read_text(encoding="ascii").strip() if file.exists() else ""
        total = min(total, int(text)) if text.isdigit() else total
    return total


def _format_size(size: int) -> str:
    return f"{size / GIGABYTE:.1f} GB" if size >= GIGABYTE else f"{size / 2**20:.0f} MB"


def check_disk(root: Path, conf: Mapping[str, str]) -> Iterator[Check]:
    """Check that there is space where outputs are written, and where Spark sorts and shuffles."""
    spill = os.environ.get("SPARK_LOCAL_DIRS") or conf.get("spark.local.dir") or tempfile.gettempdir()
    for name, folder in (("disk", root), ("temp files", Path(spill.split(",")[0]))):
        present = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
        free = shutil.disk_usage(present).free
        help = "free some space" if name == "disk" else "free some space, or: export SPARK_LOCAL_DIRS=/another/folder"
        yield Check(name, free >= GIGABYTE, f"{_format_size(free)} free in {present}", help)


def check_writable(root: Path) -> Check:
    """Check that the workspace, and what Weft has written there, can be written to."""
    folders = [root, *(p for p in (root / ".weft", root / ".weft" / "logs", root / "out") if p.is_dir())]
    for folder in folders:
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as cause:
            help = f"chmod u+w {quote_for_shell(folder)}, or copy the workspace to a folder of yours"
            return Check("folder", ok=False, found=f"cannot write to {folder}: {cause.strerror}", help=help)
    return Check("folder", ok=True, found=f"{root} can be written to")


def check_drivers(workspace: Workspace) -> Iterator[Check]:
    """Check the jars that datasources and streams of the workspace need beside Spark's own."""
    from weft.io.spark.session import installed_jars, jars_folder
    from weft.streams.run.connectors import CONNECTORS, find_installed

    conf = workspace.settings.spark.conf
    if others := [name for name in _MORE_JARS if name in conf]:
        yield Check("drivers", ok=True, found=f"those of `{others[0]}` in weft.yml are not checked")
        return
    texts = [str(value) for source in workspace.datasources for value in source.options.values()]
    if any("postgresql:" in text for text in texts):
        jars = [jar.name for jar in installed_jars() if jar.name.startswith("postgresql-")]
        help = f"copy the jar of PostgreSQL's JDBC driver, postgresql-42.7.7.jar, to {quote_for_shell(jars_folder())}"
        yield Check("postgresql", bool(jars), jars[0] if jars else "no JDBC driver", help)
    jobs = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(workspace.root.glob("streams/*.sql"))]
    for connector in CONNECTORS:
        option = rf"'(?:connector|format|key\.format|value\.format)'\s*=\s*'{connector.name}'"
        wanted = re.compile(r"\bs3[an]?://" if connector.name == "s3" else option, re.IGNORECASE)
        if not any(wanted.search(text) for text in (*jobs, *texts)):
            continue
        installed = find_installed(connector)
        stale = installed.spark and installed.spark != version("pyspark")
        state = installed.version or "not installed, but the workspace needs it"
        if stale:
            state += f", installed for Spark {installed.spark}"
        fits = bool(installed.version) and not stale
        yield Check(connector.name, fits, state, f"weft connectors install {connector.name}")


def check_stores(workspace: Workspace) -> Iterator[Check]:
    """Check that this machine can read the object stores and HDFS folders that datasources name."""
    from weft.io.location import is_local
    from weft.io.stores import open_store

    prefixes = {str(source.options.get("path_prefix") or "") for source in workspace.datasources}
    for prefix in sorted(prefix for prefix in prefixes if prefix and not is_local(prefix)):
        try:
            store = open_store(prefix, {"timeout": "10", "retries": "1"})
            # Of a file that does not exist a store says whether its bucket does, and whether we may read there.
            with suppress(FileNotFoundError):
                store.read("weft-doctor")
        except WeftError as error:
            # Without the package or an address Weft cannot look, but Spark may know the store.
            is_unknown = error.code in ("W1903", "W1904")
            found = f"{prefix} is not checked: {error.message}" if is_unknown else f"{error.code}: {error.message}"
            yield Check("files", ok=is_unknown, found=redact(found), help=error.help)
        else:
            yield Check("files", ok=True, found=f"{store.root} can be read")


def check_schemas(root: Path) -> Check | None:
    """Check the JSON Schemas that the files of the workspace name for editors; None if they name none."""
    from weft.pipelines.model.normalize import KINDS
    from weft.pipelines.model.schemas import render_schema

    folder = root / ".weft" / "schema"
    named = {
        found[1]
        for path in (*root.glob("*.yml"), *root.glob("*/*.yml"))
        if (found := re.match(r"# yaml-language-server: \$schema=\S*\.weft/schema/(\w+)\.json", _first_line(path)))
    }
    if not named and not folder.is_dir():
        return None
    help = f"weft -C {quote_for_shell(root)} schema export"
    present = {kind: folder / f"{kind}.json" for kind in KINDS if (folder / f"{kind}.json").exists()}
    if missing := sorted(named - set(present)):
        state = f"no schema for {format_list(missing)} in {folder}"
        return Check("schemas", ok=False, found=state, help=help)
    old = [kind for kind, path in present.items() if path.read_text(encoding="utf-8") != render_schema(kind)]
    if old:
        return Check("schemas", ok=False, found=f"{format_list(old)} of another release of Weft", help=help)
    if present and _is_ignored(next(iter(present.values()))):
        help = f"printf '/.weft/*\\n!/.weft/schema/\\n' >> {shlex.quote(str(root / '.gitignore'))}, and remove `.weft/` there"
        return Check("schemas", ok=False, found="git ignores them: a colleague's editor misses them", help=help)
    return Check("schemas", ok=True, found=f"{folder} is up to date")


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline()


def _is_ignored(path: Path) -> bool:
    git = shutil.which("git")
    if git is None:
        return False
    command = [git, "-C", str(path.parent), "check-ignore", "--quiet", path.name]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603  # git of the PATH
