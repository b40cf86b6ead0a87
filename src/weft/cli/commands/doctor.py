"""``weft doctor``: whether this machine can run what the workspace asks for."""

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
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from weft.cli.call import Call, call_of, reading
from weft.cli.envelope import FAILED, OK, Envelope
from weft.core.documents import Document
from weft.errors import WeftError
from weft.redaction import redact

if TYPE_CHECKING:
    from weft.io.settings import SparkSettings
    from weft.pipelines.model.workspace import Workspace

NEEDED_JAVA = 17
_WAIT = 5.0
_EXTRAS = {"postgres": "psycopg", "connect": "grpcio", "delta": "deltalake", "iceberg": "pyiceberg"}


@dataclass(frozen=True, slots=True)
class Check(Document):
    """One thing that was looked at; `help` says what to do when it is not as it should be."""

    name: str
    ok: bool
    found: str
    help: str = ""


def doctor(
    context: typer.Context,
    *,
    upgrade_store: Annotated[
        bool, typer.Option("--upgrade-store", help="Bring the tables of a shared store up to date.")
    ] = False,
) -> Envelope:
    """Check Python, Java, packages, the store, the files of the workspace, the cluster and its workers."""
    call = call_of(context)
    checks = [python(), java(), *packages(), *_of_workspace(call, upgrade=upgrade_store)]
    wide = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        lines.append(f"{'ok ' if check.ok else 'NO '} {check.name:<{wide}}  {check.found}".rstrip())
        if not check.ok and check.help:
            lines.append(f"    {'':<{wide}}  {check.help}")
    well = all(check.ok for check in checks)
    return Envelope(
        command="doctor",
        data={"checks": [check.to_dict() for check in checks]},
        text="\n".join(lines),
        exit_code=OK if well else FAILED,
    )


def python() -> Check:
    """Look at the Python that runs this."""
    return Check(
        "python",
        sys.version_info >= (3, 11),
        f"{platform.python_version()} at {sys.executable}",
        "Weft needs Python 3.11 or newer",
    )


def java() -> Check:
    """Look at the Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    help = f"Spark needs Java {NEEDED_JAVA} or newer: install one, and let JAVA_HOME or PATH lead to it"
    if found is None or not Path(found).exists():
        return Check(
            "java", ok=False, found="none" if home is None else f"none at JAVA_HOME {home}", help=help
        )
    # The Java that Spark itself would start.
    told = subprocess.run(  # noqa: S603
        [found, "-version"], capture_output=True, text=True, check=False, timeout=30
    )
    said = (told.stderr or told.stdout).splitlines()
    number = re.search(r'version "(\d+)', "\n".join(said))
    ok = number is not None and int(number[1]) >= NEEDED_JAVA
    return Check("java", ok, f"{said[0] if said else 'says nothing'} at {found}", help)


def packages() -> Iterator[Check]:
    """Look at the packages that every run needs in this Python."""
    from weft.joins.spark.workers import DRIVER_NEEDS, parse_release

    for name, oldest in {"pyspark": "4.0", **DRIVER_NEEDS}.items():
        help = f"{shlex.quote(sys.executable)} -m pip install '{name}>={oldest}'"
        try:
            installed = str(import_module(name).__version__)
        except ImportError as cause:
            yield Check(name, ok=False, found=f"cannot be imported: {cause}", help=help)
            continue
        is_old = parse_release(installed) < parse_release(oldest)
        found = f"{installed}, and runs need {oldest} or newer" if is_old else installed
        yield Check(name, ok=not is_old, found=found, help=help)


def extras(workspace: Workspace | None) -> Iterator[Check]:
    """Look at the packages that only some workspaces need."""
    wanted = set() if workspace is None else set(_extras_of(workspace))
    for extra, name in _EXTRAS.items():
        help = f"{shlex.quote(sys.executable)} -m pip install 'weft[{extra}]'"
        try:
            yield Check(name, ok=True, found=version(name))
        except PackageNotFoundError:
            is_needed = extra in wanted
            found = "not installed, and the workspace needs it" if is_needed else f"not installed; {help}"
            yield Check(name, ok=not is_needed, found=found, help=help)


def _extras_of(workspace: Workspace) -> Iterator[str]:
    if workspace.settings.store.startswith("postgres"):
        yield "postgres"
    if _remote(workspace.settings.spark):
        yield "connect"
    yield from {source.type for source in workspace.datasources} & {"delta", "iceberg"}


def workers(call: Call, workspace: Workspace | None) -> Check:
    """Look whether Spark's workers can run the kernels: by asking their Python here, by a task elsewhere."""
    from weft.io.settings import SparkSettings
    from weft.io.spark.session import session_for, worker_python
    from weft.pipelines.run.workers import local_workers, session_workers

    settings = SparkSettings() if workspace is None else workspace.settings.spark
    if not _is_elsewhere(settings):
        asked = local_workers(worker_python(settings))
    else:
        try:
            with session_for(settings, call.start if workspace is None else workspace.root) as session:
                asked = session_workers(session)
        except WeftError as problem:
            return Check(
                "workers", ok=False, found=f"{problem.code}: {problem.message}", help=problem.help or ""
            )
    if asked.problem:
        return Check("workers", ok=False, found=f"W1809: {asked.problem}", help=asked.help)
    return Check("workers", ok=True, found=str(asked))


