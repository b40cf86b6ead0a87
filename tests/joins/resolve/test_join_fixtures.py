"""The numbered join fixtures that are decided by schemas alone: N, J, S and X."""

from __future__ import annotations

from typing import Any

import pytest

from refusals import refused
from weft.core.types import LONG, Field, Schema
from weft.errors import (
    AmbiguousColumnError,
    ArgumentError,
    ColumnCollisionError,
    JoinSpecError,
    JoinTypeError,
    NoJoinKeysError,
    UnknownColumnError,
)
from weft.joins.explain import explain_resolved
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.natural import infer_natural_keys
from weft.joins.resolve.resolved import AsOf, ResolvedJoin
from weft.joins.spec import (
    AsofOrder,
    AsofSpec,
    ColumnPredicate,
    ExpressionPredicate,
    JoinProjection,
    JoinSpec,
    from_dict,
)
from weft.joins.spec.join import read_alias_pairs


def natural(
    left: Schema, right: Schema, how: Any = "inner", *, keys: Any = None, project: Any = None, **aliases: str
) -> ResolvedJoin:
    given = read_alias_pairs(aliases, keys)
    found = infer_natural_keys(
        left,
        right,
        aliases=given[: len(aliases)],
        keys=given[len(aliases) :],
        parameters=("strict", "order", "tolerance"),
    )
    return resolve_join(JoinSpec(found.pairs), left, right, how=how, project=project, inference=found)


def names(join: ResolvedJoin) -> list[str]:
    return [c.name for c in join.output]


IDS, IDS_UPPER = Schema.of(id="long", left_val="string"), Schema.of(ID="long", right_val="string")


def test_n1_shared_keys_are_found_across_case_and_keep_the_left_case() -> None:
    join = natural(IDS, IDS_UPPER)
    assert names(join) == ["id", "left_val", "right_val"]
    assert [str(c.dtype) for c in join.output] == ["long", "string", "string"]


def test_n2_a_left_join_has_the_same_columns_and_a_right_side_that_can_be_null() -> None:
    join = natural(IDS, IDS_UPPER, "left")
    assert [(c.name, c.source) for c in join.output][-1] == ("right_val", "right")
    assert join.output[-1].nullable


def test_n3_an_alias_joins_two_names_and_the_right_key_goes() -> None:
    join = natural(
        Schema.of(order_id="long", customer_ref="long"),
        Schema.of(id="long", name="string"),
        customer_ref="id",
    )
    assert names(join) == ["order_id", "customer_ref", "name"]
    assert [k.origin for k in join.keys] == ["alias"]


def test_n4_no_shared_column_is_refused() -> None:
    with refused(NoJoinKeysError, "W0104", "'a'", "'b'"):
        natural(Schema.of(a="long"), Schema.of(b="long"))


VALUES = Schema.of(id="long", value="string")


def test_j1_a_column_that_is_not_a_key_collides() -> None:
    with refused(ColumnCollisionError, "W0103", "value"):
        resolve_join(JoinSpec([("id", "id")]), VALUES, VALUES)


def test_j2_suffixes_rename_both_copies() -> None:
    project = JoinProjection(suffixes=("_left", "_right"))
    assert names(resolve_join(JoinSpec([("id", "id")]), VALUES, VALUES, project=project)) == [
        "id",
        "value_left",
        "value_right",
    ]


def test_j3_equality_and_a_predicate() -> None:
    left, right = (
        Schema.of(order_id="long", order_date="date"),
        Schema.of(customer_id="long", customer_since="date", tier="string"),
    )
    spec = JoinSpec([("order_id", "customer_id")], [ColumnPredicate("order_date", ">=", "customer_since")])
    join = resolve_join(spec, left, right, how="left")
    assert names(join) == ["order_id", "order_date", "customer_since", "tier"]
    assert len(join.predicates) == 1


def test_j4_a_bare_boolean_column_is_a_predicate() -> None:
    left, right = (
        Schema.of(id="long", label="string"),
        Schema.of(id="long", status="string", is_primary="boolean"),
    )
    for text in ("right.is_primary", "is_primary", "r.is_primary = TRUE"):
        join = resolve_join(JoinSpec([("id", "id")], [ExpressionPredicate(text)]), left, right)
        assert names(join) == ["id", "label", "status", "is_primary"]


def test_j5_the_key_of_a_full_join_is_coalesced() -> None:
    left, right = (
        Schema.of(order_ref="long", left_val="string"),
        Schema.of(order_ref="long", right_val="string"),
    )
    join = resolve_join(JoinSpec([("order_ref", "order_ref")]), left, right, how="full")
    assert [(c.name, c.source) for c in join.output] == [
        ("order_ref", "coalesced"),
        ("left_val", "left"),
        ("right_val", "right"),
    ]


