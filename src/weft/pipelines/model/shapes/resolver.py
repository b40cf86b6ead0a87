"""The shape of ``resolvers/*.yml``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weft.io.datasource import EntityStatus
from weft.pipelines.model.shapes.base import Expression, Positive, Shape, Text, either


class PathShape(Shape):
    """A file, folder or glob below the prefix of a datasource."""

    model_config = either(("datasource_id", "datasource"))
    type: Literal["path"]
    datasource_id: Text
    path: Text


class TableShape(Shape):
    """A table of a database or catalog."""

    model_config = either(("datasource_id", "datasource"))
    type: Literal["table"]
    datasource_id: Text
    table: Text
    schema_: Text | None = Field(default=None, alias="schema")


class CatalogShape(Shape):
    """A service that says where the data lies."""

    model_config = either(("datasource_id", "datasource"))
    type: Literal["catalog"]
    endpoint: Text
    method: Literal["GET", "POST"] | None = None
    auth: Text | None = None
    params: dict[str, str | int | bool] | None = None
    headers: dict[str, str | int | bool] | None = None
    datasource_id: Text | None = None


class RuleShape(Shape):
    """A rule: when it holds, and where the data lies then."""

    name: Text
    when: Expression | None = None
    data_level: Text | None = None
    missing: Literal["fail", "skip"] | None = None
    strategy: Annotated[PathShape | TableShape | CatalogShape, Field(discriminator="type")]


class ResolverShape(Shape):
    """Ordered rules that say where data lies."""

    id: Text | None = None
    name: Text | None = None
    version: Positive | None = None
    status: EntityStatus | None = None
    is_default: bool | None = None
    description: str | None = None
    rules: Annotated[list[RuleShape], Field(min_length=1)]
