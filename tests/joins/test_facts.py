"""What a sample says, and what the chooser makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from weft.core.types import Schema
from weft.errors import WeftError
from weft.joins.choose import choose
from weft.joins.facts import Facts, HeavyKey
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spec import AsofOrder, AsofSpec, ColumnPredicate

LEFT = Schema.of(k="string", t="long", a="long")
RIGHT = Schema.of(k="string", u="long", b="long")


def facts(*shares: float, keyed: bool = True, partitions: int = 4) -> Facts:
    """Return facts about keys A, B, .. with these shares."""
    heavy = (HeavyKey(values=(chr(ord("A") + n),) if keyed else (), share=share) for n, share in enumerate(shares))
    return Facts(left_rows=1000, right_rows=500, sampled=1500, partitions=partitions, heavy=tuple(heavy))


def join(*, keyed: bool = True, **options: Any) -> ResolvedJoin:
    """Return an as-of join."""
    keys = [("k", "k")] if keyed else []
    left = LEFT if keyed else Schema.of(t="long", a="long")
    return resolve_join(AsofSpec(keys, order=AsofOrder("t", "u"), **options), left, RIGHT)


def test_a_key_with_more_than_its_share_takes_the_slices() -> None:
    reported = facts(0.9, 0.2)
    choice = choose(join(), facts=reported)
    assert choice.strategy == "slices"
    assert choice.reason == "a key has 90 % of the rows: they are cut by time, so that tasks share them"
    assert choice.facts is reported


def test_the_heaviest_key_is_the_reason() -> None:
    assert choose(join(), facts=facts(0.4, 0.3)).reason.startswith("a key has 40 % of the rows")


def test_without_a_key_all_rows_are_one() -> None:
    choice = choose(join(keyed=False), facts=facts(1.0, keyed=False))
    assert choice.strategy == "slices"
    assert choice.reason.startswith("no equal key")


def test_even_keys_change_nothing_but_are_reported() -> None:
    reported = facts(0.2)
    assert choose(join(), facts=reported).strategy == choose(join()).strategy
    assert choose(join(), facts=reported).facts is reported


def test_a_join_that_slices_refuse_stays_with_its_plan() -> None:
    pair = join(predicates=[ColumnPredicate("a", "<", "b")])
    assert choose(pair, facts=facts(0.9)).strategy == choose(pair).strategy


def test_a_forced_strategy_stays_and_keeps_the_facts() -> None:
    reported = facts(0.9)
    choice = choose(join(), "union", facts=reported)
    assert (choice.strategy, choice.facts) == ("union", reported)


def test_one_partition_has_no_skew() -> None:
    assert facts(1.0, partitions=1).skewed == ()


@pytest.mark.parametrize(
    ("reported", "text"),
    [
        (facts(0.1), "1,000 left and 500 right rows"),
        (facts(0.5), "1,000 left and 500 right rows; key 'A' has 50 % of them"),
        (facts(1.0, keyed=False), "1,000 left and 500 right rows"),
        (
            facts(0.3, 0.3, 0.3, 0.3, partitions=9),
            "; ".join(
                (
                    "1,000 left and 500 right rows",
                    *(f"key {k!r} has 30 % of them" for k in "ABC"),
                    "1 more have more than their share",
                )
            ),
        ),
        (
            Facts(left_rows=10**7, right_rows=9, sampled=100, partitions=2),
            "about 10,000,000 left and 9 right rows",
        ),
    ],
)
def test_facts_in_words(reported: Facts, text: str) -> None:
    assert str(reported) == text


def test_slices_refuse_what_no_slice_can_know() -> None:
    for refused, why in (
        (join(predicates=[ColumnPredicate("a", "<", "b")]), "compare a left with a right column"),
        (join(known=AsofOrder("t", "b")), "second time axis"),
    ):
        with pytest.raises(WeftError, match=f"slices plan refuses.*{why}"):
            choose(refused, "slices")
