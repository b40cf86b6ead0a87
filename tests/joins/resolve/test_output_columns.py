"""Output columns: which there are, where they come from, what they are called, whether they can be NULL."""

from __future__ import annotations

from typing import Any

import pytest

from refusals import refused
from weft.core.types import LONG, STRING, Field, Schema
from weft.errors import AmbiguousColumnError, JoinSpecError, UnknownColumnError
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spec import AsofOrder, AsofSpec, JoinProjection, JoinSpec

ORDERS = Schema.of(order_id="long", customer_ref="integer", status="string", total="decimal(10,2)")
CUSTOMERS = Schema.of(id="long", name="string", status="string")
SPEC = JoinSpec([("customer_ref", "id")])
PAIRED = ("inner", "left", "right", "full")


def joined(how: Any = "inner", spec: JoinSpec = SPEC, **project: Any) -> ResolvedJoin:
    projection = JoinProjection(**({"suffixes": ("", "_c")} | project))
    return resolve_join(spec, ORDERS, CUSTOMERS, how=how, project=projection)


def shown(join: ResolvedJoin) -> list[str]:
    """Return ``name < source`` for each output column."""

    def source(column: Any) -> str:
        left = "" if column.left is None else join.left.fields[column.left].name
        right = "" if column.right is None else join.right.fields[column.right].name
        sources = {"left": f"l.{left}", "right": f"r.{right}", "coalesced": f"l.{left}|r.{right}"}
        return sources.get(column.source, "indicator")

    return [f"{c.name} < {source(c)}" for c in join.output]


LEFT = ["order_id < l.order_id", "customer_ref < l.customer_ref", "status < l.status", "total < l.total"]
MET = [LEFT[0], "customer_ref < l.customer_ref|r.id", *LEFT[2:]]
RIGHT = ["name < r.name", "status_c < r.status"]


@pytest.mark.parametrize(
    ("how", "right_keys", "expected"),
    [
        ("inner", "auto", LEFT + RIGHT),
        ("inner", "drop", LEFT + RIGHT),
        ("inner", "keep", [*LEFT, "id < r.id", *RIGHT]),
        ("left", "auto", LEFT + RIGHT),
        ("left", "drop", LEFT + RIGHT),
        ("left", "keep", [*LEFT, "id < r.id", *RIGHT]),
        ("right", "auto", MET + RIGHT),
        ("right", "drop", LEFT + RIGHT),
        ("right", "keep", [*LEFT, "id < r.id", *RIGHT]),
        ("full", "auto", MET + RIGHT),
        ("full", "drop", LEFT + RIGHT),
        ("full", "keep", [*LEFT, "id < r.id", *RIGHT]),
        ("semi", "auto", LEFT),
        ("semi", "keep", LEFT),
        ("anti", "auto", LEFT),
        ("anti", "drop", LEFT),
    ],
)
def test_right_keys_by_kind_of_join(how: str, right_keys: str, expected: list[str]) -> None:
    assert shown(joined(how, right_keys=right_keys)) == expected


def test_a_cross_join_gives_every_column_of_both_sides() -> None:
    join = resolve_join(None, ORDERS, Schema.of(x="long", y="long"))
    assert join.how == "cross"
    assert shown(join) == [*LEFT, "x < r.x", "y < r.y"]


def test_a_right_key_of_the_same_name_takes_a_suffix_when_it_is_kept() -> None:
    left, right = Schema.of(id="long", a="long"), Schema.of(ID="long", b="long")
    join = resolve_join(JoinSpec([("id", "id")]), left, right, project=JoinProjection(right_keys="keep"))
    assert shown(join) == ["id < l.id", "a < l.a", "ID_right < r.ID", "b < r.b"]
    named = JoinProjection(right_keys="keep", suffixes=("_l", "_r"))
    join = resolve_join(JoinSpec([("id", "id")]), left, right, project=named)
    assert [c.name for c in join.output] == ["id_l", "a", "ID_r", "b"]


def test_the_second_partner_of_a_coalesced_key_stays() -> None:
    left, right = Schema.of(a="long"), Schema.of(x="long", y="long")
    spec = JoinSpec([("a", "x"), ("a", "y")])
    assert shown(resolve_join(spec, left, right, how="full")) == ["a < l.a|r.x", "y < r.y"]
    assert shown(resolve_join(spec, left, right, how="left")) == ["a < l.a"]


