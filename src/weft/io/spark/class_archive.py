"""The class archive: Spark's classes as the JVM keeps them in memory, so that it starts in two thirds of the time.

A third of what a small run costs is loading and verifying some 20,000 classes. Java maps them from an archive that an
earlier JVM wrote when it ended (-XX:ArchiveClassesAtExit). Java itself checks that an archive fits: one of another
Java, or of other jars, is ignored. `weft doctor --fast-start` writes it into the Python environment.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
"""The Spark setting with options of the JVM; `spark.driver.extraJavaOptions` is left to users."""

# Two fifths of the CPU time of a small run is the optimizing compiler, whose code such a run is too short to use.
_FAST_COMPILER = "-XX:TieredStopAtLevel=1"
# Java would print to stdout that an archive does not fit, and stdout holds the result of a command.
_SILENT = "-Xlog:disable -Xlog:all=error:stderr"


def archive_path() -> Path:
    """Return where the archive for the installed Spark is, or would be."""
    return Path(sys.prefix, "share", "weft", "classes", f"spark-{version('pyspark')}.jsa")


def java_of_archive(archive: Path) -> Path:
    """Return the file beside an archive that holds the version of the Java that wrote it."""
    return archive.with_suffix(".java")


def java_options(conf: Mapping[str, str], *, is_small: bool = False) -> dict[str, str]:
    """Return the setting with options for a new JVM: to read the archive, and to start fast for small work.

    If `conf` has the setting, or Spark's own file of settings, that one is used as it is.
    """
    archive, options = archive_path(), []
    if archive.exists():
        options += [shlex.quote(f"-XX:SharedArchiveFile={archive}"), _SILENT]
    if is_small:
        options.append(_FAST_COMPILER)
    return {} if not options or JAVA_OPTIONS in conf or _is_in_defaults() else {JAVA_OPTIONS: " ".join(options)}


def _is_in_defaults() -> bool:
    """Whether Spark's own file of settings has the setting."""
    home = os.environ.get("SPARK_HOME", "")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and str(Path(home, "conf")))
    try:
        return bool(folder) and JAVA_OPTIONS in Path(folder, "spark-defaults.conf").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False


def write_archive(archive: Path) -> dict[str, str]:
    """Return the setting that lets a new JVM write an archive when it ends."""
    return {JAVA_OPTIONS: f"{shlex.quote(f'-XX:ArchiveClassesAtExit={archive}')} {_SILENT} {_FAST_COMPILER}"}
