"""Options: each is read as its kind, unknown ones never pass, and the documentation lists all."""

# ruff: noqa: S608  # jobs of streaming SQL that reach no database

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_mistakes import JOIN, STREAMS
from weft.core.duration import Duration
from weft.core.names import find_similar
from weft.errors import Diagnostic, StreamSqlError
from weft.streams.sql.job import parse_job
from weft.streams.sql.lower import read_spec
from weft.streams.sql.options import (
    OPTIONS,
    READERS,
    Kind,
    Owner,
    describe_foreign,
    find_option,
    option_table,
    options_of,
    read_options,
)
from weft.streams.sql.spec import TIME_DIRECTIVES, StreamSpec
from weft.streams.sql.syntax import CreateTable, OptionSyntax

DOCS = Path(__file__).parents[3] / "docs" / "streams.md"
_TABLE = re.compile(r"(?<=<!-- options -->\n)\|.*?(?=\n<!-- /options -->)", re.DOTALL)


def parse_options(**options: str) -> tuple[OptionSyntax, ...]:
    """Return options as they come from a statement."""
    body = ", ".join(f"'{key.replace('__', '.')}' = '{value}'" for key, value in options.items())
    (table,) = parse_job(f"CREATE TABLE a (b INT) WITH ({body})").statements
    assert isinstance(table, CreateTable)
    return table.options


def read(owner: Owner, **options: str) -> dict[str, Any]:
    findings: list[Diagnostic] = []
    values = read_options(parse_options(**options), owner, findings)
    assert not findings, findings
    return dict(values)


def stream(options: str, columns: str = "id INT, t TIMESTAMP, n BIGINT, s STRING") -> StreamSpec:
    return read_spec(f"CREATE STREAM a ({columns}) WITH ({options}); SELECT * FROM a;").streams["a"]


def test_every_option_says_what_it_is_for_and_has_a_default_that_reads() -> None:
    for option in OPTIONS:
        assert option.doc, option.name
        assert option.owners, option.name
        if option.default is not None:
            READERS[option.kind](option.default, option.words)
    assert set(READERS) == set(get_args(Kind))


def test_an_owner_has_no_option_twice() -> None:
    for owner in get_args(Owner):
        names = [option.name for option in options_of(owner)]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("watermark__max_out_of_orderness", "30s", Duration.parse("30s")),
        ("watermark__max_out_of_orderness", "INTERVAL ''1'' MINUTE", Duration.parse("1m")),
        ("watermark__max_out_of_orderness", "0s", Duration(0)),
        ("idle__timeout", "2 minutes", Duration.parse("2m")),
        ("late", "DROP", "drop"),
        ("header", "False", False),
        ("max__files__per__trigger", "1_000", 1000),
        ("dedup__keys", " a ,b", ("a", "b")),
        ("delimiter", "\\t", "\t"),
        ("null__value", "", ""),
        ("timestamp__zone", "Europe/Paris", "Europe/Paris"),
        ("timestamp__zone", "+02:00", "+02:00"),
        ("starting__offsets", "Latest", "latest"),
        ("starting__offsets", '{"a": {"0": 5}}', '{"a": {"0": 5}}'),
        ("event__time__format", "EPOCH_MILLIS", "epoch_millis"),
        ("event__time__format", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f"),
        ("kafka__security__protocol", "SSL", "SSL"),
    ],
)
def test_a_value_is_read_as_its_kind(key: str, value: str, expected: object) -> None:
    assert read("stream", **{key: value}) == {key.replace("__", "."): expected}


@pytest.mark.parametrize(
    ("value", "lower", "upper"),
    [
        ("1h", "0s", "1h"),
        ("-5m..1h", "-5m", "1h"),
        ("[-5m, 1h]", "-5m", "1h"),
        (" [ 1 minute , 1 hour ] ", "1m", "1h"),
        ("-1h .. -5m", "-1h", "-5m"),
        ("5m..5m", "5m", "5m"),
    ],
)
def test_a_default_bound_has_three_spellings(value: str, lower: str, upper: str) -> None:
    expected = (Duration.parse(lower, signed=True), Duration.parse(upper, signed=True))
    assert read("job", join__default_bound=value) == {"join.default_bound": expected}


