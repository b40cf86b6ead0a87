"""The shapes of the five operations, in the canonical form: seq, type, selector, arguments."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weft.io.datasource import FileFormat, WriteMode
from weft.pipelines.model.entries import ExpressionText as Expression
from weft.pipelines.model.shapes.base import Positive, Shape, Text, either
from weft.pipelines.model.words import OnMultiple


class Join(Shape):
    """A dataset that an update reads beside the working set."""

    model_config = either(("dataset_id", "dataset"))
    alias: Text
    dataset_id: Text
    dataset_version: Positive | None = None
    on: Expression
    table: Text | None = None
    as_of: Text | None = None
    on_multiple: OnMultiple | None = None
    order_by: list[Text] | None = None
    broadcast: bool | None = None
    nulls_equal: bool | None = None


class AssignmentShape(Shape):
    """A column and the expression that gives its value."""

    column: Text
    expression: Expression


class AggregationShape(Shape):
    """A column of summary rows and the aggregate that gives its value."""

    column: Text
    expression: Expression


class UpdateArguments(Shape):
    """What an update does."""

    joins: list[Join] | None = None
    assignments: list[AssignmentShape]


class AppendAggregation(Shape):
    """How the rows of an append are summed up first."""

    group_by: Annotated[list[Text], Field(min_length=1)]
    aggregations: Annotated[list[AggregationShape], Field(min_length=1)]


class AggregateArguments(AppendAggregation):
    """What an aggregate does."""

    include_summaries: bool | None = None


class DatasetReference(Shape):
    """A dataset by id or name."""

    model_config = either(("dataset_id", "dataset"))
    dataset_id: Text
    dataset_version: Positive | None = None


class AppendArguments(Shape):
    """What an append does."""

    source: DatasetReference
    source_selector: Expression | None = None
    aggregation: AppendAggregation | None = None
    columns: dict[str, Expression] | None = None


class DeleteArguments(Shape):
    """A delete has no arguments: its selector says which rows."""


class DestinationShape(Shape):
    """A table of a datasource, or a path and a format."""

    model_config = either(("datasource_id", "datasource"))
    datasource_id: Text | None = None
    table: Text | None = None
    schema_: Text | None = Field(default=None, alias="schema")
    path: Text | None = None
    format: FileFormat | None = None


class OutputArguments(Shape):
    """What an output writes, and where."""

    destination: DestinationShape
    columns: list[Text] | None = None
    include_deleted: bool | None = None
    register_as_dataset: str | None = None
    mode: WriteMode | None = None
    order_by: list[Text] | None = None
    escape_formulas: bool | None = None


class _Operation(Shape):
    id: Text | None = None
    seq: Positive
    name: Text
    description: str | None = None
    selector: Expression | None = None
    checkpoint: bool | None = None


class UpdateOperation(_Operation):
    """Set columns of the rows that the selector matches."""

    type: Literal["update"]
    arguments: UpdateArguments


class AggregateOperation(_Operation):
    """Add a summary row for each group."""

    type: Literal["aggregate"]
    arguments: AggregateArguments


class AppendOperation(_Operation):
    """Add the rows of another dataset."""

    type: Literal["append"]
    arguments: AppendArguments


class DeleteOperation(_Operation):
    """Mark the rows that the selector matches as deleted."""

    type: Literal["delete"]
    arguments: DeleteArguments | None = None


class OutputOperation(_Operation):
    """Write rows and columns to a destination."""

    type: Literal["output"]
    arguments: OutputArguments


OperationShape = Annotated[
    UpdateOperation | AggregateOperation | AppendOperation | DeleteOperation | OutputOperation,
    Field(discriminator="type"),
]
