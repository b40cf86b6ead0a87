"""Jars that came with the installation: drivers that Spark itself does not bring."""

from __future__ import annotations

import sys
from pathlib import Path


def installed_jars() -> tuple[Path, ...]:
    """Return the jars below ``share/weft/jars`` of the Python environment; ``scripts/jars`` puts them there.

    They go into ``spark.jars`` of a session that Weft starts.
    """
    return tuple(sorted(Path(sys.prefix, "share", "weft", "jars").glob("*.jar")))
