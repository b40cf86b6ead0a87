"""The shape of ``scenarios/*.yml``, in the form with given and expect."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from weft.pipelines.model.shapes.base import Name, Positive, Shape, Text

Change = Literal["created", "updated", "deleted"]
Row = dict[str, Any]
Number = Annotated[int | Decimal, WithJsonSchema({"type": "number"})]


class RowsShape(Shape):
    """Rows of a table: written out, in a file, or as CSV."""

    rows: list[Row] | None = None
    file: Text | None = None
    csv: str | None = None


class TraceShape(Shape):
    """A change that an operation must make."""

    operation: Positive
    change: Change
    match: Row | None = None
    diff: dict[str, Annotated[list[Any], Field(min_length=2, max_length=2)]] | None = None


class ExpectShape(RowsShape):
    """What must come out."""

    output: Positive | Literal["working"] | None = None
    match: Literal["exact", "subset"] | None = None
    ordered: bool | None = None
    count: Annotated[int, Field(ge=0)] | None = None
    columns: Literal["exact", "partial"] | None = None
    errors: list[Text] | None = None
    pins: dict[str, Positive] | None = None
    trace: list[TraceShape] | None = None
    trace_match: Literal["subset", "exact"] | None = None
    metadata: bool | None = None
    tolerance: Number | None = None


class ScenarioPeriod(Shape):
    """A period that the scenario brings itself; the end date is its last day."""

    identifier: Name
    level: Text
    start_date: Text
    end_date: Text
    status: Literal["open", "closed", "locked"] | None = None


class ScenarioShape(Shape):
    """Given these rows, the project must make those."""

    name: Text
    description: str | None = None
    project: Annotated[Text | dict[str, Any], WithJsonSchema({"type": ["string", "object"]})]
    period: Name
    known_at: Text | None = None
    today: Text | None = None
    calendar: Text | None = None
    periods: list[ScenarioPeriod] | None = None
    given: Annotated[
        Literal["workspace"] | dict[str, RowsShape] | None,
        WithJsonSchema(
            {
                "anyOf": [
                    {"const": "workspace"},
                    {"type": "object", "additionalProperties": {"type": ["array", "object"]}},
                    {"type": "null"},
                ]
            }
        ),
    ] = None
    expect: ExpectShape
    snapshot: bool | None = None
