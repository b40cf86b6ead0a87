"""The one place where relations are joined: resolve, choose, lower, remember."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from weft.errors import ArgumentError
from weft.expr.spark.frames import check_one_session
from weft.joins.choose import choose
from weft.joins.facts import UNKNOWN, SessionFacts
from weft.joins.relation.frame import Frame, JoinLineage
from weft.joins.resolve.join import Inference, resolve_join
from weft.joins.resolve.resolved import AsOf, ResolvedJoin
from weft.joins.spark import streams
from weft.joins.spark.facts import read_session_facts, sampled_facts
from weft.joins.spark.lowering import lower
from weft.joins.spark.stats import MatchStats
from weft.joins.spark.streams import (
    NullTime,
    check_promises,
    check_static_side,
    is_stream_join,
    stream_choice,
)
from weft.joins.spec.join import JoinSpec
from weft.joins.spec.projection import JoinProjection
from weft.joins.spec.values import Statistics, check_choice

if TYPE_CHECKING:
    from weft.joins.facts import Facts
    from weft.joins.spec.values import How

R = TypeVar("R", bound=Frame)


def check_relation(other: object, method: str) -> Frame:
    """Return `other`, or raise with the way to wrap it."""
    if isinstance(other, Frame):
        return other
    raise ArgumentError(
        f"{method} takes a Relation, not {type(other).__name__}",
        help="wrap it: weft.relation(df)"
        if hasattr(other, "sparkSession")
        else "weft.relation(df) makes one of a DataFrame",
    )


def resolve_projection(project: object, suffixes: object) -> JoinProjection | None:
    """Return the projection that `project=` or its shorthand `suffixes=` says."""
    if project is not None and not isinstance(project, JoinProjection):
        raise ArgumentError(
            f"project must be a JoinProjection, not {type(project).__name__}",
            help="write project=JoinProjection(...)",
        )
    if suffixes is None:
        return project
    if project is not None:
        raise ArgumentError(
            "give project= or suffixes=, not both",
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


def _facts(
    left: Frame, right: Frame, join: ResolvedJoin, strategy: str, statistics: Statistics | None
) -> Facts | None:
    """Return what a sample tells when it was asked for; a strategy that refuses is told before the job."""
    if statistics is None:
        return None
    check_choice(statistics, Statistics, "statistics")
    choose(join, strategy)
    return sampled_facts(left.df, right.df, join)


def _ground(left: Frame, right: Frame, join: ResolvedJoin, strategy: str) -> SessionFacts:
    """Return Spark's estimates and what workers can do, where a choice hangs on them."""
    asked = isinstance(join.match, AsOf) and strategy in ("auto", "kernel", "slices")
    return read_session_facts(left.df, right.df) if asked else UNKNOWN


def _settled_null_time(said: NullTime | None) -> NullTime:
    check_choice(said or "error", NullTime, "on_null_time")
    return said or "error"


def _refuse_null_time(said: object) -> None:
    if said is not None:
        raise ArgumentError(
            "on_null_time= is about two streams; elsewhere a row without a time matches nothing, and an outer join "
            "shows it",
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
    inference: Inference | None = None,
    stats: MatchStats | None = None,
    strategy: str = "auto",
    statistics: Statistics | None = None,
    on_null_time: NullTime | None = None,
) -> R:
    """Return the join of two frames by a spec: the walk that every join method takes.

    ::

        spec -> resolve -> choose -> lower -> Relation

    A spec says what is wanted.  Everything that can be wrong is raised before Spark is asked for anything, and no
    job runs unless ``statistics="sample"`` asks for one.
    """
    # The spec was built and checked by the method; here two relations meet it.
    check_one_session(left.session, right.session)
    check_stats(stats)
    # Resolve: names become columns, types meet, the columns of the result are settled.
    resolved = resolve_join(spec, left.schema, right.schema, how=how, project=project, inference=inference)
    check_promises(left.df, right.df, resolved)
    check_static_side(left.df, right.df, resolved)
    observation = stats.attach(left.df, right.df) if stats is not None else None
    if is_stream_join(left.df, right.df, resolved):
        # Two streams: Spark's own join is the one strategy there is.
        choice = stream_choice(left.df, right.df, resolved)
        df = streams.lower(left.df, right.df, resolved, on_null_time=_settled_null_time(on_null_time))
    else:
        _refuse_null_time(on_null_time)
        # Choose: a strategy, with the reason that `explain_join` prints.
        facts = _facts(left, right, resolved, strategy, statistics)
        choice = choose(
            resolved, strategy, facts=facts, session_facts=_ground(left, right, resolved, strategy)
        )
        # Lower: the strategy builds a lazy DataFrame.
        df = lower(left.df, right.df, resolved, choice, observation=observation)
    # Relation: the result remembers how it came about, and has no order of its own.
    lineage = JoinLineage(
        spec=spec,
        project=project,
        resolved=resolved,
        choice=choice,
        left_ordering=left.ordering,
        natural=inference is not None,
    )
    return replace(left, df=df, schema=resolved.schema, ordering=(), lineage=lineage)
