"""explain_join, build_join_spec, inspect_keys and inspect_matches: information about a join before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

from weft.core.names import parse_name, quote
from weft.errors import ArgumentError, JoinKeyWarning
from weft.expr.spark.frames import check_one_session
from weft.joins.choose import choose
from weft.joins.explain import JoinExplanation, explain_resolved, explain_spec
from weft.joins.facts import MatchCounts
from weft.joins.relation import Relation
from weft.joins.relation.arguments import warn_caller
from weft.joins.relation.joining import check_relation
from weft.joins.relation.natural import infer
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.resolved import AsOf
from weft.joins.spark.facts import read_session_facts
from weft.joins.spark.failures import coded_errors
from weft.joins.spark.matches import count_matches
from weft.joins.spark.stats import fan_out
from weft.joins.spark.streams import check_not_streaming, is_stream_join, stream_choice
from weft.joins.spec.join import FROM_KWARGS, JoinSpec, Keys, check_predicates
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
    """Print the explanation of a join, or display it in a notebook, and return it.  No job runs.

    Pass a spec, or two relations and a spec, or a relation that a join returned.

    Parameters
    ----------
    left
        The left relation, a relation that a join returned, or a spec.  Required.
    right
        The right relation.  None (default) if `left` is a spec or a joined relation.
    spec
        The spec to explain.  None (default) explains the natural join of the two relations.
    how
        ``"inner"`` (default), ``"left"``, ``"right"``, ``"full"``, ``"semi"``, ``"anti"`` or ``"cross"``.
    project
        The `JoinProjection` of the join.  None by default.
    file
        Where to print.  None (default) is standard output.

    Examples
    --------
    >>> explanation = explain_join(JoinSpec([("customer_id", "id")]), how="left")
    left join, unbound
      condition  left.customer_id = right.id
      nulls      a NULL key matches nothing
      method     left_outer (was left_join)
      keys
        left.customer_id  right.id
      spec fingerprint  d1e4b661897621cb

    With relations it also has the columns of the result and the strategy::

        weft.explain_join(orders, customers, JoinSpec([("customer_id", "id")]), how="left")
        weft.explain_join(orders.natural_left(customers, customer_ref="id"))
    """
    explanation = _explain(left, right, spec, how, project)
    if file is None:
        return explanation.show()
    print(explanation, file=file)
    return explanation


def _explain(left: Any, right: Any, spec: Any, how: Any, project: Any) -> JoinExplanation:
    if isinstance(left, JoinSpec):
        _ignored("a spec alone", right=right, spec=spec, project=project)
        return explain_spec(left, how)
    source = check_relation(left, "explain_join")
    if right is None and spec is None:
        if source.lineage is None:
            raise ArgumentError(
                "explain_join: this relation is not the result of a join, or was changed after it",
                help="explain the relation that the join returned: only filter, limit and order_by keep its lineage\n"
                "or pass two relations and a spec: explain_join(left, right, spec)",
            )
        _ignored("a relation that a join returned", how=how, project=project)
        return source.lineage.explain()
    target = check_relation(right, "explain_join")
    inference = None
    if spec is None and how != "cross":
        inference = infer(source, target, strict=True, keys=None, exclude_shared=(), aliases={})
        spec = JoinSpec(inference.pairs)
    resolved = resolve_join(spec, source.schema, target.schema, how=how, project=project, inference=inference)
    # As in `join_frames`: the same functions choose, so that the explanation is that of the join that would run.
    choice = None
    if is_stream_join(source.df, target.df, resolved):
        choice = stream_choice(source.df, target.df, resolved)
    elif isinstance(resolved.match, AsOf):
        choice = choose(resolved, session_facts=read_session_facts(source.df, target.df))
    return explain_resolved(resolved, spec, ordering=source.ordering, choice=choice)


def _ignored(what: str, **named: object) -> None:
    """Raise for arguments that do not apply to `what`."""
    names = [f"{name}=" for name, value in named.items() if value is not None]
    if names:
        raise ArgumentError(
            f"explain_join of {what} takes no {' or '.join(names)}",
            code="W0305",
            help="pass two relations and a spec: explain_join(left, right, spec, how=..., project=...)",
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

    Parameters
    ----------
    left, right
        The two relations.  Required.
    strict
        True (default) makes an alias of an unknown column an error; False drops it with a `JoinKeyWarning`.
    keys
        Aliases as a mapping or as pairs, for names that are not valid keywords.  None by default.
    predicates, nulls_equal, relationship, unmatched
        Options of the spec, with the same defaults; see `JoinSpec`.
    exclude_shared
        Columns that both relations have and that are not keys.  Empty by default.
    **aliases
        ``left_name="right_name"`` adds a pair of keys, or replaces the right column of a shared key.

    Examples
    --------
    ::

        spec = build_join_spec(orders, customers, customer_ref="id")
        print(spec)
        # left.customer_ref = right.id
        orders.left_outer(customers, spec)
    """
    inferred = infer(
        check_relation(left, "build_join_spec"),
        check_relation(right, "build_join_spec"),
        strict=strict,
        keys=keys,
        exclude_shared=exclude_shared,
        aliases=aliases,
        parameters=("strict", "exclude_shared", *FROM_KWARGS),
    )
    for note in inferred.notes:
        warn_caller(note, JoinKeyWarning)
    return JoinSpec(
        inferred.pairs,
        check_predicates(predicates, "predicates"),
        nulls_equal=nulls_equal,
        relationship=relationship,
        unmatched=unmatched,
    )


