"""Relation: a DataFrame that knows its columns and joins strictly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.expr.spark.frames import a_frame, schema_of
from weft.joins.relation.frame import Frame, JoinLineage
from weft.joins.relation.shims import Shims

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Relation(Shims):
    """An immutable DataFrame with its schema, order marker and lineage.

    Made by `weft.relation`; ``.df`` gives the DataFrame back.  Joins check everything in
    Python before Spark is asked, so classic and Connect sessions give the same errors at
    the same line.
    """

    __slots__ = ()


def relation(df: DataFrame, *, session: SparkSession | None = None) -> Relation:
    """Wrap a DataFrame, batch or streaming.

    Two columns whose names are equal under the session's case policy are refused.
    `session` says which session the frame counts to; only foreachBatch code needs it.
    """
    frame = a_frame(df)
    return Relation(frame, schema_of(frame), session or frame.sparkSession)


__all__ = ["Frame", "JoinLineage", "Relation", "relation"]
