"""SELECT, FROM, JOIN, WITHIN, WINDOW, EMIT: every written form and what it means."""

# ruff: noqa: S608  # jobs of streaming SQL that reach no database

from __future__ import annotations

import datetime as dt

import pytest

from stream_mistakes import JOIN, STREAMS
from weft.core.duration import Duration
from weft.errors import StreamSqlError
from weft.expr import parse, render
from weft.expr.ast import Origin
from weft.expr.read import parse_prefix
from weft.expr.tokens import strip_comments, tokenize
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.streams.sql.job import parse_job
from weft.streams.sql.lower import read_spec
from weft.streams.sql.spec import JoinStepSpec, StatementSpec
from weft.streams.sql.syntax import Insert

MINUTE = dt.timedelta(minutes=1)
HOUR = dt.timedelta(hours=1)


def statement(query: str) -> StatementSpec:
    return read_spec(STREAMS + query).statements[0]


def join(query: str) -> JoinStepSpec:
    (step,) = statement(query).joins
    return step


def interval(query: str) -> tuple[object, object]:
    form = join(query).form
    assert isinstance(form, IntervalSpec)
    return form.lower, form.upper


def window(query: str) -> tuple[object, ...]:
    form = join(query).form
    assert isinstance(form, WindowSpec)
    return form.window, form.size, form.slide, form.gap


@pytest.mark.parametrize(
    ("written", "how"),
    [
        ("JOIN", "inner"),
        ("inner join", "inner"),
        ("LEFT JOIN", "left"),
        ("LEFT OUTER JOIN", "left"),
        ("Right Join", "right"),
        ("RIGHT OUTER JOIN", "right"),
        ("FULL JOIN", "full"),
        ("FULL OUTER JOIN", "full"),
    ],
)
@pytest.mark.parametrize("source", ["shipments s", "shipments AS s", '"shipments" `s`'])
def test_a_join_has_four_kinds(written: str, how: str, source: str) -> None:
    step = join(f"SELECT * FROM orders o {written} {source} ON o.order_id = s.order_id")
    assert (step.how, step.input, step.alias, step.form) == (how, "shipments", "s", None)
    assert render(step.on, dialect="stream") == "o.order_id = s.order_id"


def test_names_are_found_whatever_their_case_and_keep_their_declared_spelling() -> None:
    spec = statement("SELECT * FROM ORDERS JOIN Shipments ON ORDERS.order_id = Shipments.order_id")
    assert spec.first == ("orders", "ORDERS")
    assert (spec.joins[0].input, spec.joins[0].alias) == ("shipments", "Shipments")


@pytest.mark.parametrize(
    "length",
    ["'5m'", "5 MINUTES", "5m", "INTERVAL '5' MINUTE", "interval 5 minutes", "'PT5M'", "INTERVAL '5 minutes'",
     "4 MINUTES 60 s", "INTERVAL '0:05' HOUR TO MINUTE", "/* five */ '300s'"],
)  # fmt: skip
def test_within_is_the_same_length_on_both_sides_however_it_is_written(length: str) -> None:
    assert interval(f"{JOIN} WITHIN {length} EMIT CHANGES") == (-5 * MINUTE, 5 * MINUTE)


def test_within_of_two_lengths_is_before_and_after() -> None:
    assert interval(f"{JOIN} WITHIN ('5m', INTERVAL '1' HOUR)") == (-5 * MINUTE, HOUR)
    assert interval(f"{JOIN} WITHIN (0s, 1h)") == (dt.timedelta(0), HOUR)
    assert interval(f"{JOIN} WITHIN (-5 MINUTES, 1h)") == (5 * MINUTE, HOUR)
    assert interval(f"{JOIN} WITHIN (- INTERVAL '5' MINUTE, '1h')") == (5 * MINUTE, HOUR)


def test_within_may_be_a_single_point_of_time() -> None:
    assert interval(f"{JOIN} WITHIN '0s'") == (dt.timedelta(0), dt.timedelta(0))
    assert interval(f"{JOIN} WITHIN (-5 MINUTES, 5 MINUTES)") == (5 * MINUTE, 5 * MINUTE)