def test_one_right_column_may_be_the_partner_of_two_left_ones() -> None:
    left, right = Schema.of(a="long", b="long"), Schema.of(x="long", y="long")
    spec = JoinSpec([("a", "x"), ("b", "x")])
    assert shown(resolve_join(spec, left, right, how="full")) == ["a < l.a|r.x", "b < l.b|r.x", "y < r.y"]


def test_a_coalesced_key_has_the_type_in_which_both_sides_meet() -> None:
    join = joined("full")
    assert [str(c.dtype) for c in join.output if c.source == "coalesced"] == ["long"]
    assert str(joined("left").output[1].dtype) == "integer"


NOT_NULL = Schema((Field("k", LONG, nullable=False), Field("a", STRING, nullable=False), Field("b", STRING)))
ALSO_NOT_NULL = Schema((Field("k", LONG, nullable=False), Field("c", STRING, nullable=False), Field("d", STRING)))


@pytest.mark.parametrize(
    ("how", "nullable"),
    [
        ("inner", {"k": False, "a": False, "b": True, "c": False, "d": True}),
        ("left", {"k": False, "a": False, "b": True, "c": True, "d": True}),
        ("right", {"k": False, "a": True, "b": True, "c": False, "d": True}),
        ("full", {"k": False, "a": True, "b": True, "c": True, "d": True}),
        ("semi", {"k": False, "a": False, "b": True}),
        ("anti", {"k": False, "a": False, "b": True}),
    ],
)
def test_a_column_can_be_null_where_its_side_can_be_missing(how: Any, nullable: dict[str, bool]) -> None:
    join = resolve_join(JoinSpec([("k", "k")]), NOT_NULL, ALSO_NOT_NULL, how=how)
    assert {c.name: c.nullable for c in join.output} == nullable
    assert {f.name: f.nullable for f in join.schema} == nullable


@pytest.mark.parametrize(("left", "right"), [(True, False), (False, True)])
@pytest.mark.parametrize("how", ["right", "full"])
def test_a_coalesced_key_can_be_null_when_it_can_be_on_either_side(how: Any, left: bool, right: bool) -> None:  # noqa: FBT001
    ours = Schema((Field("k", LONG, nullable=left),))
    theirs = Schema((Field("k", LONG, nullable=right),))
    join = resolve_join(JoinSpec([("k", "k")]), ours, theirs, how=how)
    assert [(c.source, c.nullable) for c in join.output] == [("coalesced", True)]


def test_dropping_right_keys_leaves_the_left_one_nullable_on_a_right_join() -> None:
    project = JoinProjection(right_keys="drop")
    join = resolve_join(JoinSpec([("k", "k")]), NOT_NULL, ALSO_NOT_NULL, how="right", project=project)
    assert join.output[0].nullable is True


def test_a_cross_join_leaves_nullability_alone() -> None:
    join = resolve_join(None, NOT_NULL, Schema((Field("z", LONG, nullable=False),)))
    assert [c.nullable for c in join.output] == [False, False, True, False]


def test_the_right_side_of_an_as_of_join_can_be_null_unless_it_is_inner() -> None:
    left = Schema((Field("t", LONG, nullable=False),))
    right = Schema((Field("q", LONG, nullable=False), Field("v", LONG, nullable=False)))
    for how, nullable in (("left", [False, True, True]), ("inner", [False, False, False])):
        spec = AsofSpec(order=AsofOrder("t", "q"), how=how)  # type: ignore[arg-type]
        assert [c.nullable for c in resolve_join(spec, left, right).output] == nullable


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        (["total", "name"], ["total < l.total", "name < r.name"]),
        (["name", "total"], ["total < l.total", "name < r.name"]),
        (["left.status"], ["status < l.status"]),
        (["right.status"], ["status < r.status"]),
        (["left.status", "right.status"], ["status < l.status", "status_c < r.status"]),
        (["ORDER_ID"], ["order_id < l.order_id"]),
        (["total", "total"], ["total < l.total"]),
    ],
)
def test_keep_names_the_columns_that_stay(keep: list[str], expected: list[str]) -> None:
    assert shown(joined(keep=keep)) == expected


