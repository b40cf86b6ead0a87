"""CREATE STREAM and CREATE TABLE as specs: options typed, defaults filled in, columns checked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from weft.core.duration import Duration
from weft.core.frozen import FrozenMap
from weft.core.names import find_similar, format_list
from weft.core.paths import escapes_folder, name_problem
from weft.core.source import Source
from weft.core.types import LONG, TIMESTAMP, Field, Schema
from weft.errors import Code, Diagnostic
from weft.streams.sql.options import READERS, Owner, find_option, options_of, read_options
from weft.streams.sql.spec import MESSAGE_TIME, SinkSpec, StreamSpec, TableSpec
from weft.streams.sql.syntax import ColumnSyntax, CreateStream, CreateTable, Name, SaidOption

_ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".parquet": "parquet", ".avro": "avro",
}  # fmt: skip
_COMPRESSED = (".gz", ".bz2", ".zst", ".snappy", ".lz4")
_LONGEST_SHOWN = 60
_POLICIES = frozenset(
    "event.time.field event.time.format watermark.max_out_of_orderness late malformed dedup.keys idle.timeout "
    "reload".split()
)
_TIME_TYPES = frozenset({"timestamp", "timestamp_ntz", "date", "string", "integer", "long"})
RATE = Schema((Field("timestamp", TIMESTAMP), Field("value", LONG)))
"""The columns of a rate source."""


class Relation:
    """One CREATE while it becomes a spec: its options, where they stand, what is wrong with them."""

    def __init__(
        self, name: Name, said: tuple[SaidOption, ...], owner: Owner, mistakes: list[Diagnostic]
    ) -> None:
        self.name, self.owner, self.mistakes = name, owner, mistakes
        # The join options of CREATE STREAM .. AS are read with its query.
        self.said = tuple(s for s in said if not (owner == "sink" and s.key.startswith("join.")))
        self.values = read_options(self.said, owner, mistakes)
        self._check_name()
        self._check_path()
        # What is missing may be what an unknown option means: that is told once.
        self.all_known = all(find_option(s.key, (owner,)) is not None for s in self.said)

    def note(self, code: Code, message: str, help: str, at: Source | None = None) -> None:
        """Note a mistake, at the name unless said otherwise."""
        self.mistakes.append(Diagnostic(code, message, help=help, at=at or self.name.at))

    def _check_name(self) -> None:
        problem = name_problem(self.name.text)
        if problem is not None:
            text = self.name.text if len(self.name.text) <= _LONGEST_SHOWN else self.name.text[:57] + "..."
            message = f"the name {text!r} {problem}, and it becomes the name of a folder"
            self.note("W2016", message, "use letters, digits, blanks and - _ . in the name")

    def _check_path(self) -> None:
        said = str(self.values.get("path", ""))
        if escapes_folder(said):
            help = "write a path below the workspace, or an absolute one"
            self.note("W2017", f"the path {said!r} leads out of the workspace", help, self.at("path"))

    def at(self, key: str) -> Source | None:
        """Return where the value of an option stands."""
        return next((s.value_at for s in self.said if s.key == key), None)

    def was_said(self, key: str) -> bool:
        """Whether the option is written, with a value that reads or not."""
        return any(s.key == key for s in self.said)

    # -- where rows come from or go

    def connector(self) -> FrozenMap[str, Any]:
        """Return the options of the connector with the defaults that apply."""
        kind = self._connector_kind()
        if kind is None:
            return FrozenMap()
        values = {k: v for k, v in self.values.items() if k not in _POLICIES}
        values = {"connector": kind, **values}
        self._format(kind, values)
        known = (kind, values.get("format"))
        self._refuse_useless(kind, known)
        for option in options_of(self.owner):
            applies = not option.needs or any(need in known for need in option.needs)
            if option.default is not None and applies and option.name not in (*_POLICIES, *values):
                values[option.name] = READERS[option.kind](option.default, option.words)
        return FrozenMap(values)

    def _connector_kind(self) -> str | None:
        if "connector" in self.values:
            return str(self.values["connector"])
        if self.was_said("connector"):
            return None  # its value is a mistake that is noted
        for key, kind in (("path", "files"), ("topic", "kafka")):
            if self.was_said(key):
                return kind
        if not self.all_known:
            return None
        words = next(o.words for o in options_of(self.owner) if o.name == "connector")
        what = "reads from" if self.owner != "sink" else "writes to"
        help = f"add 'connector' = {' or '.join(map(repr, words))}, or a 'path'"
        self.note("W2008", f"{self.name.text} does not say what it {what}", help)
        return None

    def _format(self, kind: str, values: dict[str, Any]) -> None:
        if kind not in ("files", "kafka"):
            return
        place = {"files": "path", "kafka": "topic"}[kind]
        if not self.was_said(place) and self.all_known:
            example = {"files": "'path' = 'data/orders.csv'", "kafka": "'topic' = 'orders'"}[kind]
            self.note(
                "W2008", f"{self.name.text} has the connector {kind!r} and no {place!r}", f"add {example}"
            )
        if kind == "files" and "path" in values and "format" not in values and not self.was_said("format"):
            found = _format_of(values["path"])
            if found is not None:
                values["format"] = found
        if kind == "kafka" and values.get("format") == "parquet":
            help = "write 'json', 'csv' or 'avro'"
            self.note("W2006", "a Kafka message is not a Parquet file", help, self.at("format"))
        elif "format" not in values and not self.was_said("format") and self.all_known:
            help = "add 'format' = 'json', 'csv', 'parquet' or 'avro'"
            self.note("W2008", f"{self.name.text} does not say in which format its rows are", help)

    def _refuse_useless(self, kind: str, known: tuple[str | None, ...]) -> None:
        for said in self.said:
            option = find_option(said.key, (self.owner,))
            if option is None or not option.needs or any(need in known for need in option.needs):
                continue
            if known[1] is None and "csv" in option.needs and kind in ("files", "kafka"):
                continue  # the format is not known: that is the mistake
            needs = " or ".join(option.needs)
            message = f"option {said.key!r} says nothing here: it belongs to {needs}"
            self.note("W2005", message, "leave it out", said.key_at)

    # -- columns

    def schema(self, columns: tuple[ColumnSyntax, ...]) -> Schema:
        """Return the declared columns."""
        return Schema(tuple(Field(c.name.text, c.dtype, c.nullable) for c in columns))

    def known_columns(self, names: Iterable[str], key: str, schema: Schema) -> tuple[str, ...]:
        """Return columns under their declared names; note those that are not declared."""
        found = []
        for name in names:
            index = schema.find(name)
            if index is None:
                close = find_similar(name, schema.names, most=1)
                help = f"did you mean {close[0]!r}?" if close else f"it has {format_list(schema.names)}"
                message = f"option {key!r}: {self.name.text} has no column {name!r}"
                self.note("W2006", message, help, self.at(key))
            else:
                found.append(schema.names[index])
        return tuple(found)


def _format_of(path: str) -> str | None:
    name = PurePosixPath(path)
    while name.suffix.lower() in _COMPRESSED:
        name = name.with_suffix("")
    return _ENDINGS.get(name.suffix.lower())


def stream_spec(node: CreateStream, idle: Duration | None, mistakes: list[Diagnostic]) -> StreamSpec:
    """Return the spec of a stream that is read; `idle` is what the job says for all streams."""
    relation = Relation(node.name, node.options, "stream", mistakes)
    connector = relation.connector()
    schema = relation.schema(node.columns)
    if connector.get("connector") == "rate":
        schema = _rate_schema(relation, schema)
    elif not node.columns:
        help = f"write CREATE STREAM {node.name.text} (column type, ..) WITH (..), or AS SELECT .. after it"
        relation.note("W2001", f"stream {node.name.text} declares no columns", help)
    field = _event_time(relation, schema, connector)
    values = relation.values
    return StreamSpec(
        name=node.name.text,
        columns=schema,
        connector=connector,
        event_time=field,
        time_format=_time_format(relation, schema, field, connector),
        delay=values.get("watermark.max_out_of_orderness", Duration(0)),
        late=values.get("late", "side_output"),
        malformed=values.get("malformed", "reject"),
        dedup=relation.known_columns(values.get("dedup.keys", ()), "dedup.keys", schema),
        idle=values.get("idle.timeout", idle),
        at=node.name.at,
    )


def _rate_schema(relation: Relation, schema: Schema) -> Schema:
    declared = [(f.name.casefold(), f.dtype) for f in schema]
    if schema.fields and declared != [(f.name, f.dtype) for f in RATE]:
        help = "declare (timestamp TIMESTAMP, value BIGINT), or no columns"
        relation.note("W2013", "a rate source has the columns timestamp and value", help)
    return RATE


def _event_time(relation: Relation, schema: Schema, connector: FrozenMap[str, Any]) -> str | None:
    said = relation.values.get("event.time.field")
    if said is None:
        return None
    at, name = relation.at("event.time.field"), relation.name.text
    if said.upper() == MESSAGE_TIME and schema.find(said) is None:
        if connector.get("connector", "kafka") != "kafka":
            help = "name a column of the stream"
            relation.note(
                "W2006", f"{MESSAGE_TIME} is the time of a Kafka message, and {name} has none", help, at
            )
        return MESSAGE_TIME
    if not schema.fields:
        return None
    found = relation.known_columns((said,), "event.time.field", schema)
    if not found:
        return None
    dtype = schema[found[0]].dtype
    if str(dtype) not in _TIME_TYPES:
        help = "name a column of type TIMESTAMP, or of STRING or BIGINT with 'event.time.format'"
        relation.note("W2006", f"column {found[0]!r} of {name} is {dtype}, which is no time", help, at)
    return found[0]


def _time_format(
    relation: Relation, schema: Schema, field: str | None, connector: FrozenMap[str, Any]
) -> str:
    said = relation.values.get("event.time.format")
    column = schema[field].dtype if field is not None and field in schema else None
    is_number = column is not None and column.is_integer
    if said is None:
        if is_number and not relation.was_said("event.time.format"):
            help = "add 'event.time.format' = 'epoch_millis', 'epoch_seconds' or 'epoch_micros'"
            relation.note("W2008", f"column {field!r} is a number: of what, it does not say", help)
        text = connector.get("format") in ("json", "csv") and field != MESSAGE_TIME
        return "iso8601" if text else "timestamp"
    if is_number and not said.startswith("epoch_"):
        help = "write 'epoch_millis', 'epoch_seconds' or 'epoch_micros'"
        message = f"column {field!r} is a number and not written as {said!r}"
        relation.note("W2006", message, help, relation.at("event.time.format"))
    return str(said)


def table_spec(node: CreateTable, mistakes: list[Diagnostic]) -> TableSpec:
    """Return the spec of a table."""
    relation = Relation(node.name, node.options, "table", mistakes)
    if not node.columns:
        help = f"write CREATE TABLE {node.name.text} (column type, ..) WITH (..)"
        relation.note("W2001", f"table {node.name.text} declares no columns", help)
    return TableSpec(
        name=node.name.text,
        columns=relation.schema(node.columns),
        connector=relation.connector(),
        reload=relation.values.get("reload", "start"),
        at=node.name.at,
    )


def sink_spec(node: CreateStream, mistakes: list[Diagnostic]) -> SinkSpec:
    """Return the spec of a stream that a statement writes."""
    relation = Relation(node.name, node.options, "sink", mistakes)
    columns = relation.schema(node.columns) if node.columns else None
    return SinkSpec(name=node.name.text, connector=relation.connector(), columns=columns, at=node.name.at)
