"""Every mistake of a join comes in one error, each with a next step that runs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from refusals import refused
from weft import expr
from weft.core.types import Field, Schema, parse_type
from weft.errors import (
    AmbiguousColumnError,
    ColumnCollisionError,
    JoinSpecError,
    JoinTypeError,
    NoJoinKeysError,
    UnknownColumnError,
    WeftError,
)
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.natural import infer_natural_keys
from weft.joins.resolve.predicates import suggest_cast
from weft.joins.spec import (
    AsofOrder,
    AsofSpec,
    ColumnPredicate,
    ExpressionPredicate,
    JoinProjection,
    JoinSpec,
)

LEFT = Schema.of(customer="long", total="decimal(10,2)", region="string", ts="timestamp", v="long")
RIGHT = Schema.of(id="long", credit="decimal(10,2)", region="string", ts="timestamp", name="string", v="long")


def findings(error: type[WeftError], call: Any) -> list[tuple[str, str]]:
    """Return code and message of each finding of the one error."""
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert all(d.help for d in caught.value.diagnostics)
    return [(d.code, d.message) for d in caught.value.diagnostics]


def bound(*keys: tuple[str, str], predicates: Any = (), **options: Any) -> Any:
    return lambda: resolve_join(JoinSpec(keys, predicates), LEFT, RIGHT, **options)


def test_every_misspelt_alias_is_reported() -> None:
    given = findings(
        UnknownColumnError,
        lambda: infer_natural_keys(
            LEFT, RIGHT, aliases=(("custmer", "id"), ("totl", "credt")), exclude_shared=["regin"]
        ),
    )
    assert [message for _, message in given] == [
        "exclude_shared names 'regin', which is not a shared column",
        "the left relation has no column 'custmer'",
        "the left relation has no column 'totl'",
        "the right relation has no column 'credt'",
    ]


def test_two_bad_keys_and_a_bad_predicate_are_three_findings() -> None:
    given = findings(
        UnknownColumnError,
        bound(("custmer", "id"), ("total", "name"), predicates=[ExpressionPredicate("right.credt > 1")]),
    )
    assert [code for code, _ in given] == ["W0101", "W0105", "W0207"]


def test_the_first_finding_gives_the_class() -> None:
    wrong_type, ambiguous = ("total", "name"), ExpressionPredicate("v > 1")
    assert [c for c, _ in findings(JoinTypeError, bound(wrong_type, ("x", "id")))] == ["W0105", "W0101"]
    assert [
        c for c, _ in findings(AmbiguousColumnError, bound(predicates=[ambiguous, ExpressionPredicate("v + 1")]))
    ] == ["W0216", "W0216"]
    no_condition = ExpressionPredicate("left.v + 1")
    assert [c for c, _ in findings(JoinSpecError, bound(predicates=[no_condition, ambiguous]))] == [
        "W0309",
        "W0216",
    ]


def test_both_columns_of_a_comparison_are_reported() -> None:
    assert len(findings(UnknownColumnError, bound(predicates=[ColumnPredicate("a", "<", "b")]))) == 2


def test_an_as_of_join_tells_keys_predicates_and_order() -> None:
    spec = AsofSpec(
        [("custmer", "id")],
        [ExpressionPredicate("right.credt > 1")],
        order=AsofOrder("tss", "tz"),
        range_predicates=[ColumnPredicate("v", "<", "w")],
    )
    given = findings(UnknownColumnError, lambda: resolve_join(spec, LEFT, RIGHT))
    names = [message.rsplit(" ", 1)[1] for _, message in given]
    assert names == ["'custmer'", "'credt'", "'w'", "'tss'", "'tz'"]


def test_collisions_wait_for_the_keys() -> None:
    assert [c for c, _ in findings(UnknownColumnError, bound(("x", "id")))] == ["W0101"]
    assert [c for c, _ in findings(ColumnCollisionError, bound(("customer", "id")))] == ["W0103"]


def test_a_collision_under_a_projection_says_the_projection() -> None:
    project = JoinProjection(keep=["left.v", "right.v"])
    with refused(ColumnCollisionError, "W0103", "pass project=JoinProjection(..., suffixes=('', '_right'))"):
        bound(("customer", "id"), project=project)()


def test_no_keys_says_what_exclude_shared_removed() -> None:
    shared = ["region", "ts", "v"]
    with refused(NoJoinKeysError, "W0104", "left out by exclude_shared: 'region', 'ts', 'v'", "take a name out"):
        infer_natural_keys(LEFT, RIGHT, exclude_shared=shared)
    with pytest.raises(NoJoinKeysError) as caught:
        infer_natural_keys(Schema.of(a="long"), Schema.of(b="long"))
    assert "exclude_shared" not in str(caught.value)


@pytest.mark.parametrize(
    ("left", "right", "reported"),
    [
        (("id", "long"), ("key", "string"), 'right.with_columns(key="CAST(key AS long)")'),
        (("id", "string"), ("key", "date"), 'left.with_columns(id="CAST(id AS date)")'),
        (
            ("order id", "string"),
            ("k", "long"),
            "left.with_columns(**{'order id': \"CAST(`order id` AS long)\"})",
        ),
        (("class", "string"), ("k", "long"), "left.with_columns(**{'class': \"CAST(class AS long)\"})"),
        (
            ("ok", "boolean"),
            ("k", "long"),
            'left.with_columns(ok="CAST(ok AS string)") and right.with_columns(',
        ),
        (("b", "binary"), ("k", "long"), "there is no cast between binary and long"),
        (("m", "map<string,long>"), ("m", "map<string,long>"), "maps cannot be compared"),
    ],
)
def test_the_cast_in_the_help_is_one_that_the_language_has(
    left: tuple[str, str], right: tuple[str, str], reported: str
) -> None:
    fields = {"left": Field(left[0], parse_type(left[1])), "right": Field(right[0], parse_type(right[1]))}
    help_ = suggest_cast(fields["left"], fields["right"])
    assert reported in help_
    casts = re.findall(r'(left|right)\.with_columns\(.*?"(CAST\(.*?\))"', help_)
    assert len(casts) == help_.count("with_columns")
    for side, text in casts:
        expr.check(expr.parse(text), expr.TableScope({"": Schema((fields[side],))}))


def test_compared_columns_that_do_not_meet_name_a_cast() -> None:
    with refused(JoinTypeError, "W0105", 'right.with_columns(name="CAST(name AS long)")'):
        bound(predicates=[ColumnPredicate("v", "<", "name")])()
