"""Settings of ``weft.yml`` that say where work is done."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.frozen import EMPTY, FrozenMap


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Where Spark runs: a master, a Connect server (`remote`), or, with neither, this machine."""

    master: str | None = None
    remote: str | None = None
    conf: FrozenMap[str, str] = EMPTY