def test_within_may_be_before_the_on() -> None:
    clause = "SELECT * FROM orders o LEFT JOIN shipments s WITHIN (0s, 1h) ON o.order_id = s.order_id"
    assert interval(clause) == (dt.timedelta(0), HOUR)
    with pytest.raises(StreamSqlError, match="W2003"):
        statement(f"{clause} WITHIN 1h")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("TUMBLING('1h')", ("tumbling", HOUR, None, None)),
        ("TUMBLING(INTERVAL '1' HOUR)", ("tumbling", HOUR, None, None)),
        ("tumbling(size 60 minutes)", ("tumbling", HOUR, None, None)),
        ("TUMBLING(event_time, '1h')", ("tumbling", HOUR, None, None)),
        ("SLIDING(SIZE INTERVAL '1' HOUR, SLIDE INTERVAL '10' MINUTE)", ("sliding", HOUR, 10 * MINUTE, None)),
        ("SLIDING('1h', ADVANCE '10m')", ("sliding", HOUR, 10 * MINUTE, None)),
        ("SLIDING('1h', ADVANCE BY 10 MINUTES)", ("sliding", HOUR, 10 * MINUTE, None)),
        ("SLIDING(s.event_time, 1h, 10m)", ("sliding", HOUR, 10 * MINUTE, None)),
        ("SLIDING('1h', '1h')", ("sliding", HOUR, HOUR, None)),
        ("SESSION('30m')", ("session", None, None, 30 * MINUTE)),
        ("SESSION(GAP INTERVAL '30' MINUTE)", ("session", None, None, 30 * MINUTE)),
        ("SESSION(O.Event_Time, 30m)", ("session", None, None, 30 * MINUTE)),
    ],
)
@pytest.mark.parametrize("where", ["", " WHERE o.total > 1"])
def test_a_window_is_after_the_on_or_after_the_joins(written: str, expected: tuple[object, ...], where: str) -> None:
    assert window(f"{JOIN}{where} WINDOW {written} EMIT CHANGES") == expected


def test_a_window_after_the_joins_means_the_only_join_of_two_streams() -> None:
    spec = statement(
        f"{JOIN} LEFT JOIN customers c ON c.customer_id = o.customer_id WHERE o.total > 1 WINDOW TUMBLING('1h')"
    )
    assert [type(step.form) for step in spec.joins] == [WindowSpec, type(None)]


def test_each_join_of_a_chain_has_its_own_form() -> None:
    spec = statement(
        f"{JOIN} WITHIN '5m' LEFT JOIN shipments t ON t.order_id = o.order_id WINDOW TUMBLING('1h') "
        "FULL JOIN shipments u ON u.order_id = o.order_id WITH ('join.u.type' = 'session', 'join.u.gap' = '1m')"
    )
    first, second, third = (step.form for step in spec.joins)
    assert isinstance(first, IntervalSpec)
    assert isinstance(second, WindowSpec)
    assert isinstance(third, WindowSpec)
    assert [second.window, third.window, third.gap] == ["tumbling", "session", MINUTE]
    assert [form.how for form in (first, second, third)] == ["inner", "left", "full"]


@pytest.mark.parametrize(
    ("options", "form"),
    [
        (
            "'join.type' = 'interval', 'join.lower_bound' = '0s', 'join.upper_bound' = '24h'",
            "WITHIN (0s, 24h)",
        ),
        ("'join.lower_bound' = '-5m', 'join.upper_bound' = '5m'", "WITHIN '5m'"),
        ("'join.type' = 'tumbling', 'join.size' = '1h'", "WINDOW TUMBLING('1h')"),
        ("'join.size' = '1h'", "WINDOW TUMBLING('1h')"),
        ("'join.type' = 'SLIDING', 'join.size' = '1h', 'join.slide' = '10m'", "WINDOW SLIDING('1h', '10m')"),
        ("'join.s.size' = '1h', 'join.S.slide' = '10m'", "WINDOW SLIDING('1h', '10m')"),
        ("'join.type' = 'session', 'join.gap' = 'INTERVAL ''30'' MINUTE'", "WINDOW SESSION('30m')"),
    ],
)
def test_options_mean_the_same_as_clauses_and_both_are_valid_together(options: str, form: str) -> None:
    by_clause, by_option = join(f"{JOIN} {form}"), join(f"{JOIN} EMIT CHANGES WITH ({options})")
    assert by_clause.form == by_option.form
    assert by_clause.form is not None
    assert join(f"{JOIN} {form} WITH ({options})").form == by_clause.form


