"""The shape of ``projects/*.yml``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from weft.pipelines.model.entries import ExpressionText as Expression
from weft.pipelines.model.shapes.base import Positive, Shape, Text, either
from weft.pipelines.model.shapes.operation import OperationShape
from weft.pipelines.model.words import Materialization, ProjectStatus, Visibility


class ProjectShape(Shape):
    """A project: an input and the operations on it."""

    model_config = either(("input_dataset_id", "input"))
    id: Text | None = None
    name: Text | None = None
    version: Positive | None = None
    status: ProjectStatus | None = None
    description: str | None = None
    owner: str | None = None
    visibility: Visibility | None = None
    input_dataset_id: Text
    input_dataset_version: Positive | None = None
    materialization: Materialization | None = None
    calendar: Text | None = None
    checkpoint_every: Positive | None = None
    selectors: dict[str, Expression] | None = None
    resolver_overrides: dict[str, Text] | None = None
    operations: Annotated[list[OperationShape], Field(min_length=1)]