@pytest.mark.parametrize(
    ("owner", "key", "value"),
    [
        ("stream", "header", "1"),
        ("stream", "max__files__per__trigger", "0"),
        ("stream", "max__files__per__trigger", "-1"),
        ("stream", "max__files__per__trigger", "1.5"),
        ("stream", "max__files__per__trigger", "9" * 30),
        ("stream", "max__files__per__trigger", "٣"),
        ("stream", "idle__timeout", "0s"),
        ("stream", "idle__timeout", "5"),
        ("stream", "dedup__keys", "a,,b"),
        ("stream", "dedup__keys", "a,A"),
        ("stream", "quote", ""),
        ("stream", "timestamp__zone", "Mars/Olympus"),
        ("stream", "timestamp__zone", "+25:00"),
        ("stream", "starting__offsets", "5"),
        ("stream", "starting__offsets", '{"a": 5}'),
        ("stream", "event__time__format", "%"),
        ("stream", "event__time__format", "%Y-%q"),
        ("stream", "event__time__format", "iso"),
        ("stream", "path", " "),
        ("join", "join__size", "-1h"),
        ("join", "join__lower_bound", "soon"),
        ("job", "join__default_bound", "[1h, 2h, 3h]"),
        ("job", "join__default_bound", "..1h"),
        ("table", "connector", "kafka"),
        ("sink", "connector", "rate"),
    ],
)
def test_a_value_of_another_kind_is_refused_at_its_place(owner: Owner, key: str, value: str) -> None:
    findings: list[Diagnostic] = []
    options = parse_options(**{key: value})
    assert dict(read_options(options, owner, findings)) == {}
    (finding,) = findings
    assert (finding.code, finding.at) == ("W2006", options[0].value_at)
    assert finding.help


def test_a_number_without_quotes_keeps_its_sign() -> None:
    (table,) = parse_job("CREATE TABLE a (b INT) WITH ('max.files.per.trigger' = -5)").statements
    assert isinstance(table, CreateTable)
    assert [option.value for option in table.options] == ["-5"]


@given(
    st.text(alphabet="abcdefghijklmnopqrstuvwxyz._", min_size=1, max_size=30),
    st.sampled_from(get_args(Owner)),
)
def test_an_unknown_option_never_passes(key: str, owner: Owner) -> None:
    findings: list[Diagnostic] = []
    at = parse_options(x="1")[0].key_at
    values = read_options((OptionSyntax(key=key, value="1", key_at=at, value_at=at),), owner, findings)
    known = find_option(key, (owner,)) is not None
    assert bool(values) <= known
    assert bool(findings) == (key not in values)
    assert all(m.code in ("W2005", "W2006", "W2007") and m.help for m in findings)


def test_a_misspelt_option_is_reported_with_its_name() -> None:
    for option in OPTIONS:
        wrong = option.name[:-1]
        owner = next(iter(option.owners))
        if (
            find_option(wrong, (owner,)) is not None
            or describe_foreign(wrong, "1")
            or not find_similar(wrong, [option.name])
        ):
            continue
        findings: list[Diagnostic] = []
        read_options(parse_options(**{wrong: "1"}), owner, findings)
        assert repr(option.name) in findings[0].help, (wrong, findings[0].help)


def test_an_option_of_another_system_never_hides_one_of_ours() -> None:
    for option in OPTIONS:
        assert describe_foreign(option.name.replace("*", "acks"), "x") is None or find_option(
            option.name, tuple(option.owners)
        )
        key = option.name.replace("*", "acks")
        assert find_option(key, tuple(option.owners)) is not None


@pytest.mark.parametrize(
    ("key", "value", "help"),
    [
        ("join.timeout", "30s", "WITHIN '30s'"),
        ("late.data.strategy", "drop", "'late' = 'drop'"),
        ("watermark.strategy", "ascending", "'watermark.max_out_of_orderness'"),
        ("cache.ttl_seconds", "60", "'reload' = 'batch'"),
        ("job.dlq_max_size", "10", "--rejects"),
        ("orders.type", "file_source", "'connector' = 'files' in the WITH of CREATE STREAM orders"),
        (
            "orders.config_file",
            "a.yml",
            "write the options of a.yml in the WITH of CREATE STREAM orders",
        ),
        ("orders.topic.name", "t", "'topic' = 't' in the WITH of CREATE STREAM orders"),
        ("join.max_records", "5", "'join.max_state_rows' = '5'"),
        ("scan.startup.mode", "earliest-offset", "'starting.offsets'"),
        ("properties.security.protocol", "SSL", "'kafka.security.protocol' = 'SSL'"),
        ("VALUE_FORMAT", "JSON", "'format' = 'json'"),
    ],
)
def test_an_option_of_another_system_is_translated(key: str, value: str, help: str) -> None:
    advice = describe_foreign(key, value)
    assert advice is not None
    assert help in advice[1]


