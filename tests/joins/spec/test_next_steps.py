"""Mistakes in specs: the help suggests what was perhaps meant, and only what would be accepted."""

from __future__ import annotations

from typing import Any

import pytest

from refusals import refused
from weft.errors import ArgumentError, JoinSpecError
from weft.joins.spec import AsofOrder, AsofSpec, ColumnPredicate, ExpressionPredicate, JoinSpec


@pytest.mark.parametrize(("written", "meant"), [("<>", "'!='"), ("==", "'='"), ("=>", "'>='")])
def test_an_operator_of_another_language_is_answered_with_ours(written: Any, meant: str) -> None:
    with refused(JoinSpecError, "W0302", f"did you mean {meant}?"):
        ColumnPredicate("a", written, "b")


def test_a_misspelt_option_that_is_not_a_string_is_recognised() -> None:
    misspelt: Any = {"predicate": [], "nulls_eqal": True, "zzz": 1}
    with pytest.raises(ArgumentError) as caught:
        JoinSpec.from_kwargs("id", **misspelt)
    assert [d.help for d in caught.value.diagnostics] == [
        "did you mean the parameter predicates=?",
        "did you mean the parameter nulls_equal=?",
        "write zzz='right_column'",
    ]
    with refused(ArgumentError, "W0301", "the parameter skip_nulls=?"):
        AsofSpec.from_kwargs("id", order=AsofOrder("a", "b"), skip_null=["x"])


def test_from_kwargs_takes_the_promises() -> None:
    given = JoinSpec.from_kwargs("id", nulls_equal=True, relationship="m:1", unmatched="error", ref="key")
    assert given == JoinSpec([("id", "id"), ("ref", "key")], nulls_equal=True, relationship="m:1", unmatched="error")


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("left.a > SUM(right.b)", "W0210", ":1:10"),
        ("COUNT(*) > 1", "W0210", ":1:1"),
        ("left.day = TODAY()", "W0215", ":1:12"),
    ],
)
def test_a_fragment_refuses_aggregates_and_today_at_their_location(text: str, code: str, place: str) -> None:
    with refused(JoinSpecError, code, place, "help:"):
        ExpressionPredicate(text)


@pytest.mark.parametrize(("text", "code"), [("left.a > SUMM(right.b)", "W0206"), ("left.a > TODAI()", "W0206")])
def test_a_fragment_offers_only_functions_that_it_accepts(text: str, code: str) -> None:
    with pytest.raises(JoinSpecError) as caught:
        ExpressionPredicate(text)
    assert caught.value.code == code
    offered = set(caught.value.help.replace("?", "").replace(",", "").split())
    assert not offered & {"SUM", "AVG", "COUNT", "COUNT_ALL", "MIN_AGG", "MAX_AGG", "TODAY"}


@pytest.mark.parametrize("text", ["left.a > rand()", "left.day < current_date()", "left.a > MIN(right.b)"])
def test_what_a_fragment_refuses_has_a_next_step_that_it_accepts(text: str) -> None:
    with pytest.raises(JoinSpecError) as caught:
        ExpressionPredicate(text)
    assert caught.value.help
    assert "TODAY" not in caught.value.help
    assert "_AGG" not in caught.value.help


def test_specs_that_contradict_each_other_are_reported_with_what_to_do() -> None:
    with refused(JoinSpecError, "W0305", "leave relationship out of one"):
        JoinSpec([("a", "b")], relationship="m:1").merge(JoinSpec([("a", "b")], relationship="1:1"))
    with refused(JoinSpecError, "W0304", "without the minus sign"):
        AsofSpec(order=AsofOrder("a", "b"), tolerance="-5 seconds")
