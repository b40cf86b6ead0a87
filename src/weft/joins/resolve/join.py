"""resolve_join: a spec and two schemas become a ResolvedJoin; all checks of a join are made here."""

from __future__ import annotations

from collections.abc import Mapping

from weft.core.findings import ErrorCollector
from weft.core.fingerprint import fingerprint
from weft.core.types import Schema, common_type
from weft.errors import ArgumentError, JoinSpecError, JoinTypeError, NoJoinKeysError
from weft.joins.resolve.matching import find_columns, resolve_match
from weft.joins.resolve.natural import NaturalKeys
from weft.joins.resolve.output import OutputRequest, output_columns
from weft.joins.resolve.predicates import compute_orders, resolve_predicates, suggest_cast
from weft.joins.resolve.resolved import (
    AsOf,
    Exact,
    Match,
    Origin,
    OutputColumn,
    ResolvedJoin,
    ResolvedKey,
    ResolvedPredicate,
    Side,
)
from weft.joins.spec.asof import AsofSpec, TemporalSpec
from weft.joins.spec.join import JoinSpec
from weft.joins.spec.projection import JoinProjection
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.joins.spec.values import How, Relationship, check_choice


def resolve_join(
    spec: JoinSpec | None,
    left: Schema,
    right: Schema,
    *,
    how: How | None = None,
    project: JoinProjection | None = None,
    inference: NaturalKeys | None = None,
) -> ResolvedJoin:
    """Resolve `spec` against two schemas: find columns, compare types, determine the output columns.

    `spec` is None only for a cross join; `inference` is where its keys come from if they were inferred.  All
    errors are raised here, before Spark is called.
    """
    how = _resolve_how(spec, how)
    for side, schema in (("left", left), ("right", right)):
        if not isinstance(schema, Schema):
            raise ArgumentError(
                f"the {side} side must be a relation or a Schema, not {type(schema).__name__}",
                help="wrap a DataFrame with weft.relation(df)",
            )
    if project is not None and not isinstance(project, JoinProjection):
        raise ArgumentError(
            f"project must be a JoinProjection, not {type(project).__name__}",
            help="write project=JoinProjection(keep=['column'])",
        )
    project = project or JoinProjection()
    inference = inference or NaturalKeys()
    # The setting may have changed between the two calls of weft.relation.
    if left.case_sensitive != right.case_sensitive:
        raise ArgumentError(
            "the two sides differ in case sensitivity",
            help="create both relations with the same spark.sql.caseSensitive",
        )
    ours, theirs = compute_orders(spec, "left", left), compute_orders(spec, "right", right)
    keys, conditions, match = _conditions(spec, left, right, inference) if spec else ((), (), Exact())
    request = OutputRequest(
        how=how,
        left=left,
        right=right,
        keys=keys,
        project=project,
        right_order=None if isinstance(match, Exact) else match.right,
        displaced=inference.displaced,
    )
    return ResolvedJoin(
        how=how,
        left=ours.schema,
        right=theirs.schema,
        computed_left=ours.computed,
        computed_right=theirs.computed,
        keys=keys,
        match=match,
        output=_output(request, match),
        conditions=conditions,
        nulls_equal=spec.nulls_equal if spec else False,
        relationship=_relationship(spec, how),
        unmatched=_unmatched(spec, how),
        dropped_aliases=inference.dropped,
        fingerprint=_fingerprint(spec, how, project, left, right),
        spec_fingerprint=spec.fingerprint() if spec else "",
    )


def _output(request: OutputRequest, match: Match) -> tuple[OutputColumn, ...]:
    """Return the output columns; an as-of join without right columns is an error."""
    columns = output_columns(request)
    if isinstance(match, AsOf) and request.how not in ("semi", "anti") and all(c.source == "left" for c in columns):
        raise JoinSpecError(
            "the right side adds no column to the result",
            code="W0108",
            help="exclude a right column from the keys, or keep the right order column",
        )
    return columns


def _resolve_how(spec: JoinSpec | None, how: How | None) -> How:
    own: How | None = spec.how if isinstance(spec, AsofSpec | IntervalSpec | WindowSpec) else None
    if how is None:
        how = own or ("cross" if spec is None else "inner")
    check_choice(how, How, "how")
    if spec is not None and not isinstance(spec, JoinSpec):
        raise ArgumentError(
            f"spec must be a JoinSpec, not {type(spec).__name__}",
            help="write JoinSpec(equal_keys=[('left_column', 'right_column')])",
        )
    if own is not None and how != own:
        raise ArgumentError(
            f"how={how!r}, but the spec has how={own!r}", code="W0305", help="write it only in the spec"
        )
    if (spec is None) != (how == "cross"):
        raise ArgumentError(
            "a cross join takes no spec, every other join needs one",
            code="W0305",
            help="leave out the spec for how='cross', pass one for every other how",
        )
    return how


