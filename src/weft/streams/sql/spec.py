"""A streaming SQL job as frozen values: streams, tables, sinks, and the statements that join them.

``SELECT *`` is expanded later, by the planner.  Locations (`at`) take no part in equality and are not
serialised; everything else is equal after a round trip through ``to_dict``.
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


def encode_value(value: Any) -> Any:
    """Return `value` as JSON; types that JSON does not have are tagged.

    >>> encode_value((Duration.parse("90m"), FrozenMap(path="a.csv")))
    [{'$duration': '1h 30m'}, {'$entries': {'path': 'a.csv'}}]
    """
    match value:
        case Serial():
            return value.to_dict()
        case Duration():
            return {"$duration": str(value)}
        case Schema():
            return {"$columns": [[f.name, str(f.dtype), f.nullable] for f in value]}
        case Expr():  # as SQL, which any release can read, and not as a tree
            return {"$expr": render(value, dialect="stream")}
        case Mapping():  # tagged too, so that a key "type" is not read as a record
            return {"$entries": {key: encode_value(v) for key, v in value.items()}}
        case list() | tuple():
            return [encode_value(v) for v in value]
        case _:
            return encode(value)


def decode_value(value: Any) -> Any:
    """Return the value that `encode_value` encoded.

    >>> decode_value([{"$duration": "1h 30m"}, {"$entries": {"path": "a.csv"}}])
    (Duration(microseconds=5400000000), {'path': 'a.csv'})
    """
    if isinstance(value, list | tuple):
        return tuple(decode_value(v) for v in value)
    if not isinstance(value, Mapping):
        return value
    match dict(value):
        case {"$duration": str() as text}:
            return Duration.parse(text, signed=True)
        case {"$columns": list() as columns}:
            return Schema(tuple(Field(name, parse_type(dtype), nullable) for name, dtype, nullable in columns))
        case {"$expr": str() as text}:
            return parse(text, dialect="stream")
        case {"$entries": Mapping() as entries}:
            return FrozenMap({key: decode_value(v) for key, v in entries.items()})
        case {"type": str()}:
            return from_dict(value)
        case _:
            return decode(value)


Reload = Literal["start", "batch"]
ZERO = Duration(0)
Bounds = tuple[Duration, Duration]
"""Lower and upper end of ``right time - left time``, both inclusive."""

TIME_FORMATS = ("timestamp", "iso8601", "epoch_seconds", "epoch_millis", "epoch_micros")
"""The keywords of ``event.time.format``; any other value is a pattern of `TIME_DIRECTIVES`."""

TIME_DIRECTIVES = "YymbdjHIMSfpz%"
"""The letters allowed after ``%`` in a time pattern, with the meaning of Python's strptime."""

MESSAGE_TIME = "_TIMESTAMP"
"""The value of ``event.time.field`` for the timestamp of a Kafka message."""


class StreamRecord(Serial):
    """The base of all records of a job: locations are not serialised."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain JSON values; `from_dict` is the inverse."""
        values = {f.name: encode_value(getattr(self, f.name)) for f in fields(self) if f.compare}  # type: ignore[arg-type]  # all are dataclasses
        return {"type": self.TYPE, "version": self.VERSION, **values}

    def fingerprint(self) -> str:
        """Return a hash of the serialised record."""
        return fingerprint(self.to_dict())

    @classmethod
    def _build(cls, values: dict[str, Any]) -> Any:
        cls._check_fields(values)
        try:
            return cls(**{name: decode_value(value) for name, value in values.items()})
        except WeftError:  # some are a ValueError as well
            raise
        except (TypeError, ValueError) as cause:
            help = "serialise the spec with its to_dict or to_json"
            raise JoinSpecError(f"invalid serialised {cls.TYPE!r}: {cause}", code="W0306", help=help) from cause


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec(StreamRecord):
    """An input stream: its columns, source, event time and policies.

    `connector` holds the typed options of the source with the defaults that apply: always ``connector``;
    ``path`` and ``format`` for files, ``topic`` for Kafka.  `event_time` is a column, ``_TIMESTAMP`` for
    the timestamp of a Kafka message, or None if it is not declared.
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
    """A static table, read once at the start or again for each batch."""

    TYPE: ClassVar[str] = "stream_table"

    name: str
    columns: Schema
    connector: FrozenMap[str, Any]
    reload: Reload = "start"
    at: Source | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSpec(StreamRecord):
    """The target of a statement; `columns` are the declared ones, if any."""

    TYPE: ClassVar[str] = "stream_sink"

    name: str
    connector: FrozenMap[str, Any]
    columns: Schema | None = None
    at: Source | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsSpec(Limits, StreamRecord):
    """The limits of a join as a serialisable record."""

    TYPE: ClassVar[str] = "stream_limits"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStepSpec(StreamRecord):
    """One JOIN of a statement.

    `form` is the time condition of WITHIN, WINDOW or options, or None if it can only be in ON or WHERE.  It has
    no keys, and its order columns are the declared event times: the planner fills in both.  `input` is a
    stream or a table.
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

    `emit` is None if the statement has no EMIT; the default depends on the form of the join.  An input may be
    a sink of the same job, which the planner rejects.
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

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the inputs in the order of FROM."""
        return (self.first[0], *(join.input for join in self.joins))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec(StreamRecord):
    """A job: its inputs, its statements, the statements it only explains, and its settings.

    `settings` holds the typed values of SET and the defaults of ``trigger`` and ``checkpoint``.
    """

    TYPE: ClassVar[str] = "stream_job"

    name: str
    streams: FrozenMap[str, StreamSpec] = EMPTY
    tables: FrozenMap[str, TableSpec] = EMPTY
    statements: tuple[StatementSpec, ...] = ()
    explains: tuple[StatementSpec, ...] = ()
    settings: FrozenMap[str, Any] = EMPTY
