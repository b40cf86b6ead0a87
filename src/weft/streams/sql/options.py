"""The options of WITH and SET: where each is valid, its type, default and description.

Common options of other systems are listed too, so that an error can name the equivalent here.
"""

from __future__ import annotations

import json
import re
import zoneinfo
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from weft.core.duration import Duration
from weft.core.frozen import FrozenMap
from weft.core.names import find_similar, format_list
from weft.errors import Diagnostic, StreamSqlError, WeftError
from weft.redaction import MASK, is_secret_name
from weft.streams.sql.spec import TIME_DIRECTIVES, TIME_FORMATS, Bounds
from weft.streams.sql.syntax import OptionSyntax

Kind = Literal[
    "text", "any_text", "word", "flag", "count", "duration", "signed_duration", "length", "bounds",
    "character", "zone", "offsets", "time_format", "names",
]  # fmt: skip
"""A ``duration`` may be zero, a ``length`` may not; a ``signed_duration`` may be negative."""

Words = tuple[str, ...]
_BOUNDS = re.compile(r"\[\s*(?P<a>[^,\]]+?)\s*,\s*(?P<b>[^,\]]+?)\s*\]|(?P<c>.+?)\s*\.\.\s*(?P<d>.+)")
_OFFSET = re.compile(r"[+-](0\d|1[0-8]):?[0-5]\d")
_LARGEST = (1 << 63) - 1


def _fail(message: str, help: str) -> NoReturn:
    raise StreamSqlError(message, code="W2006", help=help)


def _read_text(value: str, _: Words) -> str:
    if not value.strip():
        _fail("the value is empty", "write a value, or remove the option")
    if "\0" in value:  # neither a path nor a topic can contain one
        _fail("the value has a NUL character", "remove it")
    return value


def _read_word(value: str, words: Words) -> str:
    if value.lower() in words:
        return value.lower()
    close = find_similar(value, words, most=1)
    help = f"did you mean {close[0]!r}?" if close else f"write {' or '.join(map(repr, words))}"
    _fail(f"{value!r} is not one of {format_list(words)}", help)


def _read_flag(value: str, _: Words) -> bool:
    if value.lower() not in ("true", "false"):
        _fail(f"{value!r} is neither true nor false", "write 'true' or 'false'")
    return value.lower() == "true"


def _read_count(value: str, _: Words) -> int:
    plain = value.replace("_", "")
    # Cut before the conversion: Python refuses to convert thousands of digits.
    if not (plain.isascii() and plain.isdigit()) or not 0 < int(plain[:20]) <= _LARGEST:
        _fail(f"{value!r} is not a count", "write a whole number, 1 or more")
    return int(plain)


def _read_length(value: str, _: Words) -> Duration:
    length = Duration.parse(value)
    if not length.microseconds:
        _fail(f"{value!r} must be longer than zero", "write for example '5m'")
    return length


def _read_bounds(value: str, _: Words) -> Bounds:
    # [a, b] and a..b, or one end alone, which counts from 0
    match = _BOUNDS.fullmatch(value.strip())
    low, high = (match["a"] or match["c"], match["b"] or match["d"]) if match else ("0s", value)
    lower, upper = Duration.parse(low, signed=True), Duration.parse(high, signed=True)
    if lower > upper:
        _fail(f"empty bound: it starts at {lower} and ends at {upper}", f"write '{upper}..{lower}'")
    return lower, upper


def _read_character(value: str, _: Words) -> str:
    value = {"\\t": "\t"}.get(value, value)  # SQL strings have no escapes
    if len(value) != 1 or value in "\r\n":
        _fail(f"{value!r} is not one character", r"write one character, for example ',' or '\t'")
    return value


def _read_zone(value: str, _: Words) -> str:
    if _OFFSET.fullmatch(value) or value in ("Z", "UTC"):
        return value
    known = zoneinfo.available_timezones()
    if known and value not in known:  # a system without a time zone database knows no names; Spark checks them
        close = find_similar(value, known, most=1)
        help = f"did you mean {close[0]!r}?" if close else "write 'UTC', 'Europe/Paris' or '+02:00'"
        _fail(f"unknown time zone {value!r}", help)
    return value


