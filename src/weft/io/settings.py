"""Settings of ``weft.yml`` that say where work is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from weft.core.frozen import EMPTY, FrozenMap
from weft.core.spec import ReadAs, Spec, Text, WithJsonSchema, freeze_values

_Value = Annotated[str, WithJsonSchema({"type": ["string", "number", "boolean"]})]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings(Spec):
    """Where Spark runs, and how it is set.

    It runs at a master, at a Connect server (`remote`), or, with neither, on this machine.
    """

    master: Text | None = None
    remote: Text | None = None
    conf: Annotated[FrozenMap[str, str], ReadAs(dict[str, _Value], freeze_values)] = EMPTY
