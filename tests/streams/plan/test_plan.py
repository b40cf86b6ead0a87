"""Planning of statements: joins in order, keys, time parts, the select list, and every refusal."""

from __future__ import annotations

import pytest

from stream_jobs import job, planned, refused
from weft.core.source import Source
from weft.errors import Code, Diagnostic, StreamPlanError
from weft.joins.resolve.resolved import Exact, SameWindow, Within
from weft.streams.kernel.spec import Limits
from weft.streams.plan.kernel_spec import build_layout, build_task
from weft.streams.plan.resolved import KernelStep, TableStep

SECOND = 1_000_000
JOINED = "SELECT a.id FROM a JOIN b ON a.k = b.k"


def only(error: BaseException, code: Code) -> Diagnostic:
    """Return the one finding of a code."""
    assert isinstance(error, StreamPlanError), error
    found = [d for d in error.diagnostics if d.code == code]
    assert len(found) == 1, error
    return found[0]


def under(finding: Diagnostic) -> str:
    """Return the text above the carets of a finding."""
    assert isinstance(finding.at, Source)
    return finding.at.text[finding.at.start : finding.at.end]


def test_keys_are_found_in_either_order_and_the_rest_is_a_condition() -> None:
    plan = planned("SELECT a.id FROM a JOIN b ON b.k = a.k AND a.s = b.s AND a.n < b.n WITHIN '1m'")
    (step,) = plan.kernel_steps
    assert [(k.left, k.right) for k in step.keys] == [
        (("i", 0, 1), ("i", 1, 1)),
        (("i", 0, 4), ("i", 1, 4)),
    ]
    assert step.residual is not None
    assert step.residual.op == "<"
    assert step.vectorised


def test_a_default_bound_is_narrowed_by_the_condition_and_never_widened() -> None:
    minute = 60 * SECOND
    for condition, least, greatest in (
        ("AND b.t >= a.t - INTERVAL '2' HOUR", -5, 60),
        ("AND b.t <= a.t + INTERVAL '2' HOUR", -5, 60),
        ("AND b.t >= a.t - INTERVAL '1' MINUTE", -1, 60),
        ("AND b.t <= a.t", -5, 0),
    ):
        (step,) = planned(f"{JOINED} {condition} WITH ('join.default_bound'='-5m..1h')").kernel_steps
        assert (step.reach.least, step.reach.greatest) == (least * minute, greatest * minute), condition


def test_bounds_may_come_from_on_where_within_options_and_defaults() -> None:
    hour = 3600 * SECOND
    for select, origin in {
        "AND b.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR": "ON",
        "WHERE b.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR": "WHERE",
        "AND b.t >= a.t WHERE b.t <= a.t + INTERVAL '1' HOUR": "ON and WHERE",
        "WITHIN ('0s', '1h')": "WITHIN",
        "AND b.t >= a.t WITHIN '1h'": "ON and WITHIN",
        "WITH ('join.default_bound'='1h')": "join.default_bound",
        "AND b.t >= a.t WITH ('join.default_bound'='-5m..1h')": "ON and join.default_bound",
    }.items():
        (step,) = planned(f"{JOINED} {select}").kernel_steps
        assert (step.reach.least, step.reach.greatest, step.bound_from) == (0, hour, origin), select
        assert step.residual is None


def test_the_same_bound_twice_is_valid() -> None:
    text = "AND b.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR WITHIN ('0s', '1h')"
    (step,) = planned(f"{JOINED} {text}").kernel_steps
    assert (step.reach.least, step.reach.greatest) == (0, 3600 * SECOND)


def test_a_condition_of_where_that_bounds_the_join_leaves_where() -> None:
    plan = planned(
        "SELECT a.id FROM a JOIN b ON a.k = b.k"
        " WHERE b.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR AND a.n > 3 AND b.n > a.n"
    )
    assert plan.where is not None
    assert plan.where.op == "and"
    assert [part.op for part in plan.where.args] == [">", ">"]


