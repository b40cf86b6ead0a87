"""The class archive: Spark's classes as the JVM keeps them in memory, so that it starts in two thirds of the time.

A third of what a small run costs is loading and verifying some 20,000 classes. Java maps them from an archive that an
earlier JVM wrote when it ended (-XX:ArchiveClassesAtExit). Java itself checks that an archive fits: one of another
Java, or of other jars, is ignored. `weft doctor --fast-start` writes it into the Python environment.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
"""The Spark setting with options of the JVM; `spark.driver.extraJavaOptions` is left to users."""

# Java would print to stdout that an archive does not fit, and stdout holds the result of a command.
_SILENT = "-Xlog:disable -Xlog:all=error:stderr"


def archive_path() -> Path:
    """Return where the archive for the installed Spark is, or would be."""
    return Path(sys.prefix, "share", "weft", "classes", f"spark-{version('pyspark')}.jsa")


def java_of_archive(archive: Path) -> Path:
    """Return the file beside an archive that holds the version of the Java that wrote it."""
    return archive.with_suffix(".java")


def read_archive(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the setting that lets a new JVM read the archive; nothing without one, or if `conf` has the setting."""
    archive = archive_path()
    if JAVA_OPTIONS in conf or not archive.exists():
        return {}
    return {JAVA_OPTIONS: f"{shlex.quote(f'-XX:SharedArchiveFile={archive}')} {_SILENT}"}


def write_archive(archive: Path) -> dict[str, str]:
    """Return the setting that lets a new JVM write an archive when it ends."""
    return {JAVA_OPTIONS: f"{shlex.quote(f'-XX:ArchiveClassesAtExit={archive}')} {_SILENT}"}
