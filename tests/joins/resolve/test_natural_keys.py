"""infer_natural_keys: shared names, aliases, keys=, what is left out, and what is reported."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusals import refused
from weft.core.types import LONG, Field, Schema, parse_type
from weft.errors import AmbiguousColumnError, JoinSpecError, NoJoinKeysError, UnknownColumnError
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.natural import NaturalKeys, infer_natural_keys
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spec import AsofOrder, JoinProjection, JoinSpec

PARAMETERS = ("strict", "project", "predicates", "suffixes", "keys", "order", "tolerance", "direction")


def joined(left: Schema, right: Schema, found: NaturalKeys, **options: Any) -> ResolvedJoin:
    return resolve_join(JoinSpec(found.pairs), left, right, inference=found, **options)


def test_shared_columns_are_keys_in_left_order_across_case() -> None:
    left, right = Schema.of(b="long", id="long", a="long"), Schema.of(A="long", c="long", ID="long")
    found = infer_natural_keys(left, right)
    assert found.pairs == (("id", "ID"), ("a", "A"))
    assert found.origins == ("shared", "shared")
    assert (found.dropped, dict(found.displaced), found.notes) == ((), {}, ())


def test_under_a_case_sensitive_policy_names_must_be_the_same() -> None:
    left = Schema(Schema.of(id="long", a="long").fields, case_sensitive=True)
    right = Schema(Schema.of(ID="long", a="long").fields, case_sensitive=True)
    assert infer_natural_keys(left, right).pairs == (("a", "a"),)


def test_an_alias_adds_a_pair_after_the_shared_ones_in_call_order() -> None:
    left, right = Schema.of(z="long", id="long", y="long"), Schema.of(id="long", p="long", q="long", r="long")
    found = infer_natural_keys(left, right, aliases=(("z", "q"), ("y", "p")), keys=(("z", "r"),))
    assert found.pairs == (("id", "id"), ("z", "q"), ("y", "p"), ("z", "r"))
    assert found.origins == ("shared", "alias", "alias", "keys")


def test_an_alias_for_a_shared_column_takes_its_place_and_displaces_its_partner() -> None:
    left = Schema.of(a="long", status="string", b="long")
    right = Schema.of(b="long", status="string", status_code="string", a="long")
    found = infer_natural_keys(left, right, aliases=(("STATUS", "STATUS_CODE"),))
    assert found.pairs == (("a", "a"), ("status", "status_code"), ("b", "b"))
    assert found.origins == ("shared", "alias", "shared")
    assert found.displaced == {1: "right column 'status' is no longer a key because of status='status_code'"}


def test_an_alias_that_says_what_is_shared_anyway_displaces_nothing() -> None:
    left, right = Schema.of(id="long"), Schema.of(ID="long")
    found = infer_natural_keys(left, right, aliases=(("id", "id"),))
    assert (found.pairs, found.origins, dict(found.displaced)) == ((("id", "ID"),), ("alias",), {})


@pytest.mark.parametrize("written", [(("a", "x"), ("A", "X")), (("a", "x"), ("a", "x"), ("`a`", "x"))])
def test_a_pair_that_is_repeated_counts_once(written: Any) -> None:
    left, right = Schema.of(a="long"), Schema.of(x="long")
    found = infer_natural_keys(left, right, aliases=written)
    assert (found.pairs, found.origins) == ((("a", "x"),), ("alias",))
    assert len(joined(left, right, found).keys) == 1


def test_a_second_alias_for_one_column_is_a_second_condition() -> None:
    left, right = Schema.of(a="long"), Schema.of(a="long", x="long", y="long")
    found = infer_natural_keys(left, right, aliases=(("a", "x"),), keys=(("a", "y"),))
    assert found.pairs == (("a", "x"), ("a", "y"))


def test_an_alias_may_name_any_column_literally() -> None:
    names = ("a.b", "c`d", "order id", "class", "`q`")
    left = Schema(tuple(Field(n, LONG) for n in names))
    right = Schema(tuple(Field(f"{n}2", LONG) for n in names))
    found = infer_natural_keys(left, right, aliases=tuple((n, f"{n}2") for n in names))
    join = joined(left, right, found)
    assert [(k.left, k.right, k.origin) for k in join.keys] == [(i, i, "alias") for i in range(len(names))]
    quoted = infer_natural_keys(left, right, aliases=(("`a.b`", "`a.b2`"),))
    assert quoted.pairs == (("`a.b`", "`a.b2`"),)


@pytest.mark.parametrize(
    ("pair", "side", "name", "near"),
    [
        (("custmer", "id"), "left", "'custmer'", "'customer'"),
        (("customer", "idd"), "right", "'idd'", "'id'"),
        (("nothing_like", "id"), "left", "'nothing_like'", "it has 'customer'"),
    ],
)
def test_an_alias_that_names_no_column_is_reported_with_the_side_and_near_names(
    pair: Any, side: str, name: str, near: str
) -> None:
    left, right = Schema.of(customer="long", total="long"), Schema.of(id="long", idx="long")
    with refused(UnknownColumnError, "W0101", f"the {side} relation has no column", name, near):
        infer_natural_keys(left, right, aliases=(pair,))


@pytest.mark.parametrize(("typo", "parameter"), [("tolerence", "tolerance"), ("stric", "strict"), ("keyz", "keys")])
def test_a_misspelt_parameter_is_reported_with_the_right_one(typo: str, parameter: str) -> None:
    left, right = Schema.of(a="long"), Schema.of(a="long")
    with refused(UnknownColumnError, "W0101", repr(typo), f"or the parameter {parameter}=?"):
        infer_natural_keys(left, right, aliases=((typo, "a"),), parameters=PARAMETERS)


def test_at_most_three_near_names_are_reported() -> None:
    left = Schema.of(**{f"customer_{i}": "long" for i in range(9)})
    with pytest.raises(UnknownColumnError) as caught:
        infer_natural_keys(left, Schema.of(id="long"), aliases=(("customer_x", "id"),))
    assert caught.value.help.count("'customer_") == 3


def test_not_strict_drops_what_names_no_column_and_tells_it() -> None:
    left, right = Schema.of(a="long", b="long"), Schema.of(a="long", c="long")
    found = infer_natural_keys(
        left, right, aliases=(("nope", "c"), ("b", "c")), keys=(("b", "no.where"),), strict=False
    )
    assert found.pairs == (("a", "a"), ("b", "c"))
    assert found.dropped == (("nope", "c"), ("b", "no.where"))
    assert found.notes == ("strict=False: the join ignores nope='c', b='no.where': unknown columns",)
    assert joined(left, right, found).dropped_aliases == found.dropped


def test_not_strict_still_needs_a_key() -> None:
    left, right = Schema.of(a="long"), Schema.of(b="long")
    with refused(NoJoinKeysError, "W0104", "strict=False", "'nope'", "'a'", "'b'", "cross_join"):
        infer_natural_keys(left, right, aliases=(("nope", "b"),), strict=False)


def test_no_shared_column_is_refused_with_both_column_lists() -> None:
    left, right = Schema.of(a="long", b="long"), Schema.of(c="long")
    with refused(
        NoJoinKeysError,
        "W0104",
        "left has 'a', 'b'",
        "right has 'c'",
        "left_column='right_column'",
        "cross_join",
    ):
        infer_natural_keys(left, right)


def test_long_column_lists_are_cut() -> None:
    left, right = (Schema.of(**{f"{s}{i}": "long" for i in range(200)}) for s in "ab")
    with refused(NoJoinKeysError, "W0104", "and 188 more"):
        infer_natural_keys(left, right)


def test_excluded_shared_columns_are_not_keys() -> None:
    left, right = Schema.of(id="long", updated_at="timestamp"), Schema.of(id="long", Updated_At="timestamp")
    assert infer_natural_keys(left, right, exclude_shared=("UPDATED_AT",)).pairs == (("id", "id"),)
    with refused(NoJoinKeysError, "W0104"):
        infer_natural_keys(left, right, exclude_shared=("updated_at", "id"))


def test_excluding_what_is_not_shared_is_refused() -> None:
    left, right = Schema.of(id="long", only="long"), Schema.of(id="long")
    with refused(UnknownColumnError, "W0101", "'only'", "shared columns are 'id'"):
        infer_natural_keys(left, right, exclude_shared=("only",))
    with refused(UnknownColumnError, "W0101", "'idd'", "did you mean 'id'?"):
        infer_natural_keys(left, right, exclude_shared=("idd",))
    with refused(JoinSpecError, "W0303", "exclude_shared"):
        infer_natural_keys(left, right, exclude_shared=("",))


def test_an_excluded_column_follows_the_collision_rule() -> None:
    left, right = Schema.of(id="long", at="long"), Schema.of(id="long", at="long")
    found = infer_natural_keys(left, right, exclude_shared=("at",))
    join = joined(left, right, found, project=JoinProjection(suffixes=("", "_r")))
    assert [c.name for c in join.output] == ["id", "at", "at_r"]


@pytest.mark.parametrize(("left_order", "right_order"), [("ts", "ts"), ("ts", "qts"), ("TS", "QTS"), ("`ts`", "`qts`")])
def test_order_columns_are_never_keys(left_order: str, right_order: str) -> None:
    left = Schema.of(symbol="string", ts="timestamp", qts="timestamp")
    right = Schema.of(symbol="string", Ts="timestamp", qts="timestamp")
    found = infer_natural_keys(left, right, order=AsofOrder(left_order, right_order))
    expected = (("symbol", "symbol"),) if right_order != "ts" else (("symbol", "symbol"), ("qts", "qts"))
    assert found.pairs == expected


@pytest.mark.parametrize("dtype", ["double", "float", "array<long>", "struct<a:long>", "map<string,long>"])
def test_a_shared_key_that_is_risky_to_compare_is_reported(dtype: str) -> None:
    left, right = (Schema.of(id="long", x=parse_type(dtype)) for _ in range(2))
    (note,) = infer_natural_keys(left, right).notes
    assert "'x'" in note
    assert "exclude_shared=('x',)" in note
    assert infer_natural_keys(left, right, exclude_shared=("x",)).notes == ()


def test_two_columns_equal_but_for_case_are_refused_when_a_schema_is_made() -> None:
    with refused(AmbiguousColumnError, "W0106", "'Id'", "'ID'", "rename"):
        Schema((Field("Id", LONG), Field("ID", LONG)))
    with refused(AmbiguousColumnError, "W0106", "'id'"):
        Schema((Field("id", LONG), Field("id", LONG)), case_sensitive=True)
    assert len(Schema((Field("Id", LONG), Field("ID", LONG)), case_sensitive=True)) == 2


columns = st.sampled_from("abcdefgh")


@given(
    st.lists(columns, min_size=1, max_size=6, unique=True),
    st.lists(columns, min_size=1, max_size=6, unique=True),
    st.lists(st.tuples(columns, columns), max_size=4),
    st.booleans(),
)
def test_inferred_pairs_always_resolve_in_a_fixed_order(
    left_names: list[str],
    right_names: list[str],
    aliases: list[tuple[str, str]],
    upper: bool,  # noqa: FBT001
) -> None:
    left = Schema(tuple(Field(n, LONG) for n in left_names))
    right = Schema(tuple(Field(n.upper() if upper else n, LONG) for n in right_names))
    shared = [n for n in left_names if n in right_names]
    known = [(a, b) for a, b in aliases if a in left_names and b in right_names]
    if not shared and not known:
        with pytest.raises(NoJoinKeysError):
            infer_natural_keys(left, right, aliases=tuple(aliases), strict=False)
        return
    found = infer_natural_keys(left, right, aliases=tuple(aliases), strict=False)
    assert len(found.pairs) == len(found.origins) == len(set(found.pairs))
    assert [a for a, _ in found.pairs][: len(shared)] == shared
    assert {(a, b.lower()) for a, b in found.pairs} >= set(known) - {(a, a) for a, _ in known}
    assert set(found.dropped) == set(aliases) - set(known)
    join = joined(left, right, found, project=JoinProjection(suffixes=("", "_r")))
    assert [k.origin for k in join.keys] == list(found.origins)


def test_two_spellings_of_one_pair_are_one_key() -> None:
    left, right = Schema.of(id="long", n="long"), Schema.of(key="long", m="long")
    join = resolve_join(JoinSpec([("id", "key"), ("ID", "KEY"), ("n", "m")]), left, right)
    assert [(k.left, k.right) for k in join.keys] == [(0, 0), (1, 1)]
