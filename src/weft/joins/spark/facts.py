"""One small job that says how large both sides of a join are and which keys are heavy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weft.joins.facts import Facts, HeavyKey
from weft.joins.resolve.conditions import folded
from weft.joins.resolve.resolved import AsOf, ResolvedJoin
from weft.joins.spark.failures import coded_errors
from weft.joins.spark.ground import ground_of
from weft.joins.spark.heavy_keys import HASHES, Survey
from weft.joins.spark.sides import Sides
from weft.joins.spark.streams import check_not_streaming

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WIDEST = 512
"""Bytes that a row may have in files for a share to hold as many rows as are wanted; wider ones are read twice."""


def sampled_facts(left: DataFrame, right: DataFrame, join: ResolvedJoin) -> Facts:
    """Run the job of ``statistics="sample"`` for an as-of join: one pass over keys and times."""
    for df in (left, right):
        check_not_streaming(df, 'statistics="sample"')
    simple = folded(join)
    assert isinstance(simple.match, AsOf)  # noqa: S101  # the caller asks for nothing else
    survey = Survey.of(Sides.of(left, right, simple), simple.match)
    survey = replace(survey, share=_share(ground_of(left, right).both_bytes, survey.most_sampled))
    row, counts = _sampled(survey)
    if survey.share < 1.0 and sum(counts) < survey.most_sampled // 2:  # fewer rows than their size promised
        survey = replace(survey, share=1.0)
        row, counts = _sampled(survey)
    sampled = sum(counts)
    # A sample of the smallest hashes: how far they reach is how much of all rows it is.
    reached = survey.share
    if sampled >= survey.most_sampled:
        reached = (int(row["reached"]) + HASHES // 2) / HASHES
    left_rows, right_rows = (round(n / reached) for n in counts)
    heavy = [_heavy_key(found, len(join.keys), sampled) for found in row["heavy"]]
    return Facts(
        left_rows=left_rows,
        right_rows=right_rows,
        sampled=sampled,
        partitions=survey.partitions,
        heavy=tuple(sorted(heavy, key=lambda k: (-k.share, repr(k.values)))),
    )


def _sampled(survey: Survey) -> tuple[Any, tuple[int, int]]:
    with coded_errors():
        row = survey.one_row().collect()[0]
    return row, (int(row["left_rows"] or 0), int(row["right_rows"] or 0))


def _share(size: int | None, wanted: int) -> float:
    """Return a share of the rows of both sides that holds a sample, however wide they are.

    >>> _share(None, 1000), _share(1 << 20, 1000), _share(1 << 30, 1024)
    (1.0, 0.48828125, 0.00048828125)
    """
    return 1.0 if not size else min(1.0, wanted * _WIDEST / size)


def _heavy_key(found: Any, keys: int, sampled: int) -> HeavyKey:
    share = found["rows"] / sampled
    return HeavyKey(values=tuple(found[:keys]), share=share, cuts=tuple(found["cuts"]), told=found["told"])
