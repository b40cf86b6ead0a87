"""Settings of ``weft.yml`` that say where work is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from weft.core.frozen import EMPTY, FrozenMap
from weft.core.spec import ShownAs, Spec, Text, WrittenAs, frozen_values

_Value = Annotated[str, ShownAs({"type": ["string", "number", "boolean"]})]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings(Spec):
    """Where Spark runs, and how it is set.

    It runs at a master, at a Connect server (`remote`), or, with neither, on this machine.
    """

    master: Text | None = None
    remote: Text | None = None
    conf: Annotated[FrozenMap[str, str], WrittenAs(dict[str, _Value], frozen_values)] = EMPTY
