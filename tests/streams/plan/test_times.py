"""Event times of any declared type in conditions: compared as times, with numbers in their unit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weft.errors import StreamPlanError, WeftError
from weft.streams.plan.resolve import plan_job
from weft.streams.plan.resolved import StatementPlan
from weft.streams.sql.lower import read_spec

MINUTE = 60_000_000
JOINED = "SELECT o.k FROM o JOIN s ON o.k = s.k"
TYPES = {
    "millis": "b BIGINT) WITH ('connector'='memory', 'event.time.field'='b', 'event.time.format'='epoch_millis'",
    "seconds": "b INT) WITH ('connector'='memory', 'event.time.field'='b', 'event.time.format'='epoch_seconds'",
    "micros": "b BIGINT) WITH ('connector'='memory', 'event.time.field'='b', 'event.time.format'='epoch_micros'",
    "digits": "b STRING) WITH ('connector'='memory', 'event.time.field'='b', 'event.time.format'='epoch_millis'",
    "text": "b STRING) WITH ('connector'='memory', 'event.time.field'='b', 'event.time.format'='iso8601'",
    "pattern": "b STRING) WITH ('connector'='memory', 'event.time.field'='b', 'event.time.format'='%d.%m.%Y'",
    "day": "b DATE) WITH ('connector'='memory', 'event.time.field'='b'",
    "local": "b TIMESTAMP_NTZ) WITH ('connector'='memory', 'event.time.field'='b'",
    "time": "b TIMESTAMP) WITH ('connector'='memory', 'event.time.field'='b'",
    "message": "b TIMESTAMP) WITH ('topic'='x', 'format'='json', 'event.time.field'='_TIMESTAMP'",
}


def planned(select: str, *, left: str = "millis", right: str | None = None) -> StatementPlan:
    """Return the plan of a statement over streams o and s whose event times are of these types."""
    text = (
        f"CREATE STREAM o (k STRING, n BIGINT, {TYPES[left]});\n"
        f"CREATE STREAM s (k STRING, n BIGINT, {TYPES[right or left]});\n"
        f"CREATE STREAM x WITH ('connector'='memory') AS\n{select};"
    )
    return plan_job(read_spec(text, file="job.sql", env={}), Path()).statements[0]


def bound(condition: str, *, left: str = "millis", right: str | None = None) -> tuple[int, int]:
    """Return both ends that a condition in ON says, in microseconds."""
    plan = planned(f"{JOINED} AND {condition}", left=left, right=right)
    (step,) = plan.kernel_steps
    assert (step.residual, plan.where, len(step.keys)) == (None, None, 1)
    return step.reach.least, step.reach.greatest


def refused(select: str, *, left: str = "millis", right: str | None = None) -> WeftError:
    with pytest.raises(WeftError) as caught:
        planned(select, left=left, right=right)
    return caught.value


@pytest.mark.parametrize("left", TYPES)
@pytest.mark.parametrize("right", TYPES)
def test_an_event_time_is_a_time_whatever_its_type(left: str, right: str) -> None:
    one, other = ("_TIMESTAMP" if name == "message" else "b" for name in (left, right))
    condition = f"s.{other} BETWEEN o.{one} AND o.{one} + INTERVAL '1' MINUTE"
    assert bound(condition, left=left, right=right) == (0, MINUTE)
    plan = planned(f"{JOINED} WHERE {condition}", left=left, right=right)
    assert (plan.kernel_steps[0].reach.least, plan.kernel_steps[0].reach.greatest, plan.where) == (
        0,
        MINUTE,
        None,
    )
    assert plan.kernel_steps[0].bound_from == "WHERE"


@pytest.mark.parametrize(
    ("left", "unit"), [("seconds", 60), ("millis", 60_000), ("micros", MINUTE), ("digits", 60_000)]
)
def test_a_whole_number_counts_in_the_unit_of_the_time_it_is_added_to(left: str, unit: int) -> None:
    assert bound(f"s.b BETWEEN o.b AND o.b + {unit}", left=left) == (0, MINUTE)
    assert bound(f"s.b >= o.b AND s.b <= o.b + {unit}", left=left, right="text") == (0, MINUTE)


@pytest.mark.parametrize(
    ("condition", "ends"),
    [
        ("s.b BETWEEN o.b - 5 * 60 * 1000 AND 60000 + o.b", (-5 * MINUTE, MINUTE)),
        ("s.b - o.b BETWEEN 0 AND 60000", (0, MINUTE)),
        ("s.b - o.b >= -(30000 + 30000) AND s.b - 60000 <= o.b", (-MINUTE, MINUTE)),
        ("NOT (s.b < o.b) AND NOT o.b + 60000 < s.b", (0, MINUTE)),
        ("s.b > o.b AND s.b < o.b + 60000", (1, MINUTE - 1)),
        ("o.b = s.b", (0, 0)),
        ("o.b + 60000 = s.b", (MINUTE, MINUTE)),
        ("s.b BETWEEN o.b AND o.b + 30000 + INTERVAL '30' SECOND", (0, MINUTE)),
    ],
)
def test_every_algebraic_form_of_a_bound_in_numbers_is_that_bound(condition: str, ends: tuple[int, int]) -> None:
    assert bound(condition) == ends


def test_numbers_beside_times_of_two_units_take_the_unit_of_the_time_they_are_added_to() -> None:
    assert bound("s.b BETWEEN o.b AND o.b + 60", left="seconds", right="millis") == (0, MINUTE)
    assert bound("s.b BETWEEN o.b AND o.b + 60000", left="millis", right="seconds") == (0, MINUTE)
    error = refused(f"{JOINED} AND s.b - o.b BETWEEN 0 AND 60", left="seconds", right="millis")
    assert error.code == "W2104"


@pytest.mark.parametrize("left", TYPES)
@pytest.mark.parametrize("condition", ["", " AND s.b >= o.b", " AND s.b <= o.b"])
def test_the_clause_of_a_missing_bound_reads_and_plans_when_it_is_pasted(left: str, condition: str) -> None:
    if left == "message":
        condition = condition.replace(".b", "._TIMESTAMP")
    error = refused(JOINED + condition, left=left)
    assert error.code == "W2104"
    clause = error.help.splitlines()[-1]
    assert clause.startswith("AND ")
    (step,) = planned(f"{JOINED}{condition} {clause}", left=left).kernel_steps
    assert step.reach.greatest - step.reach.least in (0, 60 * MINUTE)


def test_the_clause_quotes_names_that_need_it() -> None:
    text = (
        "CREATE STREAM `my orders` (k STRING, `when it was` TIMESTAMP)"
        " WITH ('connector'='memory', 'event.time.field'='when it was');\n"
        "SELECT a.k FROM `my orders` a JOIN `my orders` `b c` ON a.k = `b c`.k"
    )
    with pytest.raises(StreamPlanError) as caught:
        plan_job(read_spec(text, file="job.sql", env={}), Path())
    clause = caught.value.help.splitlines()[-1]
    plan = plan_job(read_spec(f"{text} {clause}", file="job.sql", env={}), Path())
    assert plan.statements[0].kernel_steps[0].reach.greatest == 60 * MINUTE


def test_everything_else_keeps_the_declared_type() -> None:
    plan = planned(f"{JOINED.replace('o.k', 'o.b + 1 AS later', 1)} AND s.b > 5 AND o.n = s.b WITHIN '1m'")
    (step,) = plan.kernel_steps
    assert str(plan.output[0].dtype) == "long"
    assert [k.right for k in step.keys] == [("i", 1, 0), ("i", 1, 2)]
    assert step.residual is not None
    assert step.residual.slots == (("i", 1, 2),)


@pytest.mark.parametrize(
    "condition",
    [
        "s.b BETWEEN o.n AND o.n + INTERVAL '1' MINUTE",
        "s.b > TIMESTAMP '2026-01-01 00:00:00'",
        "s.b + 'x' > o.b",
    ],
)
def test_what_is_not_between_two_event_times_is_judged_by_the_declared_types(condition: str) -> None:
    assert refused(f"{JOINED} AND {condition} WITHIN '1m'").code.startswith("W02")


def test_a_number_that_is_not_a_length_is_not_a_bound() -> None:
    assert refused(f"{JOINED} AND s.b BETWEEN o.b AND o.b + 9223372036854775807").code == "W2104"
    assert refused(f"{JOINED} AND s.b BETWEEN o.b AND o.b * 2").code == "W2104"


def test_conditions_on_such_times_that_bound_nothing_compute_with_microseconds() -> None:
    plan = planned(f"{JOINED} AND NOT (s.b BETWEEN o.b AND o.b + 10) WITHIN '1m'")
    (step,) = plan.kernel_steps
    assert step.residual is not None
    assert set(step.residual.slots) == {("t", 0), ("t", 1)}
    assert {str(n.dtype) for n in step.residual.walk()} == {"boolean", "long"}
    assert 10_000 in [n.value for n in step.residual.walk()]
    assert [i.columns for i in plan.inputs] == [(0,), (0,)]


def test_plain_comparisons_of_such_times_run_on_whole_columns() -> None:
    plan = planned(f"{JOINED} AND s.b <> o.b WITHIN '1m'")
    assert plan.kernel_steps[0].vectorised


def test_where_on_such_times_undoes_an_outer_join() -> None:
    error = refused(f"{JOINED.replace('JOIN', 'LEFT JOIN')} WITHIN '1m' WHERE s.b >= o.b")
    assert error.code == "W2109"


def test_the_time_of_a_message_must_be_declared_to_be_shown() -> None:
    for name in ("s._TIMESTAMP", "_timestamp"):
        error = refused(f"{JOINED.replace('o.k', name, 1)} WITHIN '1m'", left="message")
        assert error.code == "W0207"
        assert re.search(r"declare it: CREATE STREAM [os] \(\.\., _TIMESTAMP TIMESTAMP\)", error.help)


def test_a_declared_message_time_is_a_column_as_all_others() -> None:
    declared = "_TIMESTAMP TIMESTAMP) WITH ('topic'='x', 'format'='json', 'event.time.field'='_TIMESTAMP'"
    text = (
        f"CREATE STREAM o (k STRING, {declared});\n"
        "SELECT a.k, b._TIMESTAMP AS t FROM o a JOIN o b ON a.k = b.k AND b._TIMESTAMP BETWEEN a._TIMESTAMP"
        " AND a._TIMESTAMP + INTERVAL '1' MINUTE"
    )
    plan = plan_job(read_spec(text, file="job.sql", env={}), Path()).statements[0]
    assert (plan.kernel_steps[0].reach.least, plan.kernel_steps[0].reach.greatest) == (0, MINUTE)


def test_columns_of_one_name_are_the_key_to_paste() -> None:
    joined = JOINED.replace("o.k = s.k", "o.n < s.n")
    error = refused(f"{joined} WITHIN '1m'")
    assert error.code == "W2101"
    clause = error.help.splitlines()[-1]
    assert clause == "AND o.k = s.k"
    assert len(planned(f"{joined} {clause} WITHIN '1m'").kernel_steps[0].keys) == 1
