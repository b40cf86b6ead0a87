"""Operation: one step of a project, defined by its type and arguments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weft.core.frozen import FrozenMap
from weft.core.source import NO_SOURCES
from weft.core.spec import ALWAYS, Limits, Locations, Positive, ReadAs, Spec, Text, yaml_key
from weft.io.datasource import FileFormat, WriteMode
from weft.pipelines.model.entries import (
    AsOf,
    Entries,
    ExpressionText,
    Findings,
    NonBlankText,
    Selector,
    expression_key,
    read_expression,
)
from weft.pipelines.model.values import PERIOD_START, DatasetRef, LocatedText, OnMultiple, OperationType

_DATASET = (("dataset_id", "dataset"),)


@dataclass(frozen=True, slots=True)
class Assignment(Spec):
    """A column and the expression for its value."""

    column: NonBlankText
    expression: Annotated[LocatedText, expression_key("expression")]


@dataclass(frozen=True, slots=True)
class Aggregation(Assignment):
    """A column of summary rows and the aggregate expression for its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeJoin(Spec):
    """A dataset that an update joins to the working set.

    The assignments of the update can read its columns as ``alias.column``.
    """

    SHORT: ClassVar = _DATASET
    alias: NonBlankText
    dataset_id: Text
    dataset_version: Positive | None = None
    on: Annotated[LocatedText, expression_key("on")]
    table: Text | None = None
    as_of: AsOf = PERIOD_START
    on_multiple: OnMultiple = "error"
    order_by: tuple[Text, ...] = ()
    broadcast: bool | None = None
    nulls_equal: bool = False
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)

    @property
    def dataset(self) -> DatasetRef:
        """The dataset, with its version when one is pinned."""
        return DatasetRef(self.dataset_id, self.dataset_version, self.at.values.get("dataset_id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(Spec):
    """Arguments of an update, which sets columns of the selected rows.

    Expressions can read the joined datasets.
    """

    joins: tuple[RuntimeJoin, ...] = ()
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping(Spec):
    """How the rows of an append are aggregated first."""

    group_by: Annotated[tuple[NonBlankText, ...], Limits(min_length=1)]
    aggregations: Annotated[tuple[Aggregation, ...], Limits(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(Grouping):
    """Arguments of an aggregate, which adds one summary row for each group."""

    include_summaries: bool = False


def _aggregate(grouping: Grouping, _written: Any, _findings: Findings) -> Aggregate:
    return Aggregate(group_by=grouping.group_by, aggregations=grouping.aggregations)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetReference(Spec):
    """A dataset by id or name."""

    SHORT: ClassVar = _DATASET
    dataset_id: Text
    dataset_version: Positive | None = None
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)


def _reference(written: DatasetReference, _written: Any, _findings: Findings) -> DatasetRef:
    return DatasetRef(written.dataset_id, written.dataset_version, written.at.values.get("dataset_id"))


def _columns(_value: Any, written: Any, findings: Findings) -> FrozenMap[str, LocatedText]:
    return FrozenMap(
        {
            item.name: read_expression(item.value, f"the expression of {item.name!r}", findings)
            for item in written.node.pairs()
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(Spec):
    """Arguments of an append, which adds the rows of another dataset.

    They are unchanged, mapped by `columns`, or aggregated.
    """

    source: Annotated[DatasetRef, ReadAs(DatasetReference, _reference)]
    source_selector: Annotated[LocatedText | None, Selector] = None
    aggregation: Annotated[Aggregate | None, ReadAs(Grouping, _aggregate)] = None
    columns: Annotated[FrozenMap[str, LocatedText] | None, ReadAs(dict[str, ExpressionText], _columns)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(Spec):
    """Arguments of a delete: none, since its selector chooses the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination(Spec):
    """A table of a datasource, or a path and a format."""

    SHORT: ClassVar = (("datasource_id", "datasource"),)
    datasource: Text | None = field(default=None, metadata=yaml_key("datasource_id"))
    table: Text | None = None
    schema: Text | None = None
    path: Text | None = None
    format: FileFormat | None = None
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(Spec):
    """Arguments of an output: what it writes, and where."""

    destination: Destination
    columns: tuple[NonBlankText, ...] | None = None
    include_deleted: bool = False
    register_as_dataset: str | None = None
    mode: WriteMode = "replace_period"
    order_by: tuple[NonBlankText, ...] = ()
    escape_formulas: bool = False


def check_output(output: Output, entries: Entries) -> Output:
    """Return an output; ``columns:`` without a value means no column, not all of them."""
    # pydantic cannot tell: a key without a value is the same as a missing one in every spec.
    if output.columns is None and entries.node.get("columns") is not None:
        return replace(output, columns=())
    return output


@dataclass(frozen=True, slots=True)
class Unread:
    """The arguments of an invalid operation, whose effect on columns is unknown.

    Only a project that is being checked contains one, never a project that runs.
    """

    text: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the text of the file."""
        return {"text": self.text}


Arguments = Update | Aggregate | Append | Delete | Output | Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Spec):
    """One step of a project, on the rows that its selector matches."""

    FIRST: ClassVar = ("id", "seq", "name", "description", "type")
    id: Text = field(default="", metadata=ALWAYS)
    seq: Positive
    name: Text
    description: str = ""
    selector: Annotated[LocatedText | None, Selector] = None
    checkpoint: bool = False
    type: OperationType
    arguments: Arguments
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.seq} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateOperation(Operation):
    """Set columns of the rows that the selector matches."""

    type: Literal["update"]
    arguments: Update


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateOperation(Operation):
    """Add a summary row for each group."""

    type: Literal["aggregate"]
    arguments: Aggregate


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendOperation(Operation):
    """Add the rows of another dataset."""

    type: Literal["append"]
    arguments: Append


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOperation(Operation):
    """Mark the rows that the selector matches as deleted."""

    type: Literal["delete"]
    arguments: Delete = field(default=Delete(), metadata=ALWAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOperation(Operation):
    """Write rows and columns to a destination."""

    type: Literal["output"]
    arguments: Output


AnyOperation = Annotated[
    UpdateOperation | AggregateOperation | AppendOperation | DeleteOperation | OutputOperation,
    Field(discriminator="type"),
]
"""An operation in a file: its type decides which arguments it takes."""


def as_operation(operation: Operation, _entries: Entries) -> Operation:
    """Return an operation of a file as the type that plans use, with a default id."""
    # The types of a file only tell pydantic which arguments to expect; plans look at the arguments.
    values = {name: getattr(operation, name) for name in Operation.__slots__}
    return Operation(**values | {"id": operation.id or f"op-{operation.seq}"})
