"""Builds the specs of a job from its syntax tree: names are resolved and options typed.

::

    CREATE STREAM a (..) WITH (..)                 StreamSpec a, or a SinkSpec if INSERT INTO writes it
    CREATE TABLE t (..) WITH (..)                  TableSpec t
    CREATE STREAM b WITH (..) AS SELECT ..         StatementSpec b with its SinkSpec
    INSERT INTO a SELECT ..                        StatementSpec a
    SELECT ..                                      StatementSpec result, printed
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from weft.core.duration import Duration
from weft.core.frozen import FrozenMap
from weft.core.names import find_similar, format_list, suggest
from weft.core.paths import escapes_folder, name_problem
from weft.core.source import Source
from weft.core.types import LONG, TIMESTAMP, Field, Schema
from weft.errors import Code, Diagnostic, StreamSqlError
from weft.streams.sql.job import parse_job, sort_findings
from weft.streams.sql.options import READERS, Owner, find_option, options_of, read_options
from weft.streams.sql.queries import Input, Names, StatementBuilder
from weft.streams.sql.spec import MESSAGE_TIME, JobSpec, SinkSpec, StatementSpec, StreamSpec, TableSpec
from weft.streams.sql.syntax import (
    CreateStream,
    CreateTable,
    Explain,
    Insert,
    JobSyntax,
    Name,
    OptionSyntax,
    Query,
    Select,
    SetOption,
)

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
RATE_COLUMNS = Schema((Field("timestamp", TIMESTAMP), Field("value", LONG)))


class _Definition:
    """A CREATE statement that becomes a spec: its options, their locations and the findings about them."""

    def __init__(self, node: CreateStream | CreateTable, owner: Owner, findings: list[Diagnostic]) -> None:
        self.name, self.owner, self.findings = node.name, owner, findings
        # The join options of CREATE STREAM .. AS are read together with its query.
        self.options = tuple(o for o in node.options if not (owner == "sink" and o.key.startswith("join.")))
        self.values = read_options(self.options, owner, findings)
        self.schema = Schema(tuple(Field(c.name.text, c.dtype, c.nullable) for c in node.columns))
        self._check_name()
        self._check_path()
        # An unknown option may be the one that seems to be missing, so a missing one is not reported as well.
        self.has_only_known_options = all(find_option(o.key, (owner,)) is not None for o in self.options)

    def add_finding(self, code: Code, message: str, help: str, at: Source | None = None) -> None:
        """Add an error, by default at the name."""
        self.findings.append(Diagnostic(code, message, help=help, at=at or self.name.at))

    def _check_name(self) -> None:
        problem = name_problem(self.name.text)
        if problem is not None:
            text = self.name.text if len(self.name.text) <= _LONGEST_SHOWN else self.name.text[:57] + "..."
            message = f"the name {text!r} {problem}, but it is used as the name of a folder"
            self.add_finding("W2016", message, "use letters, digits, spaces and - _ . in the name")

    def _check_path(self) -> None:
        # By the text alone; links that lead outside are followed when the job is planned.
        path = str(self.values.get("path", ""))
        if escapes_folder(path):
            help = "write a path inside the workspace, or an absolute path"
            self.add_finding("W2017", f"the path {path!r} is outside the workspace", help, self.locate("path"))

    def locate(self, key: str) -> Source | None:
        """Return the location of the value of an option."""
        return next((o.value_at for o in self.options if o.key == key), None)

    def has_option(self, key: str) -> bool:
        """Whether the option is present, with a valid value or not."""
        return any(o.key == key for o in self.options)

    def build_connector(self) -> FrozenMap[str, Any]:
        """Return the options of the connector with the defaults that apply."""
        kind = self._find_connector()
        if kind is None:
            return FrozenMap()
        # Policies are fields of the spec; what remains is for the reader or writer of the connector.
        values = {k: v for k, v in self.values.items() if k not in _POLICIES}
        values = {"connector": kind, **values}
        self._set_format(kind, values)
        known = (kind, values.get("format"))
        self._check_unused(kind, known)
        for option in options_of(self.owner):
            applies = not option.needs or any(need in known for need in option.needs)
            if option.default is not None and applies and option.name not in (*_POLICIES, *values):
                values[option.name] = READERS[option.kind](option.default, option.words)
        return FrozenMap(values)

    def _find_connector(self) -> str | None:
        if "connector" in self.values:
            return str(self.values["connector"])
        if self.has_option("connector"):
            return None  # its value is invalid, which is already reported
        for key, kind in (("path", "files"), ("topic", "kafka")):
            if self.has_option(key):  # with an invalid value too: the connector is clear
                return kind
        if not self.has_only_known_options:
            return None
        words = next(o.words for o in options_of(self.owner) if o.name == "connector")
        help = f"add 'connector' = {' or '.join(map(repr, words))}, or a 'path'"
        self.add_finding("W2008", f"{self.name.text} has no connector", help)
        return None

    def _set_format(self, kind: str, values: dict[str, Any]) -> None:
        """Infer the format from the path where it is not given, and check it."""
        if kind not in ("files", "kafka"):
            return
        place, example = ("path", "data/orders.csv") if kind == "files" else ("topic", "orders")
        if not self.has_option(place) and self.has_only_known_options:
            message = f"{self.name.text} has the connector {kind!r} but no {place!r}"
            self.add_finding("W2008", message, f"add '{place}' = '{example}'")
        if kind == "files" and "path" in values and "format" not in values and not self.has_option("format"):
            inferred = _infer_format(values["path"])
            if inferred is not None:
                values["format"] = inferred
        if kind == "kafka" and values.get("format") == "parquet":
            help = "write 'json', 'csv' or 'avro'"
            self.add_finding(
                "W2006", "the connector 'kafka' does not support the format 'parquet'", help, self.locate("format")
            )
        elif "format" not in values and not self.has_option("format") and self.has_only_known_options:
            help = "add 'format' = 'json', 'csv', 'parquet' or 'avro'"
            self.add_finding("W2008", f"{self.name.text} has no format", help)

    def _check_unused(self, kind: str, known: tuple[str | None, ...]) -> None:
        for written in self.options:
            option = find_option(written.key, (self.owner,))
            if option is None or not option.needs or any(need in known for need in option.needs):
                continue
            if known[1] is None and "csv" in option.needs and kind in ("files", "kafka"):
                continue  # the missing format is already reported
            message = f"option {written.key!r} has no effect here: it applies to {' or '.join(option.needs)}"
            self.add_finding("W2005", message, "remove it", written.key_at)

    def resolve_columns(self, names: Iterable[str], key: str) -> tuple[str, ...]:
        """Return the declared names of the columns that an option lists; unknown ones are reported."""
        columns = []
        for name in names:
            index = self.schema.find(name)
            if index is None:
                help = suggest(name, self.schema.names, "its columns are", most=1)
                message = f"option {key!r}: {self.name.text} has no column {name!r}"
                self.add_finding("W2006", message, help, self.locate(key))
            else:
                columns.append(self.schema.names[index])
        return tuple(columns)


def _resolve_dedup(stream: _Definition) -> tuple[str, ...]:
    """Return the columns of `dedup.keys`; those whose values the kernel cannot compare for equality are reported."""
    names = stream.resolve_columns(stream.values.get("dedup.keys", ()), "dedup.keys")
    for name in names:
        dtype = stream.schema[name].dtype
        if dtype.is_fraction or dtype.is_nested or str(dtype) == "variant":
            message = f"option 'dedup.keys': {name} is {dtype}, which cannot be a key"
            help = "name columns of simple types, such as STRING, BIGINT or DECIMAL"
            stream.add_finding("W2006", message, help, stream.locate("dedup.keys"))
    return names


def _infer_format(path: str) -> str | None:
    name = PurePosixPath(path)
    while name.suffix.lower() in _COMPRESSED:
        name = name.with_suffix("")
    return _ENDINGS.get(name.suffix.lower())


def _build_stream(node: CreateStream, idle: Duration | None, findings: list[Diagnostic]) -> StreamSpec:
    """Return the spec of an input stream; `idle` is the idle timeout of the job."""
    stream = _Definition(node, "stream", findings)
    connector = stream.build_connector()
    if connector.get("connector") == "rate":
        _check_rate_columns(stream)
        stream.schema = RATE_COLUMNS
    elif not node.columns:
        help = f"write CREATE STREAM {node.name.text} (column type, ..) WITH (..), or add AS SELECT .."
        stream.add_finding("W2001", f"stream {node.name.text} has no columns", help)
    time = _resolve_event_time(stream, connector)
    values = stream.values
    return StreamSpec(
        name=node.name.text,
        columns=stream.schema,
        connector=connector,
        event_time=time,
        time_format=_resolve_time_format(stream, time, connector),
        delay=values.get("watermark.max_out_of_orderness", Duration(0)),
        late=values.get("late", "side_output"),
        malformed=values.get("malformed", "reject"),
        dedup=_resolve_dedup(stream),
        idle=values.get("idle.timeout", idle),
        at=node.name.at,
    )


def _check_rate_columns(stream: _Definition) -> None:
    declared = [(f.name.casefold(), f.dtype) for f in stream.schema]
    # Spark's rate source has fixed columns; declaring them only documents the job.
    if declared and declared != [(f.name, f.dtype) for f in RATE_COLUMNS]:
        help = "declare (timestamp TIMESTAMP, value BIGINT), or no columns"
        stream.add_finding("W2013", "the columns of a rate source are timestamp and value", help)


def _resolve_event_time(stream: _Definition, connector: FrozenMap[str, Any]) -> str | None:
    field = stream.values.get("event.time.field")
    if field is None:
        return None
    at, name = stream.locate("event.time.field"), stream.name.text
    # A declared column of that name comes before the time of the message.
    if field.upper() == MESSAGE_TIME and stream.schema.find(field) is None:
        if connector.get("connector", "kafka") != "kafka":
            message = f"{MESSAGE_TIME} is the time of a Kafka message, but {name} does not read from Kafka"
            stream.add_finding("W2006", message, "use a column of the stream", at)
        return MESSAGE_TIME
    if not stream.schema.fields:
        return None
    columns = stream.resolve_columns((field,), "event.time.field")
    if not columns:
        return None
    dtype = stream.schema[columns[0]].dtype
    if str(dtype) not in _TIME_TYPES:
        help = "use a TIMESTAMP column, or a STRING or BIGINT column with 'event.time.format'"
        message = f"column {columns[0]!r} of {name} has type {dtype} and cannot be an event time"
        stream.add_finding("W2006", message, help, at)
    return columns[0]


def _resolve_time_format(stream: _Definition, time: str | None, connector: FrozenMap[str, Any]) -> str:
    requested = stream.values.get("event.time.format")
    dtype = stream.schema[time].dtype if time is not None and time in stream.schema else None
    is_number = dtype is not None and dtype.is_integer
    if requested is None:
        if is_number and not stream.has_option("event.time.format"):  # no unit is a safe guess
            help = "add 'event.time.format' = 'epoch_millis', 'epoch_seconds' or 'epoch_micros'"
            stream.add_finding("W2008", f"the event time {time!r} is a number without a unit", help)
        is_text = connector.get("format") in ("json", "csv") and time != MESSAGE_TIME
        return "iso8601" if is_text else "timestamp"
    if is_number and not requested.startswith("epoch_"):
        help = "write 'epoch_millis', 'epoch_seconds' or 'epoch_micros'"
        message = f"the event time {time!r} is a number and cannot have the format {requested!r}"
        stream.add_finding("W2006", message, help, stream.locate("event.time.format"))
    return str(requested)


def _build_table(node: CreateTable, findings: list[Diagnostic]) -> TableSpec:
    table = _Definition(node, "table", findings)
    if not node.columns:
        help = f"write CREATE TABLE {node.name.text} (column type, ..) WITH (..)"
        table.add_finding("W2001", f"table {node.name.text} has no columns", help)
    return TableSpec(
        name=node.name.text,
        columns=table.schema,
        connector=table.build_connector(),
        reload=table.values.get("reload", "start"),
        at=node.name.at,
    )


def _build_sink(node: CreateStream, findings: list[Diagnostic]) -> SinkSpec:
    sink = _Definition(node, "sink", findings)
    columns = sink.schema if node.columns else None
    return SinkSpec(name=node.name.text, connector=sink.build_connector(), columns=columns, at=node.name.at)


_DEFAULT_BOUND = "join.default_bound"


def read_spec(text: str, *, file: str | None = None, env: Mapping[str, str] = {}) -> JobSpec:
    """Return the spec of a job, or raise one `StreamSqlError` with all errors of the text.

    >>> job = read_spec(
    ...     "CREATE STREAM a (id INT, t TIMESTAMP) WITH ('path' = 'a.json'); "
    ...     "INSERT INTO b SELECT * FROM a; CREATE STREAM b WITH ('connector' = 'memory')"
    ... )
    >>> list(job.streams), [s.name for s in job.statements]
    (['a'], ['b'])
    """
    job = read_partial(text, file=file, env=env)
    if job.findings:
        raise StreamSqlError(job.findings)
    return job.spec


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialJob:
    """The valid part of a job, all findings, and the names of the statements that a finding affects.

    Statements with an unknown source are not in the spec.
    """

    spec: JobSpec
    findings: tuple[Diagnostic, ...]
    affected: frozenset[str]


def read_partial(text: str, *, file: str | None = None, env: Mapping[str, str] = {}) -> PartialJob:
    """Return the valid part of a job, so that an error in one statement hides no error in another."""
    syntax = parse_job(text, file=file, env=env)
    lowering = _Lowering(syntax)
    spec = lowering.build()
    if not lowering.findings:
        return PartialJob(spec=spec, findings=(), affected=frozenset())
    # Errors of the planner may be consequences of these findings: a statement is affected by a finding in itself, in one
    # of its inputs or in its sink.
    offsets = [d.at.start for d in lowering.findings if isinstance(d.at, Source)]
    invalid = [s for s in syntax.statements if any(s.at.start <= at <= s.at.end for at in offsets)]
    unparsed = syntax.unparsed
    # An invalid SET affects all statements only if it may have been the default bound of their joins.
    settings = [s.option.key for s in invalid if isinstance(s, SetOption)]
    lacks_bound = unparsed.has_set or any(find_similar(key, (_DEFAULT_BOUND,), most=1) for key in settings)

    def is_affected(statement: StatementSpec) -> bool:
        names = (statement.name, *statement.sources)
        if unparsed.is_truncated or lacks_bound or any(unparsed.may_define(name) for name in names):
            return True
        sources = [spec.streams.get(name) or spec.tables.get(name) for name in statement.sources]
        locations = (statement.at, statement.sink.at, *(s.at for s in sources if s is not None))
        return any(s.at.start <= at.start <= s.at.end for s in invalid for at in locations if at is not None)

    known = {*spec.streams, *spec.tables}
    kept = tuple(s for s in spec.statements if known.issuperset(s.sources))
    return PartialJob(
        spec=replace(spec, statements=kept, explains=()),
        findings=sort_findings(lowering.findings),
        affected=frozenset(s.name for s in kept if is_affected(s)),
    )


class _Lowering:
    """Builds the spec of one job and collects the findings."""

    def __init__(self, syntax: JobSyntax) -> None:
        self.syntax, self.unparsed = syntax, syntax.unparsed
        self.findings = list(syntax.findings)
        self.sink_options: dict[str, tuple[OptionSyntax, ...]] = {}
        self.inputs: dict[str, Input] = {}

    def add_finding(self, code: Code, message: str, help: str, at: Source) -> None:
        self.findings.append(Diagnostic(code, message, help=help, at=at))

    def build(self) -> JobSpec:
        settings = self._read_settings()
        self._build_inputs(settings.get("idle.timeout"))
        names = Names(inputs=self.inputs, default_bound=settings.get(_DEFAULT_BOUND), unparsed=self.unparsed)
        statements = tuple(self._build_statements(names))
        explains = tuple(self._build_explains(names, statements))
        if not statements and not explains and not self.findings:
            help = "write INSERT INTO sink SELECT .., or CREATE STREAM sink WITH (..) AS SELECT .."
            at = Source(self.syntax.text, 0, 0, self.syntax.file)
            self.add_finding("W2015", "the job has no query to run", help, at)
        name = "job" if self.syntax.file is None else Path(self.syntax.file).stem
        # The checkpoint is found by the name of the file, so a job that moves to another file starts again.
        defaults = {"trigger": Duration.parse("1s"), "checkpoint": f".weft/streams/{name}"}
        return JobSpec(
            name=name,
            streams=FrozenMap({i.name: i for i in self.inputs.values() if isinstance(i, StreamSpec)}),
            tables=FrozenMap({i.name: i for i in self.inputs.values() if isinstance(i, TableSpec)}),
            statements=statements,
            explains=explains,
            settings=FrozenMap(defaults | dict(settings)),
        )

    def _read_settings(self) -> FrozenMap[str, Any]:
        options: dict[str, OptionSyntax] = {}
        for option in (s.option for s in self.syntax.statements if isinstance(s, SetOption)):
            if option.key in options:
                self.add_finding("W2003", f"duplicate SET {option.key!r}", "remove one of them", option.key_at)
            options[option.key] = option
        settings = read_options(tuple(options.values()), "job", self.findings)
        folder = str(settings.get("checkpoint", ""))
        if escapes_folder(folder):
            help = "write a folder inside the workspace, or an absolute path"
            message = f"the checkpoint {folder!r} is outside the workspace"
            self.add_finding("W2017", message, help, options["checkpoint"].value_at)
        return settings

    def _build_inputs(self, idle: Duration | None) -> None:
        """Build the streams, tables and sinks that the job defines."""
        sinks = {s.sink.text.casefold() for s in self.syntax.statements if isinstance(s, Insert)}
        # CREATE STREAM declares sources and sinks alike; what an INSERT writes, even an invalid one, is a sink.
        sinks |= self.unparsed.sinks
        names: dict[str, Name] = {}
        for statement in self.syntax.statements:
            if not isinstance(statement, CreateStream | CreateTable):
                continue
            name = statement.name
            key = name.text.casefold()
            if key in names:
                help = f"rename one of them; the first definition is in line {names[key].at.line}"
                self.add_finding("W2009", f"duplicate definition of {name.text!r}", help, name.at)
                continue
            names[key] = name
            if isinstance(statement, CreateTable):
                self.inputs[key] = _build_table(statement, self.findings)
            elif statement.query is not None or key in sinks:
                # If the job also reads the stream, the planner reports that; its source options are no further error.
                is_read = statement.query is None and key in self._find_read_names()
                self.inputs[key] = _build_sink(statement, [] if is_read else self.findings)
                self.sink_options[key] = statement.options
            else:
                self.inputs[key] = _build_stream(statement, idle, self.findings)

    def _find_read_names(self) -> set[str]:
        queries = [q for s in self.syntax.statements if (q := getattr(s, "query", None)) is not None]
        sources = [source for q in queries for source in (q.source, *(join.source for join in q.joins))]
        return {source.name.text.casefold() for source in sources}

    def _build_statements(self, names: Names) -> Iterator[StatementSpec]:
        written: dict[str, int] = {}
        printed = 0
        for statement in self.syntax.statements:
            match statement:
                case CreateStream(name=Name() as name, query=Select() as query):
                    pass
                case Insert(sink=Name() as name, query=query):
                    pass
                case Query(query=query):
                    printed += 1
                    yield self._build_printed(query, "result", printed, names)
                    continue
                case _:
                    continue
            sink = self._find_sink(name)
            if sink is None:
                continue
            key = sink.name.casefold()
            # A statement and its checkpoint have the name of the sink, so a sink has one statement.
            if key in written:
                help = f"a sink has one statement; the first is in line {written[key]}"
                self.add_finding("W2009", f"two statements write the sink {sink.name!r}", help, name.at)
                continue
            written[key] = name.at.line
            yield StatementBuilder(query, sink, self.sink_options.get(key, ()), names, self.findings).build()

    def _build_printed(self, query: Select, name: str, number: int, names: Names) -> StatementSpec:
        """Return the statement of a query without a sink: its rows are printed."""
        sink_name = name if number == 1 else f"{name}_{number}"
        sink = SinkSpec(name=sink_name, connector=FrozenMap(connector="console"))
        return StatementBuilder(query, sink, (), names, self.findings).build()

    def _find_sink(self, name: Name) -> SinkSpec | None:
        sink = self.inputs.get(name.text.casefold())
        if isinstance(sink, SinkSpec):
            return sink
        if isinstance(sink, TableSpec):
            help = f"write CREATE STREAM {name.text} WITH (..) for a sink"
            self.add_finding("W2010", f"{name.text!r} is a table; a job can only write streams", help, name.at)
        elif sink is None and not self.unparsed.may_define(name.text):
            close = find_similar(name.text, [i.name for i in self.inputs.values() if isinstance(i, SinkSpec)], most=1)
            help = f"did you mean {close[0]!r}?\n" if close else ""
            help += f"define it: CREATE STREAM {name.text} WITH ('path' = 'out/{name.text}', 'format' = 'parquet')"
            self.add_finding("W2010", f"unknown sink {name.text!r}", help, name.at)
        return None

    def _build_explains(self, names: Names, statements: tuple[StatementSpec, ...]) -> Iterator[StatementSpec]:
        number = 0
        for statement in self.syntax.statements:
            if not isinstance(statement, Explain):
                continue
            if statement.query is not None:
                number += 1
                yield self._build_printed(statement.query, "explain", number, names)
            elif statement.name is not None:
                name = statement.name
                matches = [s for s in statements if s.name.casefold() == name.text.casefold()]
                yield from matches
                if not matches and not self.unparsed.may_define(name.text):
                    help = f"the job writes {format_list(s.name for s in statements)}"
                    self.add_finding("W2010", f"no statement writes {name.text!r}", help, name.at)
