"""One small job that says how large both sides of a join are and which keys are heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.plan.conditions import folded
from weft.plan.facts import Facts, HeavyKey
from weft.plan.resolved import AsOf, ResolvedJoin
from weft.spark.heavy_keys import Survey
from weft.spark.sides import Sides
from weft.spark.streams import check_not_streaming

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HASHES = 1 << 64


def sampled_facts(left: DataFrame, right: DataFrame, join: ResolvedJoin) -> Facts:
    """Run the job of ``statistics="sample"`` for an as-of join: one pass over keys and times."""
    for df in (left, right):
        check_not_streaming(df, 'statistics="sample"')
    simple = folded(join)
    assert isinstance(simple.match, AsOf)  # noqa: S101  # the caller asks for nothing else
    survey = Survey.of(Sides.of(left, right, simple), simple.match)
    row = survey.one_row().collect()[0]
    counts = int(row["left_rows"] or 0), int(row["right_rows"] or 0)
    sampled = sum(counts)
    # A sample of the smallest hashes: how far they reach is how much of all rows it is.
    reached = 1.0 if sampled < survey.most_sampled else (int(row["reached"]) + _HASHES // 2) / _HASHES
    left_rows, right_rows = (round(n / reached) for n in counts)
    heavy = [_heavy_key(found, len(join.keys), sampled) for found in row["heavy"]]
    return Facts(
        left_rows=left_rows,
        right_rows=right_rows,
        sampled=sampled,
        partitions=survey.partitions,
        heavy=tuple(sorted(heavy, key=lambda k: (-k.share, repr(k.values)))),
    )


def _heavy_key(found: Any, keys: int, sampled: int) -> HeavyKey:
    share = found["rows"] / sampled
    return HeavyKey(values=tuple(found[:keys]), share=share, cuts=tuple(found["cuts"]), told=found["told"])
