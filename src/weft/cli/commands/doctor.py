"""``weft doctor``: whether this machine can run what the workspace asks for."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from weft.cli.call import Call, call_of, reading
from weft.cli.envelope import FAILED, OK, Envelope
from weft.errors import WeftError
from weft.redaction import redact

if TYPE_CHECKING:
    from weft.spec.pipeline.workspace import Workspace

NEEDED_JAVA = 17
_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class Check:
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
    """Check Python, Java, packages, the store, the cluster and the files of the workspace."""
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
        data={"checks": [asdict(check) for check in checks]},
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
    """Look at the packages that runs need, and at those for a shared store."""
    for name, needed, why in (
        ("pyspark", True, "pip install 'weft'"),
        ("psycopg", False, "pip install 'weft[postgres]'"),
        ("pyarrow", False, "pip install 'weft[arrow]'"),
    ):
        try:
            yield Check(name, ok=True, found=version(name))
        except PackageNotFoundError:
            yield Check(
                name, ok=not needed, found="not installed" if needed else f"not installed; {why}", help=why
            )


def _of_workspace(call: Call, *, upgrade: bool) -> Iterator[Check]:
    try:
        loaded = call.loaded()
    except WeftError as problem:
        yield Check("workspace", ok=True, found=f"none: {problem.message}")
        return
    workspace = loaded.workspace
    wrong = len(loaded.errors)
    yield Check(
        "workspace",
        ok=not wrong,
        found=f"{workspace.root}, {len(workspace.files)} files" + (f", {wrong} errors" if wrong else ""),
        help="`weft validate` tells them",
    )
    yield store(workspace, upgrade=upgrade)
    if (where := _address(workspace)) is not None:
        yield cluster(*where)


def store(workspace: Workspace, *, upgrade: bool) -> Check:
    """Look whether the store answers; bring its tables up to date when that is wanted."""
    url, root = workspace.settings.store, workspace.root
    try:
        if upgrade:
            from weft.store.open import upgrade_store

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
    said = spark.remote or os.environ.get("SPARK_REMOTE") or spark.master
    if said is None or said.startswith("local"):
        return None
    parts = urlsplit(said.split(",")[0])
    ports = {"sc": 15002, "spark": 7077}
    if parts.hostname is None or parts.scheme not in ports:
        return None
    return said, parts.hostname, parts.port or ports[parts.scheme]


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
