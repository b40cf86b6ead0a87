"""join_frames, which all join methods call: resolve, choose, lower, and record the lineage."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from weft.errors import ArgumentError
from weft.expr.spark.frames import check_one_session
from weft.joins.choose import choose
from weft.joins.facts import UNKNOWN, Facts, SessionFacts
from weft.joins.relation.frame import Frame, JoinLineage
from weft.joins.resolve.join import resolve_join
from weft.joins.resolve.natural import NaturalKeys
from weft.joins.resolve.resolved import AsOf, ResolvedJoin
from weft.joins.spark import streams
from weft.joins.spark.facts import read_session_facts, sample_facts
from weft.joins.spark.lowering import lower
from weft.joins.spark.stats import MatchStats
from weft.joins.spark.streams import NullTime, check_promises, check_static_side, is_stream_join, stream_choice
from weft.joins.spec.join import JoinSpec
from weft.joins.spec.projection import JoinProjection
from weft.joins.spec.values import How, Statistics, check_choice

R = TypeVar("R", bound=Frame)


def check_relation(other: object, method: str) -> Frame:
    """Return `other` if it is a relation; otherwise raise with how to create one."""
    if isinstance(other, Frame):
        return other
    raise ArgumentError(
        f"{method} takes a Relation, not {type(other).__name__}",
        help="wrap it: weft.relation(df)" if hasattr(other, "sparkSession") else "create one with weft.relation(df)",
    )


def resolve_projection(project: object, suffixes: object) -> JoinProjection | None:
    """Return the projection from `project=` or its shorthand `suffixes=`."""
    if project is not None and not isinstance(project, JoinProjection):
        raise ArgumentError(
            f"project must be a JoinProjection, not {type(project).__name__}", help="write project=JoinProjection(...)"
        )
    if suffixes is None:
        return project
    if project is not None:
        raise ArgumentError(
            "write project= or suffixes=, not both",
            code="W0305",
            help="suffixes=(...) is short for project=JoinProjection(suffixes=(...))",
        )
    return JoinProjection(suffixes=suffixes)  # type: ignore[arg-type]  # JoinProjection checks it


def check_stats(stats: object) -> None:
    """Raise unless `stats` is a MatchStats or None."""
    if stats is not None and not isinstance(stats, MatchStats):
        raise ArgumentError(
            f"stats must be a MatchStats, not {type(stats).__name__}",
            help="write stats = weft.MatchStats(), and stats=stats",
        )


def _facts(left: Frame, right: Frame, join: ResolvedJoin, strategy: str, statistics: Statistics | None) -> Facts | None:
    """Return the facts of a sample if requested; a strategy that refuses the join raises before the job."""
    if statistics is None:
        return None
    check_choice(statistics, Statistics, "statistics")
    choose(join, strategy)  # only to raise before the job runs
    return sample_facts(left.df, right.df, join)


def _ground(left: Frame, right: Frame, join: ResolvedJoin, strategy: str) -> SessionFacts:
    """Return Spark's estimates and the abilities of workers if the choice depends on them."""
    is_needed = isinstance(join.match, AsOf) and strategy in ("auto", "kernel", "slices")
    return read_session_facts(left.df, right.df) if is_needed else UNKNOWN


def _check_null_time(on_null_time: object) -> None:
    if on_null_time is not None:
        raise ArgumentError(
            "on_null_time= is only valid for two streams; otherwise a row without a time is unmatched, and an outer "
            "join keeps it",
            code="W0305",
            help="leave on_null_time= out, or filter the rows first",
        )


def join_frames(
    left: R,
    right: Frame,
    spec: JoinSpec | None,
    *,
    how: How | None = None,
    project: JoinProjection | None = None,
    inference: NaturalKeys | None = None,
    stats: MatchStats | None = None,
    strategy: str = "auto",
    statistics: Statistics | None = None,
    on_null_time: NullTime | None = None,
) -> R:
    """Join two frames by a spec; every join method ends here.

    ::

        spec -> resolve -> choose -> lower -> Relation

    All errors in the spec are raised before Spark is called, and no job runs except for ``statistics="sample"``.
    """
    check_one_session(left.session, right.session)
    check_stats(stats)
    # Resolve: find columns, compare types, determine the columns of the result.
    resolved = resolve_join(spec, left.schema, right.schema, how=how, project=project, inference=inference)
    check_promises(left.df, right.df, resolved)
    check_static_side(left.df, right.df, resolved)
    observation = stats.attach(left.df, right.df) if stats is not None else None
    if is_stream_join(left.df, right.df, resolved):
        # Two streams: Spark's own join is the only strategy.
        check_choice(on_null_time or "error", NullTime, "on_null_time")
        choice = stream_choice(left.df, right.df, resolved)
        df = streams.lower(left.df, right.df, resolved, on_null_time=on_null_time or "error")
    else:
        _check_null_time(on_null_time)
        # Choose: a strategy, with the reason that `explain_join` prints.
        facts = _facts(left, right, resolved, strategy, statistics)
        choice = choose(resolved, strategy, facts=facts, session_facts=_ground(left, right, resolved, strategy))
        # Lower: the strategy builds a lazy DataFrame.
        df = lower(left.df, right.df, resolved, choice, observation=observation)
    # Relation: the result records its lineage and has no order marker.
    lineage = JoinLineage(
        spec=spec,
        project=project,
        resolved=resolved,
        choice=choice,
        left_ordering=left.ordering,
        natural=inference is not None,
        inputs=(left.df, right.df),
    )
    return replace(left, df=df, schema=resolved.schema, ordering=(), lineage=lineage, preview=None)