def test_j6_the_key_of_a_right_join_survives_beside_allowed_collisions() -> None:
    left = Schema.of(customer_ref="long", status="string")
    right = Schema.of(customer_ref="long", status="string", shipment_code="string")
    project = JoinProjection(allow_collisions=True)
    join = resolve_join(JoinSpec([("customer_ref", "customer_ref")]), left, right, how="right", project=project)
    assert names(join) == ["customer_ref", "status", "status_right", "shipment_code"]
    assert join.output[0].source == "coalesced"


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_s1_a_semi_or_anti_join_keeps_left_columns(how: Any) -> None:
    assert names(natural(VALUES, VALUES, how)) == ["id", "value"]


QUOTES = Schema.of(s="string", ts="timestamp", px="long")


def asof(project: JoinProjection | None = None) -> ResolvedJoin:
    order = AsofOrder("ts", "ts")
    found = infer_natural_keys(Schema.of(s="string", ts="timestamp", n="long"), QUOTES, order=order)
    spec = AsofSpec(found.pairs, order=order)
    return resolve_join(spec, Schema.of(s="string", ts="timestamp", n="long"), QUOTES, project=project)


def test_x1_an_order_column_of_one_name_is_not_a_key_and_takes_a_suffix() -> None:
    for project, expected in (
        (None, ["s", "ts", "n", "ts_right", "px"]),
        (JoinProjection(suffixes=("", "_q")), ["s", "ts", "n", "ts_q", "px"]),
        (JoinProjection(keep_right_order=False), ["s", "ts", "n", "px"]),
    ):
        join = asof(project)
        assert names(join) == expected
        assert [(k.left, k.right) for k in join.keys] == [(0, 0)]
        assert isinstance(join.match, AsOf)


def test_x2_a_fragment_with_or_is_one_condition() -> None:
    spec = JoinSpec([("id", "id")], [ExpressionPredicate("z = 5 OR z = 6")])
    join = resolve_join(spec, Schema.of(id="long"), Schema.of(id="long", z="long"))
    assert (len(join.keys), [p.op for p in join.predicates]) == (1, ["or"])
    assert str(spec) == "left.id = right.id AND (z = 5 OR z = 6)"


def test_x3_both_partners_of_one_column_are_conditions() -> None:
    join = resolve_join(
        JoinSpec([("a", "x"), ("a", "y")]), Schema.of(a="long"), Schema.of(x="long", y="long", z="long")
    )
    assert [(k.left, k.right) for k in join.keys] == [(0, 0), (0, 1)]
    assert names(join) == ["a", "z"]


def test_x4_specs_that_differ_in_order_or_direction_resolve_differently() -> None:
    left, right = Schema.of(t="long", u="long"), Schema.of(q="long", v="long")
    specs = (
        AsofSpec(order=AsofOrder("t", "q")),
        AsofSpec(order=AsofOrder("u", "q")),
        AsofSpec(order=AsofOrder("t", "q"), direction="forward"),
    )
    assert len({resolve_join(s, left, right).fingerprint for s in specs}) == len(set(specs)) == 3


def test_x5_an_invalid_alias_that_is_not_strict_is_reported() -> None:
    found = infer_natural_keys(
        Schema.of(a="long", b="long"), Schema.of(a="long", c="long"), aliases=(("nope", "c"),), strict=False
    )
    assert "nope='c'" in found.notes[0]


@pytest.mark.parametrize("name", ["strict", "order", "tolerance"])
def test_x6_a_column_called_like_a_parameter_works_through_keys(name: str) -> None:
    left, right = Schema.of(id="long", **{name: "long"}), Schema.of(id="long", other="long", v="long")
    join = natural(left, right, keys={name: "other"})
    assert names(join) == ["id", name, "v"]
    assert [k.origin for k in join.keys] == ["shared", "keys"]


def test_x7_a_tolerance_is_not_sql() -> None:
    with refused(JoinSpecError, "W0304", "'1 OR TRUE'"):
        AsofSpec(order=AsofOrder("n", "n"), tolerance="1 OR TRUE")


def test_x8_suffixes_are_a_pair_that_settles_the_collision() -> None:
    with refused(ArgumentError, "W0301", "'ab'"):
        JoinProjection(suffixes="ab")  # type: ignore[arg-type]
    with refused(JoinSpecError, "W0307", "1 strings"):
        JoinProjection(suffixes=("_x",))  # type: ignore[arg-type]
    with refused(ColumnCollisionError, "W0103", "'value'"):
        resolve_join(JoinSpec([("id", "id")]), VALUES, VALUES, project=JoinProjection(suffixes=("", "")))


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_x10_a_relation_can_be_joined_with_itself(how: Any) -> None:
    join = resolve_join(JoinSpec([("id", "id")]), VALUES, VALUES, how=how, project=JoinProjection(suffixes=("", "_2")))
    assert names(join)[:2] == ["id", "value"]


