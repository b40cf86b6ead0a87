"""Joins without Spark: relations that hold no DataFrame, and natural joins of two schemas."""

from __future__ import annotations

from typing import Any

from weft.core.types import Schema
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.natural import infer_natural_keys
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spec import JoinProjection, JoinSpec

SUFFIXES = JoinProjection(suffixes=("", "_r"))


def unplugged(schema: Schema) -> Any:
    """Return a relation without a DataFrame: enough for what is refused before Spark is asked."""
    from weft.joins.relation import Relation

    return Relation(None, schema, None)  # type: ignore[arg-type]


def natural(left: Schema, right: Schema, aliases: Any = (), how: Any = "inner", **options: Any) -> ResolvedJoin:
    project = options.pop("project", SUFFIXES)
    predicates = options.pop("predicates", ())
    found = infer_natural_keys(left, right, aliases=aliases, **options)
    return resolve_join(JoinSpec(found.pairs, predicates), left, right, how=how, project=project, inference=found)