@pytest.mark.parametrize(
    ("drop", "gone"),
    [
        (["total"], "total < l.total"),
        (["right.status"], "status_c < r.status"),
        (["left.STATUS"], "status < l.status"),
        (["customer_ref"], "customer_ref < l.customer_ref"),
    ],
)
def test_drop_names_the_columns_that_go(drop: list[str], gone: str) -> None:
    kept = shown(joined(drop=drop))
    assert gone not in kept
    assert len(kept) == len(LEFT + RIGHT) - 1


def test_dropping_one_side_of_a_collision_settles_it() -> None:
    assert "status < r.status" in shown(joined(suffixes=None, drop=["left.status"]))
    assert "status < l.status" in shown(joined(suffixes=None, drop=["right.status"]))


def test_dropping_what_is_not_repeated_is_valid() -> None:
    assert shown(joined(drop=["right.id", "id"])) == LEFT + RIGHT
    assert shown(joined(keep=["total"], drop=["name"])) == ["total < l.total"]


def test_keeping_what_is_not_repeated_is_a_mistake() -> None:
    with refused(JoinSpecError, "W0307", "'right.id'", "right_keys='keep'"):
        joined(keep=["right.id"])
    assert shown(joined(keep=["right.id"], right_keys="keep")) == ["id < r.id"]
    assert shown(joined("full", keep=["right.id"])) == ["customer_ref < l.customer_ref|r.id"]


@pytest.mark.parametrize("option", ["keep", "drop", "rename"])
def test_a_name_that_both_sides_have_must_say_its_side(option: str) -> None:
    value: Any = {"status": "x"} if option == "rename" else ["status"]
    with refused(AmbiguousColumnError, "W0102", option, "'status'", "'left.status'", "'right.status'"):
        joined(**{option: value})


@pytest.mark.parametrize("option", ["keep", "drop", "rename"])
@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("totl", "total"),
        ("right.nam", "right.name"),
        ("left.name", "'right.name'"),
        ("nothing_like_it", "columns are"),
    ],
)
def test_a_name_that_neither_side_has_is_reported_with_the_nearest(option: str, name: str, near: str) -> None:
    value: Any = {name: "x"} if option == "rename" else [name]
    with refused(UnknownColumnError, "W0101", option, repr(name), near):
        joined(**{option: value})


def test_a_right_column_is_not_a_column_of_a_semi_join() -> None:
    for how in ("semi", "anti"):
        with refused(UnknownColumnError, "W0101", "drop", "'right.name'"):
            joined(how, drop=["right.name"])
    assert shown(joined("semi", drop=["total"], rename={"status": "s"})) == [*LEFT[:2], "s < l.status"]


def test_keep_and_drop_cannot_leave_nothing() -> None:
    with refused(JoinSpecError, "W0307", "no column"):
        joined(keep=["total"], drop=["total"])
    with refused(JoinSpecError, "W0307", "no column"):
        joined(keep=[])


def test_rename_comes_before_suffixes_and_settles_a_collision() -> None:
    join = joined(suffixes=None, rename={"right.status": "customer_status", "name": "customer"})
    assert shown(join) == [*LEFT, "customer < r.name", "customer_status < r.status"]
    assert [c.reason for c in join.output[-2:]] == ["renamed from 'name'", "renamed from 'status'"]


def test_two_columns_can_exchange_their_names() -> None:
    join = joined(suffixes=None, rename={"left.status": "name", "right.name": "status", "right.status": "s"})
    assert "name < l.status" in shown(join)
    assert "status < r.name" in shown(join)


def test_a_coalesced_key_is_renamed_by_either_name() -> None:
    for old in ("customer_ref", "left.customer_ref", "right.id", "id"):
        assert "customer < l.customer_ref|r.id" in shown(joined("full", rename={old: "customer"}))


def test_a_column_is_renamed_once() -> None:
    with refused(JoinSpecError, "W0307", "'left.total'", "twice"):
        joined(rename=[("total", "a"), ("left.total", "b")])