def test_a_key_may_be_in_where_when_on_has_none() -> None:
    plan = planned("SELECT a.id FROM a JOIN b ON b.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR WHERE a.k = b.k")
    assert len(plan.kernel_steps[0].keys) == 1
    assert plan.where is None


def test_a_one_sided_bound_of_where_stays_there_beside_a_window() -> None:
    plan = planned("SELECT a.id FROM a JOIN b ON a.k = b.k WINDOW TUMBLING('1m') WHERE b.t >= a.t")
    assert plan.where is not None
    assert plan.kernel_steps[0].residual is None


def test_columns_that_nothing_reads_do_not_travel() -> None:
    plan = planned("SELECT a.id FROM a JOIN b ON a.k = b.k AND b.n > 1 WITHIN '1m' WHERE a.s = 'x'")
    assert [i.columns for i in plan.inputs] == [(0, 1, 4), (1, 2)]
    children = build_layout(plan, plan.kernel_steps[0])
    assert [c.name for c in children.left] == ["k0", "i0_0", "i0_4", "t0"]
    assert [c.name for c in children.right] == ["k0", "i1_2", "t1"]
    assert children.place(("i", 0, 1)) == ("left", "k0")


def test_a_key_that_is_cast_and_read_has_a_child_of_its_own() -> None:
    plan = planned("SELECT a.k, b.n FROM a JOIN b ON a.k = b.n WITHIN '1m'")
    children = build_layout(plan, plan.kernel_steps[0])
    assert [(c.name, str(c.dtype)) for c in children.right] == [
        ("k0", "long"),
        ("i1_2", "integer"),
        ("t1", "long"),
    ]
    assert children.place(("i", 1, 2)) == ("right", "i1_2")


def test_the_task_of_the_kernel_holds_policies_of_the_streams_and_limits() -> None:
    plan = planned(
        "SELECT a.id FROM a RIGHT JOIN b ON a.k = b.k WITHIN ('2s', '1m')"
        " WITH ('join.max_state_rows'='101', 'join.max_rows_per_key'='7', 'join.missing_event_time'='wall_clock')",
    )
    task = build_task(plan, plan.kernel_steps[0], groups=2)
    assert (task.reach.kind, task.reach.lower, task.reach.upper) == ("interval", -2 * SECOND, 60 * SECOND)
    assert (task.left.outer, task.right.outer) == (False, True)
    # Of two tasks none sees the rows of both.
    assert task.left.limits == Limits(max_state_rows=None, max_rows_per_key=7)
    assert build_task(plan, plan.kernel_steps[0]).left.limits == Limits(max_state_rows=101, max_rows_per_key=7)
    assert task.left.missing_event_time == "wall_clock"
    assert (task.left.name, task.right.name, task.left.raw, task.right.raw) == ("a", "b", True, True)


def test_the_limits_of_rows_are_for_streams_and_not_for_a_table_that_is_kept() -> None:
    plan = planned(
        "SELECT a.id FROM a RIGHT JOIN tab ON a.k = tab.k"
        " WITH ('join.max_state_rows'='101', 'join.max_rows_per_key'='7')",
    )
    (step,) = plan.kernel_steps
    assert (step.reach.kind, step.limits.max_state_rows, step.limits.max_rows_per_key) == ("table", None, None)


def test_only_the_first_join_of_a_stream_judges_its_rows() -> None:
    plan = planned(
        "SELECT a.id FROM a JOIN b ON a.k = b.k WITHIN '1m' JOIN c ON c.k = a.k AND c.t = b.t JOIN tab ON tab.k = a.k"
    )
    first, second = (build_task(plan, s) for s in plan.kernel_steps)
    assert (first.left.raw, first.right.raw, second.left.raw, second.right.raw) == (True, True, False, True)
    assert second.left.name == "a + b"
    assert isinstance(plan.steps[2], TableStep)
    assert [s.number for s in plan.steps] == [1, 2, 3]


