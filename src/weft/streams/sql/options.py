"""The options of WITH and SET as data: who has them, what values they take, what they are for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from weft.core.frozen import FrozenMap
from weft.core.names import listed, near
from weft.errors import Diagnostic, WeftError
from weft.streams.sql.foreign_options import describe_foreign
from weft.streams.sql.option_values import READERS, Kind
from weft.streams.sql.spec import TIME_FORMATS
from weft.streams.sql.syntax import SaidOption

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
    close = near(option.key, names)
    if elsewhere:
        help = f"it is an option of {' and of '.join(_TITLES[owner] for owner in elsewhere)}"
    elif close:
        help = f"did you mean {' or '.join(map(repr, close))}?"
    else:
        help = f"it has {listed(names, most=40)}"
    return Diagnostic("W2005", f"{title} has no option {option.key!r}", help=help, at=option.key_at)
