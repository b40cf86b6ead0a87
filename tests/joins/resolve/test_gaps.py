"""The 28 points where the interface was silent or contradicted itself, one test for each.

``GAPS`` at the end is the table: number of the point to its test.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from refusals import refused
from unplugged import SUFFIXES, natural, unplugged
from weft.core.types import Schema
from weft.errors import (
    AmbiguousColumnError,
    ArgumentError,
    ColumnCollisionError,
    JoinSpecError,
    NoJoinKeysError,
    SessionMismatchError,
    UnknownColumnError,
)
from weft.joins.choose import choose
from weft.joins.explain import explain_resolved, explain_spec
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.natural import infer_natural_keys
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spec import (
    AsofOrder,
    AsofSpec,
    ColumnPredicate,
    ExpressionPredicate,
    JoinProjection,
    JoinSpec,
    from_dict,
)
from weft.testing import T, reference_join

ORDER = AsofOrder("ts", "qts")
A, B = Schema.of(id="long", a="long"), Schema.of(id="long", b="long")


def test_an_as_of_spec_takes_its_order_by_name_after_positional_keys() -> None:
    spec = AsofSpec([("s", "s")], [ColumnPredicate("a", "<", "b")], order=ORDER)
    assert spec.equal_keys == (("s", "s"),)
    assert AsofSpec(order=ORDER).equal_keys == ()
    assert JoinSpec([("s", "s")], [ColumnPredicate("a", "<", "b")]).predicates == spec.predicates
    with pytest.raises(TypeError):
        AsofSpec([("s", "s")], (), ORDER)  # type: ignore[call-arg, arg-type]


def test_a_directed_join_refuses_keywords_and_names_from_kwargs() -> None:
    for method in (
        "inner_join",
        "left_inner",
        "left_outer",
        "left_right",
        "outer_join",
        "semi_join",
        "anti_join",
    ):
        with refused(ArgumentError, "W0301", method, "JoinSpec.from_kwargs(id='id')"):
            getattr(unplugged(A), method)(unplugged(B), id="id")
    assert JoinSpec.from_kwargs(id="id") == JoinSpec([("id", "id")])


def test_suffixes_are_short_for_a_projection_and_not_both() -> None:
    from weft.joins.relation.joining import resolve_projection

    assert resolve_projection(None, ("", "_c")) == JoinProjection(suffixes=("", "_c"))
    with refused(ArgumentError, "W0305", "project= or suffixes="):
        unplugged(A).natural_inner(unplugged(B), suffixes=("", "_c"), project=JoinProjection())


def test_an_as_of_spec_takes_everything_that_natural_keys_promise() -> None:
    left, right = (
        Schema.of(s="string", ts="long", k="long"),
        Schema.of(s="string", ts="long", qts="long", j="long"),
    )
    found = infer_natural_keys(left, right, aliases=(("k", "j"),), order=ORDER, strict=False)
    spec = AsofSpec(
        found.pairs,
        [ExpressionPredicate("right.j > 0")],
        order=ORDER,
        range_predicates=[ColumnPredicate("ts", "<=", "qts", 5)],
        allow_exact_matches=False,
        nearest_tie="forward",
        how="inner",
    )
    join = resolve_join(spec, left, right, project=SUFFIXES)
    assert found.pairs == (("s", "s"), ("k", "j"))
    assert (join.how, len(join.conditions)) == ("inner", 2)


def test_a_column_called_like_a_parameter_is_reported_with_a_hint_at_keys() -> None:
    left = Schema.of(id="long", strict="long", project="long", suffixes="long", predicates="long", keys="long")
    for name in ("strict", "project", "suffixes", "predicates", "keys"):
        with refused(ArgumentError, "W0301", f"to alias column {name!r} use keys={{{name!r}: ...}}"):
            unplugged(left).natural_inner(unplugged(B), **{name: "b"})
    with refused(ArgumentError, "W0305", "'a'", "keys="):
        unplugged(A).natural_inner(unplugged(B), keys={"a": "b"}, a="b")
    join = natural(Schema.of(id="long", strict="long"), B, keys=(("strict", "b"),))
    assert [k.origin for k in join.keys] == ["shared", "keys"]
    own = Schema.of(self="long", other="long")
    assert JoinSpec.from_kwargs(self="x", other="y").bind(own, Schema.of(x="long", y="long")).keys


def test_a_misspelt_option_is_compared_with_columns_and_parameters() -> None:
    with refused(UnknownColumnError, "W0101", "'suffixs'", "or the parameter suffixes=?"):
        unplugged(A).natural_inner(unplugged(B), suffixs="b")
    with refused(UnknownColumnError, "W0101", "'idd'", "did you mean 'id'?"):
        unplugged(A).natural_inner(unplugged(B), idd="b")


def test_a_spec_is_checked_when_made_and_its_names_when_bound() -> None:
    with refused(JoinSpecError, "W0303", "orders.id"):
        JoinSpec([("orders.id", "id")])
    spec = JoinSpec([("nobody", "knows")])
    with refused(UnknownColumnError, "W0101", "'nobody'"):
        spec.bind(A, B)
    assert isinstance(JoinSpec([("id", "id")]).bind(A, B), ResolvedJoin)


def test_names_are_found_in_any_case_unless_the_policy_says_otherwise() -> None:
    assert resolve_join(JoinSpec([("ID", "Id")]), A, B).output[0].name == "id"
    strict_a, strict_b = (Schema(s.fields, case_sensitive=True) for s in (A, B))
    with refused(UnknownColumnError, "W0101", "'ID'"):
        resolve_join(JoinSpec([("ID", "id")]), strict_a, strict_b)
    with refused(ArgumentError, "W0301", "case sensitivity"):
        resolve_join(JoinSpec([("id", "id")]), A, strict_b)
    with refused(AmbiguousColumnError, "W0106", "'Id'", "'ID'"):
        Schema.of(Id="long", ID="long")


def test_not_strict_drops_aliases_in_the_open_and_relaxes_nothing_else() -> None:
    join = natural(A, B, (("nope", "b"),), strict=False)
    assert join.dropped_aliases == (("nope", "b"),)
    assert "nope='b' (strict=False)" in str(explain_resolved(join, JoinSpec([("id", "id")])))
    with refused(NoJoinKeysError, "W0104", "strict=False"):
        natural(Schema.of(x="long"), Schema.of(y="long"), (("nope", "y"),), strict=False)
    with refused(ColumnCollisionError, "W0103", "v"):
        natural(
            Schema.of(id="long", v="long"),
            Schema.of(id="long", v="long"),
            strict=False,
            exclude_shared=("v",),
            project=None,
        )
    with refused(UnknownColumnError, "W0101", "'zz'"):
        natural(A, B, strict=False, predicates=[ColumnPredicate("zz", "<", "b")])


def test_keys_of_unmatched_right_rows_survive() -> None:
    left, right = T("k | a \n 1 | x"), T("j | b \n 2 | y")
    for how in ("right", "full"):
        join = resolve_join(JoinSpec([("k", "j")]), left.schema, right.schema, how=how)
        assert (2, None, "y") in reference_join(join, left.rows, right.rows)


def test_a_projection_has_the_eight_fields_and_the_usual_suffixes() -> None:
    assert list(JoinProjection().to_dict())[2:] == [
        "suffixes", "allow_collisions", "right_keys", "keep", "drop", "keep_right_order", "rename", "indicator",
    ]  # fmt: skip
    assert JoinProjection(allow_collisions=True).effective_suffixes == ("", "_right")
    both = Schema.of(id="long", v="long")
    project = JoinProjection(keep=("id", "left.v"), indicator="found")
    assert [c.name for c in resolve_join(JoinSpec([("id", "id")]), both, both, project=project).output] == [
        "id",
        "v",
        "found",
    ]


def test_all_method_names_and_their_synonyms_are_there() -> None:
    from weft.joins.relation import Relation

    for name in (
        "left_inner",
        "inner_join",
        "left_outer",
        "left_right",
        "right_outer",
        "outer_join",
        "full_outer",
    ):
        assert inspect.getdoc(getattr(Relation, name))
    for one, other in (
        ("left_inner", "inner_join"),
        ("left_right", "right_outer"),
        ("outer_join", "full_outer"),
    ):
        assert f"same as `{other}`" in str(inspect.getdoc(getattr(Relation, one)))


def test_semi_anti_and_cross_are_there_and_nothing_else_is_a_cross_join() -> None:
    from weft.joins.relation import Relation

    for name in ("natural_semi", "natural_anti", "semi_join", "anti_join", "cross_join"):
        assert callable(getattr(Relation, name))
    with refused(NoJoinKeysError, "W0104", "cross_join"):
        JoinSpec([])
    with refused(ArgumentError, "W0305", "cross join"):
        resolve_join(None, A, B, how="inner")
    with refused(ArgumentError, "W0305", "cross join"):
        resolve_join(JoinSpec([("id", "id")]), A, B, how="cross")
    assert resolve_join(None, A, Schema.of(c="long")).how == "cross"


def test_join_on_gives_a_spec_and_warns_with_the_exact_replacement() -> None:
    relation = unplugged(A)
    for given in ({"on": "id"}, {"on": ["id"]}, {"on": [("id", "id")]}, {"on": {"id": "id"}}):
        with pytest.warns(DeprecationWarning, match=re.escape("JoinSpec.from_tuples(('id', 'id'))")) as caught:
            assert relation.join_on(**given) == JoinSpec.from_tuples(("id", "id"))
        assert caught[0].filename == __file__


def test_specs_are_stored_with_type_and_version() -> None:
    spec = AsofSpec([("s", "s")], order=ORDER, tolerance="5 s")
    data = spec.to_dict()
    assert (data["type"], data["version"]) == ("asof", 1)
    assert from_dict(data) == AsofSpec.from_json(spec.to_json()) == spec
    for wrong in ({"version": 2}, {"extra": 1}):
        with refused(JoinSpecError, "W0306"):
            from_dict(data | wrong)
    assert len(spec.fingerprint()) == 64


def test_aliases_are_stored_as_equal_keys() -> None:
    found = infer_natural_keys(
        Schema.of(id="long", ref="long"), Schema.of(id="long", x="long"), aliases=(("ref", "x"),)
    )
    assert JoinSpec(found.pairs).to_dict()["equal_keys"] == [["id", "id"], ["ref", "x"]]


def test_an_order_marker_is_part_of_the_explanation() -> None:
    join = resolve_join(JoinSpec([("id", "id")]), A, B)
    assert "sorted by id ascending" in str(explain_resolved(join, None, ordering=(("id", True),)))


def test_binding_an_as_of_spec_asks_for_no_sorted_data() -> None:
    spec = AsofSpec(order=ORDER)
    join = resolve_join(spec, Schema.of(ts="long"), Schema.of(qts="long"))
    assert "none is needed" in explain_resolved(join, spec).to_dict()["order"]


@pytest.mark.parametrize(
    "text", ["rand() > 0.5", "uuid() = 'x'", "(SELECT 1) = 1", "EXISTS (SELECT 1)", "now() > ts", "my_udf(x)"]
)
def test_an_expression_is_deterministic(text: str) -> None:
    with pytest.raises(JoinSpecError) as caught:
        ExpressionPredicate(text)
    assert caught.value.code in ("W0201", "W0205", "W0206")


def test_a_fragment_names_its_sides() -> None:
    for text in ("left.a < right.b", "l.a < r.b", "a < b"):
        assert len(resolve_join(JoinSpec([], [ExpressionPredicate(text)]), A, B, project=SUFFIXES).predicates) == 1
    with refused(AmbiguousColumnError, "W0216", "left.id or right.id"):
        resolve_join(JoinSpec([], [ExpressionPredicate("id = 1")]), A, B, project=SUFFIXES)
    assert str(ExpressionPredicate("a < b OR a = 1")) == "(a < b OR a = 1)"


def test_from_tuples_of_an_as_of_spec_takes_an_order() -> None:
    assert AsofSpec.from_tuples(("s", "s"), order=ORDER) == AsofSpec([("s", "s")], order=ORDER)
    with refused(ArgumentError, "W0301", "order="):
        AsofSpec.from_tuples(("s", "s"))
    assert AsofSpec.from_current_api(keys=None, order=ORDER).equal_keys == ()


def test_a_strategy_is_chosen_with_its_reason() -> None:
    keyed = choose(resolve_join(JoinSpec([("id", "id")]), A, B))
    loop = choose(resolve_join(JoinSpec([], [ColumnPredicate("a", "<", "b")]), A, B, project=SUFFIXES))
    crossed = choose(resolve_join(None, A, Schema.of(c="long")))
    for choice, word in ((keyed, "1 equal key"), (loop, "nested loop"), (crossed, "cross join")):
        assert choice is not None
        assert word in choice.reason


def test_an_explanation_names_all_that_was_decided() -> None:
    spec = JoinSpec([("id", "id")], [ColumnPredicate("a", "<", "b")])
    data = explain_resolved(resolve_join(spec, A, B, how="left"), spec).to_dict()
    assert set(data) >= {
        "condition",
        "nulls",
        "strategy",
        "order",
        "method",
        "keys",
        "columns",
        "left_out",
        "fingerprint",
    }
    assert explain_spec(spec).to_dict()["bound"] is False


def test_a_displaced_key_is_named_in_the_collision() -> None:
    left, right = (
        Schema.of(id="long", status="string"),
        Schema.of(id="long", status="string", status_code="string"),
    )
    with refused(
        ColumnCollisionError,
        "W0103",
        "right column 'status' is no longer a key because of status='status_code'",
    ):
        natural(left, right, (("status", "status_code"),), project=None)
    join = natural(left, right, (("status", "status_code"),))
    assert [c.name for c in join.output] == ["id", "status", "status_r"]


def test_shared_columns_can_be_excluded_and_risky_ones_are_reported() -> None:
    left = Schema.of(id="long", updated_at="timestamp", score="double")
    found = infer_natural_keys(left, left, exclude_shared=("updated_at",))
    assert found.pairs == (("id", "id"), ("score", "score"))
    assert "'score'" in found.notes[0]


def test_relations_of_two_sessions_are_refused() -> None:
    left, right = unplugged(A), replace(unplugged(B), session=object())
    with refused(SessionMismatchError, "W0107", "different Spark sessions"):
        left.natural_inner(right)


def test_conditions_have_a_fixed_order() -> None:
    left = Schema.of(z="long", status="string", id="long", ref="long", ts="long")
    right = Schema.of(id="long", status="string", code="string", x="long", y="long", z="long", qts="long")
    found = infer_natural_keys(
        left, right, aliases=(("ref", "x"), ("status", "code")), keys=(("ref", "y"),), order=ORDER
    )
    spec = AsofSpec(
        found.pairs,
        [ExpressionPredicate("right.z > 1"), ColumnPredicate("id", "<", "x")],
        order=ORDER,
        tolerance=5,
        range_predicates=[ColumnPredicate("ts", "<=", "qts", 9)],
    )
    assert str(spec) == (
        "left.z = right.z AND left.status = right.code AND left.id = right.id AND left.ref = right.x AND "
        "left.ref = right.y AND (right.z > 1) AND left.id < right.x AND left.ts <= right.qts + 9 AND "
        "right.qts at or before left.ts within 5"
    )
    join = resolve_join(spec, left, right, project=SUFFIXES, inference=found)
    assert [k.origin for k in join.keys] == ["shared", "alias", "shared", "alias", "keys"]


def test_columns_of_predicates_stay_and_follow_the_collision_rule() -> None:
    left, right = Schema.of(id="long", at="long"), Schema.of(id="long", at="long")
    spec = JoinSpec([("id", "id")], [ColumnPredicate("at", ">", "at")])
    with refused(ColumnCollisionError, "W0103", "at"):
        resolve_join(spec, left, right)
    assert [c.name for c in resolve_join(spec, left, right, project=SUFFIXES).output] == ["id", "at", "at_r"]


GAPS: dict[int, Callable[..., None]] = {
    1: test_an_as_of_spec_takes_its_order_by_name_after_positional_keys,
    2: test_a_directed_join_refuses_keywords_and_names_from_kwargs,
    3: test_suffixes_are_short_for_a_projection_and_not_both,
    4: test_an_as_of_spec_takes_everything_that_natural_keys_promise,
    5: test_a_column_called_like_a_parameter_is_reported_with_a_hint_at_keys,
    6: test_a_misspelt_option_is_compared_with_columns_and_parameters,
    7: test_a_spec_is_checked_when_made_and_its_names_when_bound,
    8: test_names_are_found_in_any_case_unless_the_policy_says_otherwise,
    9: test_not_strict_drops_aliases_in_the_open_and_relaxes_nothing_else,
    10: test_keys_of_unmatched_right_rows_survive,
    11: test_a_projection_has_the_eight_fields_and_the_usual_suffixes,
    12: test_all_method_names_and_their_synonyms_are_there,
    13: test_semi_anti_and_cross_are_there_and_nothing_else_is_a_cross_join,
    14: test_join_on_gives_a_spec_and_warns_with_the_exact_replacement,
    15: test_specs_are_stored_with_type_and_version,
    16: test_aliases_are_stored_as_equal_keys,
    17: test_an_order_marker_is_part_of_the_explanation,
    18: test_binding_an_as_of_spec_asks_for_no_sorted_data,
    19: test_an_expression_is_deterministic,
    20: test_a_fragment_names_its_sides,
    21: test_from_tuples_of_an_as_of_spec_takes_an_order,
    22: test_a_strategy_is_chosen_with_its_reason,
    23: test_an_explanation_names_all_that_was_decided,
    24: test_a_displaced_key_is_named_in_the_collision,
    25: test_shared_columns_can_be_excluded_and_risky_ones_are_reported,
    26: test_relations_of_two_sessions_are_refused,
    27: test_conditions_have_a_fixed_order,
    28: test_columns_of_predicates_stay_and_follow_the_collision_rule,
}


def test_every_point_has_a_test_of_its_own() -> None:
    assert list(GAPS) == list(range(1, 29))
    assert len(set(GAPS.values())) == 28