def test_what_is_not_in_the_result_cannot_be_renamed() -> None:
    with refused(JoinSpecError, "W0307", "'id'"):
        joined(rename={"id": "x"})
    with refused(JoinSpecError, "W0307", "'total'"):
        joined(drop=["total"], rename={"total": "x"})


def test_suffixes_touch_colliding_columns_only() -> None:
    assert [c.name for c in joined(suffixes=("_o", "_c")).output] == [
        "order_id", "customer_ref", "status_o", "total", "name", "status_c",
    ]  # fmt: skip
    assert [c.name for c in joined(suffixes=None, allow_collisions=True).output][-1] == "status_right"


def test_a_suffix_tells_its_reason() -> None:
    assert joined().output[-1].reason == "suffix '_c': both sides have 'status'"


@pytest.mark.parametrize("how", PAIRED)
def test_an_indicator_is_the_last_column_and_never_null(how: str) -> None:
    last = joined(how, indicator="_merge").output[-1]
    assert (last.name, last.source, str(last.dtype), last.nullable) == (
        "_merge",
        "indicator",
        "string",
        False,
    )


def test_an_indicator_may_have_any_name_in_backticks() -> None:
    assert joined(indicator="`a.b`").output[-1].name == "a.b"


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_a_join_of_one_side_has_no_indicator(how: str) -> None:
    with refused(JoinSpecError, "W0307", how, "indicator"):
        joined(how, indicator="_merge")


def test_columns_of_predicates_are_ordinary_columns() -> None:
    spec = JoinSpec.from_tuples(("customer_ref", "id")).with_predicates()
    assert shown(joined(spec=spec)) == LEFT + RIGHT


def test_the_right_order_column_stays_unless_it_is_dropped() -> None:
    left, right = Schema.of(s="string", ts="timestamp"), Schema.of(s="string", qts="timestamp", px="long")
    spec = AsofSpec([("s", "s")], order=AsofOrder("ts", "qts"))
    assert [c.name for c in resolve_join(spec, left, right).output] == ["s", "ts", "qts", "px"]
    without = JoinProjection(keep_right_order=False)
    assert [c.name for c in resolve_join(spec, left, right, project=without).output] == ["s", "ts", "px"]


def test_wide_schemas_resolve_in_order() -> None:
    left = Schema.of(**{f"c{i}": "long" for i in range(200)})
    right = Schema.of(**{f"C{i}": "long" for i in range(100, 300)})
    keys = JoinSpec([(f"c{i}", f"c{i}") for i in range(100, 150)])
    join = resolve_join(keys, left, right, how="full", project=JoinProjection(suffixes=("", "_r")))
    names = [c.name for c in join.output]
    assert names[:200] == [f"c{i}" for i in range(200)]
    assert names[200:] == [f"C{i}_r" for i in range(150, 200)] + [f"C{i}" for i in range(200, 300)]
    assert [c.source for c in join.output[100:150]] == ["coalesced"] * 50


ODD_NAMES = (
    "a.b",
    "c`d",
    "order id",
    "class",
    "select",
    "größe",
    "1",
    "'",
    '"',
    "left.x",
    "`q`",
    "x;y",
    "--",
    "{{n}}",
)


def test_names_of_any_kind_go_through_a_join_unchanged() -> None:
    left = Schema(tuple(Field(n, LONG) for n in ODD_NAMES))
    right = Schema(tuple(Field(n, LONG) for n in ODD_NAMES))
    quoted = ["`" + n.replace("`", "``") + "`" for n in ODD_NAMES]
    join = resolve_join(JoinSpec([(q, q) for q in quoted]), left, right)
    assert tuple(c.name for c in join.output) == ODD_NAMES
    assert [(k.left, k.right) for k in join.keys] == [(i, i) for i in range(len(ODD_NAMES))]
    renamed = JoinProjection(rename={f"left.{q}": f"n{i}" for i, q in enumerate(quoted)})
    join = resolve_join(JoinSpec([(quoted[0], quoted[0])]), left, right, project=renamed)
    assert [c.name for c in join.output] == [f"n{i}" for i in range(len(ODD_NAMES))] + list(ODD_NAMES[1:])
