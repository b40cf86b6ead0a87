"""DataSource: a place that holds data, without its secrets; the words that sources and sinks share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from weft.core import types
from weft.core.frozen import EMPTY, FrozenMap
from weft.core.source import NO_SOURCES
from weft.core.spec import ALWAYS, NEVER, Locations, ReadAs, Spec, Text, freeze_values
from weft.core.types import Field

EntityStatus = Literal["active", "disabled"]
FileFormat = Literal["parquet", "csv", "json"]
WriteMode = Literal["replace_period", "append", "merge", "fail_if_exists"]

PERIOD = Field("_period", types.STRING)
"""The column with the period of a row, by which a sink replaces rows."""


class _ConnectorKind:
    """The type of a datasource in files: the kind of a connector, or ``database``, the former name of jdbc."""

    @staticmethod
    def kinds() -> list[str]:
        """Return the types that a file may name now: connectors may be registered at any time."""
        from weft.io.connectors import connectors  # noqa: PLC0415  # connectors read datasources

        return [*(connector.kind for connector in connectors()), "database"]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return the schema of a string that is one of the types."""
        from pydantic_core import PydanticKnownError, core_schema  # noqa: PLC0415  # only readers of files need it

        def check(value: Any) -> Any:
            if value in self.kinds():
                return "jdbc" if value == "database" else value
            *others, last = map(repr, self.kinds())
            raise PydanticKnownError("literal_error", {"expected": f"{', '.join(others)} or {last}"})

        return core_schema.no_info_before_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Return the types in the form that a Literal has."""
        return {"enum": self.kinds(), **handler(schema)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource(Spec):
    """A place that holds data, without its secrets.

    `type` is the kind of a connector, `credential_ref` says where its secret is kept.
    """

    FIRST: ClassVar = ("id", "name", "type", "status", "description")
    id: Text = field(default="", metadata=ALWAYS)
    name: Text = field(default="", metadata=ALWAYS)
    type: Annotated[str, _ConnectorKind()]
    options: Annotated[FrozenMap[str, Any], ReadAs(dict[str, Any], freeze_values)] = field(
        default=EMPTY, metadata=ALWAYS
    )
    status: EntityStatus = field(default="active", metadata=ALWAYS)
    credential_ref: Text | None = None
    description: str = ""
    owner: str = field(default="", compare=False, repr=False, metadata=NEVER)
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name