@pytest.mark.parametrize(
    "key",
    """join.timeout join.unbounded join.max_records join.max_records_per_key join.max_memory join.eviction_policy
    watermark.strategy late.data.strategy cache.ttl job.dlq job.parallelism orders.type orders.topic orders.topic.name
    orders.path orders.format orders.config_file scan.startup.mode auto.offset.reset properties.bootstrap.servers brokers
    group.id properties.acks scan.watermark.idle-timeout kafka_topic value_format timestamp timestamp_format
    has_headers""".split(),
)
def test_advice_for_an_option_of_another_system_names_options_of_ours(key: str) -> None:
    advice = describe_foreign(key, "30s")
    assert advice is not None
    named = re.findall(r"'([a-z][a-z._]*)' = ", advice[1])
    owners: tuple[Owner, ...] = ("stream", "table", "sink", "join", "job")
    assert [name for name in named if name != "key" and find_option(name, owners) is None] == []


@pytest.mark.parametrize(
    ("options", "connector", "format"),
    [
        ("'path' = 'data/a.csv'", "files", "csv"),
        ("'path' = 'data/*.JSON'", "files", "json"),
        ("'path' = 'a.jsonl.gz'", "files", "json"),
        ("'path' = 'A.JSONL.GZ'", "files", "json"),
        ("'path' = 's3a://bucket/a.parquet'", "files", "parquet"),
        ("'path' = 'data/a.csv', 'format' = 'json'", "files", "json"),
        ("'path' = 'folder', 'format' = 'avro'", "files", "avro"),
        ("'topic' = 'a', 'format' = 'json'", "kafka", "json"),
        ("'connector' = 'memory'", "memory", None),
    ],
)
def test_the_connector_and_the_format_follow_from_the_other_options(
    options: str, connector: str, format: str | None
) -> None:
    spec = stream(options).connector
    assert (spec["connector"], spec.get("format")) == (connector, format)


def test_a_join_option_may_be_repeated_with_its_value() -> None:
    sink = f"CREATE STREAM out WITH ('connector' = 'memory', 'join.retention' = '2h') AS {JOIN} WITHIN '1h'"
    (statement,) = read_spec(f"{STREAMS}{sink} WITH ('join.retention' = '2h');").statements
    assert statement.joins[0].retention == Duration.parse("2h")


@pytest.mark.parametrize("connector", ["'path' = 'out', 'format' = 'csv'", "'connector' = 'memory'"])
def test_a_sink_has_no_zone_because_times_are_written_in_utc(connector: str) -> None:
    sink = f"CREATE STREAM out WITH ({connector}, 'timestamp.zone' = 'Europe/Paris') AS {JOIN}"
    with pytest.raises(StreamSqlError) as caught:
        read_spec(STREAMS + sink)
    assert caught.value.code == "W2005"
    assert caught.value.message == "a sink has no option 'timestamp.zone'"
    assert caught.value.help == "it is an option of an input stream and of a table"


def test_the_defaults_of_a_connector_are_filled_in_and_no_others() -> None:
    assert dict(stream("'path' = 'a.json'").connector) == {
        "connector": "files", "path": "a.json", "format": "json", "timestamp.zone": "UTC",
    }  # fmt: skip
    assert dict(stream("'topic' = 'a', 'format' = 'json', 'kafka.acks' = 'all'").connector) == {
        "connector": "kafka", "topic": "a", "format": "json", "kafka.acks": "all", "timestamp.zone": "UTC",
        "bootstrap.servers": "localhost:9092", "starting.offsets": "earliest", "fail.on.data.loss": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "field", "format"),
    [
        ("'path' = 'a.csv', 'event.time.field' = 'T'", "t", "iso8601"),
        ("'path' = 'a.parquet', 'event.time.field' = 't'", "t", "timestamp"),
        ("'path' = 'a.csv', 'event.time.field' = 's', 'event.time.format' = '%Y'", "s", "%Y"),
        (
            "'path' = 'a.csv', 'event.time.field' = 'n', 'event.time.format' = 'epoch_micros'",
            "n",
            "epoch_micros",
        ),
        ("'topic' = 'a', 'format' = 'json', 'event.time.field' = '_timestamp'", "_TIMESTAMP", "timestamp"),
        ("'path' = 'a.csv'", None, "iso8601"),
        ("'connector' = 'memory', 'event.time.field' = 't'", "t", "timestamp"),
    ],
)
def test_the_event_time_and_how_it_is_written(options: str, field: str | None, format: str) -> None:
    spec = stream(options)
    assert (spec.event_time, spec.time_format) == (field, format)


