"""A streaming SQL job as frozen values: streams, tables, sinks, and the statements that join them.

The columns of a ``SELECT *`` are not there yet: the planner knows them.  Places (`at`) take no part
in equality and are not serialised; everything else reads back equal from ``to_dict``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from weft.core.duration import Duration
from weft.core.fingerprint import decode, encode, fingerprint
from weft.core.frozen import EMPTY, FrozenMap
from weft.core.source import Source
from weft.core.types import Field, Schema, parse_type
from weft.errors import JoinSpecError, WeftError
from weft.expr.ast import Expr
from weft.expr.read import parse
from weft.expr.render import render
from weft.joins.spec.serial import Serial, from_dict
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.streams.kernel.spec import Emit, Late, Limits, Malformed, MissingTime, StreamHow

_DURATION, _COLUMNS, _EXPR, _ENTRIES = "$duration", "$columns", "$expr", "$entries"


def plain(value: Any) -> Any:
    """Return `value` as JSON; what JSON has no type for stands under a tag.

    >>> plain((Duration.parse("90m"), FrozenMap(path="a.csv")))
    [{'$duration': '1h 30m'}, {'$entries': {'path': 'a.csv'}}]
    """
    match value:
        case Serial():
            return value.to_dict()
        case Duration():
            return {_DURATION: str(value)}
        case Schema():
            return {_COLUMNS: [[f.name, str(f.dtype), f.nullable] for f in value]}
        case Expr():
            return {_EXPR: render(value, dialect="stream")}
        case Mapping():
            return {_ENTRIES: {key: plain(v) for key, v in value.items()}}
        case list() | tuple():
            return [plain(v) for v in value]
        case _:
            return encode(value)


def valued(value: Any) -> Any:
    """Return what `plain` was given.

    >>> valued([{"$duration": "1h 30m"}, {"$entries": {"path": "a.csv"}}])
    (Duration(microseconds=5400000000), {'path': 'a.csv'})
    """
    if isinstance(value, list | tuple):
        return tuple(valued(v) for v in value)
    if not isinstance(value, Mapping):
        return value
    match dict(value):
        case {"$duration": str() as text}:
            return Duration.parse(text, signed=True)
        case {"$columns": list() as columns}:
            return Schema(
                tuple(Field(name, parse_type(dtype), nullable) for name, dtype, nullable in columns)
            )
        case {"$expr": str() as text}:
            return parse(text, dialect="stream")
        case {"$entries": Mapping() as entries}:
            return FrozenMap({key: valued(v) for key, v in entries.items()})
        case {"type": str()}:
            return from_dict(value)
        case _:
            return decode(value)


Reload = Literal["start", "batch"]
ZERO = Duration(0)
Bounds = tuple[Duration, Duration]
"""Lower and upper end of ``right time - left time``, both included."""

TIME_FORMATS = ("timestamp", "iso8601", "epoch_seconds", "epoch_millis", "epoch_micros")
"""The words of ``event.time.format``; every other value is a pattern of `TIME_DIRECTIVES`."""

TIME_DIRECTIVES = "YymbdjHIMSfpz%"
"""The letters that may stand after ``%`` in a pattern of times, as Python's strptime reads them."""

MESSAGE_TIME = "_TIMESTAMP"
"""The event time field of a Kafka stream that means the time of the message."""


