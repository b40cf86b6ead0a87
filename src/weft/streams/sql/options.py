"""The options of WITH and SET as data: who has them, what values they take, what they are for.

A value is read from its text by the kind of its option.  Options of other systems are known too, so that a mistake
can name the option to write instead.
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
from weft.streams.sql.spec import TIME_DIRECTIVES, TIME_FORMATS, Bounds
from weft.streams.sql.syntax import SaidOption

Kind = Literal[
    "text", "any_text", "word", "flag", "count", "duration", "signed_duration", "length", "bounds",
    "character", "zone", "offsets", "time_format", "names",
]  # fmt: skip
"""``duration`` may be zero, ``length`` may not; ``signed_duration`` may be negative."""

Words = tuple[str, ...]
_BOUNDS = re.compile(r"\[\s*(?P<a>[^,\]]+?)\s*,\s*(?P<b>[^,\]]+?)\s*\]|(?P<c>.+?)\s*\.\.\s*(?P<d>.+)")
_OFFSET = re.compile(r"[+-](0\d|1[0-8]):?[0-5]\d")
_LARGEST = (1 << 63) - 1


def _refuse(message: str, help: str) -> NoReturn:
    raise StreamSqlError(message, code="W2006", help=help)


def _text(value: str, words: Words) -> str:  # noqa: ARG001  # all readers are called alike
    if not value.strip():
        _refuse("the value is empty", "write a value, or leave the option out")
    if "\0" in value:
        _refuse("the value has a NUL character", "leave it out")
    return value


def _any_text(value: str, words: Words) -> str:  # noqa: ARG001
    return value


def _word(value: str, words: Words) -> str:
    if value.lower() in words:
        return value.lower()
    close = find_similar(value, words, most=1)
    help = f"did you mean {close[0]!r}?" if close else f"write {' or '.join(map(repr, words))}"
    _refuse(f"{value!r} is not one of {format_list(words)}", help)


def _flag(value: str, words: Words) -> bool:  # noqa: ARG001
    if value.lower() not in ("true", "false"):
        _refuse(f"{value!r} is neither true nor false", "write 'true' or 'false'")
    return value.lower() == "true"


def _count(value: str, words: Words) -> int:  # noqa: ARG001
    plain = value.replace("_", "")
    if not (plain.isascii() and plain.isdigit()) or not 0 < int(plain[:20]) <= _LARGEST:
        _refuse(f"{value!r} is not a count", "write a whole number, 1 or more")
    return int(plain)


def _duration(value: str, words: Words) -> Duration:  # noqa: ARG001
    return Duration.parse(value)


def _signed_duration(value: str, words: Words) -> Duration:  # noqa: ARG001
    return Duration.parse(value, signed=True)


def _length(value: str, words: Words) -> Duration:  # noqa: ARG001
    found = Duration.parse(value)
    if not found.microseconds:
        _refuse(f"{value!r} is no length of time", "write for example '5m'")
    return found


def _bounds(value: str, words: Words) -> Bounds:  # noqa: ARG001
    found = _BOUNDS.fullmatch(value.strip())
    low, high = (found["a"] or found["c"], found["b"] or found["d"]) if found else ("0s", value)
    lower, upper = Duration.parse(low, signed=True), Duration.parse(high, signed=True)
    if lower > upper:
        _refuse(f"the bound from {lower} to {upper} ends before it starts", f"write '{upper}..{lower}'")
    return lower, upper


def _character(value: str, words: Words) -> str:  # noqa: ARG001
    value = {"\\t": "\t"}.get(value, value)
    if len(value) != 1 or value in "\r\n":
        _refuse(f"{value!r} is not one character", r"write one character, as ',' or '\t'")
    return value


def _zone(value: str, words: Words) -> str:  # noqa: ARG001
    if _OFFSET.fullmatch(value) or value in ("Z", "UTC"):
        return value
    known = zoneinfo.available_timezones()
    if known and value not in known:  # without a database of zones Spark's own has the last word
        close = find_similar(value, known, most=1)
        help = f"did you mean {close[0]!r}?" if close else "write 'UTC', 'Europe/Paris' or '+02:00'"
        _refuse(f"{value!r} is no time zone", help)
    return value


def _offsets(value: str, words: Words) -> str:  # noqa: ARG001
    if value.lower() in ("earliest", "latest"):
        return value.lower()
    help = "write 'earliest', 'latest' or JSON as '{\"orders\": {\"0\": 23, \"1\": -2}}'"
    try:
        said = json.loads(value)
    except (ValueError, RecursionError):
        _refuse(f"{value!r} says no offsets", help)
    if not isinstance(said, dict) or not all(isinstance(part, dict) for part in said.values()):
        _refuse(f"{value!r} says no offsets", help)
    return value


def _time_format(value: str, words: Words) -> str:
    if "%" not in value:
        return _word(value, words)
    for found in re.finditer(r"%(.?)", value, re.DOTALL):
        if found[1] not in TIME_DIRECTIVES or not found[1]:
            known = " ".join(f"%{letter}" for letter in TIME_DIRECTIVES)
            _refuse(
                f"the pattern {value!r} has {found[0]!r}, which is no directive", f"directives are {known}"
            )
    return value


def _names(value: str, words: Words) -> tuple[str, ...]:  # noqa: ARG001
    found = tuple(part.strip() for part in value.split(","))
    if not all(found):
        _refuse(f"{value!r} has an empty name", "write column names with commas between them")
    if len({name.casefold() for name in found}) < len(found):
        _refuse(f"{value!r} names a column twice", "leave one of them out")
    return found


READERS: Mapping[Kind, Callable[[str, Words], Any]] = {
    "text": _text,
    "any_text": _any_text,
    "word": _word,
    "flag": _flag,
    "count": _count,
    "duration": _duration,
    "signed_duration": _signed_duration,
    "length": _length,
    "bounds": _bounds,
    "character": _character,
    "zone": _zone,
    "offsets": _offsets,
    "time_format": _time_format,
    "names": _names,
}
"""How the text of each kind is read; a text that is none raises."""


_Help = Callable[[str, str], str]


def _same(name: str) -> _Help:
    return lambda _, value: f"write '{name}' = '{value}'"


def _late(_: str, value: str) -> str:
    ours = {"drop": "drop", "dead_letter": "side_output"}.get(value.lower(), "side_output")
    return f"write 'late' = '{ours}'; 'side_output' keeps late rows, 'drop' counts them, 'fail' stops"


def _timeout(_: str, value: str) -> str:
    return (
        "say how far apart the times of two rows may be, after the ON of the join:\n"
        f"  WITHIN '{value}'\n"
        f"or by options: 'join.lower_bound' = '0s', 'join.upper_bound' = '{value}'"
    )


def _connector(key: str, value: str) -> str:
    known = {"kafka": "kafka", "file": "files"}
    ours = next((ours for theirs, ours in known.items() if value.lower().startswith(theirs)), None)
    name = key.split(".", 1)[0]
    said = f"'connector' = '{ours}'" if ours else "'connector' = 'files' or 'kafka'"
    return f"write {said} in the WITH of CREATE STREAM {name}"


def _prefixed(key: str, value: str) -> str:
    name, rest = key.split(".", 1)
    ours = {"topic.name": "topic"}.get(rest, rest)
    return f"write '{ours}' = '{value}' in the WITH of CREATE STREAM {name}"


def _settings_file(key: str, value: str) -> str:
    """Return the advice for a file with the options of a stream: here each of them is written out."""
    name = key.split(".", 1)[0]
    return f"leave it out and write what {value} says as options in the WITH of CREATE STREAM {name}"


def _leave(why: str) -> _Help:
    return lambda _key, _value: why


_FOREIGN: tuple[tuple[str, str, _Help], ...] = (
    (r"join\.timeout", "is not a bound: it would say how long to wait, not which rows belong together", _timeout),
    (r"join\.unbounded", "is not possible: the state of a join without a bound grows for ever",
     _leave("give the join a bound: WITHIN '1h', or 'join.default_bound' = '1h'")),
    (r"join\.max_records", "is another system's", _same("join.max_state_rows")),
    (r"join\.max_records_per_key", "is another system's", _same("join.max_rows_per_key")),
    (r"join\.max_memory(_bytes)?", "is another system's: state lies on disk and is limited in rows",
     _leave("write 'join.max_state_rows' = '1000000'")),
    (r"join\.eviction_policy", "is another system's", _leave("write 'join.eviction' = 'oldest' or 'fail'")),
    (r"watermark\.strategy", "is not needed: the watermark is the greatest time so far minus a delay",
     _leave("leave it out and write 'watermark.max_out_of_orderness' = '30s'")),
    (r"late\.data\.strategy", "is another system's", _late),
    (r"cache\..*", "is not needed: a table is read at the start and kept",
     _leave("leave it out; 'reload' = 'batch' reads a table again for each batch")),
    (r"job\..*dlq.*", "is not needed: rejected rows are always kept",
     _leave("leave it out; `weft stream status JOB --rejects` shows them")),
    (r"job\..*", "is another system's", _leave("settings of a job are said with SET 'key' = 'value'")),
    (r"[^.]+\.type", "is another system's", _connector),
    (r"(?!join\.|kafka\.)[^.]+\.(topic|topic\.name|path|format)", "is another system's", _prefixed),
    (r"(?!join\.|kafka\.)[^.]+\.config_file", "is another system's: options are written in the job", _settings_file),
    (r"scan\.startup\.mode|auto\.offset\.reset", "is another system's",
     _leave("write 'starting.offsets' = 'earliest' or 'latest'")),
    (r"properties\.bootstrap\.servers|brokers?", "is another system's", _same("bootstrap.servers")),
    (r"(properties\.)?group\.id", "is not needed: the checkpoint knows what was read", _leave("leave it out")),
    (r"properties\.(.+)", "is another system's",
     lambda key, value: f"write 'kafka.{key.removeprefix('properties.')}' = '{value}'"),
    (r"scan\.watermark\.idle-timeout|table\.exec\.source\.idle-timeout", "is another system's", _same("idle.timeout")),
    (r"kafka_topic", "is another system's", _same("topic")),
    (r"value_format|value\.format|value\.serializer", "is another system's",
     lambda _, value: f"write 'format' = '{value.lower()}'"),
    (r"timestamp", "is another system's", _same("event.time.field")),
    (r"timestamp_format", "is another system's", _same("event.time.format")),
    (r"has_headers", "is another system's", _same("header")),
)  # fmt: skip


def describe_foreign(key: str, value: str) -> tuple[str, str] | None:
    """Return what an option of another system is here, and what to write; None when it is not known.

    >>> describe_foreign("kafka_topic", "orders")
    ("is another system's", "write 'topic' = 'orders'")
    """
    for pattern, what, help in _FOREIGN:
        if re.fullmatch(pattern, key, re.IGNORECASE):
            return what, help(key, value)
    return None


Owner = Literal["stream", "table", "sink", "join", "job"]


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its name, who has it, the kind of its value, the words it takes, its default, its use.

    `needs` names the connectors or formats without which it says nothing; empty is any.
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
_TEXTS = ("json", "csv")

OPTIONS: tuple[Option, ...] = (
    Option("connector", _STREAM, "word", ("files", "kafka", "rate", "memory"), None,
           "where rows come from; `files` when there is a `path`, `kafka` when there is a `topic`"),
    Option("connector", _TABLE, "word", ("files", "memory"), None, "where rows come from; `files` when there is a `path`"),
    Option("connector", _SINK, "word", ("files", "kafka", "console", "memory"), None,
           "where rows go; `files` when there is a `path`, `kafka` when there is a `topic`"),
    Option("path", _ANY, "text", (), None, "a file, folder or glob, below the workspace unless absolute; a URI",
           ("files",)),
    Option("format", _ANY, "word", ("json", "csv", "parquet", "avro"), None,
           "how rows are written; known from the ending of `path`", ("files", "kafka")),
    Option("header", _ANY, "flag", (), "true", "whether the first line names the columns", ("csv",)),
    Option("delimiter", _ANY, "character", (), ",", "what stands between two fields", ("csv",)),
    Option("quote", _ANY, "character", (), '"', "what stands around a field that holds the delimiter", ("csv",)),
    Option("null.value", _ANY, "any_text", (), "", "the field that means NULL", ("csv",)),
    Option("timestamp.zone", _ANY, "zone", (), "UTC", "the zone of times that are written without one"),
    Option("topic", _STREAM | _SINK, "text", (), None, "the Kafka topic", ("kafka",)),
    Option("bootstrap.servers", _STREAM | _SINK, "text", (), "localhost:9092", "the Kafka brokers", ("kafka",)),
    Option("starting.offsets", _STREAM, "offsets", (), "earliest", "where a new checkpoint starts: `earliest`, `latest` or "
           "JSON of offsets", ("kafka",)),
    Option("fail.on.data.loss", _STREAM, "flag", (), "true", "whether offsets that are gone stop the query", ("kafka",)),
    Option("max.offsets.per.trigger", _STREAM, "count", (), None, "the most messages of one batch", ("kafka",)),
    Option("kafka.*", _STREAM | _SINK, "text", (), None, "handed to the Kafka client as it is", ("kafka",)),
    Option("rows.per.second", _STREAM, "count", (), "1", "how many rows a rate source makes", ("rate",)),
    Option("rows.total", _STREAM, "count", (), None, "how many rows a rate source makes in all", ("rate",)),
    Option("event.time.field", _STREAM, "text", (), None,
           "the column that says when a row happened; `_TIMESTAMP` is the time of a Kafka message"),
    Option("event.time.format", _STREAM, "time_format", TIME_FORMATS, None,
           "how that column is written, or a pattern as `%Y-%m-%d %H:%M:%S`; `timestamp` for Parquet and Avro, "
           "`iso8601` for text"),
    Option("watermark.max_out_of_orderness", _STREAM, "duration", (), "0s", "how late a row may come"),
    Option("late", _STREAM, "word", ("side_output", "drop", "fail"), "side_output", "what becomes of a row that is later"),
    Option("malformed", _STREAM, "word", ("reject", "fail"), "reject", "what becomes of a row that does not read"),
    Option("dedup.keys", _STREAM, "names", (), None, "columns; of rows that are equal in them the first stays"),
    Option("idle.timeout", _STREAM | _JOB, "length", (), None,
           "how long a stream may be silent before the watermark no longer waits for it"),
    Option("max.files.per.trigger", _STREAM, "count", (), None, "the most files of one batch", ("files", "memory")),
    Option("reload", _TABLE, "word", ("start", "batch"), "start", "whether the table is read once or for each batch"),
    Option("mode", _SINK, "word", ("append",), "append", "rows are added to the sink"),
    Option("join.type", _JOIN, "word", ("interval", "tumbling", "sliding", "session"), None, "the form of the join"),
    Option("join.lower_bound", _JOIN, "signed_duration", (), None, "the least right time minus left time"),
    Option("join.upper_bound", _JOIN, "signed_duration", (), None, "the greatest right time minus left time"),
    Option("join.size", _JOIN, "length", (), None, "the size of a tumbling or sliding window"),
    Option("join.slide", _JOIN, "length", (), None, "the distance between two sliding windows"),
    Option("join.gap", _JOIN, "length", (), None, "the silence that ends a session"),
    Option("join.rows", _JOIN, "word", ("pair", "window"), "pair",
           "whether a pair comes once or once for each sliding window it shares"),
    Option("join.retention", _JOIN, "duration", (), None, "how long rows are kept at least; never less than the bound needs"),
    Option("join.default_bound", _JOIN | _JOB, "bounds", (), None,
           "the bound of a join that says none: `1h` is [0s, 1h]; `-5m..1h`"),
    Option("join.max_state_rows", _JOIN, "count", (), None, "the most rows that a side keeps"),
    Option("join.max_rows_per_key", _JOIN, "count", (), None, "the most rows that a side keeps of one key"),
    Option("join.eviction", _JOIN, "word", ("oldest", "fail"), "oldest", "what happens beyond these limits"),
    Option("join.missing_event_time", _JOIN, "word", ("reject", "wall_clock", "fail"), "reject",
           "what becomes of a row without event time"),
    Option("trigger", _JOB, "duration", (), "1s", "how often `weft stream start` looks for new rows"),
    Option("checkpoint", _JOB, "text", (), None, "the folder of the job's state; `.weft/streams/<job>` if not said"),
    Option("groups", _JOB, "count", (), None, "into how many groups of keys the state is split"),
)  # fmt: skip
"""Every option, in the order of the documentation."""


def options_of(owner: Owner) -> tuple[Option, ...]:
    """Return the options that an owner has."""
    return tuple(option for option in OPTIONS if owner in option.owners)


def find_option(key: str, owners: Iterable[Owner]) -> Option | None:
    """Return the option that a key means; ``join.<alias>.<key>`` means ``join.<key>``.

    >>> find_option("join.s.size", ["join"]).name, find_option("size", ["join"])
    ('join.size', None)
    """
    names = [key]
    if key.startswith("join.") and key.count(".") > 1:
        names.append("join." + key.split(".", 2)[2])
    if key.startswith("kafka.") and len(key) > len("kafka."):
        names.append("kafka.*")
    for option in OPTIONS:
        if option.name in names and any(owner in option.owners for owner in owners):
            return option
    return None


def read_options(
    said: tuple[SaidOption, ...], owner: Owner | tuple[Owner, ...], mistakes: list[Diagnostic]
) -> FrozenMap[str, Any]:
    """Return the values of the options that are said, typed, under the written names; note the mistakes.

    Defaults are not filled in: which of them apply depends on the connector.
    """
    owners = (owner,) if isinstance(owner, str) else owner
    found: dict[str, Any] = {}
    for option in said:
        known = find_option(option.key, owners)
        if known is None:
            mistakes.append(_unknown(option, owners))
            continue
        try:
            found[option.key] = READERS[known.kind](option.value, known.words)
        except WeftError as error:
            message = f"option {option.key!r}: {error.message}"
            mistakes.append(Diagnostic("W2006", message, help=error.help, at=option.value_at))
    return FrozenMap(found)


_TITLES: dict[Owner, str] = {
    "stream": "a stream that is read", "table": "a table", "sink": "a sink", "join": "a join", "job": "SET",
}  # fmt: skip


def _unknown(option: SaidOption, owners: tuple[Owner, ...]) -> Diagnostic:
    foreign = describe_foreign(option.key, option.value)
    if foreign is not None:
        message = f"option {option.key!r} {foreign[0]}"
        return Diagnostic("W2007", message, help=foreign[1], at=option.key_at)
    names = [o.name for owner in owners for o in options_of(owner)]
    title = " or ".join(_TITLES[owner] for owner in owners)
    elsewhere = [owner for owner in _TITLES if find_option(option.key, (owner,)) is not None]
    close = find_similar(option.key, names)
    if elsewhere:
        help = f"it is an option of {' and of '.join(_TITLES[owner] for owner in elsewhere)}"
    elif close:
        help = f"did you mean {' or '.join(map(repr, close))}?"
    else:
        help = f"it has {format_list(names, most=40)}"
    return Diagnostic("W2005", f"{title} has no option {option.key!r}", help=help, at=option.key_at)


_VALUES: dict[Kind, str] = {
    "text": "text",
    "any_text": "text",
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
    "names": "columns with commas",
}
_HEADINGS = {"stream": "stream", "table": "table", "sink": "sink", "join": "join", "job": "SET"}


def option_table() -> str:
    """Return the table of `OPTIONS` in Markdown.

    >>> print(option_table().splitlines()[2])
    | `connector` | stream | `files`, `kafka`, `rate`, `memory` |  | where rows come from; ...
    """
    head = ("| option | of | value | default | what it says |", "|---|---|---|---|---|")
    return "\n".join((*head, *map(_row, OPTIONS)))


def _row(option: Option) -> str:
    owners = ", ".join(title for owner, title in _HEADINGS.items() if owner in option.owners)
    words = ", ".join(f"`{word}`" for word in option.words)
    needs = f" ({', '.join(option.needs)})" if option.needs else ""
    default = "" if option.default is None else "empty" if option.default == "" else f"`{option.default}`"
    value = words or _VALUES[option.kind]
    return f"| `{option.name}` | {owners}{needs} | {value} | {default} | {option.doc} |"