def test_a_declared_column_comes_before_the_time_of_a_message() -> None:
    for source in ("'path' = 'a.csv'", "'topic' = 'a', 'format' = 'csv'"):
        options = f"{source}, 'event.time.field' = '_TIMESTAMP'"
        spec = stream(options, columns="id INT, _timestamp TIMESTAMP")
        assert (spec.event_time, spec.time_format) == ("_timestamp", "iso8601")
        with pytest.raises(StreamSqlError, match="has type boolean and cannot be an event time"):
            stream(options, columns="id INT, _timestamp BOOLEAN")


def test_a_pattern_of_times_has_no_directive_that_is_not_documented() -> None:
    for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz%":
        text = f"'path' = 'a.csv', 'event.time.field' = 's', 'event.time.format' = '%{letter}'"
        if letter in TIME_DIRECTIVES:
            assert stream(text).time_format == f"%{letter}"
        else:
            with pytest.raises(StreamSqlError, match="unknown directive"):
                stream(text)


def test_policies_of_a_stream() -> None:
    spec = stream(
        "'path' = 'a.csv', 'late' = 'fail', 'malformed' = 'fail', 'dedup.keys' = 'ID, s', 'idle.timeout' = '1m'"
    )
    assert (spec.late, spec.malformed, spec.dedup, spec.idle) == (
        "fail",
        "fail",
        ("id", "s"),
        Duration.parse("1m"),
    )
    assert set(spec.connector).isdisjoint({"late", "malformed", "dedup.keys", "idle.timeout"})


@pytest.mark.parametrize("dtype", ["DOUBLE", "FLOAT", "ARRAY<INT>", "STRUCT<x: INT>", "MAP<STRING, INT>", "VARIANT"])
def test_a_column_whose_values_cannot_be_compared_identifies_no_duplicates(dtype: str) -> None:
    """Arrow groups by none of the nested types, and tells 0.0 from -0.0."""
    text = f"CREATE STREAM a (id INT, v {dtype}) WITH ('path' = 'a.json', 'dedup.keys' = 'id, v'); SELECT * FROM a;"
    with pytest.raises(StreamSqlError, match=f"option 'dedup.keys': v is {dtype[:3].lower()}") as caught:
        read_spec(text)
    assert caught.value.code == "W2006"


def test_a_table_is_read_once_unless_it_says_otherwise() -> None:
    text = "CREATE TABLE t (a INT) WITH ('path' = 't.csv'{}); SELECT * FROM t;"
    assert read_spec(text.format("")).tables["t"].reload == "start"
    assert read_spec(text.format(", 'reload' = 'batch'")).tables["t"].reload == "batch"


def test_lengths_of_options_are_those_of_the_form() -> None:
    form = read_spec(STREAMS + JOIN + " WITH ('join.size' = '90m')").statements[0].joins[0].form
    assert form is not None
    assert getattr(form, "size") == dt.timedelta(minutes=90)  # noqa: B009  # either spec


@pytest.mark.golden
def test_the_documentation_lists_every_option(request: pytest.FixtureRequest) -> None:
    text = DOCS.read_text(encoding="utf-8")
    table = _TABLE.search(text)
    assert table is not None, "docs/streams.md has no table between <!-- options --> and <!-- /options -->"
    if request.config.getoption("--rewrite-golden"):
        DOCS.write_text(_TABLE.sub(lambda _: option_table(), text), encoding="utf-8")
        return
    assert table[0] == option_table(), "docs/streams.md differs from the options: `make golden`"
