"""How the cases of ``tests/cases`` are run: by the reference engine, and by Spark on any session."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.core.types import TIMESTAMP, Schema
from weft.errors import JoinContractError, WeftError
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.natural import NaturalKeys, infer_natural_keys
from weft.joins.resolve.resolved import ResolvedJoin
from weft.joins.spec import AsofSpec, JoinProjection, JoinSpec, from_dict
from weft.joins.spec.join import read_alias_pairs
from weft.testing import (
    Case,
    Table,
    load_cases,
    matching_pairs,
    reference_join,
    relationship_violations,
    unmatched_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from weft.joins.relation import Relation

FOLDER = Path(__file__).parent / "cases"
DIRECTED = {
    "inner": "inner_join",
    "left": "left_outer",
    "right": "right_outer",
    "full": "full_outer",
    "semi": "semi_join",
    "anti": "anti_join",
}
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Outcome:
    """What an engine made of a case: columns and rows, or an error by class and code."""

    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    error: tuple[str, str] | None = None


def cases_of(*files: str) -> list[Case]:
    """Return the cases of the named files."""
    return [case for file in files for case in load_cases(FOLDER / f"{file}.yml")]


def resolved_case(case: Case) -> ResolvedJoin:
    """Return the join of a case without a relation: natural keys are inferred from the schemas."""
    project = None if case.project is None else JoinProjection.from_dict(case.project)
    left, right = case.left.schema, case.right.schema
    if case.how == "cross":
        return resolve_join(None, left, right, how="cross", project=project)
    how: Any = case.how
    if case.spec["type"] != "natural":
        return resolve_join(from_dict(case.spec), left, right, how=how, project=project)
    spec, inference = _natural(case, left, right)
    return resolve_join(
        spec,
        left,
        right,
        how=None if isinstance(spec, AsofSpec) else how,
        project=project,
        inference=inference,
    )


def _natural(case: Case, left: Schema, right: Schema) -> tuple[JoinSpec, NaturalKeys]:
    given = natural_arguments(case)
    aliases = read_alias_pairs(case.spec.get("aliases", {}), given.pop("keys", None))
    count = len(case.spec.get("aliases", {}))
    found = infer_natural_keys(
        left,
        right,
        aliases=aliases[:count],
        keys=aliases[count:],
        exclude_shared=given.pop("exclude_shared", ()),
        strict=given.pop("strict", True),
        order=given.get("order"),
    )
    kind: type[JoinSpec] = AsofSpec if "order" in given else JoinSpec
    return kind(found.pairs, given.pop("predicates", ()), **given), found


def natural_arguments(case: Case) -> dict[str, Any]:
    """Return the keyword arguments of a natural case, aliases left out."""
    given = {k: v for k, v in case.spec.items() if k not in ("type", "aliases", "equal_keys", "how")}
    if "equal_keys" in case.spec:
        given["keys"] = [tuple(pair) for pair in case.spec["equal_keys"]]
    if "predicates" in given:
        given["predicates"] = [from_dict(p) for p in given["predicates"]]
    if "order" in given:
        given["order"] = from_dict(given["order"])
    return given


def by_reference(case: Case) -> Outcome:
    """Run a case by the reference engine."""
    try:
        join = resolved_case(case)
        rows = reference_rows(join, case.left.rows, case.right.rows)
    except WeftError as error:
        return Outcome(error=(type(error).__name__, error.code))
    return Outcome(tuple(c.name for c in join.output), tuple(rows))


def reference_rows(join: ResolvedJoin, left: Sequence[Row], right: Sequence[Row]) -> list[Row]:
    """Return the rows of a join, or raise when the data breaks a promise of it."""
    pairs = matching_pairs(join, left, right)
    alone = unmatched_rows(pairs, left, right)
    if ("left" in join.unmatched and alone.left) or ("right" in join.unmatched and alone.right):
        raise JoinContractError("unmatched", code="W0502")
    if any(relationship_violations(join, pairs)):
        raise JoinContractError("relationship", code="W0501")
    return reference_join(join, left, right)


def by_spark(case: Case, session: SparkSession) -> Outcome:
    """Run a case through the methods of a relation."""
    return outcome_of(lambda: joined(case, session))


def outcome_of(join: Callable[[], Relation]) -> Outcome:
    """Return the rows of a join, or the error that it raises now or when its rows are read."""
    try:
        result = join()
    except WeftError as error:
        return Outcome(error=(type(error).__name__, error.code))
    try:
        rows = rows_of(result.df)
    except Exception as failure:
        from weft import contract_failure

        broken = contract_failure(failure)
        if broken is None:
            raise
        return Outcome(error=(type(broken).__name__, broken.code))
    assert_schema_is_true(result, rows)
    return Outcome(result.columns, tuple(rows))


def joined(case: Case, session: SparkSession) -> Relation:
    """Return the joined relation; equal inputs are one and the same relation."""
    left = relation_of(session, case.left)
    right = left if case.left == case.right else relation_of(session, case.right)
    project = None if case.project is None else JoinProjection.from_dict(case.project)
    if case.how == "cross":
        return left.cross_join(right, project=project)
    if case.spec["type"] == "natural":
        given = natural_arguments(case)
        method = getattr(left, f"natural_{case.how}")
        result: Relation = method(right, project=project, **given, **case.spec.get("aliases", {}))
        return result
    result = getattr(left, DIRECTED[case.how])(right, from_dict(case.spec), project=project)
    return result  # noqa: RET504  # the name carries the type


def frame_of(session: SparkSession, table: Table) -> DataFrame:
    """Return a table as a DataFrame with the same schema."""
    from pyspark.sql.types import StructField, StructType

    from weft.expr.spark.types import to_spark

    fields = [StructField(f.name, to_spark(f.dtype), f.nullable) for f in table.schema]
    return session.createDataFrame(list(table.rows), StructType(fields))


def relation_of(session: SparkSession, table: Table) -> Relation:
    """Return a table as a relation."""
    import weft

    return weft.relation(frame_of(session, table))


def rows_of(df: DataFrame) -> list[Row]:
    """Return the rows with times in UTC, as tables of tests hold them."""
    from weft.expr.spark.frames import schema_of

    instants = [i for i, f in enumerate(schema_of(df)) if f.dtype == TIMESTAMP]
    rows = []
    for row in df.collect():
        values = list(row)
        for i in instants:
            if values[i] is not None:
                values[i] = values[i].replace(tzinfo=dt.UTC)
        rows.append(tuple(values))
    return rows


def assert_schema_is_true(result: Relation, rows: Sequence[Row]) -> None:
    """The schema that a relation claims is the one Spark has; NULL occurs only where it is declared."""
    from weft.expr.spark.frames import schema_of

    real = schema_of(result.df)
    assert [(f.name, f.dtype) for f in real] == [(f.name, f.dtype) for f in result.schema]
    holes = [f.name for i, f in enumerate(result.schema) if not f.nullable and any(row[i] is None for row in rows)]
    assert not holes, f"NULL in columns that are declared without: {holes}"


def shuffled(case: Case, rng: Any) -> Case:
    """Return the case with the rows of both inputs in another order."""
    from dataclasses import replace

    tables: dict[str, Any] = {}
    for side in ("left", "right"):
        rows = list(getattr(case, side).rows)
        rng.shuffle(rows)
        tables[side] = getattr(case, side).with_rows(rows)
    return replace(case, **tables)


def named(case: Case) -> str:
    """Return the id of a case, for pytest."""
    return case.id