def _read_offsets(value: str, _: Words) -> str:
    if value.lower() in ("earliest", "latest"):
        return value.lower()
    try:
        topics = json.loads(value)
    except (ValueError, RecursionError):
        topics = None
    if not isinstance(topics, dict) or not all(isinstance(partitions, dict) for partitions in topics.values()):
        help = "write 'earliest', 'latest' or JSON like '{\"orders\": {\"0\": 23, \"1\": -2}}'"
        _fail("invalid offsets", help)
    return value


def _read_time_format(value: str, words: Words) -> str:
    if "%" not in value:
        return _read_word(value, words)
    for directive, letter in re.findall(r"(%(.?))", value, re.DOTALL):
        if not letter or letter not in TIME_DIRECTIVES:
            known = " ".join(f"%{known}" for known in TIME_DIRECTIVES)
            _fail(f"unknown directive {directive!r} in the pattern {value!r}", f"directives are {known}")
    return value


def _read_names(value: str, _: Words) -> tuple[str, ...]:
    names = tuple(part.strip() for part in value.split(","))
    if not all(names):
        _fail(f"{value!r} has an empty name", "write column names separated by commas")
    if len({name.casefold() for name in names}) < len(names):
        _fail(f"duplicate column in {value!r}", "remove one of them")
    return names


READERS: Mapping[Kind, Callable[[str, Words], Any]] = {
    "text": _read_text,
    "any_text": lambda value, _: value,
    "word": _read_word,
    "flag": _read_flag,
    "count": _read_count,
    "duration": lambda value, _: Duration.parse(value),
    "signed_duration": lambda value, _: Duration.parse(value, signed=True),
    "length": _read_length,
    "bounds": _read_bounds,
    "character": _read_character,
    "zone": _read_zone,
    "offsets": _read_offsets,
    "time_format": _read_time_format,
    "names": _read_names,
}
"""The function that converts and checks a string of each kind."""


_Help = Callable[[str, str], str]
_OTHER = "belongs to another system"


def _rename(name: str) -> _Help:
    return lambda _, value: f"write '{name}' = '{value}'"


def _suggest_late(_: str, value: str) -> str:
    policy = "drop" if value.lower() == "drop" else "side_output"
    return f"write 'late' = '{policy}'; 'side_output' keeps late rows, 'drop' only counts them, 'fail' stops"


def _suggest_bound(_: str, value: str) -> str:
    return (
        "write how far apart the times of two rows may be, after the ON of the join:\n"
        f"  WITHIN '{value}'\n"
        f"or by options: 'join.lower_bound' = '0s', 'join.upper_bound' = '{value}'"
    )


def _suggest_connector(key: str, value: str) -> str:
    kinds = {"kafka": "'kafka'", "file": "'files'"}
    kind = next((k for prefix, k in kinds.items() if value.lower().startswith(prefix)), "'files' or 'kafka'")
    return f"write 'connector' = {kind} in the WITH of CREATE STREAM {key.split('.', 1)[0]}"


def _drop_prefix(key: str, value: str) -> str:
    name, option = key.split(".", 1)
    return f"write '{option.removesuffix('.name')}' = '{value}' in the WITH of CREATE STREAM {name}"


def _inline_file(key: str, value: str) -> str:
    name = key.split(".", 1)[0]
    return f"remove it and write the options of {value} in the WITH of CREATE STREAM {name}"


def _suggest(help: str) -> _Help:
    return lambda _key, _value: help