def _of_workspace(call: Call, *, upgrade: bool) -> Iterator[Check]:
    try:
        loaded = call.loaded()
    except WeftError as problem:
        yield from (*extras(None), workers(call, None))
        yield Check("workspace", ok=True, found=f"none: {problem.message}")
        return
    workspace = loaded.workspace
    yield from extras(workspace)
    wrong = len(loaded.errors)
    yield Check(
        "workspace",
        ok=not wrong,
        found=f"{workspace.root}, {len(workspace.files)} files" + (f", {wrong} errors" if wrong else ""),
        help="`weft validate` tells them",
    )
    yield store(workspace, upgrade=upgrade)
    if (where := _address(workspace)) is not None:
        reached = cluster(*where)
        yield reached
        if not reached.ok:
            return
    yield workers(call, workspace)


def store(workspace: Workspace, *, upgrade: bool) -> Check:
    """Look whether the store answers; bring its tables up to date when that is wanted."""
    url, root = workspace.settings.store, workspace.root
    try:
        if upgrade:
            from weft.pipelines.store.open import upgrade_store

            return Check(
                "store", ok=True, found=f"{redact(url)}, tables at version {upgrade_store(url, root)}"
            )
        with reading(workspace.settings, root) as reader:
            what = "not made yet: the first run makes it" if reader is None else "answers"
            return Check("store", ok=True, found=f"{redact(url)} {what}")
    except WeftError as problem:
        return Check("store", ok=False, found=problem.message, help=problem.help)


def _address(workspace: Workspace) -> tuple[str, str, int] | None:
    spark = workspace.settings.spark
    said = _remote(spark) or spark.master
    if said is None or not _is_elsewhere(spark):
        return None
    parts = urlsplit(said.split(",")[0])
    ports = {"sc": 15002, "spark": 7077}
    if parts.hostname is None or parts.scheme not in ports:
        return None
    return said, parts.hostname, parts.port or ports[parts.scheme]


def _remote(spark: SparkSettings) -> str | None:
    return spark.remote or os.environ.get("SPARK_REMOTE")


def _is_elsewhere(spark: SparkSettings) -> bool:
    """Return whether tasks run on other machines, or may."""
    return not (_remote(spark) or spark.master or "local").startswith("local")


def cluster(said: str, host: str, port: int) -> Check:
    """Look whether somebody listens where Spark should run."""
    try:
        with socket.create_connection((host, port), timeout=_WAIT):
            return Check("spark", ok=True, found=f"{redact(said)} answers")
    except OSError as cause:
        return Check(
            "spark",
            ok=False,
            found=f"W1808: {redact(said)} is not reachable: {cause}",
            help="start it, or leave `spark` out of weft.yml to use this machine",
        )
