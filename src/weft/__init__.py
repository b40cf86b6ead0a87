"""Weft: temporal joins on Spark that are exact, fast and explainable.

``import weft`` needs no JVM and no pyspark; `relation` and its methods load them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from weft.core import engine_version
from weft.errors import (
    AmbiguousColumnError,
    ArgumentError,
    AsofOrderWarning,
    ColumnCollisionError,
    ConnectorError,
    Diagnostic,
    JoinContractError,
    JoinKeyWarning,
    JoinSpecError,
    JoinTypeError,
    NoJoinKeysError,
    SessionMismatchError,
    StreamError,
    StreamPlanError,
    StreamSqlError,
    UnknownColumnError,
    WeftError,
    WorkerError,
)
from weft.joins.choose import asof_strategies
from weft.joins.resolve import join as _resolve_join  # noqa: F401  # registers what JoinSpec.bind calls
from weft.joins.spec import (
    AsofOrder,
    AsofSpec,
    ColumnPredicate,
    ExpressionPredicate,
    IntervalSpec,
    JoinPredicate,
    JoinProjection,
    JoinSpec,
    WindowSpec,
)

if TYPE_CHECKING:
    __version__: str
    from weft import streams
    from weft.joins.explain import JoinExplanation
    from weft.joins.facts import MatchCounts
    from weft.joins.picture import Picture
    from weft.joins.relation import Relation, relation
    from weft.joins.relation.explaining import build_join_spec, explain_join, inspect_keys, inspect_matches
    from weft.joins.relation.reading import read_csv, read_parquet, read_table
    from weft.joins.spark.failures import coded_errors, contract_failure
    from weft.joins.spark.stats import MatchStats

# Names whose modules import pyspark; they are loaded on first access.
_LAZY = {
    "JoinExplanation": "weft.joins.explain",
    "MatchCounts": "weft.joins.facts",
    "MatchStats": "weft.joins.spark.stats",
    "Picture": "weft.joins.picture",
    "Relation": "weft.joins.relation",
    "build_join_spec": "weft.joins.relation.explaining",
    "coded_errors": "weft.joins.spark.failures",
    "contract_failure": "weft.joins.spark.failures",
    "explain_join": "weft.joins.relation.explaining",
    "inspect_keys": "weft.joins.relation.explaining",
    "inspect_matches": "weft.joins.relation.explaining",
    "read_csv": "weft.joins.relation.reading",
    "read_parquet": "weft.joins.relation.reading",
    "read_table": "weft.joins.relation.reading",
    "relation": "weft.joins.relation",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return engine_version()
    if name == "streams":
        return importlib.import_module("weft.streams")
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'weft' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "AmbiguousColumnError", "ArgumentError", "AsofOrder", "AsofOrderWarning", "AsofSpec", "ColumnCollisionError",
    "ColumnPredicate", "ConnectorError", "Diagnostic", "ExpressionPredicate", "IntervalSpec", "JoinContractError",
    "JoinExplanation", "JoinKeyWarning", "JoinPredicate", "JoinProjection", "JoinSpec", "JoinSpecError",
    "JoinTypeError", "MatchCounts", "MatchStats", "NoJoinKeysError", "Picture", "Relation", "SessionMismatchError",
    "StreamError", "StreamPlanError", "StreamSqlError", "UnknownColumnError", "WeftError", "WindowSpec", "WorkerError",
    "asof_strategies", "build_join_spec", "coded_errors", "contract_failure", "explain_join", "inspect_keys",
    "inspect_matches", "read_csv", "read_parquet", "read_table", "relation", "streams",
]  # fmt: skip
