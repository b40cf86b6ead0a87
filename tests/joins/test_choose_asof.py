"""Which as-of plan is chosen from what is known, and the reason that is reported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from weft.core.types import LONG, Schema
from weft.joins.choose import ASOF, choose
from weft.joins.facts import Facts, HeavyKey, SessionFacts
from weft.joins.resolve.resolved import AsOf, OutputColumn, ResolvedJoin, ResolvedKey

MIB = 1024 * 1024
MATCH = AsOf(
    left=1, right=1, direction="backward", allow_exact=True, tolerance=None, nearest_tie="backward", tie_break=()
)  # fmt: skip
JOIN = ResolvedJoin(
    how="left",
    left=Schema.of(k="long", t="long"),
    right=Schema.of(k="long", u="long", v="long"),
    keys=(ResolvedKey(left=0, right=0, dtype=LONG, origin="spec"),),
    match=MATCH,
    output=(OutputColumn(name="k", dtype=LONG, nullable=True, source="left", left=0),),
)
KEYLESS = replace(JOIN, keys=())
TWO_AXES = replace(JOIN, match=replace(MATCH, known=(0, 2)))
EVEN = Facts(left_rows=10, right_rows=10, sampled=20, partitions=8)
LEANING = replace(EVEN, heavy=(HeavyKey(values=(1,), share=0.3),))
SKEWED = replace(EVEN, heavy=(HeavyKey(values=(1,), share=0.95),))


def session_facts(left: float | None, right: float | None, **given: Any) -> SessionFacts:
    sizes = {
        "left_bytes": None if left is None else int(left * MIB),
        "right_bytes": None if right is None else int(right * MIB),
    }
    return SessionFacts(**{"may_broadcast": True, "no_kernel": "", **sizes, **given})


@pytest.mark.parametrize(
    ("join", "known", "facts", "plan", "reason"),
    [
        (JOIN, session_facts(None, None), None, "union", "exact for any key sizes with one sort"),
        (JOIN, session_facts(1, 1), None, "union", "small sides of about 2 MB"),
        (JOIN, session_facts(100, 100), None, "kernel", "sides of about 200 MB: searched group by group"),
        (JOIN, session_facts(100, 100, no_kernel="pyarrow not installed"), None, "union", "exact"),
        (JOIN, session_facts(1000, 1000), None, "slices", "could have a key too heavy for one task"),
        (JOIN, session_facts(1000, 1000, partitions=8), None, "slices", "sides of about 2.0 GB"),
        (
            JOIN,
            session_facts(1000, 1000, partitions=4),
            None,
            "union",
            "4 shuffle partitions would give a kernel task",
        ),
        (JOIN, session_facts(1000, 1000, partitions=4), EVEN, "union", "about 1.5 GB, more of them"),
        (JOIN, session_facts(1000, 1000, partitions=4), SKEWED, "union", "more of them would let it search"),
        (JOIN, session_facts(1000, 1000, no_kernel="pyarrow not installed"), None, "union", "exact"),
        (JOIN, session_facts(1000, 1000), EVEN, "kernel", "no key is too heavy"),
        (JOIN, session_facts(1000, 1000), SKEWED, "slices", "a key has 95 % of the rows"),
        (JOIN, session_facts(1000, 1000, cores=2), SKEWED, "slices", "a key has 95 % of the rows"),
        (JOIN, session_facts(1000, 1000, cores=2), LEANING, "kernel", "no key is too heavy"),
        (JOIN, session_facts(1000, 1000, cores=8), LEANING, "slices", "a key has 30 % of the rows"),
        (JOIN, session_facts(1000, 1000, cores=8), replace(LEANING, partitions=4), "kernel", "no key is too heavy"),
        (JOIN, session_facts(100, 10), None, "broadcast", "the right side is small, about 10 MB"),
        (JOIN, session_facts(100, 10, may_broadcast=False), None, "kernel", "sides of about 110 MB"),
        (JOIN, session_facts(15, 10), None, "kernel", "sides of about 25 MB"),
        (JOIN, session_facts(0.01, 500), None, "tiny_left", "the left side is tiny, about 11 KB"),
        (JOIN, session_facts(0.01, 32), None, "tiny_left", "the left side is tiny, about 11 KB"),
        (JOIN, session_facts(0.01, 31.9), None, "kernel", "sides of about 32 MB"),
        (JOIN, session_facts(0.07, 500), None, "kernel", "sides of about 500 MB"),
        (KEYLESS, session_facts(100, 100), None, "slices", "no equal key"),
        (KEYLESS, session_facts(None, None), None, "slices", "no equal key"),
        (KEYLESS, session_facts(1, 1), None, "union", "small sides"),
        (TWO_AXES, session_facts(100, 100), None, "rank", "two independent cut-offs"),
        # Each limit belongs to the plan it is a limit of.
        (JOIN, session_facts(8, 8), None, "union", "small sides of about 16 MB"),
        (JOIN, session_facts(8, 8.1), None, "kernel", "sides of about 16 MB"),
        (JOIN, session_facts(64, 32), None, "broadcast", "the right side is small, about 32 MB"),
        (JOIN, session_facts(66, 32.1), None, "kernel", "sides of about 98 MB"),
        (JOIN, session_facts(1 / 16, 500), None, "tiny_left", "the left side is tiny, about 64 KB"),
        (JOIN, session_facts(320, 320), None, "kernel", "sides of about 640 MB"),
        (JOIN, session_facts(320, 320.1), None, "slices", "sides of about 640 MB"),
    ],
)
def test_a_plan_is_chosen_from_sizes_statistics_and_options(
    join: ResolvedJoin, known: SessionFacts, facts: Facts | None, plan: str, reason: str
) -> None:
    choice = choose(join, facts=facts, session_facts=known)
    assert choice.strategy == plan
    assert reason in choice.reason
    assert choice.facts is facts


def test_the_cost_says_how_much_is_about_to_be_shuffled_or_sent() -> None:
    assert choose(JOIN, session_facts=session_facts(100, 100)).cost.endswith("; about 200 MB shuffled")
    assert choose(JOIN, session_facts=session_facts(100, 10)).cost.endswith("; about 10 MB sent")
    assert "about" not in choose(JOIN).cost


def with_columns(**right: str) -> ResolvedJoin:
    return replace(JOIN, right=Schema.of(k="long", u="long", **right))


def test_the_union_plan_sorts_both_axes_in_one_type() -> None:
    two_axes = replace(JOIN, match=replace(MATCH, known=(1, 2)))
    assert ASOF["union"](two_axes) is None
    refusal = ASOF["union"](replace(two_axes, right=Schema.of(k="long", u="long", v="integer")))
    assert refusal is not None
    assert "a knowledge time of type integer beside long and long" in refusal


def test_the_kernel_takes_decimals_that_fit_64_bits() -> None:
    times = {digits: Schema.of(k="long", t=f"decimal({digits},2)") for digits in (18, 19)}
    assert ASOF["kernel"](replace(JOIN, left=times[18], right=times[18])) is None
    refusal = ASOF["kernel"](replace(JOIN, left=times[19], right=times[19]))
    assert refusal is not None
    assert "decimal(19,2): they do not fit 64 bits" in refusal


@pytest.mark.parametrize("dtype", ["time", "array<time>", "map<time,long>", "map<long,time>", "struct<a:time>"])
def test_the_kernel_refuses_types_that_arrow_lacks_at_any_depth(dtype: str) -> None:
    refusal = ASOF["kernel"](with_columns(v=dtype))
    assert refusal is not None
    assert f"columns of type {dtype}" in refusal
    assert ASOF["kernel"](with_columns(v=dtype.replace("time", "date"))) is None


@pytest.mark.parametrize(
    ("dtype", "counts"),
    [("long", 1), ("array<long>", 1), ("map<long,long>", 2), ("struct<a:long,b:map<long,long>>", 3)],
)
def test_the_broadcast_plan_counts_what_is_nested_in_a_column(dtype: str, counts: int) -> None:
    # Four columns are there already, and 48 are the most.
    rest = {f"n{i}": "long" for i in range(44 - counts)}
    assert ASOF["broadcast"](with_columns(v=dtype, **rest)) is None
    refusal = ASOF["broadcast"](with_columns(v=dtype, **rest, one_more="long"))
    assert refusal is not None
    assert "refuses 49 columns" in refusal