def test_a_plain_condition_becomes_a_program_and_another_a_function_of_rows() -> None:
    plain = planned("SELECT a.id FROM a JOIN b ON a.k = b.k AND (a.n < b.k OR b.s IS NULL) WITHIN '1m'")
    residual = build_task(plain, plain.kernel_steps[0]).residual
    assert residual is not None
    assert residual.program == (
        "or",
        ("<", ("ref", "left", "i0_2"), ("ref", "right", "k0")),
        ("isnull", ("ref", "right", "i1_4")),
    )
    odd = planned("SELECT a.id FROM a JOIN b ON a.k = b.k AND a.n % 2 = b.n % 2 WITHIN '1m'")
    assert not odd.kernel_steps[0].vectorised
    residual = build_task(odd, odd.kernel_steps[0]).residual
    assert residual is not None
    assert residual.rows is not None
    assert residual.rows([{"i0_2": 3}, {"i0_2": 4}], [{"i1_2": 5}, {"i1_2": 5}]) == [True, False]


def test_floats_are_compared_row_by_row_because_nan_equals_nan() -> None:
    plan = planned("SELECT a.id FROM a JOIN b ON a.k = b.k AND a.f < b.f WITHIN '1m'")
    assert not plan.kernel_steps[0].vectorised


def test_windows_default_to_final_and_intervals_to_changes() -> None:
    assert planned("SELECT a.id FROM a JOIN b ON a.k = b.k WITHIN '1m'").emit == "changes"
    for window in ("TUMBLING('1m')", "SLIDING('1m', '10s')", "SESSION('1m')"):
        plan = planned(f"{JOINED} WINDOW {window}")
        assert plan.emit == "final"
        assert planned(f"{JOINED} WINDOW {window} EMIT CHANGES").emit == "changes"


def test_a_table_first_exchanges_the_sides() -> None:
    plan = planned("SELECT a.id, tab.name FROM tab LEFT JOIN a ON a.k = tab.k")
    (step,) = plan.steps
    assert isinstance(step, KernelStep)
    assert (step.left, step.right, step.how, step.reach.kind) == ((1,), 0, "right", "table")
    assert step.resolved.match == Exact()
    inner = planned("SELECT a.id, tab.name FROM tab RIGHT JOIN a ON a.k = tab.k").steps[0]
    assert isinstance(inner, TableStep)
    assert inner.how == "left"


def test_the_resolved_join_is_the_one_that_batch_reads() -> None:
    (step,) = planned("SELECT a.id FROM a LEFT JOIN b ON a.k = b.k AND a.n < b.n WITHIN '1m'").kernel_steps
    resolved = step.resolved
    assert resolved.left.names == ("a__id", "a__k", "a__n", "a__f", "a__s", "a__v", "a__t", "a__")
    assert isinstance(resolved.match, Within)
    assert resolved.left.fields[resolved.match.left].name == "a__"
    assert resolved.how == "left"
    assert [str(c.typed.slots) for c in resolved.conditions]
    window = planned("SELECT a.id FROM a JOIN b ON a.k = b.k WINDOW SLIDING('1m', '10s')").kernel_steps[0]
    assert isinstance(window.resolved.match, SameWindow)
    assert (window.resolved.match.size, window.resolved.match.slide) == (60 * SECOND, 10 * SECOND)


def test_padded_columns_are_nullable_and_others_as_declared() -> None:
    before = (
        "CREATE STREAM p (id STRING NOT NULL, k BIGINT NOT NULL, t TIMESTAMP NOT NULL)"
        " WITH ('connector'='memory', 'event.time.field'='t');"
    )
    for how, expected in (
        ("JOIN", (False, False)),
        ("LEFT JOIN", (False, True)),
        ("RIGHT JOIN", (True, False)),
    ):
        select = "SELECT p.id, q.id AS other FROM p JOIN p q ON p.k = q.k WITHIN '1m'".replace("JOIN", how)
        plan = planned(select, before=before)
        assert tuple(c.nullable for c in plan.output) == expected, how
        star = planned(select.replace("p.id, q.id AS other", "*"), before=before)
        ours, theirs = expected
        assert tuple(c.nullable for c in star.output) == (ours,) * 3 + (theirs,) * 3, how