# The first match counts, so a single key comes before the pattern that includes it.
_FOREIGN: tuple[tuple[str, str, _Help], ...] = (
    (r"join\.timeout", "is not supported: it limits how long to wait, not which rows match", _suggest_bound),
    (r"join\.unbounded", "is not supported: the state of a join without a bound grows forever",
     _suggest("give the join a bound: WITHIN '1h', or 'join.default_bound' = '1h'")),
    (r"join\.max_records", _OTHER, _rename("join.max_state_rows")),
    (r"join\.max_records_per_key", _OTHER, _rename("join.max_rows_per_key")),
    (r"join\.max_memory(_bytes)?", "belongs to another system: state is stored on disk and limited in rows",
     _suggest("write 'join.max_state_rows' = '1000000'")),
    (r"join\.eviction_policy", _OTHER, _suggest("write 'join.eviction' = 'oldest' or 'fail'")),
    (r"watermark\.strategy", "is not needed: the watermark is always the greatest event time minus a delay",
     _suggest("remove it and write 'watermark.max_out_of_orderness' = '30s'")),
    (r"late\.data\.strategy", _OTHER, _suggest_late),
    (r"cache\..*", "is not needed: a table is read at the start and kept",
     _suggest("remove it; 'reload' = 'batch' reads a table again for each batch")),
    (r"job\..*dlq.*", "is not needed: rejected rows are always kept",
     _suggest("remove it; `weft stream status JOB --rejects` shows them")),
    (r"job\..*", _OTHER, _suggest("write the settings of a job as SET 'key' = 'value'")),
    (r"[^.]+\.type", _OTHER, _suggest_connector),
    (r"(?!join\.|kafka\.)[^.]+\.(topic|topic\.name|path|format)", _OTHER, _drop_prefix),
    (r"(?!join\.|kafka\.)[^.]+\.config_file", "belongs to another system: options are written in the job", _inline_file),
    (r"scan\.startup\.mode|auto\.offset\.reset", _OTHER,
     _suggest("write 'starting.offsets' = 'earliest' or 'latest'")),
    (r"properties\.bootstrap\.servers|brokers?", _OTHER, _rename("bootstrap.servers")),
    (r"(properties\.)?group\.id", "is not needed: the checkpoint records what was read", _suggest("remove it")),
    (r"properties\.(.+)", _OTHER,
     lambda key, value: f"write 'kafka.{key.removeprefix('properties.')}' = '{value}'"),
    (r"scan\.watermark\.idle-timeout|table\.exec\.source\.idle-timeout", _OTHER, _rename("idle.timeout")),
    (r"kafka_topic", _OTHER, _rename("topic")),
    (r"value_format|value\.format|value\.serializer", _OTHER,
     lambda _, value: f"write 'format' = '{value.lower()}'"),
    (r"timestamp", _OTHER, _rename("event.time.field")),
    (r"timestamp_format", _OTHER, _rename("event.time.format")),
    (r"has_headers", _OTHER, _rename("header")),
)  # fmt: skip


def describe_foreign(key: str, value: str) -> tuple[str, str] | None:
    """Return why an option of another system is not accepted, and what to write; None for other options.

    >>> describe_foreign("kafka_topic", "orders")
    ('belongs to another system', "write 'topic' = 'orders'")
    """
    for pattern, reason, suggest in _FOREIGN:
        if re.fullmatch(pattern, key, re.IGNORECASE):
            return reason, suggest(key, value)
    return None


