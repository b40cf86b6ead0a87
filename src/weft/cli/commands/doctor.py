"""``weft doctor``: whether this machine can run the workspace."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from typer import Context, Option

from weft.cli.call import Call, get_call, read_store
from weft.cli.envelope import FAILED, OK, Envelope
from weft.cli.fast_start import make_archive
from weft.cli.machine import (
    Check,
    check_disk,
    check_drivers,
    check_memory,
    check_schemas,
    check_spark,
    check_start,
    check_stores,
    check_time_zone,
    check_writable,
)
from weft.cli.terminal import format_count
from weft.errors import WeftError
from weft.redaction import redact

if TYPE_CHECKING:
    from weft.io.options import SparkSettings
    from weft.pipelines.model.workspace import Workspace

NEEDED_JAVA = 17
_TIMEOUT = 5.0
_EXTRAS = {"postgres": "psycopg", "connect": "grpcio", "delta": "deltalake", "iceberg": "pyiceberg"}


def doctor(
    context: Context,
    *,
    upgrade_store: Annotated[bool, Option("--upgrade-store", help="Upgrade the tables of a shared store.")] = False,
    fast_start: Annotated[
        bool, Option("--fast-start", help="Write an archive of Spark's classes, from which sessions start faster.")
    ] = False,
) -> Envelope:
    """Check that this machine can run the workspace. Says what to type for everything that is missing."""
    call = get_call(context)
    java = check_java()
    if fast_start and java.ok:
        make_archive(java.found, is_quiet=call.quiet or call.json)
    checks = [check_python(), java, *check_packages(), check_spark(), check_start(java.found), check_time_zone()]
    checks += _check_workspace(call, upgrade=upgrade_store)
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        lines.append(f"{'ok ' if check.ok else 'NO '} {check.name:<{width}}  {check.found}".rstrip())
        if not check.ok and check.help:
            lines.append(f"    {'':<{width}}  {check.help}")
    return Envelope(
        command="doctor",
        data={"checks": [check.to_dict() for check in checks]},
        text="\n".join(lines),
        exit_code=OK if all(check.ok for check in checks) else FAILED,
    )


def check_python() -> Check:
    """Check the version of this Python."""
    return Check(
        "python",
        sys.version_info >= (3, 11),
        f"{platform.python_version()} at {sys.executable}",
        "Weft needs Python 3.11 or newer",
    )


def check_java() -> Check:
    """Check the Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home, "bin", "java")) if home else shutil.which("java")
    help = f"install Java {NEEDED_JAVA} or newer, and set JAVA_HOME or PATH to it"
    if path is None or not Path(path).exists():
        problem = "not found" if home is None else f"not found at JAVA_HOME {home}"
        return Check("java", ok=False, found=problem, help=help)
    process = subprocess.run(  # noqa: S603  # the path that Spark uses too
        [path, "-version"], capture_output=True, text=True, check=False, timeout=30
    )
    lines = (process.stderr or process.stdout).splitlines()  # Java prints its version to stderr
    number = re.search(r'version "(\d+)', "\n".join(lines))
    ok = number is not None and int(number[1]) >= NEEDED_JAVA
    return Check("java", ok, f"{lines[0] if lines else 'unknown version'} at {path}", help)


def check_packages() -> Iterator[Check]:
    """Check the packages that every run needs."""
    from weft.joins.spark.workers import DRIVER_NEEDS, parse_release

    for name, oldest in {"pyspark": "4.0", **DRIVER_NEEDS}.items():
        help = f"{shlex.quote(sys.executable)} -m pip install '{name}>={oldest}'"
        try:
            installed = str(import_module(name).__version__)
        except ImportError as cause:
            yield Check(name, ok=False, found=f"cannot be imported: {cause}", help=help)
            continue
        is_old = parse_release(installed) < parse_release(oldest)
        state = f"{installed}, but runs need {oldest} or newer" if is_old else installed
        yield Check(name, ok=not is_old, found=state, help=help)


def check_extras(workspace: Workspace | None) -> Iterator[Check]:
    """Check the packages that only some workspaces need."""
    needed = set() if workspace is None else set(_needed_extras(workspace))
    for extra, name in _EXTRAS.items():
        help = f"{shlex.quote(sys.executable)} -m pip install 'weft[{extra}]'"
        try:
            yield Check(name, ok=True, found=version(name))
        except PackageNotFoundError:
            is_needed = extra in needed
            state = "not installed, but the workspace needs it" if is_needed else f"not installed; {help}"
            yield Check(name, ok=not is_needed, found=state, help=help)