def inspect_keys(left: Relation, right: Relation, spec: JoinSpec | None = None) -> Relation:
    """Count the rows of each key on both sides: one row per key of either side.

    Columns are the keys under their left names, ``left_count``, ``right_count``,
    ``pair_count`` (the rows that an inner join returns) and ``shared``.  Sort by ``pair_count``
    to see the keys that have most of the joined rows.

    Parameters
    ----------
    left, right
        The two relations.  Required.
    spec
        The spec whose equal keys are counted.  None (default) takes the keys of the natural join.

    Examples
    --------
    ::

        inspect_keys(orders, customers).order_by(("pair_count", False)).show(5)
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
    # Only keys are counted, without predicates and promises; names of a semi join cannot collide.
    plain = JoinSpec(spec.equal_keys, nulls_equal=spec.nulls_equal)
    resolved = resolve_join(plain, source.schema, target.schema, how="semi")
    return left._with(fan_out(source.df, target.df, resolved, names))  # noqa: SLF001  # our own class


def inspect_matches(left: Relation, right: Relation, spec: JoinSpec | None = None) -> MatchCounts:
    """Run a join and count the rows of each side that have a match, and how many matches they have.

    Promises of the spec (`relationship`, `unmatched`) are not enforced: the counts show whether they would hold.

    Parameters
    ----------
    left, right
        The two relations.  Required.
    spec
        The spec of the join.  None (default) takes the keys of the natural join.

    Examples
    --------
    ::

        counts = inspect_matches(trades, quotes, AsofSpec([("symbol", "symbol")], order=AsofOrder("ts", "ts")))
        print(counts)
        # 97 of 100 left rows match (97.0 %), 40 of 40 right rows match (100 %)
        # 97 pairs: at most 1 for a left row and 9 for a right row
        counts.plot()  # the same as a picture
    """
    source, target = check_relation(left, "inspect_matches"), check_relation(right, "inspect_matches")
    check_one_session(source.session, target.session)
    for df in (source.df, target.df):
        check_not_streaming(df, "inspect_matches")
    spec = spec if spec is not None else build_join_spec(left, right)
    if not isinstance(spec, JoinSpec):
        raise ArgumentError(
            f"inspect_matches takes a JoinSpec, not {type(spec).__name__}",
            help="write for example inspect_matches(left, right, JoinSpec([('left_column', 'right_column')]))",
        )
    # Only matches are counted, so that columns of one name need no new ones.
    project = JoinProjection(right_keys="keep", keep=[f"right.{quote(target.columns[0])}"])
    resolved = resolve_join(spec, source.schema, target.schema, how=None, project=project)
    with coded_errors():
        return count_matches(source.df, target.df, resolved)
