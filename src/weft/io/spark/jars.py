"""Jars that came with the installation: drivers and connectors that Spark itself does not bring."""

from __future__ import annotations

import sys
from pathlib import Path


def jars_folder() -> Path:
    """Return the folder of the Python environment that holds them; connectors have folders of their own in it."""
    return Path(sys.prefix, "share", "weft", "jars")


def installed_jars() -> tuple[Path, ...]:
    """Return the jars below ``share/weft/jars``; ``scripts/jars`` and ``weft connectors install`` put them there.

    They go into ``spark.jars`` of a session that Weft starts.
    """
    return tuple(sorted(p for p in jars_folder().rglob("*.jar") if ".tmp-" not in str(p)))
