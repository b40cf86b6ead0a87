"""What a stream cannot keep, refused where it is asked for and not when the query starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.errors import ArgumentError
from weft.plan.resolved import Exact, ResolvedJoin
from weft.spark.contracts import SINGLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_not_streaming(df: DataFrame, what: str) -> None:
    """Raise when the frame is a stream; `what` says what needs all rows."""
    if df.isStreaming:
        raise ArgumentError(
            f"{what} needs all rows, and a stream has no end",
            help="do it batch by batch, inside foreachBatch",
        )


def check_promises(left: DataFrame, right: DataFrame, join: ResolvedJoin) -> None:
    """Raise when a relationship would have to be counted on a stream.

    Keys alone are counted on the side that must be single, so a promise about a static side
    holds beside a stream; with predicates the joined rows are counted.
    """
    by_key = bool(join.keys) and not join.conditions and isinstance(join.match, Exact)
    for side in SINGLE[join.relationship or "m:m"]:
        counted = (left if side == "left" else right,) if by_key else (left, right)
        if any(df.isStreaming for df in counted):
            raise ArgumentError(
                f"relationship {join.relationship!r} cannot be checked on a stream: "
                f"a row may match a {side} row of a later batch",
                code="W0305",
                help="leave out relationship=, or join inside foreachBatch",
            )
