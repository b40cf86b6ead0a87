"""``weft doctor --fast-start``: write the class archive, by a run of the sample project in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from weft.cli.terminal import print_stderr
from weft.errors import RunError


def make_archive(java: str, *, is_quiet: bool) -> Path:
    """Write the class archive for the installed Spark and Java, and return its path; it replaces an earlier one."""
    from weft.io.spark.class_archive import archive_path, java_of_archive, write_archive

    archive = archive_path()
    if not is_quiet:
        print_stderr("starting Spark once, and writing what it loads into an archive; half a minute ...")
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        # In the same folder, because only a rename within one file system is atomic.
        with tempfile.TemporaryDirectory(prefix=".tmp-", dir=archive.parent) as made:
            new = Path(made, archive.name)
            _run_sample(Path(made, "sample"), write_archive(new))
            if not new.exists():
                raise _failed("Java wrote no archive")
            java_of_archive(archive).write_text(java, encoding="utf-8")
            new.replace(archive)
    except OSError as cause:
        raise RunError(
            f"cannot write the class archive to {archive.parent}: {cause.strerror}",
            code="W1808",
            help="use a Python environment of yours; runs work without an archive",
        ) from cause
    return archive


def _run_sample(folder: Path, conf: Mapping[str, str]) -> None:
    """Create the sample workspace in a folder and run its project, with settings for Spark."""
    weft = [sys.executable, "-m", "weft"]
    kept = {key: value for key, value in os.environ.items() if key != "SPARK_REMOTE"}
    settings = folder / "weft.yml"
    for words in (("init", str(folder)), ("-C", str(folder), "run", "-p", "2026-01", "--json")):
        # The archive is complete when the JVM has ended: it holds the pipes of the process that started it.
        ran = subprocess.run([*weft, *words], env=kept, capture_output=True, text=True, check=False)  # noqa: S603  # ourselves
        if ran.returncode:
            raise _failed(f"the sample project failed: {ran.stdout.strip() or ran.stderr.strip()}")
        if words[0] == "init":
            lines = "".join(f"    {name}: {value!r}\n" for name, value in conf.items())
            settings.write_text(f"{settings.read_text(encoding='utf-8')}spark:\n  conf:\n{lines}", encoding="utf-8")


def _failed(reason: str) -> RunError:
    return RunError(reason, code="W1808", help="`weft doctor` looks for the cause; runs work without an archive")
