"""Predicates bound to two schemas: sides, offsets, fragments, their order and their errors."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusals import refused
from weft import expr
from weft.core.types import LONG, Field, Schema
from weft.errors import (
    AmbiguousColumnError,
    ExpressionError,
    JoinSpecError,
    JoinTypeError,
    UnknownColumnError,
    WeftError,
)
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.resolved import Slot
from weft.joins.spec import AsofOrder, AsofSpec, ColumnPredicate, ExpressionPredicate, JoinSpec

LEFT = Schema.of(id="long", at="timestamp", day="date", note="string", n="integer", on="boolean", both="long")
RIGHT = Schema.of(
    key="long", ts="timestamp", since="date", tag="string", m="decimal(10,2)", flag="boolean", both="long"
)


def bound(*predicates: Any, spec: type[JoinSpec] = JoinSpec) -> Any:
    return resolve_join(spec([], predicates), LEFT, RIGHT, how="semi")


def test_left_and_right_of_a_column_predicate_are_looked_up_on_their_own_side() -> None:
    (typed,) = bound(ColumnPredicate("both", "<", "both")).predicates
    assert typed.slots == (Slot("left", 6), Slot("right", 6))


@pytest.mark.parametrize(
    ("predicate", "side", "near"),
    [
        (ColumnPredicate("idd", "=", "key"), "left", "'id'"),
        (ColumnPredicate("key", "=", "key"), "left", "it has"),
        (ColumnPredicate("id", "=", "kay"), "right", "'key'"),
        (ColumnPredicate("id", "=", "id"), "right", "it has"),
    ],
)
def test_a_column_that_the_side_does_not_have_is_unknown(predicate: Any, side: str, near: str) -> None:
    with refused(UnknownColumnError, "W0101", f"the {side} relation has no column", near):
        bound(predicate)


@pytest.mark.parametrize(
    ("left", "right", "offset"),
    [
        ("at", "ts", "1 hour"),
        ("at", "ts", dt.timedelta(microseconds=-1)),
        ("day", "since", "2 days"),
        ("at", "since", "1 week"),
        ("day", "ts", "5 s"),
        ("id", "key", 5),
        ("n", "m", 0.5),
        ("id", "m", "15"),
    ],
)
def test_offsets_that_fit_their_columns(left: str, right: str, offset: Any) -> None:
    (typed,) = bound(ColumnPredicate(left, "<=", right, offset)).predicates
    assert str(typed.dtype) == "boolean"
    assert len(typed.slots) == 2


@pytest.mark.parametrize(
    ("left", "right", "offset", "parts"),
    [
        ("at", "ts", 5, ("offset 5", "right.ts is timestamp", "5 seconds")),
        ("id", "key", "5 s", ("offset 5s", "right.key is long", "offset=5")),
        ("day", "since", "90 minutes", ("whole days", "right.since", "left.day")),
        ("at", "since", "1 hour", ("right.since is a date", "whole days")),
        ("note", "tag", 5, ("string",)),
        ("note", "tag", "5 s", ("right.tag is string",)),
        ("on", "flag", 1, ("boolean",)),
    ],
)
def test_offsets_that_do_not_fit_are_a_type_error(left: str, right: str, offset: Any, parts: tuple[str, ...]) -> None:
    with refused(JoinTypeError, "W0105", *parts):
        bound(ColumnPredicate(left, "<", right, offset))


@pytest.mark.parametrize("offset", [10**50, "9" * 300, "1e3"])
def test_an_offset_with_too_many_digits_is_refused(offset: Any) -> None:
    with pytest.raises(WeftError) as caught:
        bound(ColumnPredicate("id", "<", "key", offset))
    assert isinstance(caught.value, JoinTypeError | JoinSpecError)


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("left.id = right.key", [Slot("left", 0), Slot("right", 0)]),
        ("l.id = R.key", [Slot("left", 0), Slot("right", 0)]),
        ("flag", [Slot("right", 5)]),
        (
            "ID = KEY AND left.both < right.both",
            [Slot("left", 0), Slot("right", 0), Slot("left", 6), Slot("right", 6)],
        ),
        ("NULL", []),
        ("TRUE", []),
    ],
)
def test_a_fragment_names_sides_or_columns_of_one_side(text: str, slots: list[Slot]) -> None:
    (typed,) = bound(ExpressionPredicate(text)).predicates
    assert list(typed.slots) == slots


@pytest.mark.parametrize(
    ("text", "kind", "code", "parts"),
    [
        ("both = 1", AmbiguousColumnError, "W0216", ("'both'", "left.both or right.both")),
        ("nope = 1", UnknownColumnError, "W0207", ("neither side", "'nope'")),
        ("left.key = 1", UnknownColumnError, "W0207", ("left side has no column 'key'",)),
        ("right.tagg = 'x'", UnknownColumnError, "W0207", ("did you mean 'tag'?",)),
        ("left.id = right.tag", JoinTypeError, "W0209", ("CAST",)),
        ("left.note > 5", JoinTypeError, "W0209", ("string",)),
        ("left.id + 1", JoinSpecError, "W0309", ("long", "boolean")),
        ("left.note", JoinSpecError, "W0309", ("string", "boolean")),
        ("SUM(left.id) > 1", JoinSpecError, "W0210", ()),
        ("left.day = TODAY()", JoinSpecError, "W0215", ()),
    ],
)
def test_a_fragment_that_does_not_fit_is_refused_by_the_class_of_its_mistake(
    text: str, kind: Any, code: str, parts: tuple[str, ...]
) -> None:
    with refused(kind, code, *parts):
        bound(ExpressionPredicate(text))


def test_every_mistake_of_a_fragment_is_reported_with_its_location() -> None:
    with pytest.raises(UnknownColumnError) as caught:
        bound(ExpressionPredicate("left.aa = 1 AND right.bb = 2"))
    assert len(caught.value.diagnostics) == 2
    assert str(caught.value).count("^") >= 2
    assert isinstance(caught.value.__cause__, ExpressionError)


def test_a_fragment_stays_one_node_so_or_does_not_leak() -> None:
    join = resolve_join(JoinSpec([("id", "key")], [ExpressionPredicate("m = 5 OR m = 6")]), LEFT, RIGHT, how="semi")
    assert len(join.predicates) == 1
    assert join.predicates[0].op == "or"


def test_predicates_keep_their_order_and_range_predicates_follow() -> None:
    spec = AsofSpec(
        [("id", "key")],
        [ExpressionPredicate("flag"), ColumnPredicate("n", "<", "m")],
        order=AsofOrder("at", "ts"),
        range_predicates=[ColumnPredicate("at", "<=", "ts", "1 hour"), ExpressionPredicate("left.id > 1")],
    )
    join = resolve_join(spec, LEFT.__class__(LEFT.fields[:6]), RIGHT)
    assert [c.text for c in join.conditions] == [
        "(flag)",
        "left.n < right.m",
        "left.at <= right.ts + 1 hour",
        "(left.id > 1)",
    ]
    assert [c.origin for c in join.conditions] == ["predicate", "predicate", "range", "range"]


@pytest.mark.parametrize(
    "predicate",
    [
        ColumnPredicate("at", ">=", "ts"),
        ColumnPredicate("id", "<=", "key"),
        ColumnPredicate("at", "<=", "ts", "1 hour"),
        ExpressionPredicate("left.at > right.ts AND right.key > 0"),
        ExpressionPredicate("at > ts"),
        ExpressionPredicate("TRUE"),
    ],
)
def test_range_predicates_over_order_columns_and_keys_are_accepted(predicate: Any) -> None:
    spec = AsofSpec([("id", "key")], order=AsofOrder("at", "ts"), range_predicates=[predicate])
    assert len(resolve_join(spec, Schema(LEFT.fields[:6]), RIGHT).conditions) == 1


@pytest.mark.parametrize(
    ("predicate", "column"),
    [
        (ColumnPredicate("day", ">=", "ts"), "left.day"),
        (ColumnPredicate("at", ">=", "since"), "right.since"),
        (ColumnPredicate("id", "<", "m"), "right.m"),
        (ExpressionPredicate("right.flag"), "right.flag"),
        (ExpressionPredicate("left.at > right.ts AND n = 1"), "left.n"),
    ],
)
def test_a_range_predicate_over_any_other_column_is_refused(predicate: Any, column: str) -> None:
    spec = AsofSpec([("id", "key")], order=AsofOrder("at", "ts"), range_predicates=[predicate])
    with refused(JoinSpecError, "W0308", column, "put it in predicates"):
        resolve_join(spec, Schema(LEFT.fields[:6]), RIGHT)


def test_every_foreign_column_of_a_range_predicate_is_reported() -> None:
    predicate = ExpressionPredicate("flag AND n = 1 AND m = 2")
    spec = AsofSpec([("id", "key")], order=AsofOrder("at", "ts"), range_predicates=[predicate])
    with pytest.raises(JoinSpecError) as caught:
        resolve_join(spec, Schema(LEFT.fields[:6]), RIGHT)
    assert len(caught.value.diagnostics) == 3


NAMES = (
    "a.b",
    "c`d",
    "order id",
    "class",
    "select",
    "and",
    "left",
    "right",
    "l",
    "größe",
    "'",
    '"',
    "x = 1 OR 1",
    "--",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mark", ["`", '"'])
def test_any_name_can_be_quoted_in_a_fragment(name: str, mark: str) -> None:
    schema = Schema((Field(name, LONG), Field("plain", LONG)))
    quoted = mark + name.replace(mark, mark * 2) + mark
    for side in ("left", "right"):
        join = resolve_join(JoinSpec([], [ExpressionPredicate(f"{side}.{quoted} = 1")]), schema, schema, how="semi")
        assert join.predicates[0].slots == (Slot(side, 0),)


@given(st.text(min_size=1, max_size=12).filter(str.strip))
def test_a_quoted_name_prints_quoted_and_reads_back(name: str) -> None:
    quoted = "`" + name.replace("`", "``") + "`"
    try:
        predicate = ExpressionPredicate(f"left.{quoted} = 1")
    except WeftError as error:
        assert error.code
        return
    (ref,) = expr.references(predicate.tree)
    assert ref.name == name
    assert ExpressionPredicate(str(predicate)).tree == predicate.tree
