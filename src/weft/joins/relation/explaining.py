"""explain_join, build_join_spec and inspect_keys: questions about a join before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from weft.core.names import parse_name
from weft.errors import ArgumentError, JoinKeyWarning
from weft.expr.spark.frames import check_one_session
from weft.joins.choose import choose
from weft.joins.explain import JoinExplanation, explain_resolved, explain_spec
from weft.joins.relation import Relation
from weft.joins.relation.arguments import notice
from weft.joins.relation.joining import check_relation
from weft.joins.relation.natural import infer
from weft.joins.resolve.join import Inference, resolve_join
from weft.joins.resolve.resolved import AsOf
from weft.joins.spark.facts import read_session_facts
from weft.joins.spark.stats import fan_out
from weft.joins.spark.streams import is_stream_join, stream_choice
from weft.joins.spec.join import FROM_KWARGS, JoinSpec, Keys, check_predicates

if TYPE_CHECKING:
    from weft.joins.spec.predicates import JoinPredicate
    from weft.joins.spec.projection import JoinProjection
    from weft.joins.spec.values import How, Relationship, Unmatched


def explain_join(
    left: Relation | JoinSpec,
    right: Relation | None = None,
    spec: JoinSpec | None = None,
    *,
    how: How | None = None,
    project: JoinProjection | None = None,
    file: TextIO | None = None,
) -> JoinExplanation:
    """Print what a join does and return it as a value; no job runs.

    Takes a spec alone, two relations and a spec, or a relation that came out of a join.

    Parameters
    ----------
    left
        The left relation, a relation that came out of a join, or a spec alone.
    right
        The right relation; None (default) with a spec alone or a joined relation.
    spec
        What to explain; None (default) explains the natural join of the two relations.
    how
        ``"inner"`` (default), ``"left"``, ``"right"``, ``"full"``, ``"semi"``, ``"anti"`` or ``"cross"``.
    project
        The `JoinProjection` of the join; None by default.
    file
        Where to print; standard output by default.

    Examples
    --------
    ::

        weft.explain_join(JoinSpec([("customer_id", "id")]))
        weft.explain_join(orders, customers, JoinSpec([("customer_id", "id")]), how="left")
        weft.explain_join(orders.natural_left(customers, customer_ref="id"))
    """
    explanation = _explained(left, right, spec, how, project)
    print(explanation, file=file)  # printing is what the function is for
    return explanation


def _explained(left: Any, right: Any, spec: Any, how: Any, project: Any) -> JoinExplanation:
    if isinstance(left, JoinSpec):
        _ignored("a spec alone", right=right, spec=spec, project=project)
        return explain_spec(left, how)
    source = check_relation(left, "explain_join")
    if right is None and spec is None:
        if source.lineage is None:
            raise ArgumentError(
                "explain_join: this relation did not come out of a join, or was changed since",
                help="explain the relation that the join returned: filter, limit and order_by keep its story, "
                "other steps end it\nor give two relations and a spec: explain_join(left, right, spec)",
            )
        _ignored("a relation that came out of a join", how=how, project=project)
        return source.lineage.explain()
    target = check_relation(right, "explain_join")
    inference = None
    if spec is None and how != "cross":
        found = infer(source, target, strict=True, keys=None, exclude_shared=(), aliases={})
        spec, inference = JoinSpec(found.pairs), Inference(origins=found.origins)
    resolved = resolve_join(spec, source.schema, target.schema, how=how, project=project, inference=inference)
    choice = None
    if is_stream_join(source.df, target.df, resolved):
        choice = stream_choice(source.df, target.df, resolved)
    elif isinstance(resolved.match, AsOf):
        choice = choose(resolved, session_facts=read_session_facts(source.df, target.df))
    return explain_resolved(resolved, spec, ordering=source.ordering, choice=choice)


def _ignored(what: str, **named: object) -> None:
    """Raise for arguments that say nothing about `what`."""
    given = [f"{name}=" for name, value in named.items() if value is not None]
    if given:
        raise ArgumentError(
            f"explain_join of {what} takes no {' or '.join(given)}",
            code="W0305",
            help="give two relations and a spec: explain_join(left, right, spec, how=..., project=...)",
        )


def build_join_spec(
    left: Relation,
    right: Relation,
    /,
    *,
    strict: bool = True,
    keys: Keys = None,
    predicates: Sequence[JoinPredicate] | None = None,
    exclude_shared: Sequence[str] = (),
    nulls_equal: bool = False,
    relationship: Relationship | None = None,
    unmatched: Unmatched | None = None,
    **aliases: str,
) -> JoinSpec:
    """Return the spec that a natural join of the two relations would use.

    ``orders.left_outer(customers, build_join_spec(orders, customers, customer_ref="id"))``

    Parameters
    ----------
    left, right
        The two relations.
    strict
        True (default) refuses aliases that name no column; False drops them, with a `JoinKeyWarning`.
    keys
        Aliases as a mapping or as pairs, for names that cannot be written as a keyword.
    predicates, nulls_equal, relationship, unmatched
        Become part of the spec; see `JoinSpec`.
    exclude_shared
        Shared columns that are not keys.
    **aliases
        ``left_name="right_name"`` adds a pair of keys, or replaces the partner of a shared column.
    """
    found = infer(
        check_relation(left, "build_join_spec"),
        check_relation(right, "build_join_spec"),
        strict=strict,
        keys=keys,
        exclude_shared=exclude_shared,
        aliases=aliases,
        parameters=("strict", "exclude_shared", *FROM_KWARGS),
    )
    for note in found.notes:
        notice(note, JoinKeyWarning)
    return JoinSpec(
        found.pairs,
        check_predicates(predicates, "predicates"),
        nulls_equal=nulls_equal,
        relationship=relationship,
        unmatched=unmatched,
    )


def inspect_keys(left: Relation, right: Relation, spec: JoinSpec | None = None) -> Relation:
    """Return how keys fan out: one row per key of either side.

    Columns are the keys under their left names, ``left_count``, ``right_count``,
    ``pair_count`` (rows an inner join gives) and ``shared``.  Sort by ``pair_count`` to
    find the keys that make a join explode.

    ``inspect_keys(orders, customers).order_by(("pair_count", False)).show(5)``

    Parameters
    ----------
    left, right
        The two relations.
    spec
        Its equal keys are counted; None (default) takes those of the natural join.
    """
    source, target = check_relation(left, "inspect_keys"), check_relation(right, "inspect_keys")
    check_one_session(source.session, target.session)
    spec = spec if spec is not None else build_join_spec(left, right)
    if not isinstance(spec, JoinSpec) or not spec.equal_keys:
        raise ArgumentError(
            "inspect_keys takes a JoinSpec with equal keys",
            help="write JoinSpec(equal_keys=[('left_column', 'right_column')])",
        )
    names = [parse_name(a) for a, _ in spec.equal_keys]
    plain = JoinSpec(spec.equal_keys, nulls_equal=spec.nulls_equal)
    resolved = resolve_join(plain, source.schema, target.schema, how="semi")
    return left._with(fan_out(source.df, target.df, resolved, names))  # noqa: SLF001  # our own class
