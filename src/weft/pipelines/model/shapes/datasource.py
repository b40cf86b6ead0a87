"""The shape of ``datasources/*.yml``."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticKnownError

from weft.io.connectors import connectors
from weft.io.datasource import EntityStatus
from weft.pipelines.model.shapes.base import Shape, Text


def _kinds() -> list[str]:
    """Return the types that a file may name: those of connectors, and the former name of jdbc."""
    return [*(connector.kind for connector in connectors()), "database"]


def _check_kind(value: object) -> object:
    if value in _kinds():
        return value
    *others, last = map(repr, _kinds())
    raise PydanticKnownError("literal_error", {"expected": f"{', '.join(others)} or {last}"})


def _list_kinds(schema: dict[str, Any]) -> None:
    """Put the types that are registered now into the JSON Schema, in the form that a Literal has."""
    written = dict(schema)
    schema.clear()
    schema.update({"enum": _kinds(), **written})


class DataSourceShape(Shape):
    """A place that holds data, without its secrets."""

    id: Text | None = None
    name: Text | None = None
    type: Annotated[str, BeforeValidator(_check_kind), Field(json_schema_extra=_list_kinds)]
    options: dict[str, Any] | None = None
    status: EntityStatus | None = None
    credential_ref: Text | None = None
    description: str | None = None
    owner: str | None = None
