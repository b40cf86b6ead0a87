"""Several as-of joins at once: resolved as a chain, refused where one plan cannot serve them."""

from __future__ import annotations

from typing import Any

import pytest

from weft.core.types import Schema
from weft.errors import JoinSpecError, WeftError
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.resolved import Slot
from weft.joins.several import PartRequest, choose_several, resolve_several
from weft.joins.spec import AsofOrder, AsofSpec, ColumnPredicate, ExpressionPredicate, JoinProjection

TRADES = Schema.of(symbol="string", currency="string", ts="timestamp", day="date", qty="long")
QUOTES = Schema.of(symbol="string", quote_ts="timestamp", bid="double", seq="integer")
RATES = Schema.of(symbol="string", currency="string", rate_ts="timestamp", rate="double", bid="double")


def spec(keys: Any, left: str, right: str, **options: Any) -> AsofSpec:
    """Return an as-of spec."""
    return AsofSpec([(k, k) for k in keys], order=AsofOrder(left, right), **options)


def quotes(**options: Any) -> PartRequest:
    """Return the part of the quotes."""
    return spec(["symbol"], "ts", "quote_ts", **options), QUOTES, None


def rates(keys: Any = ("symbol",), left: str = "ts", **options: Any) -> PartRequest:
    """Return the part of the rates; columns that collide get a suffix."""
    return spec(keys, left, "rate_ts", **options), RATES, JoinProjection(suffixes=("", "_rate"))


def test_columns_and_names_are_those_of_a_chain() -> None:
    first, second = resolve_several(TRADES, [quotes(), rates(how="inner")])
    one = resolve_join(quotes()[0], TRADES, QUOTES)
    other = resolve_join(rates(how="inner")[0], one.schema, RATES, project=rates()[2])
    assert first.chained == one
    assert second.chained == other
    assert second.chained.schema.names == (
        "symbol", "currency", "ts", "day", "qty", "quote_ts", "bid", "seq", "currency_rate", "rate_ts",
        "rate", "bid_rate",
    )  # fmt: skip


def test_a_part_is_also_a_join_of_the_left_side_itself() -> None:
    reordered = quotes()[0], QUOTES, JoinProjection(keep=("ts", "symbol", "qty", "bid"))
    predicates = [ExpressionPredicate("left.qty > 1 AND right.rate > 0")]
    _, second = resolve_several(TRADES, [reordered, rates(predicates=predicates)])
    assert second.direct.left is TRADES
    assert [(k.left, k.right) for k in second.direct.keys] == [(0, 0)]
    assert second.match.left == 2
    read = {slot for c in second.direct.conditions for slot in c.typed.slots}
    assert read == {Slot("left", 4), Slot("right", 3)}


def test_a_part_may_ask_for_what_was_known_behind_a_part_that_reorders_columns() -> None:
    reordered = quotes()[0], QUOTES, JoinProjection(keep=("symbol", "ts", "bid"))
    reported = Schema.of(symbol="string", rate_ts="timestamp", told_ts="timestamp", rate="double")
    bitemporal = spec(["symbol"], "ts", "rate_ts", known=AsofOrder("ts", "told_ts")), reported, None
    _, second = resolve_several(TRADES, [reordered, bitemporal])
    assert (second.match.left, second.match.known) == (2, (2, 2))


def test_where_a_column_comes_from_is_known_through_renames() -> None:
    renamed = quotes()[0], QUOTES, JoinProjection(rename={"left.qty": "size", "right.bid": "best"})
    _, second = resolve_several(TRADES, [renamed, rates()])
    found = dict(zip(second.chained.schema.names, second.origins, strict=True))
    assert (found["size"].part, found["size"].column) == (0, 4)
    assert found["best"].part == 1
    assert found["rate"].part == 2


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        (
            [quotes(), rates(["currency"])],
            "part 2 .* its left keys are 'currency \\(string\\)', those of part 1 are 'symbol \\(string\\)'",
        ),
        ([quotes(), rates(["symbol", "currency"])], "part 2 .* its left keys are"),
        (
            [quotes(), rates(left="day")],
            "part 2 .* its order is left.day compared as timestamp, that of part 1 is left.ts",
        ),
        (
            [quotes(), rates(predicates=[ExpressionPredicate("left.bid > 0")])],
            "part 2 .* it reads 'bid', a column that part 1 adds",
        ),
        (
            [quotes(predicates=[ColumnPredicate("qty", "<", "seq")])],
            "part 1 .* the union plan refuses predicates that compare",
        ),
        (
            [quotes(), rates(known=AsofOrder("quote_ts", "rate_ts"))],
            "part 2 .* it reads 'quote_ts', a column that part 1 adds",
        ),
    ],
)
def test_parts_that_cannot_share_a_plan_say_which_and_why(parts: Any, why: str) -> None:
    with pytest.raises(JoinSpecError, match=why) as caught:
        resolve_several(TRADES, parts)
    assert caught.value.code == "W0130"
    assert "chain it" in caught.value.diagnostics[0].help


def test_keys_compared_in_other_types_cannot_share_a_plan() -> None:
    left = Schema.of(k="integer", t="long")
    one, other = Schema.of(k="integer", u="long", a="long"), Schema.of(k="long", u="long", b="long")
    parts: list[PartRequest] = [
        (spec(["k"], "t", "u"), one, None),
        (spec(["k"], "t", "u"), other, JoinProjection(suffixes=("", "_r"))),
    ]
    with pytest.raises(JoinSpecError, match="'k \\(long\\)', those of part 1 are 'k \\(integer\\)'"):
        resolve_several(left, parts)


def test_one_order_column_compared_in_other_types_cannot_share_a_plan() -> None:
    left = Schema.of(k="long", d="date")
    one, other = Schema.of(k="long", u="date", a="long"), Schema.of(k="long", u="timestamp", b="long")
    parts: list[PartRequest] = [
        (spec(["k"], "d", "u"), one, None),
        (spec(["k"], "d", "u"), other, JoinProjection(suffixes=("", "_r"))),
    ]
    with pytest.raises(JoinSpecError, match=r"order is left.d compared as timestamp, .* compared as date"):
        resolve_several(left, parts)


def test_mistakes_are_those_of_a_chain() -> None:
    with pytest.raises(WeftError) as caught:
        resolve_several(TRADES, [quotes(), (rates()[0], RATES, None)])
    assert caught.value.code == "W0103"


def test_keys_may_be_in_any_order() -> None:
    right = Schema.of(symbol="string", currency="string", u="timestamp", x="long")
    parts: list[PartRequest] = [
        (spec(["symbol", "currency"], "ts", "u"), right, JoinProjection(suffixes=("", "_1"))),
        (spec(["currency", "symbol"], "ts", "u"), right, JoinProjection(suffixes=("", "_2"))),
    ]
    assert len(resolve_several(TRADES, parts)) == 2


@pytest.mark.parametrize(
    ("directions", "sorts"),
    [
        (("backward", "backward"), "one sort"),
        (("forward", "forward"), "one sort"),
        (("backward", "forward"), "two sorts"),
        (("backward", "nearest"), "two sorts"),
        (("nearest", "nearest"), "two sorts"),
    ],
)
def test_the_cost_counts_the_sorts(directions: tuple[str, str], sorts: str) -> None:
    options = [{"direction": d, "tolerance": "1 hour"} for d in directions]
    parts = resolve_several(TRADES, [quotes(**options[0]), rates(**options[1])])
    assert f"one shuffle and {sorts} of all sides" in choose_several(parts).cost
