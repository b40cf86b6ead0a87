"""Options of other systems: what they say there and what says it here."""

from __future__ import annotations

import re
from collections.abc import Callable

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
