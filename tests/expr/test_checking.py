"""Checking: scopes, wanted types, aggregates, the date of the run, nullability."""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable
from decimal import Decimal as Number

import pytest

from weft.core.types import BOOLEAN, DOUBLE, LONG, STRING, Decimal, DType, Field, Scalar, Schema
from weft.errors import EvaluationError, ExpressionError
from weft.expr import FUNCTIONS, TableScope, Typed, check, evaluate, evaluate_aggregate, parse

LEFT = Schema.of(id="long", price="decimal(10,2)", name="string", ok="boolean")
RIGHT = Schema.of(id="long", rate="double")
SCOPE = TableScope({"left": LEFT, "right": RIGHT}, aliases={"l": "left", "r": "right"})


def typed(text: str, *, scope: TableScope = SCOPE, expect: DType | None = None, aggregates: bool = False) -> Typed:
    return check(parse(text), scope, expect=expect, aggregates=aggregates)


def errors(text: str, *, scope: TableScope = SCOPE, expect: DType | None = None, aggregates: bool = False) -> list[str]:
    with pytest.raises(ExpressionError) as caught:
        typed(text, scope=scope, expect=expect, aggregates=aggregates)
    return [f"{d.code} {d.message}" for d in caught.value.diagnostics]


def test_names_resolve_to_slots() -> None:
    assert typed("l.id = r.id").slots == (("left", 0), ("right", 0))
    assert typed("price * rate + price").slots == (("left", 1), ("right", 1))
    assert typed("LEFT.ID = right.Id").slots == (("left", 0), ("right", 0))
    assert typed("1 + 2").slots == ()


def test_a_bare_name_in_two_tables_is_ambiguous() -> None:
    assert errors("id = 1") == ["W0216 'id' is ambiguous: left.id or right.id"]


def test_an_unknown_prefix_is_an_error_and_not_left_out() -> None:
    assert errors("x.id = 1") == ["W0207 unknown table 'x'"]


def test_bare_names_can_be_kept_to_some_tables() -> None:
    scope = TableScope({"left": LEFT, "right": RIGHT}, bare=("left",))
    assert typed("id = 1", scope=scope).slots == (("left", 0),)
    assert errors("rate > 1", scope=scope) == ["W0207 unknown column 'rate'"]


def test_case_counts_where_the_schema_says_so() -> None:
    schema = Schema((Field("Id", LONG), Field("ID", LONG)), case_sensitive=True)
    scope = TableScope({"t": schema})
    assert typed("t.ID = Id", scope=scope).slots == (("t", 1), ("t", 0))
    assert errors("id", scope=scope) == ["W0207 unknown column 'id'"]


def test_a_wanted_type_is_reached_by_widening_only() -> None:
    assert typed("l.id", expect=Decimal(38, 2)).dtype == Decimal(38, 2)
    assert typed("NULL", expect=BOOLEAN).dtype == BOOLEAN
    assert typed("price", expect=DOUBLE).dtype == DOUBLE
    assert errors("price", expect=LONG) == ["W0209 the expression is decimal(10,2), expected long"]
    assert errors("l.id", expect=STRING) == ["W0209 the expression is long, expected string"]
    assert errors("l.id + 1", expect=BOOLEAN) == ["W0209 the expression is long, expected boolean"]


def test_an_operand_that_failed_causes_no_second_error() -> None:
    assert errors("(nope + 1) * 2 > 'a' AND nada") == [
        "W0207 unknown column 'nope'",
        "W0207 unknown column 'nada'",
    ]


def test_every_error_is_found_at_once() -> None:
    assert [e[:5] for e in errors("UPPER(price) = 1 AND name > 5 AND nope AND SUM(price) > 1")] == [
        "W0209",
        "W0209",
        "W0207",
        "W0210",
    ]


def test_aggregates_are_allowed_where_they_are_asked_for() -> None:
    assert typed("SUM(price) / COUNT(price) > 100", aggregates=True).dtype == BOOLEAN
    assert typed("ROUND(AVG(price), 2)", aggregates=True).dtype == Decimal(11, 2)
    assert errors("SUM(SUM(price))", aggregates=True) == ["W0211 SUM is nested inside SUM"]
    assert errors("SUM(price) + l.id", aggregates=True) == ["W0218 column l.id is not inside an aggregate"]
    assert errors("SUM(name)", aggregates=True) == ["W0209 argument 1 of SUM is string, expected a number"]
    assert errors("MAX_AGG(price)") == ["W0210 MAX_AGG is an aggregate function, which is not allowed here"]


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("SUM(price)", "decimal(20,2)"),
        ("SUM(l.id)", "long"),
        ("SUM(rate)", "double"),
        ("AVG(price)", "decimal(14,6)"),
        ("AVG(l.id)", "decimal(24,4)"),
        ("AVG(rate)", "double"),
        ("COUNT(name)", "long"),
        ("COUNT(*)", "long"),
        ("MIN_AGG(name)", "string"),
        ("MAX_AGG(ok)", "boolean"),
        ("SUM(CAST(price AS decimal(38,2)))", "decimal(38,2)"),
        ("AVG(CAST(price AS decimal(38,2)))", "decimal(38,6)"),
    ],
)
def test_an_aggregate_has_its_type(text: str, dtype: str) -> None:
    assert str(typed(text, aggregates=True).dtype) == dtype


