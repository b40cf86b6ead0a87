"""Selectors are put into the tree, keep their grouping and their own place."""

from __future__ import annotations

import pytest

from weft.core.source import Source
from weft.core.types import BOOLEAN, Schema
from weft.errors import ExpressionError
from weft.expr import Expr, TableScope, check, interpolate, parse, render

SCOPE = TableScope({"t": Schema.of(x="integer", name="string", vip="boolean", open="boolean")})


def named(**texts: str) -> dict[str, Expr]:
    return {name: parse(text, source=Source.whole(text, file=f"{name}.sel")) for name, text in texts.items()}


def codes(text: str, **texts: str) -> list[str]:
    with pytest.raises(ExpressionError) as caught:
        check(interpolate(parse(text), named(**texts)), SCOPE, expect=BOOLEAN)
    return [d.code for d in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{BIG}}", "x > 10 OR vip"),
        ("{{ BIG }} AND open", "(x > 10 OR vip) AND open"),
        ("NOT {{BIG}}", "NOT (x > 10 OR vip)"),
        ("{{BIG}} OR {{BIG}}", "(x > 10 OR vip) OR (x > 10 OR vip)"),
        ("{{NESTED_2}} AND vip", "((x > 10 OR vip) AND open) AND vip"),
        ("open", "open"),
        ("name = '{{BIG}}'", 'name = "{{BIG}}"'),
        ("{{AMOUNT}} * 2 > 4", "(x + 1) * 2 > 4"),
        ("name = 'größe' AND {{BIG}}", 'name = "größe" AND (x > 10 OR vip)'),
    ],
)
def test_a_selector_is_one_operand(text: str, expected: str) -> None:
    selectors = named(BIG="x > 10 OR vip", NESTED_2="{{BIG}} AND open", AMOUNT="x + 1", UNUSED="{{MISSING}}")
    assert render(interpolate(parse(text), selectors)) == expected


def test_an_unknown_selector_is_named_with_near_ones() -> None:
    with pytest.raises(ExpressionError) as caught:
        interpolate(parse("{{ACTIVE_RO}} AND {{ZZZ}}"), named(ACTIVE_ROWS="open"))
    first, second = caught.value.diagnostics
    assert (first.code, first.message) == ("W0212", "unknown selector 'ACTIVE_RO'")
    assert first.help == "did you mean ACTIVE_ROWS?"
    assert second.help == "selectors are 'ACTIVE_ROWS'"


def test_selectors_that_contain_each_other_are_named_in_order() -> None:
    with pytest.raises(ExpressionError) as caught:
        interpolate(parse("{{A}}"), named(A="{{B}} OR open", B="vip AND {{A}}"))
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("W0213", "selectors contain each other: A -> B -> A")
    assert found.at is not None
    assert found.at.file == "B.sel"


def test_a_selector_that_contains_itself_is_refused() -> None:
    assert codes("{{A}}", A="NOT {{A}}") == ["W0213"]


def test_a_chain_of_selectors_is_followed() -> None:
    chain = {f"S{i}": f"{{{{S{i + 1}}}}}" for i in range(50)} | {"S50": "vip"}
    assert render(interpolate(parse("{{S0}}"), named(**chain))) == "vip"


def test_selectors_that_grow_without_end_are_refused() -> None:
    doubling = {f"S{i}": f"{{{{S{i + 1}}}}} AND {{{{S{i + 1}}}}}" for i in range(60)} | {"S60": "vip"}
    assert codes("{{S0}}", **doubling) == ["W0201"]


def test_a_selector_that_is_nested_too_deep_is_named() -> None:
    deep = {f"S{i}": f"ABS(x + {{{{S{i + 1}}}}})" for i in range(60)} | {"S60": "x"}
    with pytest.raises(ExpressionError) as caught:
        interpolate(parse("{{S0}} > 1"), named(**deep))
    (found,) = caught.value.diagnostics
    assert found.code == "W0201"
    assert found.message.startswith("selector 'S")
    assert found.at is not None


def test_an_error_inside_a_selector_points_to_the_selector() -> None:
    with pytest.raises(ExpressionError) as caught:
        check(interpolate(parse("open AND {{BAD}}"), named(BAD="nme = 'a'")), SCOPE)
    (found,) = caught.value.diagnostics
    assert found.code == "W0207"
    assert found.at is not None
    assert found.at.file == "BAD.sel"


def test_a_selector_where_a_condition_is_wanted_must_be_one() -> None:
    assert codes("open AND {{SUM}}", SUM="x + 1") == ["W0209"]
    assert codes("{{SUM}}", SUM="x + 1") == ["W0209"]


def test_a_selector_that_was_not_put_in_is_an_error() -> None:
    with pytest.raises(ExpressionError) as caught:
        check(parse("{{A}}"), SCOPE)
    assert caught.value.code == "W0212"