def test_the_options_of_a_join_may_be_those_of_the_sink() -> None:
    spec = read_spec(
        STREAMS
        + f"CREATE STREAM out WITH ('connector' = 'memory', 'join.size' = '1h', 'join.retention' = '2h') AS {JOIN}"
    ).statements[0]
    assert isinstance(spec.joins[0].form, WindowSpec)
    assert spec.joins[0].retention == Duration.parse("2h")
    assert dict(spec.sink.connector) == {"connector": "memory", "mode": "append"}


@pytest.mark.parametrize(
    "rows",
    [
        "'join.max_state_rows' = '1_000', 'join.t.max_state_rows' = 5",
        "'join.t.max_state_rows' = 5, 'join.max_state_rows' = '1_000'",
    ],
)
def test_limits_and_policies_belong_to_the_join_they_are_addressed_to(rows: str) -> None:
    first, second = statement(
        f"{JOIN} WITHIN '5m' JOIN shipments t ON t.order_id = o.order_id WITHIN '1h' "
        f"WITH ({rows}, 'join.max_rows_per_key' = '7', "
        "'join.t.eviction' = 'fail', 'join.s.missing_event_time' = 'wall_clock')"
    ).joins
    assert (first.limits.max_state_rows, first.limits.max_rows_per_key, first.limits.eviction) == (
        1000,
        7,
        "oldest",
    )
    assert (second.limits.max_state_rows, second.limits.max_rows_per_key, second.limits.eviction) == (
        5,
        7,
        "fail",
    )
    assert [first.missing_event_time, second.missing_event_time] == ["wall_clock", "reject"]


def test_rows_of_every_shared_window_are_asked_for_by_an_option() -> None:
    for rows, per_window in (("window", True), ("pair", False)):
        form = join(f"{JOIN} WINDOW SLIDING('1h', '10m') WITH ('join.rows' = '{rows}')").form
        assert isinstance(form, WindowSpec)
        assert form.per_window is per_window


def test_the_kind_of_an_interval_may_be_given_where_the_bound_is_in_on() -> None:
    assert join(f"{JOIN} AND s.event_time >= o.event_time WITH ('join.type' = 'interval')").form is None


def test_the_order_of_a_form_is_the_event_time_of_the_streams() -> None:
    form = join(f"{JOIN} WITHIN '5m'").form
    assert form is not None
    assert (form.order.left, form.order.right, form.equal_keys) == ("event_time", "event_time", ())


@pytest.mark.parametrize(("clause", "emit"), [("EMIT CHANGES", "changes"), ("emit final", "final"), ("", None)])
def test_emit_follows_the_clause(clause: str, emit: str | None) -> None:
    assert statement(f"{JOIN} WITHIN '5m' {clause}").emit == emit


def test_clauses_after_the_joins_are_in_any_order() -> None:
    clauses = ["WHERE o.total > 1", "EMIT FINAL", "WITH ('join.retention' = '2h')", "WINDOW TUMBLING('1h')"]
    turned = [clauses[i:] + clauses[:i] for i in range(4)]
    specs = {statement(f"{JOIN} {' '.join(some)}") for some in turned}
    assert len(specs) == 1


def test_the_entries_of_a_select_list() -> None:
    items = statement(
        "SELECT *, o.*, o.order_id, o.total + 1 AS more, o.total less, UPPER(o.order_id) AS `a b` PRIMARY KEY, "
        "o.customer_id PRIMARY KEY, o.event_time as _event_time, CASE WHEN o.total > 1 THEN 'x' ELSE 'y' END kind "
        "FROM orders o"
    ).items
    assert [(i.is_star, i.star_of) for i in items[:2]] == [(True, None), (True, "o")]
    assert [i.alias for i in items[2:]] == [None, "more", "less", "a b", None, "_event_time", "kind"]
    assert [i.is_key for i in items] == [False] * 5 + [True, True, False, False]
    assert [i.is_event_time for i in items] == [False] * 7 + [True, False]
    assert items[8].expr == parse("CASE WHEN o.total > 1 THEN 'x' ELSE 'y' END", dialect="stream")