ROWS: list[dict[Hashable, object]] = [
    {("left", 0): 1, ("left", 1): Number("1.00"), ("left", 2): "b", ("right", 1): 0.5},
    {("left", 0): 2, ("left", 1): None, ("left", 2): "a", ("right", 1): None},
    {("left", 0): 4, ("left", 1): Number("2.00"), ("left", 2): None, ("right", 1): float("nan")},
]


@pytest.mark.parametrize(
    ("text", "value", "none"),
    [
        ("SUM(price)", "3.00", None),
        ("AVG(price)", "1.500000", None),
        ("SUM(l.id)", 7, None),
        ("AVG(l.id)", "2.3333", None),
        ("COUNT(price)", 2, 0),
        ("COUNT(*)", 3, 0),
        ("COUNT_ALL()", 3, 0),
        ("MIN_AGG(name)", "a", None),
        ("MAX_AGG(name)", "b", None),
        ("SUM(IF(name = 'a', 1, 0)) * 10 + COUNT(*)", 13, None),
        ("COALESCE(SUM(price), 0)", "3.00", "0.00"),
    ],
)
def test_an_aggregate_leaves_nulls_out_and_knows_no_rows(text: str, value: object, none: object) -> None:
    checked = typed(text, aggregates=True)
    found = evaluate_aggregate(checked, [row.__getitem__ for row in ROWS])
    assert (str(found) if isinstance(found, Number) else found) == value
    empty = evaluate_aggregate(checked, [])
    assert (str(empty) if isinstance(empty, Number) else empty) == none


def test_a_sum_that_no_type_holds_is_an_error() -> None:
    checked = typed("SUM(l.id)", aggregates=True)
    with pytest.raises(EvaluationError):
        evaluate_aggregate(checked, [lambda _: 2**62, lambda _: 2**62])


def test_today_needs_a_date() -> None:
    with pytest.raises(ExpressionError) as caught:
        check(parse("TODAY() > TODAY()"), SCOPE, today=False)
    assert [d.code for d in caught.value.diagnostics] == ["W0215", "W0215"]
    with pytest.raises(EvaluationError) as missing:
        evaluate(typed("TODAY()"), lambda _: None)
    assert missing.value.code == "W0215"


@pytest.mark.parametrize(
    ("text", "nullable"),
    [
        ("k + 1", False),
        ("k / 1", True),
        ("k % 1", True),
        ("n + k", True),
        ("n <=> k", False),
        ("n = k", True),
        ("ISNULL(n)", False),
        ("COALESCE(n, k)", False),
        ("COALESCE(n, n)", True),
        ("NULLIF(k, 1)", True),
        ("CASE WHEN k > 0 THEN 1 END", True),
        ("CASE WHEN n > 0 THEN 1 ELSE 2 END", False),
        ("IF(n > 0, k, 1)", False),
        ("IF(k > 0, n, 1)", True),
        ("k IN (1, NULL)", True),
        ("k BETWEEN 1 AND 2", False),
        ("TODAY()", False),
        ("CAST(k AS string)", False),
        ("NULL", True),
    ],
)
def test_nullability_is_known(text: str, nullable: bool) -> None:  # noqa: FBT001
    scope = TableScope({"t": Schema((Field("k", LONG, nullable=False), Field("n", LONG)))})
    assert typed(text, scope=scope).nullable is nullable


def test_times_without_a_zone_are_read_in_the_zone_of_the_session() -> None:
    from zoneinfo import ZoneInfo

    new_york = ZoneInfo("America/New_York")
    day = typed("CAST(DATE '2026-03-08' AS timestamp)")
    assert evaluate(day, lambda _: None, zone=new_york) == dt.datetime(2026, 3, 8, 5, tzinfo=dt.UTC)
    elapsed = typed("TIMESTAMP '2026-03-08 05:00:00Z' + INTERVAL '1' DAY")
    assert evaluate(elapsed, lambda _: None, zone=new_york) == dt.datetime(2026, 3, 9, 5, tzinfo=dt.UTC)


def test_a_time_is_not_subtracted_from_an_interval() -> None:
    scope = TableScope({"t": Schema.of(at="timestamp", local="timestamp_ntz")})
    for column, dtype in (("at", "timestamp"), ("local", "timestamp_ntz")):
        assert str(typed(f"INTERVAL '1' DAY + {column}", scope=scope).dtype) == dtype
        (found,) = errors(f"INTERVAL '1' DAY - {column}", scope=scope)
        assert found.startswith("W0209"), found


def test_text_under_a_collation_is_compared_on_spark_only() -> None:
    schema = Schema((Field("a", Scalar("string", "UNICODE_CI")), Field("b", STRING)))
    scope = TableScope({"t": schema})
    assert errors("a = b", scope=scope)[0].startswith("W0209")
    assert errors("UPPER(a)", scope=scope)[0].startswith("W0209")
    with pytest.raises(EvaluationError):
        evaluate(typed("a = a", scope=scope), lambda _: "x")
    assert typed("CAST(a AS string) = b", scope=scope).dtype == BOOLEAN


def test_every_function_is_described() -> None:
    for name, function in FUNCTIONS.items():
        assert function.name == name
        assert function.doc
        assert function.nulls
        assert function.arity
        assert not set(function.aliases) & set(FUNCTIONS)