def _needed_extras(workspace: Workspace) -> Iterator[str]:
    if workspace.settings.store.startswith("postgres"):
        yield "postgres"
    if _connect_url(workspace.settings.spark):
        yield "connect"
    yield from {source.type for source in workspace.datasources} & {"delta", "iceberg"}


def check_workers(call: Call, workspace: Workspace | None) -> Check:
    """Check that the workers of Spark can run the kernels: local ones by their Python, others by a task."""
    from weft.io.options import SparkSettings
    from weft.io.spark.session import session_for, worker_python
    from weft.pipelines.run.workers import local_workers, session_workers

    settings = SparkSettings() if workspace is None else workspace.settings.spark
    if not _is_remote(settings):
        answer = local_workers(worker_python(settings))
    else:
        try:
            with session_for(settings, call.start if workspace is None else workspace.root) as session:
                answer = session_workers(session)
        except WeftError as error:
            return Check("workers", ok=False, found=f"{error.code}: {error.message}", help=error.help or "")
    if answer.problem:
        return Check("workers", ok=False, found=f"W1809: {answer.problem}", help=answer.help)
    return Check("workers", ok=True, found=str(answer))


def _check_workspace(call: Call, *, upgrade: bool) -> Iterator[Check]:
    try:
        loaded = call.load()
    except WeftError as error:
        yield from (*check_extras(None), check_memory({}), *check_disk(call.start, {}), check_workers(call, None))
        yield Check("workspace", ok=True, found=f"none: {error.message}")
        return
    workspace = loaded.workspace
    conf = workspace.settings.spark.conf
    yield from (*check_extras(workspace), *check_drivers(workspace), *check_stores(workspace), check_memory(conf))
    yield from (*check_disk(workspace.root, conf), check_writable(workspace.root))
    if (schemas := check_schemas(workspace.root)) is not None:
        yield schemas
    state = f"{workspace.root}, {format_count(len(workspace.files), 'file')}"
    if loaded.errors:
        state += f", {format_count(len(loaded.errors), 'error')}"
    yield Check("workspace", ok=not loaded.errors, found=state, help="`weft validate` lists them")
    yield check_store(workspace, upgrade=upgrade)
    if (address := _cluster_address(workspace)) is not None:
        cluster = check_cluster(*address)
        yield cluster
        if not cluster.ok:  # the check of its workers would only wait for it
            return
    yield check_workers(call, workspace)


def check_store(workspace: Workspace, *, upgrade: bool) -> Check:
    """Check that the store is available; upgrade its tables on request."""
    url, root = workspace.settings.store, workspace.root
    try:
        if upgrade:
            from weft.pipelines.store.open import upgrade_store

            return Check("store", ok=True, found=f"{redact(url)}, tables at version {upgrade_store(url, root)}")
        with read_store(workspace) as reader:
            state = "does not exist yet: the first run creates it" if reader is None else "is available"
            return Check("store", ok=True, found=f"{redact(url)} {state}")
    except WeftError as error:
        return Check("store", ok=False, found=error.message, help=error.help)


def _cluster_address(workspace: Workspace) -> tuple[str, str, int] | None:
    spark = workspace.settings.spark
    url = _connect_url(spark) or spark.master
    if url is None or not _is_remote(spark):
        return None
    parts = urlsplit(url.split(",")[0])
    ports = {"sc": 15002, "spark": 7077}
    if parts.hostname is None or parts.scheme not in ports:
        return None
    return url, parts.hostname, parts.port or ports[parts.scheme]


def _connect_url(spark: SparkSettings) -> str | None:
    return spark.remote or os.environ.get("SPARK_REMOTE")


def _is_remote(spark: SparkSettings) -> bool:
    """Whether tasks may run on other machines."""
    return not (_connect_url(spark) or spark.master or "local").startswith("local")


def check_cluster(url: str, host: str, port: int) -> Check:
    """Check that the cluster accepts connections."""
    try:
        with socket.create_connection((host, port), timeout=_TIMEOUT):
            return Check("cluster", ok=True, found=f"{redact(url)} is available")
    except OSError as cause:
        return Check(
            "cluster",
            ok=False,
            found=f"W1808: {redact(url)} is not reachable: {cause}",
            help="start it, or remove `spark` from weft.yml to run on this machine",
        )
