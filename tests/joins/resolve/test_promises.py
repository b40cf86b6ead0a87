"""What a resolved join carries besides rows: promises by kind of join, arguments checked, fingerprints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from refusals import refused
from weft.core.types import Schema
from weft.errors import ArgumentError, JoinSpecError
from weft.joins.resolve.join import resolve_join
from weft.joins.spec import AsofOrder, AsofSpec, ColumnPredicate, JoinProjection, JoinSpec

A, B = Schema.of(id="long", a="long"), Schema.of(id="long", b="long")
ID = JoinSpec([("id", "id")])
PAIRED = ("inner", "left", "right", "full")


@pytest.mark.parametrize("how", PAIRED)
@pytest.mark.parametrize("relationship", ["1:1", "1:m", "m:1", "m:m"])
def test_a_relationship_is_carried_along(how: Any, relationship: Any) -> None:
    assert resolve_join(replace(ID, relationship=relationship), A, B, how=how).relationship == relationship
    assert resolve_join(ID, A, B, how=how).relationship is None


@pytest.mark.parametrize("how", ["semi", "anti"])
@pytest.mark.parametrize("option", [{"relationship": "m:1"}, {"unmatched": "error"}, {"unmatched": "left"}])
def test_a_join_of_one_side_takes_no_promise(how: Any, option: dict[str, Any]) -> None:
    with refused(JoinSpecError, "W0305", how, *option):
        resolve_join(replace(ID, **option), A, B, how=how)


@pytest.mark.parametrize(
    ("how", "unmatched", "sides"),
    [
        ("inner", "error", ("left",)),
        ("left", "error", ("left",)),
        ("right", "error", ("right",)),
        ("full", "error", ("left", "right")),
        *((how, "left", ("left",)) for how in PAIRED),
        *((how, "right", ("right",)) for how in PAIRED),
        *((how, "both", ("left", "right")) for how in PAIRED),
    ],
)
def test_unmatched_names_the_sides_that_must_match(how: Any, unmatched: Any, sides: tuple[str, ...]) -> None:
    assert resolve_join(replace(ID, unmatched=unmatched), A, B, how=how).unmatched == sides
    assert resolve_join(ID, A, B, how=how).unmatched == ()


def test_an_as_of_join_takes_promises_too() -> None:
    spec = AsofSpec(order=AsofOrder("a", "b"), unmatched="error", relationship="1:1")
    join = resolve_join(spec, A, B, project=JoinProjection(suffixes=("", "_r")))
    assert (join.unmatched, join.relationship) == (("left",), "1:1")


@pytest.mark.parametrize("how", ["outer", "LEFT", "", "left_outer"])
def test_how_takes_its_own_words_only(how: Any) -> None:
    with refused(JoinSpecError, "W0302", "how", repr(how), "'full'"):
        resolve_join(ID, A, B, how=how)
    with refused(ArgumentError, "W0301", "how"):
        resolve_join(ID, A, B, how=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", ["id", 5, [("id", "id")], {"type": "join"}, ColumnPredicate("a", "<", "b")])
def test_what_is_not_a_spec_is_a_type_error(spec: Any) -> None:
    with refused(ArgumentError, "W0301", "JoinSpec", type(spec).__name__):
        resolve_join(spec, A, B, how="inner")


@pytest.mark.parametrize("side", [None, "orders", ["id"], {"id": "long"}])
def test_a_side_that_is_not_a_relation_or_schema_is_a_type_error(side: Any) -> None:
    with refused(ArgumentError, "W0301", "left side", type(side).__name__):
        ID.bind(side, B)
    with refused(ArgumentError, "W0301", "right side", type(side).__name__):
        ID.bind(A, side)


@pytest.mark.parametrize("project", [("", "_r"), {"suffixes": ("", "_r")}, "drop", 5])
def test_a_projection_of_another_kind_is_a_type_error(project: Any) -> None:
    with refused(ArgumentError, "W0301", "project", "JoinProjection", type(project).__name__):
        ID.bind(A, B, project=project)


def test_the_fingerprint_of_a_join_tells_all_that_decides_it() -> None:
    base: dict[str, Any] = {"spec": ID, "left": A, "right": B, "how": "inner", "project": None}
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"spec": replace(ID, nulls_equal=True)},
        {"how": "left"},
        {"project": JoinProjection(drop=("a",))},
        {"left": Schema.of(id="long", aa="long")},
        {"left": Schema.of(id="long", a="integer")},
        {"right": Schema.of(b="long", id="long")},
    )
    prints = [resolve_join(**(base | change)).fingerprint for change in changes]
    assert len(set(prints)) == len(changes)
    assert prints == [resolve_join(**(base | change)).fingerprint for change in changes]
    assert resolve_join(**(base | {"project": JoinProjection()})).fingerprint == prints[0]


def test_the_schema_of_a_join_is_the_schema_of_its_output() -> None:
    join = resolve_join(ID, A, B, how="left")
    assert join.schema.names == ("id", "a", "b")
    assert join.schema.case_sensitive is False
