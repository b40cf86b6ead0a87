"""The shape of ``datasets/*.yml``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from weft.io.datasource import EntityStatus
from weft.pipelines.model.shapes.base import Positive, Shape, Text, either
from weft.pipelines.model.words import Check, Origin, TemporalMode


class Column(Shape):
    """A column of a table."""

    name: Text
    type: Text
    nullable: bool | None = None
    description: str | None = None
    previous_name: Text | None = None


class Table(Shape):
    """A table of a dataset."""

    name: Text
    temporal_mode: TemporalMode | None = None
    overlap: Check | None = None
    columns: Annotated[list[Column], Field(min_length=1)]


class TableTarget(Table):
    """A lookup table that belongs to the dataset."""

    type: Literal["table"]


class DatasetTarget(Shape):
    """A lookup that is a dataset of its own."""

    model_config = either(("id", "dataset"))
    type: Literal["dataset"]
    id: Text
    version: Positive | None = None


class Condition(Shape):
    """A column of the main table that equals one of the target."""

    source_column: Text
    target_column: Text


class Lookup(Shape):
    """A table whose columns every operation may read."""

    alias: Text | None = None
    target: Annotated[TableTarget | DatasetTarget, Field(discriminator="type")]
    join_conditions: Annotated[list[Condition], Field(min_length=1)]
    as_of: Text | None = None


class DatasetShape(Shape):
    """One version of a dataset."""

    model_config = either(("resolver_id", "resolver"))
    id: Text | None = None
    name: Text | None = None
    version: Positive | None = None
    status: EntityStatus | None = None
    description: str | None = None
    owner: str | None = None
    resolver_id: Text | None = None
    natural_key_columns: list[Text] | None = None
    check_keys: Check | None = None
    main_table: Table
    lookups: list[Lookup] | None = None
    # Written by Weft into the store, never by people.
    origin: Annotated[Origin | None, Field(json_schema_extra=lambda schema: schema.update(_HIDDEN))] = None


_HIDDEN: dict[str, Any] = {"description": "who made the version; file when it is left out"}
