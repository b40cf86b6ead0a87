"""Properties of a DataFrame: its kind, session, functions, window class and schema."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.core.types import Field, Schema
from weft.errors import ArgumentError, SessionMismatchError
from weft.expr.spark.types import from_spark


def is_connect(df: DataFrame) -> bool:
    """Whether the frame belongs to a Spark Connect session."""
    return type(df).__module__.startswith("pyspark.sql.connect.")


def functions_of(df: DataFrame) -> ModuleType:
    """Return the functions module whose columns fit the frame.

    ``pyspark.sql.functions`` picks classic or Connect once for a whole process; choosing by
    the frame allows both kinds of session in one process.
    """
    return importlib.import_module("pyspark.sql.connect.functions" if is_connect(df) else "pyspark.sql.functions")


def window_of(df: DataFrame) -> Any:
    """Return the Window class that fits the frame."""
    module = "pyspark.sql.connect.window" if is_connect(df) else "pyspark.sql.classic.window"
    return importlib.import_module(module).Window


def observation_of(df: DataFrame, name: str) -> Any:
    """Return a new Observation that fits the frame."""
    module = "pyspark.sql.connect.observation" if is_connect(df) else "pyspark.sql"
    return importlib.import_module(module).Observation(name)


def require_dataframe(df: object, what: str = "relation()") -> DataFrame:
    """Return `df`, or raise when it is not a DataFrame."""
    if not isinstance(df, DataFrame):
        lazy = {"LazyFrame": "collect it first: relation(frame.collect())"}
        if type(df).__module__.startswith("pyspark.pandas"):
            lazy["DataFrame"] = "convert it first: relation(frame.to_spark())"
        raise ArgumentError(
            f"{what} takes a DataFrame of Spark, pandas or Polars or an Arrow table, not {type(df).__name__}",
            help=lazy.get(type(df).__name__, "pass the DataFrame that spark.table or spark.read returned"),
        )
    return df


def schema_of(df: DataFrame) -> Schema:
    """Return the frame's schema under the session's case policy; two equal names raise."""
    # Spark compares names under this setting, so two names that Spark takes for one must collide here too.
    sensitive = str(df.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    fields = tuple(Field(f.name, from_spark(f.dataType), f.nullable) for f in df.schema.fields)
    return Schema(fields, sensitive)


def check_one_session(left: SparkSession, right: SparkSession) -> None:
    """Raise unless both sessions are the same one."""
    if left is right:
        return
    # Two client objects may belong to one Connect session; classic sessions have no such id.
    ids = tuple(getattr(s, "session_id", None) for s in (left, right))
    if ids[0] is not None and ids[0] == ids[1]:
        return
    raise SessionMismatchError(
        "the two relations belong to different Spark sessions",
        help="build both from one session; inside foreachBatch wrap the outer frame with "
        "weft.relation(df, session=batch_df.sparkSession)",
    )
