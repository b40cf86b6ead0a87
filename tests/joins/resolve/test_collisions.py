"""Collisions: refused by default, with a `suffixes=` in the text that really passes."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusals import refused
from weft.core.types import LONG, Field, Schema
from weft.errors import ColumnCollisionError, WeftError
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.natural import NaturalKeys
from weft.joins.spec import AsofOrder, AsofSpec, JoinProjection, JoinSpec

ID = JoinSpec([("id", "id")])
LEFT = Schema.of(id="long", v="string", w="string", x="string")
RIGHT = Schema.of(id="long", w="string", V="string", y="string")


def suggested(error: WeftError) -> tuple[str, str] | None:
    """Return the suffixes that the help of an error says to pass."""
    found = re.search(r"^pass (?:project=JoinProjection\(\.\.\., )?suffixes=(\('.*'\))\)?$", error.help, re.MULTILINE)
    return None if found is None else ast.literal_eval(found[1])


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_a_collision_is_refused_with_sorted_names_and_suffixes_that_pass(how: Any) -> None:
    with refused(ColumnCollisionError, "W0103", "duplicate columns: V, w", "pass suffixes=('', '_right')"):
        resolve_join(ID, LEFT, RIGHT, how=how)
    project = JoinProjection(suffixes=("", "_right"))
    names = [c.name for c in resolve_join(ID, LEFT, RIGHT, how=how, project=project).output]
    assert names == ["id", "v", "w", "x", "w_right", "V_right", "y"]


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_a_join_of_one_side_has_no_collisions(how: Any) -> None:
    assert len(resolve_join(ID, LEFT, RIGHT, how=how).output) == len(LEFT)


def test_a_cross_join_collides_on_every_shared_name() -> None:
    with refused(ColumnCollisionError, "W0103", "V, id, w"):
        resolve_join(None, LEFT, RIGHT)


def test_empty_suffixes_do_not_settle_a_collision() -> None:
    with refused(ColumnCollisionError, "W0103", "'V', 'w'", "suffixes=('', '_right')"):
        resolve_join(ID, LEFT, RIGHT, project=JoinProjection(suffixes=("", "")))


def test_equal_suffixes_do_not_settle_a_collision() -> None:
    with refused(ColumnCollisionError, "W0103", "'V_x', 'w_x'", "suffixes=('', '_right')"):
        resolve_join(ID, LEFT, RIGHT, project=JoinProjection(suffixes=("_x", "_x")))


def test_a_suffix_that_makes_an_existing_name_is_refused_with_that_name() -> None:
    left, right = Schema.of(id="long", v="string", v_x="string"), Schema.of(id="long", v="string")
    with refused(ColumnCollisionError, "W0103", "'v_x'", "suffixes=('', '_right')"):
        resolve_join(ID, left, right, project=JoinProjection(suffixes=("", "_x")))


def test_the_suggestion_goes_round_names_that_are_taken() -> None:
    left = Schema.of(id="long", v="string", v_right="string")
    right = Schema.of(id="long", v="string", V_RIGHT_RIGHT="string")
    with refused(ColumnCollisionError, "W0103", "suffixes=('', '_right_right_right')"):
        resolve_join(ID, left, right)


def test_the_suggestion_goes_round_the_indicator() -> None:
    project = JoinProjection(indicator="w_right")
    with refused(ColumnCollisionError, "W0103", "suffixes=('', '_right_right')"):
        resolve_join(ID, LEFT, RIGHT, project=project)


def test_a_renamed_column_keeps_its_new_name_so_the_other_one_takes_the_suffix() -> None:
    left, right = Schema.of(id="long", v="string"), Schema.of(id="long", w="string")
    project = JoinProjection(rename={"right.w": "v"})
    with refused(ColumnCollisionError, "W0103", "suffixes=('_left', '_right')"):
        resolve_join(ID, left, right, project=project)
    settled = resolve_join(ID, left, right, project=replace(project, suffixes=("_left", "_right")))
    assert [c.name for c in settled.output] == ["id", "v_left", "v"]


def test_two_columns_renamed_alike_are_reported_with_how_to_rename_them() -> None:
    project = JoinProjection(rename={"left.x": "z", "right.y": "Z"}, suffixes=("", "_r"))
    with refused(ColumnCollisionError, "W0103", "'Z'", "rename={...}"):
        resolve_join(ID, LEFT, RIGHT, project=project)


def test_an_indicator_called_like_a_column_is_refused() -> None:
    project = JoinProjection(suffixes=("", "_r"), indicator="X")
    with refused(ColumnCollisionError, "W0103", "'X'", "rename={...}"):
        resolve_join(ID, LEFT, RIGHT, project=project)


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_a_rename_in_a_join_of_one_side_cannot_make_a_duplicate(how: Any) -> None:
    with refused(ColumnCollisionError, "W0103", "'W'"):
        resolve_join(ID, LEFT, RIGHT, how=how, project=JoinProjection(rename={"x": "W"}))


def test_a_displaced_key_is_named_as_the_cause() -> None:
    left, right = Schema.of(status="string"), Schema.of(status="string", status_code="string")
    why = "right column 'status' is no longer a key because of status='status_code'"
    inference = NaturalKeys(origins=("alias",), displaced={0: why})
    with refused(ColumnCollisionError, "W0103", "status", why, "suffixes=('', '_right')"):
        resolve_join(JoinSpec([("status", "status_code")]), left, right, inference=inference)


def test_an_order_pair_of_one_name_takes_a_suffix_unasked() -> None:
    left, right = Schema.of(s="string", ts="timestamp"), Schema.of(s="string", ts="timestamp", px="long")
    spec = AsofSpec([("s", "s")], order=AsofOrder("ts", "ts"))
    assert [c.name for c in resolve_join(spec, left, right).output] == ["s", "ts", "ts_right", "px"]
    for project in (JoinProjection(suffixes=("", "_q")), JoinProjection(keep_right_order=False)):
        assert [c.name for c in resolve_join(spec, left, right, project=project).output][:2] == ["s", "ts"]


def test_under_a_case_sensitive_policy_only_the_same_case_collides() -> None:
    left, right = Schema(LEFT.fields, case_sensitive=True), Schema(RIGHT.fields, case_sensitive=True)
    with refused(ColumnCollisionError, "W0103", "duplicate columns: w\n"):
        resolve_join(ID, left, right)


names = st.sampled_from(["v", "V", "w", "v_right", "w_right", "v_right_right", "v_left", "w_left", "a.b", "ß", "SS"])


@st.composite
def collisions(draw: st.DrawFn) -> dict[str, Any]:
    sensitive = draw(st.booleans())

    def schema() -> Schema:
        fold = (lambda n: n) if sensitive else str.casefold
        chosen = draw(st.lists(names, max_size=7, unique_by=fold))
        return Schema(tuple(Field(n, LONG) for n in ("id", *chosen)), sensitive)

    left, right = schema(), schema()
    rename = {}
    for side, columns in (("left", left), ("right", right)):
        for name in columns.names[1:]:
            if draw(st.integers(0, 5)) == 0:
                quoted = "`" + name + "`"
                rename[f"{side}.{quoted}"] = draw(names)
    project = JoinProjection(
        suffixes=draw(st.none() | st.tuples(*[st.sampled_from(["", "_right", "_left"])] * 2)),
        right_keys=draw(st.sampled_from(["auto", "keep", "drop"])),
        rename=rename,
        indicator=draw(st.none() | names.map(lambda n: f"`{n}`")),
    )
    how = draw(st.sampled_from(["inner", "left", "right", "full"]))
    return {"left": left, "right": right, "project": project, "how": how}


@given(collisions())
def test_the_suffixes_in_the_text_really_pass(written: dict[str, Any]) -> None:
    try:
        join = resolve_join(ID, **written)
    except ColumnCollisionError as error:
        pair = suggested(error)
        if pair is None:
            assert "rename={...}" in error.help
            return
        join = resolve_join(ID, **(written | {"project": replace(written["project"], suffixes=pair)}))
    fold = (lambda n: n) if written["left"].case_sensitive else str.casefold
    result = [fold(c.name) for c in join.output]
    assert len(set(result)) == len(result)
    assert len(join.schema) == len(result)
