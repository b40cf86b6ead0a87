"""The shape of ``datasources/*.yml``."""

from __future__ import annotations

from typing import Any, Literal

from weft.io.datasource import EntityStatus
from weft.pipelines.model.shapes.base import Shape, Text


class DataSourceShape(Shape):
    """A place that holds data, without its secrets."""

    id: Text | None = None
    name: Text | None = None
    type: Literal["csv", "parquet", "json", "jdbc", "table", "iceberg", "delta", "database"]
    options: dict[str, Any] | None = None
    status: EntityStatus | None = None
    credential_ref: Text | None = None
    description: str | None = None
    owner: str | None = None