def test_event_time_of_the_result_may_be_chosen() -> None:
    plan = planned("SELECT a.id, b.t AS _event_time FROM a JOIN b ON a.k = b.k WITHIN '1m'")
    assert [c.name for c in plan.output] == ["id"]
    assert plan.event_time is not None
    assert plan.event_time.slot == ("i", 1, 6)


def test_a_column_without_a_name_is_numbered() -> None:
    plan = planned("SELECT a.id, a.n + 1, UPPER(a.s) FROM a")
    assert [c.name for c in plan.output] == ["id", "column_2", "column_3"]
    assert plan.executor == "pass"


def test_all_mistakes_of_a_job_come_at_once() -> None:
    error = refused("SELECT a.idd, b.nn FROM a JOIN b ON a.kk = b.k AND a.s = b.k WITHIN '1m' WHERE a.zz > 1")
    assert sorted(d.code for d in error.diagnostics) == ["W0207", "W0207", "W0207", "W0207", "W2121"]


@pytest.mark.parametrize(
    ("select", "code", "place"),
    [
        ("SELECT a.id FROM a JOIN b ON a.n < b.n WITHIN '1m'", "W2101", "a.n < b.n"),
        ("SELECT a.id FROM a JOIN b ON b.k = b.n + a.k WITHIN '1m'", "W2101", "b.k = b.n + a.k"),
        ("SELECT a.id FROM a JOIN b ON a.f = b.f WITHIN '1m'", "W2102", "a.f = b.f"),
        ("SELECT a.id, b.id FROM a JOIN b ON a.k = b.k WITHIN '1m'", "W2103", "b.id"),
        ("SELECT a.id FROM a JOIN b ON a.k = b.k", "W2104", "b"),
        ("SELECT a.id FROM a JOIN b ON a.k = b.k AND b.t > a.t", "W2104", "b"),
        ("SELECT a.id FROM a JOIN b ON a.k = b.k AND b.t > a.t AND b.t < a.t", "W2105", "b.t < a.t"),
        (
            "SELECT a.id FROM a JOIN b ON a.k = b.k AND b.t > a.t + INTERVAL '1' HOUR WITHIN '1m'",
            "W2105",
            "WITHIN '1m'",
        ),
        ("SELECT a.id FROM a LEFT JOIN b ON a.k = b.k WITHIN '1m' WHERE b.n = 1", "W2109", "b.n = 1"),
        ("SELECT a.id FROM a JOIN b ON a.k + 1 = b.k WITHIN '1m'", "W2110", "a.k + 1 = b.k"),
        ("SELECT a.id FROM a JOIN b ON a.k = b.s WITHIN '1m'", "W2121", "a.k = b.s"),
        ("SELECT a.id FROM x JOIN a ON a.id = x.id WITHIN '1m'", "W2108", "x"),
        ("SELECT a.s AS _EVENT_TIME, a.id FROM a JOIN b ON a.k = b.k WITHIN '1m'", "W2014", None),
    ],
)
def test_a_mistake_is_reported_at_its_location(select: str, code: Code, place: str | None) -> None:
    finding = only(refused(select), code)
    assert finding.help
    if place is not None:
        assert under(finding) == place