@pytest.mark.parametrize("name", ["a.b", "c`d", "order id", "class"])
def test_x13_names_that_are_not_words_work_as_shared_columns_and_as_aliases(name: str) -> None:
    left, right = Schema((Field(name, LONG), Field("v", LONG))), Schema((Field(name, LONG), Field("w", LONG)))
    assert names(natural(left, right)) == [name, "v", "w"]
    other = Schema((Field("x", LONG), Field("w", LONG)))
    assert names(natural(left, other, **{name: "x"})) == [name, "v", "w"]
    assert names(natural(other, right, "full", x=name, project=JoinProjection(suffixes=("", "_r")))) == [
        "x",
        "w",
    ]


def test_x14_two_columns_equal_but_for_case_are_named() -> None:
    with refused(AmbiguousColumnError, "W0106", "'Id'", "'ID'"):
        Schema.of(Id="long", ID="long")


def test_x15_a_number_does_not_meet_a_text() -> None:
    with refused(JoinTypeError, "W0105", "left.id is integer", "right.id is string", "CAST"):
        natural(Schema.of(id="integer"), Schema.of(id="string"))


def test_x16_a_suffix_that_makes_an_existing_name_is_refused() -> None:
    left, right = Schema.of(id="long", v="long", v_x="long"), Schema.of(id="long", v="long")
    with refused(ColumnCollisionError, "W0103", "'v_x'"):
        resolve_join(JoinSpec([("id", "id")]), left, right, project=JoinProjection(suffixes=("", "_x")))


def test_x17_a_spec_that_was_stored_resolves_and_explains_the_same() -> None:
    spec = AsofSpec(
        [("s", "s")],
        [ExpressionPredicate("right.px > ?", [3])],
        order=AsofOrder("ts", "ts"),
        direction="nearest",
        tolerance="5 s",
        range_predicates=[ColumnPredicate("ts", "<=", "ts", "1 hour")],
    )
    again = from_dict(spec.to_dict())
    left, project = Schema.of(s="string", ts="timestamp"), JoinProjection(suffixes=("", "_q"))
    one, other = (resolve_join(s, left, QUOTES, project=project) for s in (spec, again))
    assert one == other
    assert one.fingerprint == other.fingerprint
    assert str(explain_resolved(one, spec)) == str(explain_resolved(other, again))


def test_x18_nearest_needs_a_tolerance() -> None:
    with refused(JoinSpecError, "W0304", "unbounded"):
        AsofSpec(order=AsofOrder("ts", "ts"), direction="nearest")
    assert AsofSpec(order=AsofOrder("ts", "ts"), direction="nearest", tolerance="unbounded").tolerance == "unbounded"


def test_x19_a_range_predicate_names_order_columns_and_keys() -> None:
    spec = AsofSpec([("s", "s")], order=AsofOrder("ts", "ts"), range_predicates=[ExpressionPredicate("right.px > 1")])
    with refused(JoinSpecError, "W0308", "right.px", "put it in predicates"):
        resolve_join(spec, Schema.of(s="string", ts="timestamp"), QUOTES)


def test_x20_an_as_of_join_to_which_the_right_side_adds_nothing_is_refused() -> None:
    schema = Schema.of(s="string", ts="timestamp")
    spec = AsofSpec([("s", "s")], order=AsofOrder("ts", "ts"))
    with refused(JoinSpecError, "W0108"):
        resolve_join(spec, schema, schema, project=JoinProjection(keep_right_order=False))


@pytest.mark.parametrize("tolerance", [-1, "-1 s", float("nan")])
def test_x21_negative_and_nan_tolerances_are_refused_and_zero_is_not(tolerance: Any) -> None:
    with refused(JoinSpecError, "W0304"):
        AsofSpec(order=AsofOrder("n", "n"), tolerance=tolerance)
    assert AsofSpec(order=AsofOrder("n", "n"), tolerance=0).tolerance == 0


def test_x22_an_order_column_may_be_a_double() -> None:
    schema = Schema.of(t="double", v="long")
    join = resolve_join(
        AsofSpec(order=AsofOrder("t", "t")), schema, schema, project=JoinProjection(suffixes=("", "_r"))
    )
    assert isinstance(join.match, AsOf)


def test_unknown_columns_of_a_spec_are_reported_at_bind() -> None:
    with refused(UnknownColumnError, "W0101", "right relation", "'nope'"):
        resolve_join(JoinSpec([("id", "nope")]), VALUES, VALUES)


def test_bookings_and_fulfillments_collide_on_every_payload_column() -> None:
    bookings = Schema.of(booking="string", sku="string", quantity="long", unit_price="decimal(10,2)")
    with refused(ColumnCollisionError, "W0103", "duplicate columns: quantity, sku, unit_price"):
        resolve_join(JoinSpec([("booking", "booking")]), bookings, bookings)
    assert len(natural(bookings, bookings, "full").keys) == 4