Owner = Literal["stream", "table", "sink", "join", "job"]


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its name, where it is valid, the kind of its value, its keywords, default and description.

    `needs` are the connectors or formats that it applies to; empty means all.
    """

    name: str
    owners: frozenset[Owner]
    kind: Kind
    words: tuple[str, ...] = ()
    default: str | None = None
    doc: str = ""
    needs: tuple[str, ...] = ()


_STREAM: frozenset[Owner] = frozenset({"stream"})
_TABLE: frozenset[Owner] = frozenset({"table"})
_SINK: frozenset[Owner] = frozenset({"sink"})
_JOIN: frozenset[Owner] = frozenset({"join"})
_JOB: frozenset[Owner] = frozenset({"job"})
_ANY = _STREAM | _TABLE | _SINK

OPTIONS: tuple[Option, ...] = (
    Option("connector", _STREAM, "word", ("files", "kafka", "rate", "memory"), None,
           "where rows come from; by default `files` with a `path`, `kafka` with a `topic`"),
    Option("connector", _TABLE, "word", ("files", "memory"), None, "where rows come from; by default `files` with a `path`"),
    Option("connector", _SINK, "word", ("files", "kafka", "console", "memory"), None,
           "where rows go; by default `files` with a `path`, `kafka` with a `topic`"),
    Option("path", _ANY, "text", (), None, "a file, folder or glob inside the workspace, an absolute path, or a URI",
           ("files",)),
    Option("format", _ANY, "word", ("json", "csv", "parquet", "avro"), None,
           "the format of rows; by default the extension of `path`", ("files", "kafka")),
    Option("header", _ANY, "flag", (), "true", "whether the first line contains the column names", ("csv",)),
    Option("delimiter", _ANY, "character", (), ",", "the separator of fields", ("csv",)),
    Option("quote", _ANY, "character", (), '"', "the quote around a field that contains the delimiter", ("csv",)),
    Option("null.value", _ANY, "any_text", (), "", "the string that represents NULL", ("csv",)),
    Option("escape.formulas", _SINK, "flag", (), None,
           "whether strings that a spreadsheet would evaluate get a leading `'`; by default `false`", ("csv",)),
    Option("timestamp.zone", _STREAM | _TABLE, "zone", (), "UTC", "the time zone of times that have none"),
    Option("topic", _STREAM | _SINK, "text", (), None, "the Kafka topic", ("kafka",)),
    Option("bootstrap.servers", _STREAM | _SINK, "text", (), "localhost:9092", "the Kafka brokers", ("kafka",)),
    Option("starting.offsets", _STREAM, "offsets", (), "earliest", "where a new checkpoint starts: `earliest`, `latest` or "
           "offsets as JSON", ("kafka",)),
    Option("fail.on.data.loss", _STREAM, "flag", (), "true", "whether lost offsets stop the query", ("kafka",)),
    Option("max.offsets.per.trigger", _STREAM, "count", (), None, "the maximum number of messages in a batch", ("kafka",)),
    Option("kafka.*", _STREAM | _SINK, "text", (), None, "passed to the Kafka client unchanged", ("kafka",)),
    Option("rows.per.second", _STREAM, "count", (), "1", "how many rows a rate source generates per second", ("rate",)),
    Option("rows.total", _STREAM, "count", (), None, "how many rows a rate source generates in total", ("rate",)),
    Option("event.time.field", _STREAM, "text", (), None,
           "the event-time column; `_TIMESTAMP` is the time of a Kafka message"),
    Option("event.time.format", _STREAM, "time_format", TIME_FORMATS, None,
           "the format of that column, or a pattern like `%Y-%m-%d %H:%M:%S`; by default `timestamp` for Parquet and "
           "Avro, `iso8601` for text"),
    Option("watermark.max_out_of_orderness", _STREAM, "duration", (), "0s", "how late a row may arrive"),
    Option("late", _STREAM, "word", ("side_output", "drop", "fail"), "side_output", "what happens to a row that arrives later"),
    Option("malformed", _STREAM, "word", ("reject", "fail"), "reject", "what happens to an invalid row"),
    Option("dedup.keys", _STREAM, "names", (), None, "the columns that identify duplicate rows; the first row is kept"),
    Option("idle.timeout", _STREAM | _JOB, "length", (), None,
           "how long a stream may have no rows before the watermark stops waiting for it"),
    Option("max.files.per.trigger", _STREAM, "count", (), None, "the maximum number of files in a batch", ("files", "memory")),
    Option("reload", _TABLE, "word", ("start", "batch"), "start", "whether the table is read once or for each batch"),
    Option("mode", _SINK, "word", ("append",), "append", "rows are appended to the sink"),
    Option("join.type", _JOIN, "word", ("interval", "tumbling", "sliding", "session"), None, "the form of the join"),
    Option("join.lower_bound", _JOIN, "signed_duration", (), None, "the minimum of right time minus left time"),
    Option("join.upper_bound", _JOIN, "signed_duration", (), None, "the maximum of right time minus left time"),
    Option("join.size", _JOIN, "length", (), None, "the size of a tumbling or sliding window"),
    Option("join.slide", _JOIN, "length", (), None, "the distance between two sliding windows"),
    Option("join.gap", _JOIN, "length", (), None, "the time without rows that ends a session"),
    Option("join.rows", _JOIN, "word", ("pair", "window"), "pair",
           "whether a pair is emitted once or once for each sliding window that contains both rows"),
    Option("join.retention", _JOIN, "duration", (), None, "the minimum time that rows are kept; not less than the bound needs"),
    Option("join.default_bound", _JOIN | _JOB, "bounds", (), None,
           "the bound of a join that has none, for example `-5m..1h`; `1h` means [0s, 1h]"),
    Option("join.max_state_rows", _JOIN, "count", (), None, "the maximum number of rows in the state of a side"),
    Option("join.max_rows_per_key", _JOIN, "count", (), None,
           "the maximum number of rows with the same key in the state of a side"),
    Option("join.eviction", _JOIN, "word", ("oldest", "fail"), "oldest", "what happens when a limit is exceeded"),
    Option("join.missing_event_time", _JOIN, "word", ("reject", "wall_clock", "fail"), "reject",
           "what happens to a row without an event time"),
    Option("trigger", _JOB, "duration", (), "1s", "how often `weft stream start` checks for new rows"),
    Option("checkpoint", _JOB, "text", (), None, "the folder of the job's state, or the address of one in a file store; by default `.weft/streams/<job>`"),
    Option("groups", _JOB, "count", (), None, "the largest number of tasks that share the keys of a join"),
)  # fmt: skip
"""All options, in the order of the documentation."""


def options_of(owner: Owner) -> tuple[Option, ...]:
    """Return the options that are valid for an owner."""
    return tuple(option for option in OPTIONS if owner in option.owners)


def find_option(key: str, owners: Iterable[Owner]) -> Option | None:
    """Return the option of a key; ``join.<alias>.<key>`` is an alias of ``join.<key>``.

    >>> find_option("join.s.size", ["join"]).name, find_option("size", ["join"])
    ('join.size', None)
    """
    names = [key]
    # The names of join options have one dot, so a second one means that an alias is between the parts.
    if key.startswith("join.") and key.count(".") > 1:
        names.append("join." + key.split(".", 2)[2])
    if key.startswith("kafka.") and len(key) > len("kafka."):
        names.append("kafka.*")
    for option in OPTIONS:
        if option.name in names and any(owner in option.owners for owner in owners):
            return option
    return None


def read_options(options: tuple[OptionSyntax, ...], owner: Owner, findings: list[Diagnostic]) -> FrozenMap[str, Any]:
    """Return the typed values of the valid options by their keys; add findings for the others.

    Defaults are not filled in: which of them apply depends on the connector.
    """
    values: dict[str, Any] = {}
    for option in options:
        known = find_option(option.key, (owner,))
        if known is None:
            findings.append(_describe_unknown(option, owner))
            continue
        try:
            values[option.key] = READERS[known.kind](option.value, known.words)
        except WeftError as error:
            message = f"option {option.key!r}: {error.message}"
            findings.append(Diagnostic("W2006", message, help=error.help, at=option.value_at))
    return FrozenMap(values)


_TITLES: dict[Owner, str] = {
    "stream": "an input stream", "table": "a table", "sink": "a sink", "join": "a join", "job": "SET",
}  # fmt: skip


def _describe_unknown(option: OptionSyntax, owner: Owner) -> Diagnostic:
    foreign = describe_foreign(option.key, MASK if is_secret_name(option.key) else option.value)
    if foreign is not None:
        message = f"option {option.key!r} {foreign[0]}"
        return Diagnostic("W2007", message, help=foreign[1], at=option.key_at)
    names = [o.name for o in options_of(owner)]
    others = [title for other, title in _TITLES.items() if find_option(option.key, (other,)) is not None]
    close = find_similar(option.key, names)
    if others:
        help = f"it is an option of {' and of '.join(others)}"
    elif close:
        help = f"did you mean {' or '.join(map(repr, close))}?"
    else:
        help = f"options are {format_list(names, most=40)}"
    return Diagnostic("W2005", f"{_TITLES[owner]} has no option {option.key!r}", help=help, at=option.key_at)


_VALUES: dict[Kind, str] = {
    "text": "string",
    "any_text": "string",
    "word": "",
    "flag": "`true` or `false`",
    "count": "whole number, 1 or more",
    "duration": "duration",
    "signed_duration": "duration, may be negative",
    "length": "duration above zero",
    "bounds": "one or two durations",
    "character": "one character",
    "zone": "time zone",
    "offsets": "`earliest`, `latest`, JSON",
    "time_format": "",
    "names": "columns separated by commas",
}


def option_table() -> str:
    """Return `OPTIONS` as a Markdown table.

    >>> print(option_table().splitlines()[2])
    | `connector` | stream | `files`, `kafka`, `rate`, `memory` |  | where rows come from; ...
    """
    head = ("| option | of | value | default | description |", "|---|---|---|---|---|")
    return "\n".join((*head, *map(_format_row, OPTIONS)))


def _format_row(option: Option) -> str:
    owners = ", ".join("SET" if owner == "job" else owner for owner in _TITLES if owner in option.owners)
    words = ", ".join(f"`{word}`" for word in option.words)
    needs = f" ({', '.join(option.needs)})" if option.needs else ""
    default = "" if option.default is None else "empty" if option.default == "" else f"`{option.default}`"
    value = words or _VALUES[option.kind]
    return f"| `{option.name}` | {owners}{needs} | {value} | {default} | {option.doc} |"