@pytest.mark.parametrize("dtype", ["ARRAY<INT>", "STRUCT<x: INT>"])
@pytest.mark.parametrize("how", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
@pytest.mark.parametrize("right", ["STREAM", "TABLE"])
def test_nested_keys_are_refused_where_rows_are_kept(dtype: str, how: str, right: str) -> None:
    """Arrow compares the keys of the state and has no equality of nested values; other joins are Spark's."""
    time, timed = (", t TIMESTAMP", ", 'event.time.field' = 't'") if right == "STREAM" else ("", "")
    sources = (
        f"CREATE STREAM p (k {dtype}, t TIMESTAMP) WITH ('path' = 'p', 'format' = 'json', 'event.time.field' = 't');"
        f"CREATE {right} q (k {dtype}{time}) WITH ('path' = 'q', 'format' = 'json'{timed});"
    )
    select = " ".join(("SELECT p.t FROM p", how, "q ON p.k = q.k", "WITHIN '1m'" if right == "STREAM" else ""))
    if right == "TABLE" and how in ("JOIN", "LEFT JOIN"):
        assert isinstance(planned(select, before=sources).steps[0], TableStep)
    else:
        assert under(only(refused(select, before=sources), "W2102")) == "p.k = q.k"


@pytest.mark.parametrize(
    ("bound", "clause"),
    [
        ("", "AND b.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR"),
        ("AND b.t >= a.t", "AND b.t <= a.t + INTERVAL '1' HOUR"),
        ("AND b.t <= a.t", "AND b.t >= a.t"),
    ],
)
def test_the_clause_to_paste_makes_the_join_good(bound: str, clause: str) -> None:
    select = f"{JOINED} {bound}"
    assert only(refused(select), "W2104").help.splitlines()[-1] == clause
    assert planned(f"{select} {clause}").kernel_steps


@pytest.mark.parametrize(
    ("how", "where", "remedy"),
    [
        ("LEFT", "b.n > 1", "INNER JOIN"),
        ("RIGHT", "a.n > 1", "INNER JOIN"),
        ("FULL", "a.n > 1", "LEFT JOIN"),
        ("FULL", "b.n > 1", "RIGHT JOIN"),
        ("LEFT", "b.n IS NOT NULL", "INNER JOIN"),
        ("LEFT", "b.n > 1 OR b.s = 'x'", "INNER JOIN"),
        ("LEFT", "NOT b.n > 1", "INNER JOIN"),
        ("LEFT", "COALESCE(b.n, NULL) > 1", "INNER JOIN"),
        ("LEFT", "b.n IN (1, 2)", "INNER JOIN"),
        ("LEFT", "CASE WHEN b.n = 1 THEN TRUE ELSE FALSE END", "INNER JOIN"),
        ("LEFT", "CASE WHEN b.n IS NULL THEN FALSE ELSE a.n = 1 END", "INNER JOIN"),
        ("LEFT", "b.s LIKE 'x%'", "INNER JOIN"),
    ],
)
def test_where_that_undoes_an_outer_join_is_refused(how: str, where: str, remedy: str) -> None:
    finding = only(refused(f"{JOINED.replace('JOIN', f'{how} JOIN')} WITHIN '1m' WHERE {where}"), "W2109")
    assert finding.help.endswith(remedy)


@pytest.mark.parametrize("how", ["RIGHT", "FULL"])
@pytest.mark.parametrize("where", ["b.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR", "a.k = b.k"])
def test_where_of_an_earlier_join_does_not_move_there_if_a_later_one_pads_its_rows(how: str, where: str) -> None:
    bound = "b.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR"
    earlier = JOINED.replace(where, bound)  # the condition is in ON or in WHERE, not in both
    later = f"{how} JOIN c ON b.k = c.k AND c.t BETWEEN b.t AND b.t + INTERVAL '1' HOUR"
    error = refused(f"{earlier} {later} WHERE {where}")
    assert isinstance(error, StreamPlanError)
    assert "W2109" in {d.code for d in error.diagnostics}


@pytest.mark.parametrize(
    "where",
    [
        "b.n IS NULL",
        "COALESCE(b.n, 1) = 1",
        "b.n > 1 OR a.n > 1",
        "CASE WHEN b.n IS NULL THEN TRUE ELSE b.n = 1 END",
        "a.n > 1",
        "b.n <=> NULL",
        "NOT b.n IS NOT NULL",
        "IF(b.n = 1, FALSE, TRUE)",
    ],
)
def test_where_that_padded_rows_can_pass_is_let_alone(where: str) -> None:
    assert planned(f"{JOINED.replace('JOIN', 'LEFT JOIN')} WITHIN '1m' WHERE {where}").where is not None


def test_a_label_that_is_set_to_null_removes_no_padded_row() -> None:
    labelled = (
        "CREATE STREAM m (k BIGINT, labels MAP<STRING, STRING>, t TIMESTAMP)"
        " WITH ('connector'='memory', 'event.time.field'='t');"
    )
    select = "SELECT m.k FROM m LEFT JOIN b ON m.k = b.k WITHIN '1m' WHERE LABEL_GET(LABEL_SET({}), 'x') = 'y'"
    assert planned(select.format("m.labels, 'z', b.s"), before=labelled).where is not None
    assert only(refused(select.format("m.labels, b.s, 'z'"), before=labelled), "W2109")


def test_the_alias_of_a_star_may_be_in_any_case() -> None:
    names = [c.name for c in planned("SELECT A.* FROM a JOIN b ON a.k = b.k WITHIN '1m'").output]
    assert names == ["id", "k", "n", "f", "s", "v", "t"]


def test_a_key_with_null_safe_equality_is_reported_with_how_to_write_it() -> None:
    finding = only(refused("SELECT a.id FROM a JOIN b ON a.id <=> b.id WITHIN '1m'"), "W2101")
    assert finding.help.startswith("write = instead of <=>")
    assert planned("SELECT a.id FROM a JOIN b ON a.id = b.id WITHIN '1m'")


def test_on_against_within_contradicts_with_both_places() -> None:
    finding = only(
        refused("SELECT a.id FROM a JOIN b ON a.k = b.k AND b.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR WITHIN '2h'"),
        "W2106",
    )
    assert "[0s, 1h]" in finding.message
    assert "[-2h, 2h]" in finding.message
    assert "line" in finding.help


def test_a_retention_below_the_bound_is_refused_with_the_least_that_does() -> None:
    finding = only(refused("SELECT a.id FROM a JOIN b ON a.k = b.k WITHIN '1h' WITH ('join.retention'='30m')"), "W2107")
    assert "'1h'" in finding.help


def test_an_event_time_is_guessed_with_a_note_and_asked_for_where_it_cannot_be() -> None:
    one = "CREATE STREAM g (k BIGINT, seen TIMESTAMP) WITH ('connector'='memory');"
    plan = job("SELECT a.id FROM a JOIN g ON a.k = g.k WITHIN '1m'", before=one)
    assert [d.code for d in plan.warnings] == ["W2114"]
    assert plan.statements[0].inputs[1].stream.event_time == "seen"
    two = "CREATE STREAM g (k BIGINT, seen TIMESTAMP, made TIMESTAMP) WITH ('connector'='memory');"
    error = refused("SELECT a.id FROM a JOIN g ON a.k = g.k WITHIN '1m'", before=two)
    assert "'seen', 'made'" in only(error, "W2114").message


def test_a_condition_on_times_that_bounds_nothing_is_noted() -> None:
    plan = planned("SELECT a.id FROM a JOIN b ON a.k = b.k AND (b.t > a.t OR a.n = 1) WITHIN '1m'")
    assert [d.code for d in plan.warnings] == ["W2115"]


def test_the_columns_that_a_sink_declares_must_be_those_of_the_select() -> None:
    def inserted(columns: str, select: str) -> str:
        return f"CREATE STREAM out ({columns}) WITH ('connector'='memory'); INSERT INTO out {select};"

    good = inserted("id STRING, n BIGINT", "SELECT a.id, a.n FROM a")
    plan = job("SELECT a.id FROM a", before=good).statements[0]
    assert [str(c.dtype) for c in plan.output] == ["string", "long"]
    for columns, select in (
        ("id STRING", "SELECT a.id, a.n FROM a"),
        ("n BIGINT, id STRING", "SELECT a.id, a.n FROM a"),
        ("id STRING, n STRING", "SELECT a.id, a.n FROM a"),
        ("id STRING, n BIGINT NOT NULL", "SELECT a.id, a.n FROM a"),
        ("id STRING, n SMALLINT", "SELECT a.id, a.n FROM a"),
    ):
        assert only(refused("SELECT a.id FROM a", before=inserted(columns, select)), "W2120")


def test_explained_statements_are_planned_but_not_run() -> None:
    plan = job("SELECT a.id FROM a", before="EXPLAIN JOIN SELECT a.id FROM a JOIN b ON a.k = b.k WITHIN '1m';")
    assert len(plan.statements) == 1
    assert len(plan.explains) == 1