def test_words_of_sql_are_names_where_they_can_be() -> None:
    text = (
        "CREATE STREAM a (left INT, right INT, window INT, `from` INT, order INT, t TIMESTAMP) WITH ('path' = 'a.csv');"
        "SELECT left, right AS key, a.from, `from` AS f, order, window + 1 AS final FROM a "
        "WHERE LEFT('abc', 1) = 'a' AND left = right;"
    )
    spec = read_spec(text).statements[0]
    refs = [render(i.expr, dialect="stream") for i in spec.items if i.expr is not None]
    assert refs == ["left", "right", "a.from", "from", "order", "window + 1"]
    assert spec.where == parse("LEFT('abc', 1) = 'a' AND left = right", dialect="stream")


def test_left_and_right_are_functions_before_a_parenthesis_and_joins_before_join() -> None:
    spec = statement(
        "SELECT * FROM orders o JOIN shipments s ON LEFT(o.order_id, 2) = RIGHT(s.order_id, 2) "
        "LEFT JOIN shipments t ON o.order_id = t.order_id RIGHT OUTER JOIN shipments u ON o.order_id = u.order_id"
    )
    assert [step.how for step in spec.joins] == ["inner", "left", "right"]
    assert render(spec.joins[0].on, dialect="stream") == "LEFT(o.order_id, 2) = RIGHT(s.order_id, 2)"


def test_within_after_a_call_belongs_to_the_join() -> None:
    assert interval("SELECT * FROM orders o JOIN shipments s ON o.order_id = UPPER(s.order_id) WITHIN '5m'") == (
        -5 * MINUTE,
        5 * MINUTE,
    )


def test_an_expression_is_read_from_a_token_on_and_says_where_it_stops() -> None:
    text = "WHERE a.x BETWEEN 1 AND 2 AND NOT b EMIT CHANGES"
    tokens, _ = tokenize(text, "stream")
    expr, after = parse_prefix(tokens, 1, Origin(text))
    assert render(expr, dialect="stream") == "a.x BETWEEN 1 AND 2 AND NOT b"
    assert tokens[after].text == "EMIT"


@pytest.mark.parametrize(
    ("text", "plain", "unclosed"),
    [
        ("a -- b", "a     ", None),
        ("a /* b */ c", "a         c", None),
        ("/* a /* b */ c */ d", "                  d", None),
        ("'--' /* ' */ \"/*\" `--`", "'--'         \"/*\" `--`", None),
        ("a -- b\nc", "a     \nc", None),
        ("a /* b\nc", "a     \n ", 2),
        ("a - -b", "a - -b", None),
        ("'it''s -- no' -- yes", "'it''s -- no'       ", None),
    ],
)
def test_comments_are_blanks_of_the_same_length(text: str, plain: str, unclosed: int | None) -> None:
    assert strip_comments(text) == (plain, unclosed)


def test_an_expression_of_streaming_sql_may_hold_comments_and_names_in_double_quotes() -> None:
    assert parse('"a b" /* one */ = 1 -- two', dialect="stream") == parse("`a b` = 1", dialect="stream")


def test_a_self_join_needs_two_names() -> None:
    spec = statement("SELECT * FROM orders a JOIN orders b ON a.order_id = b.order_id WITHIN '5m'")
    assert (spec.first, spec.joins[0].input, spec.joins[0].alias) == (("orders", "a"), "orders", "b")


def test_a_sink_of_the_job_may_be_named_as_an_input_and_is_left_to_the_planner() -> None:
    job = read_spec(
        STREAMS + "CREATE STREAM one WITH ('connector' = 'memory') AS SELECT * FROM orders;"
        "CREATE STREAM two WITH ('connector' = 'memory') AS SELECT * FROM one;"
    )
    assert job.statements[1].first == ("one", "one")
    assert "one" not in job.streams


def test_the_deepest_expression_is_refused_and_not_the_end_of_the_program() -> None:
    deep = "(" * 200 + "1" + ")" * 200
    with pytest.raises(StreamSqlError, match="nested more than 100 deep"):
        read_spec(STREAMS + f"SELECT {deep} AS x FROM orders;")


def test_an_insert_is_a_statement_with_a_sink_of_that_name() -> None:
    (insert,) = parse_job("INSERT INTO `my sink` SELECT a FROM b;").statements
    assert isinstance(insert, Insert)
    assert insert.sink.text == "my sink"
