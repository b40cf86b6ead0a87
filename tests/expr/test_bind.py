"""Parameters become literals; a value can never become anything else."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal as Number

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.duration import Duration
from weft.core.types import Schema
from weft.errors import ArgumentError, ExpressionError
from weft.expr import Lit, TableScope, bind, check, evaluate, literal, parse, placeholders, render

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**30), max_value=10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.timedeltas(min_value=dt.timedelta(days=-100_000), max_value=dt.timedelta(days=100_000)),
)


@given(value=VALUES)
def test_a_bound_value_reads_back_the_same_in_both_dialects(value: object) -> None:
    tree = bind(parse("left.x = ?", dialect="fragment"), [value])
    assert parse(render(tree, dialect="fragment"), dialect="fragment") == tree
    assert parse(render(tree)) == tree


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (5, "integer"),
        (2**31, "long"),
        (2**63, "decimal(19,0)"),
        (Number("1.50"), "decimal(3,2)"),
        (Number(5), "decimal(2,1)"),
        (Number("1E+3"), "decimal(5,1)"),
        (1.5, "double"),
        (True, "boolean"),
        (None, "null"),
        (dt.datetime(2026, 1, 1), "timestamp_ntz"),  # noqa: DTZ001
        (dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))), "timestamp"),
        (Duration.parse("5 minutes"), "interval"),
    ],
)
def test_a_value_has_the_type_of_its_literal(value: object, dtype: str) -> None:
    assert str(literal(value).dtype) == dtype


def test_a_value_is_never_read_as_text_of_an_expression() -> None:
    tree = bind(parse("l.name = :name", dialect="fragment"), {"name": "' OR TRUE --"})
    scope = TableScope({"left": Schema.of(name="string")}, aliases={"l": "left"})
    assert evaluate(check(tree, scope), lambda _: "x") is False


def test_placeholders_are_filled_in_text_order_and_by_name() -> None:
    tree = bind(parse("? < left.x AND left.x BETWEEN ? AND ?", dialect="fragment"), (1, 2, 3))
    assert render(tree, dialect="fragment") == "1 < left.x AND left.x BETWEEN 2 AND 3"
    tree = bind(parse(":a = left.x OR :a = left.y", dialect="fragment"), {"a": 1})
    assert [n.value for n in (tree.args[0].left, tree.args[1].left)] == [1, 1]  # type: ignore[attr-defined]
    assert placeholders(tree) == ()


def test_an_expression_without_placeholders_takes_no_values() -> None:
    tree = parse("left.x = 1", dialect="fragment")
    assert bind(tree, []) == bind(tree, {}) == tree


@pytest.mark.parametrize(
    ("text", "args", "message"),
    [
        ("x = ?", [], "the expression has 1 placeholders but 0 values"),
        ("x = ? OR x = ?", [1], "the expression has 2 placeholders but 1 values"),
        ("x = ?", [1, 2], "the expression has 1 placeholders but 2 values"),
        ("x = 1", [1], "the expression has 0 placeholders but 1 values"),
        ("x = :low", {"lwo": 1}, "no value for :low"),
        ("x = :low", {"low": 1, "high": 2}, "no placeholder uses 'high'"),
        ("x = :low OR x = ?", {"low": 1}, "? and :low cannot be mixed"),
        ("x = :low", [1], ":low needs values by name"),
        ("x = ?", {"a": 1}, "? needs values by position"),
        ("x = ?", [object()], "the value of ?: of type object is not allowed in an expression"),
        ("x = ?", [float("nan")], "the value of ?: nan of type float is not allowed in an expression"),
        (
            "x = ?",
            [Number("Infinity")],
            "the value of ?: Infinity of type Decimal is not allowed in an expression",
        ),
        ("x = ?", [b"x"], "the value of ?: of type bytes is not allowed in an expression"),
        ("x = ?", [10**40], "the value of ?: the number has 41 digits; the limit is 38"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(
    text: str, args: Sequence[object] | Mapping[str, object], message: str
) -> None:
    with pytest.raises(ExpressionError) as caught:
        bind(parse(text, dialect="fragment"), args)
    assert caught.value.code == "W0214"
    assert caught.value.message.replace("Decimal('Infinity')", "Infinity") == message


def test_every_parameter_that_does_not_fit_is_named() -> None:
    with pytest.raises(ExpressionError) as caught:
        bind(parse(":a = :b", dialect="fragment"), {"c": 1})
    assert len(caught.value.diagnostics) == 3


@pytest.mark.parametrize("args", ["abc", 5, None, {1, 2}])
def test_parameters_are_a_sequence_or_a_mapping(args: object) -> None:
    with pytest.raises(ArgumentError):
        bind(parse("?", dialect="fragment"), args)  # type: ignore[arg-type]


def test_a_parameter_without_a_value_does_not_check() -> None:
    with pytest.raises(ExpressionError) as caught:
        check(parse("left.x = ?", dialect="fragment"), TableScope({"left": Schema.of(x="long")}))
    assert caught.value.code == "W0214"
    assert isinstance(literal(1), Lit)