class StreamRecord(Serial):
    """What the records of a job share: places are left out of the stored form."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain JSON values; `from_dict` reads it back."""
        said = {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.compare}  # type: ignore[arg-type]  # all are dataclasses
        return {"type": self.TYPE, "version": self.VERSION, **said}

    def fingerprint(self) -> str:
        """Return a hash of what the record says."""
        return fingerprint(self.to_dict())

    @classmethod
    def _build(cls, values: dict[str, Any]) -> Any:
        cls._check_fields(values)
        try:
            return cls(**{name: valued(value) for name, value in values.items()})
        except WeftError:
            raise
        except (TypeError, ValueError) as cause:
            raise JoinSpecError(
                f"the serialised {cls.TYPE!r} does not read: {cause}",
                code="W0306",
                help="write it with to_dict or to_json of the spec",
            ) from cause


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec(StreamRecord):
    """A stream that is read: its columns, where it comes from, its event time and its policies.

    `connector` holds the options of the source under their written names, typed, with the defaults
    that apply to it: always ``connector``; ``path`` and ``format`` for files, ``topic`` for Kafka.
    `event_time` is a column, ``_TIMESTAMP`` for the time of a Kafka message, or None: not said.
    """

    TYPE: ClassVar[str] = "stream"

    name: str
    columns: Schema
    connector: FrozenMap[str, Any]
    event_time: str | None = None
    time_format: str = "iso8601"
    delay: Duration = ZERO
    late: Late = "side_output"
    malformed: Malformed = "reject"
    dedup: tuple[str, ...] = ()
    idle: Duration | None = None
    at: Source | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec(StreamRecord):
    """A table that does not change: read at the start and kept, or read again for each batch."""

    TYPE: ClassVar[str] = "stream_table"

    name: str
    columns: Schema
    connector: FrozenMap[str, Any]
    reload: Reload = "start"
    at: Source | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSpec(StreamRecord):
    """Where the rows of a statement go; `columns` are those that the job declares, if it does."""

    TYPE: ClassVar[str] = "stream_sink"

    name: str
    connector: FrozenMap[str, Any]
    columns: Schema | None = None
    at: Source | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsSpec(Limits, StreamRecord):
    """The limits of a join as a record that can be stored."""

    TYPE: ClassVar[str] = "stream_limits"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStepSpec(StreamRecord):
    """One JOIN of a statement.

    `form` is the time part that WITHIN, WINDOW or options say; None: ON and WHERE hold it, if anything
    does.  The order columns in it are the event times of the first stream and of the joined one as
    far as they are said, and have no keys: the planner fills in both.  `input` is a stream or a table.
    """

    TYPE: ClassVar[str] = "stream_join"

    how: StreamHow
    input: str
    alias: str
    on: Expr
    form: IntervalSpec | WindowSpec | None = None
    limits: LimitsSpec = LimitsSpec()
    missing_event_time: MissingTime = "reject"
    retention: Duration | None = None
    default_bound: Bounds | None = None
    form_at: Source | None = field(default=None, compare=False, repr=False)
    retention_at: Source | None = field(default=None, compare=False, repr=False)
    how_at: Source | None = field(default=None, compare=False, repr=False)
    at: Source | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSpec(StreamRecord):
    """One entry of a select list: an expression, ``*`` or ``alias.*`` (`star_of`)."""

    TYPE: ClassVar[str] = "stream_item"

    expr: Expr | None = None
    is_star: bool = False
    star_of: str | None = None
    alias: str | None = None
    is_key: bool = False
    is_event_time: bool = False
    at: Source | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementSpec(StreamRecord):
    """A SELECT with its sink; `first` is the input of FROM and its alias.

    `emit` is what the statement says; None is the default of the form, which the planner knows.  An
    input may name a sink of the same job: the planner refuses it.
    """

    TYPE: ClassVar[str] = "stream_statement"

    name: str
    sink: SinkSpec
    first: tuple[str, str]
    items: tuple[ItemSpec, ...]
    joins: tuple[JoinStepSpec, ...] = ()
    where: Expr | None = None
    emit: Emit | None = None
    first_at: Source | None = field(default=None, compare=False, repr=False)
    emit_at: Source | None = field(default=None, compare=False, repr=False)
    at: Source | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec(StreamRecord):
    """A whole job: what it reads, what it writes, what it only explains, and its settings.

    `settings` holds what SET says under the written names, typed, and the defaults of ``trigger`` and
    ``checkpoint``.
    """

    TYPE: ClassVar[str] = "stream_job"

    name: str
    streams: FrozenMap[str, StreamSpec] = EMPTY
    tables: FrozenMap[str, TableSpec] = EMPTY
    statements: tuple[StatementSpec, ...] = ()
    explains: tuple[StatementSpec, ...] = ()
    settings: FrozenMap[str, Any] = EMPTY
