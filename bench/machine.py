"""The machine of a measurement, recorded with every figure."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path


def machine() -> dict[str, str | int | float]:
    """Return the processor, cores, memory and versions that timings depend on."""
    import pyspark

    cpu = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor() or "unknown",
    )
    memory = next((line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "0")
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory) / 1024 / 1024),
        "python": platform.python_version(),
        "pyspark": pyspark.__version__,
        "load_before": round(os.getloadavg()[0], 2),
    }


def source_state() -> str:
    """Return a short digest of Weft's sources, so that figures of different states are not taken for one."""
    digest = hashlib.sha256()
    for file in sorted((Path(__file__).parents[1] / "src" / "weft").rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:8]


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []
