"""Random joins: the same for the same seed, always resolvable, and rich enough to be worth running."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from strategies import CASE, FLAVOURS, Flavour, RandomJoin, expected, random_join, seeded_join, seeds
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spec import JoinProjection, from_dict
from weft.testing import T, assert_rows_equal, matching_pairs, reference_join

MANY = 80


def resolved(pack: RandomJoin) -> ResolvedJoin:
    spec = None if pack.flavour == "cross" else from_dict(pack.spec)
    how = pack.how
    return resolve_join(
        spec,
        pack.left.schema,
        pack.right.schema,
        how=how,  # type: ignore[arg-type]  # a random word out of the closed set
        project=JoinProjection.from_dict(pack.project),
    )


@pytest.mark.parametrize("flavour", [*FLAVOURS, "cross"])
def test_every_random_join_resolves_and_runs(flavour: Flavour) -> None:
    for seed in range(MANY):
        pack = seeded_join(seed, flavour, datasets=4)
        join = resolved(pack)
        rows = expected(join, pack)
        assert all(len(row) == len(join.output) for row in rows)


def test_a_seed_gives_the_same_pack_again() -> None:
    for seed in range(20):
        one, other = seeded_join(seed, datasets=5), seeded_join(seed, datasets=5)
        assert (one.spec, one.project, one.left.schema) == (other.spec, other.project, other.left.schema)
        assert_rows_equal(one.left, other.left, ordered=True)
    assert str(seeded_join(7)).startswith("seed=7 ")


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_data_sets_joined_alone_give_the_rows_of_the_whole_pack(flavour: Flavour) -> None:
    for seed in range(10):
        pack = seeded_join(seed, flavour, datasets=6)
        join = resolved(pack)
        assert_rows_equal(reference_join(join, pack.left.rows, pack.right.rows), expected(join, pack))


def test_one_data_set_can_be_taken_out_of_a_pack() -> None:
    pack = seeded_join(3, "join", datasets=10)
    assert set(pack.only(4).left.column(CASE)) <= {4}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_matches_misses_and_fan_out_all_happen(flavour: Flavour) -> None:
    matched = missed = fanned = 0
    for seed in range(MANY):
        pack = seeded_join(seed, flavour, datasets=4)
        pairs = matching_pairs(resolved(pack), pack.left.rows, pack.right.rows)
        fan_out = Counter(i for i, _ in pairs)
        matched += len(fan_out)
        missed += len(pack.left) - len(fan_out)
        fanned += sum(count > 1 for count in fan_out.values())
    assert matched > 100
    assert missed > 100
    assert fanned > 50 or flavour == "asof"


def test_every_option_occurs() -> None:
    packs = [seeded_join(seed, datasets=1) for seed in range(400)]
    reported = {f"{k}={v}" for p in packs for k, v in p.spec.items() if isinstance(v, str | bool)}
    for option in (
        "direction=backward", "direction=forward", "direction=nearest", "allow_exact_matches=False",
        "nearest_tie=forward", "nulls_equal=True", "tolerance=unbounded", "window=tumbling", "window=sliding",
        "window=session", "per_window=True", "how=left", "how=right", "how=full", "how=semi", "how=anti", "how=inner",
    ):  # fmt: skip
        assert option in reported
    predicates = [p for pack in packs for p in pack.spec.get("predicates", ())]
    assert {p["operator"] for p in predicates if p["type"] == "column"} == {"=", "!=", "<", "<=", ">", ">="}
    assert any("offset" in p for p in predicates)
    assert any("range_predicates" in p.spec for p in packs)
    assert any("tie_break" in p.spec for p in packs)
    assert any(p.self_join for p in packs)
    assert {len(p.spec["equal_keys"]) - 1 for p in packs} == {0, 1, 2, 3, 4}
    names = {name for p in packs for name in p.left.schema.names}
    assert {"a.b", "c`d", "order id", "class"} <= names
    types = {str(f.dtype).partition("(")[0] for p in packs for f in p.left.schema}
    assert {"integer", "long", "string", "decimal", "date", "timestamp", "boolean", "double"} <= types


def test_a_self_join_has_one_table() -> None:
    packs = [random_join(random.Random(n), datasets=2) for n in range(60)]
    assert all(p.left is p.right for p in packs if p.self_join)


def test_the_number_of_examples_is_set_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEFT_EXAMPLES", raising=False)
    assert seeds(3) == [0, 1, 2]
    monkeypatch.setenv("WEFT_EXAMPLES", "5")
    assert len(seeds(3)) == 15


def test_the_random_tables_print_and_read_back() -> None:
    for seed in range(30):
        table = seeded_join(seed, datasets=2).left
        again = T(table.format())
        assert_rows_equal(again, table, ordered=True)
