"""DataSource: a place that holds data, without its secrets; the words that sources and sinks share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from weft.core import types
from weft.core.frozen import EMPTY, FrozenMap, thawed
from weft.core.sites import NOWHERE, Sites
from weft.core.types import Field

EntityStatus = Literal["active", "disabled"]
FileFormat = Literal["parquet", "csv", "json"]
WriteMode = Literal["replace_period", "append", "merge", "fail_if_exists"]

PERIOD = Field("_period", types.STRING)
"""The column with the period of a row, by which a sink replaces rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """A place that holds data; `type` is the kind of a connector, `credential_ref` says where its secret is kept."""

    id: str
    name: str
    type: str
    options: FrozenMap[str, Any] = EMPTY
    status: EntityStatus = "active"
    credential_ref: str | None = None
    description: str = ""
    at: Sites = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name

    def to_dict(self) -> dict[str, Any]:
        """Return the canonical form of a datasource file; it holds no secret."""
        return {
            "id": self.id,
            "name": self.name,
            "type": self.type,
            "status": self.status,
            **({"description": self.description} if self.description else {}),
            "options": thawed(self.options),
            **({} if self.credential_ref is None else {"credential_ref": self.credential_ref}),
        }