def _conditions(
    spec: JoinSpec, left: Schema, right: Schema, inference: NaturalKeys
) -> tuple[tuple[ResolvedKey, ...], tuple[ResolvedPredicate, ...], Match]:
    """Return keys, predicates and match; all their errors are raised at once."""
    mistakes = ErrorCollector()
    keys = _resolved_keys(spec, left, right, inference, mistakes)
    conditions, match = check_conditions(spec, left, right, mistakes, keys)
    mistakes.raise_all()
    if not keys and not conditions and isinstance(match, Exact):
        raise NoJoinKeysError("a join needs an equal key or a predicate", help="for all pairs call cross_join")
    return keys, conditions, match


def check_conditions(
    spec: JoinSpec, left: Schema, right: Schema, mistakes: ErrorCollector, keys: tuple[ResolvedKey, ...] = ()
) -> tuple[tuple[ResolvedPredicate, ...], Match]:
    """Return the predicates and the match of a spec; errors are added to `mistakes`."""
    match: Match = Exact()
    with mistakes.collect():
        left, right = compute_orders(spec, "left", left).schema, compute_orders(spec, "right", right).schema
    conditions = resolve_predicates(spec, left, right, keys, mistakes)
    with mistakes.collect():
        match = resolve_match(spec, left, right) if isinstance(spec, TemporalSpec) else match
    return conditions, match


def _resolved_keys(
    spec: JoinSpec, left: Schema, right: Schema, inference: NaturalKeys, mistakes: ErrorCollector
) -> tuple[ResolvedKey, ...]:
    written: Origin = "spec"
    origins = inference.origins or (written,) * len(spec.equal_keys)
    keys = []
    for pair, origin in zip(spec.equal_keys, origins, strict=True):
        with mistakes.collect():
            i, j = find_columns(left, right, pair)
            a, b = left.fields[i], right.fields[j]
            dtype = common_type(a.dtype, b.dtype)
            if dtype is None:
                message = f"key left.{a.name} is {a.dtype} but right.{b.name} is {b.dtype}"
                raise JoinTypeError(message, help=suggest_cast(a, b))
            keys.append(ResolvedKey(left=i, right=j, dtype=dtype, origin=origin))
    # Two names of one column, such as id and ID, are one key.
    return tuple(dict.fromkeys(keys))


def _relationship(spec: JoinSpec | None, how: How) -> Relationship | None:
    if spec is None or spec.relationship is None:
        return None
    if how in ("semi", "anti"):
        raise JoinSpecError(
            f"a {how} join keeps each left row at most once: relationship= does not apply",
            code="W0305",
            help="leave relationship= out",
        )
    return spec.relationship


# The sides that unmatched="error" is about: those whose rows the join keeps, the left one for an inner join.
_PRESERVED: Mapping[str, tuple[Side, ...]] = {
    "inner": ("left",),
    "left": ("left",),
    "right": ("right",),
    "full": ("left", "right"),
}


def _unmatched(spec: JoinSpec | None, how: How) -> tuple[Side, ...]:
    if spec is None or spec.unmatched is None:
        return ()
    if how not in _PRESERVED:
        raise JoinSpecError(f"unmatched= has no meaning for a {how} join", code="W0305", help="leave unmatched= out")
    explicit: dict[str, tuple[Side, ...]] = {"left": ("left",), "right": ("right",), "both": ("left", "right")}
    return explicit.get(spec.unmatched, _PRESERVED[how])


def _fingerprint(spec: JoinSpec | None, how: How, project: JoinProjection, left: Schema, right: Schema) -> str:
    def columns(schema: Schema) -> str:
        # One string, not a list: encoding a wide schema as a list would cost more than resolving it.
        return "\0".join(f"{f.name}\1{f.dtype}" for f in schema)

    return fingerprint(
        {
            "spec": spec.fingerprint() if spec else None,
            "how": how,
            "project": project.fingerprint(),
            "left": columns(left),
            "right": columns(right),
        }
    )


JoinSpec._resolver = staticmethod(resolve_join)  # noqa: SLF001  # see there: JoinSpec.bind calls it
