"""Temporal joins of relations: as-of, interval and window joins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from weft.core.findings import ErrorCollector
from weft.errors import ArgumentError, AsofOrderWarning, JoinKeyWarning, JoinSpecError, WeftError
from weft.expr.spark.frames import check_one_session
from weft.joins.explain import JoinExplanation, explain_several
from weft.joins.relation.arguments import check_arguments, refuse_keywords, warn_caller
from weft.joins.relation.foreign import check_foreign, missing_order
from weft.joins.relation.frame import Frame, JoinLineage
from weft.joins.relation.joining import check_relation, join_frames, resolve_projection
from weft.joins.relation.natural import PARAMETERS, infer
from weft.joins.resolve.join import check_conditions
from weft.joins.resolve.natural import NaturalKeys
from weft.joins.several import Part, choose_several, resolve_several
from weft.joins.spark.asof_several import lower_several
from weft.joins.spark.stats import MatchStats
from weft.joins.spark.streams import NullTime, check_promises, check_static_side
from weft.joins.spec.asof import AsofHow, AsofOrder, AsofSpec, TemporalSpec
from weft.joins.spec.join import Keys, check_key_pairs, read_alias_pairs
from weft.joins.spec.predicates import JoinPredicate
from weft.joins.spec.projection import JoinProjection
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.joins.spec.values import Direction, Distance, NearestTie, OrderCheck, Statistics, Unmatched, check_choice

ASOF_PARAMETERS = (
    "order", "by", "direction", "tolerance", "how", "allow_exact_matches", "nearest_tie", "tie_break",
    "range_predicates", "known", "tombstone", "until", "skip_nulls", "order_check", "strategy",
    "statistics",
    *(p for p in PARAMETERS if p != "relationship"),
)  # fmt: skip


_EXAMPLE = "write asof_join_all([(quotes, AsofSpec(...)), (rates, AsofSpec(...))])"


def check_order(left: Frame, spec: AsofSpec, order_check: OrderCheck) -> None:
    """Warn or raise if the left side has no matching order marker; the rows are correct either way."""
    check_choice(order_check, OrderCheck, "order_check")
    if order_check == "ignore" or _is_ordered(left, spec):
        return
    message = (
        f"the left side has no order marker for {spec.order.left!r}; the result is correct, "
        "but the order of its rows is not defined"
    )
    if order_check == "error":
        raise JoinSpecError(message, help=f"call order_by({spec.order.left!r}) first, or order_check='ignore'")
    warn_caller(message, AsofOrderWarning)


def _is_ordered(left: Frame, spec: AsofSpec) -> bool:
    """Whether the marker starts with the keys, in any order, and the order column, or with the order column."""
    schema = left.schema
    marked = [(schema.find(name), up) for name, up in left.ordering]
    order = schema.find(spec.order.left.strip("`"))
    keys = {schema.find(a.strip("`")) for a, _ in spec.equal_keys}
    lead = 0
    while lead < len(marked) and marked[lead][0] in keys and lead < len(keys):
        lead += 1
    # Sorted by key and time, or by time alone: either way the times of each key ascend.
    starts = {0, lead} if lead == len(keys) else {0}
    return any(s < len(marked) and marked[s] == (order, True) for s in starts)


def _natural_spec(
    left: Frame, right: Frame, requested: dict[str, Any], options: dict[str, Any], aliases: dict[str, str]
) -> tuple[AsofSpec, NaturalKeys]:
    """Return the spec of `natural_asof` and where its keys came from; order columns are never keys."""
    mistakes = ErrorCollector()
    check_arguments(left, {**requested, **options}, mistakes)
    with mistakes.collect():
        read_alias_pairs(aliases, None, ASOF_PARAMETERS)
    mistakes.raise_all()
    # The order is needed to infer the keys, because order columns are never keys.
    keyless = AsofSpec((), **requested)
    if options["by"] is not None:
        _check_by_alone(options, aliases)
        pairs = check_key_pairs(options["by"], "by")
        return replace(keyless, equal_keys=pairs), NaturalKeys(pairs, tuple("keys" for _ in pairs))
    try:
        keys = infer(
            left,
            right,
            aliases=aliases,
            order=keyless.order,
            parameters=ASOF_PARAMETERS,
            **{n: options[n] for n in ("strict", "keys", "exclude_shared")},
        )
    except WeftError as cause:
        # Keys cannot be inferred; errors in the other conditions are reported with them.
        mistakes.add(cause)
        check_conditions(keyless, left.schema, right.schema, mistakes)
        mistakes.raise_all()
        raise
    for note in keys.notes:
        warn_caller(note, JoinKeyWarning)
    return replace(keyless, equal_keys=keys.pairs), keys


def _check_by_alone(options: Mapping[str, Any], aliases: Mapping[str, str]) -> None:
    """Raise if keys are written elsewhere too: `by` names all of them."""
    others = [f"{name}=" for name in ("keys", "exclude_shared") if options[name]]
    if others or aliases:
        names = ", ".join((*others, *(f"{name}={value!r}" for name, value in aliases.items())))
        raise ArgumentError(
            f"by= names all keys, so {names} cannot add or remove one",
            code="W0305",
            help="write every key in by=: by=['region', ('customer', 'id')]",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralLineage(JoinLineage):
    """The lineage of a relation that several joins produced at once; the base fields are those of the last one."""

    parts: tuple[Part, ...]
    specs: tuple[AsofSpec, ...]

    def explain(self) -> JoinExplanation:
        """Return the explanation of all joins."""
        return explain_several(self.parts, self.specs, choice=self.choice, ordering=self.left_ordering)


class TemporalJoins(Frame):
    """``natural_asof``, ``asof_join``, ``asof_join_all``, ``interval_join`` and ``window_join``."""

    __slots__ = ()

    def natural_asof(
        self,
        other: Frame,
        /,
        *,
        order: AsofOrder | str | tuple[str, str] | None = None,
        by: Sequence[str | tuple[str, str]] | str | None = None,
        direction: Direction = "backward",
        tolerance: Distance | float | None = None,
        how: AsofHow = "left",
        allow_exact_matches: bool = True,
        nearest_tie: NearestTie = "backward",
        tie_break: Sequence[str] | str = (),
        range_predicates: Sequence[JoinPredicate] | None = None,
        known: AsofOrder | str | tuple[str, str] | None = None,
        tombstone: str | None = None,
        until: str | None = None,
        skip_nulls: Sequence[str] | str = (),
        order_check: OrderCheck = "ignore",
        strategy: str = "auto",
        statistics: Statistics | None = None,
        strict: bool = True,
        project: JoinProjection | None = None,
        predicates: Sequence[JoinPredicate] | None = None,
        suffixes: tuple[str, str] | None = None,
        keys: Keys = None,
        exclude_shared: Sequence[str] | str = (),
        nulls_equal: bool = False,
        unmatched: Unmatched | None = None,
        stats: MatchStats | None = None,
        **key_aliases: str,
    ) -> Self:
        """Join each left row with the nearest right row, in time or another order, that has equal keys.

        Without `by`, columns that both relations have are keys, except the order columns.  See `AsofSpec` for what a match is.

        Parameters
        ----------
        other
            The right relation.  Required.
        order
            The order columns: ``"ts"`` if both sides use that name, ``("event_ts", "quote_ts")``, or an `AsofOrder`.
            An expression may stand for a name: ``("CAST(ts AS timestamp)", "quote_ts")``.  Required.
        by
            All keys, so that none is inferred: a name that both sides have, or a sequence of names and of pairs
            ``("left_name", "right_name")``; ``[]`` for no key.  None (default) infers the keys.
        direction
            ``"backward"`` (default): the last right row at or before the left one.  ``"forward"``: the first right
            row at or after it.  ``"nearest"``: the nearer of the two.
        tolerance
            The greatest distance, inclusive: ``"5 seconds"`` or a timedelta for times, a number for numbers.  None
            (default) allows any distance, except for ``"nearest"``, which needs a tolerance or ``"unbounded"``.
        how
            ``"left"`` (default) keeps left rows without a match, with NULLs; ``"inner"`` drops them.  ``"right"`` keeps
            the right rows that no left row matches, ``"full"`` both.  ``"semi"`` returns the left rows that have a match,
            ``"anti"`` those that have none, both without right columns.
        allow_exact_matches
            Whether a right row with an equal order value may match.  True by default.
        nearest_tie
            Which of two equally near rows wins: the earlier (``"backward"``, default) or the later (``"forward"``).
        tie_break
            Right columns, or one, that decide between right rows with equal order values: the greatest wins.  Empty
            by default: all right columns decide, the first one first.
        range_predicates
            Further predicates that may only name order columns and keys.  None by default.
        known
            A second time axis, for example ``("as_known_at", "known_from")``: a right row may match if it was known
            by then; of equal event times the one known last wins.  None by default.
        tombstone
            A boolean right column: if it is true in the chosen row, there is no match.  None by default.
        until
            A right column with the exclusive end of a state: if the chosen row has ended, there is no match.  None
            by default.
        skip_nulls
            Right columns, or one, for which the nearest value that is not NULL is taken, each column separately;
            ``"all"`` for every one that is neither a key nor a time.  Empty by default.
        order_check
            What to do if the left relation has no matching order marker: ``"warn"``, ``"error"`` or ``"ignore"``
            (default).  The rows are correct either way.
        strategy
            ``"auto"`` (default), or the plan to use: a name from `weft.asof_strategies`.
        statistics
            ``"sample"`` runs a small job first, and its counts decide the plan if `strategy` is ``"auto"``.  None
            (default) runs no job.
        strict
            True (default) makes an alias of an unknown column an error; False drops it with a `JoinKeyWarning`.
        project
            The columns of the result, a `JoinProjection`.  None by default: all left columns, then the right ones
            without the keys.
        predicates
            Further conditions of a match: a sequence of `ColumnPredicate` and `ExpressionPredicate`.  None by default.
        suffixes
            A pair that is added to names that both sides have; short for ``project=JoinProjection(suffixes=...)``.
            None (default) makes such a collision an error.
        keys
            Aliases as a mapping ``{"left name": "right name"}`` or as pairs, for names that are not valid keywords.
            None by default.
        exclude_shared
            Columns that both relations have and that are not keys.  Empty by default.
        nulls_equal
            Whether a NULL key matches a NULL key.  False by default.
        unmatched
            The side whose rows must all have a match: ``"left"``, ``"right"``, ``"both"``, or ``"error"`` for the
            side that the join keeps.  Otherwise the job fails.  None (default) checks nothing.
        stats
            A `MatchStats` that counts matches while the job runs.  None by default.
        **key_aliases
            ``left_name="right_name"`` adds a pair of keys, or replaces the right column of a shared key.

        Returns
        -------
        Relation
            The left columns, then the right ones without the keys.

        Examples
        --------
        ::

            trades                          quotes
            symbol  event_ts  quantity      symbol  quote_ts  bid
            A       10:00:03  100           A       10:00:01  9.5
            B       10:00:04  50            A       10:00:05  9.7

            trades.natural_asof(quotes, order=("event_ts", "quote_ts"), by="symbol", tolerance="5 seconds")

            symbol  event_ts  quantity  quote_ts  bid
            A       10:00:03  100       10:00:01  9.5
            B       10:00:04  50        NULL      NULL
        """
        requested: dict[str, Any] = {
            "order": order, "direction": direction, "tolerance": tolerance, "how": how,
            "allow_exact_matches": allow_exact_matches, "nearest_tie": nearest_tie, "tie_break": tie_break,
            "range_predicates": range_predicates, "known": known, "tombstone": tombstone, "until": until,
            "skip_nulls": skip_nulls, "nulls_equal": nulls_equal, "unmatched": unmatched,
            "predicates": predicates,
        }  # fmt: skip
        options = {
            "by": by, "order_check": order_check, "strategy": strategy, "statistics": statistics, "strict": strict,
            "project": project, "suffixes": suffixes, "keys": keys, "exclude_shared": exclude_shared,
            "stats": stats,
        }  # fmt: skip
        right = check_relation(other, "natural_asof")
        check_foreign("natural_asof", self, right, {**requested, **options, **key_aliases}, own=("by",))
        if order is None:
            raise missing_order("natural_asof", self, right, requested)
        spec, inferred = _natural_spec(self, right, requested, options, key_aliases)
        check_order(self, spec, order_check)
        return join_frames(
            self,
            right,
            spec,
            project=resolve_projection(project, suffixes),
            inference=inferred,
            stats=stats,
            strategy=strategy,
            statistics=statistics,
        )

    def asof_join(
        self,
        other: Frame,
        spec: AsofSpec | None = None,
        /,
        *,
        project: JoinProjection | None = None,
        suffixes: tuple[str, str] | None = None,
        order_check: OrderCheck = "ignore",
        strategy: str = "auto",
        statistics: Statistics | None = None,
        stats: MatchStats | None = None,
        **unexpected: Any,
    ) -> Self:
        """Join each left row with the nearest right row that the spec allows, at most one.

        Parameters
        ----------
        other
            The right relation.  Required.
        spec
            Keys, order columns, direction, tolerance and other options; see `AsofSpec`.  Required.
        project, suffixes
            The columns of the result, a `JoinProjection`; ``suffixes=("", "_r")`` is short for
            ``project=JoinProjection(suffixes=("", "_r"))``.  None by default: all left columns, then the right ones
            without the keys.  Columns with the same name are an error.
        order_check
            What to do if the left relation has no matching order marker: ``"warn"``, ``"error"`` or ``"ignore"``
            (default).
        strategy
            ``"auto"`` (default), or the plan to use: a name from `weft.asof_strategies`.
        statistics
            ``"sample"`` runs a small job first, and its counts decide the plan if `strategy` is ``"auto"``.  None
            (default) runs no job.
        stats
            A `MatchStats` that counts matches while the job runs.  None by default.

        Examples
        --------
        ::

            trades                      quotes
            symbol  at        qty       symbol  quoted    bid
            A       10:00:03  100       A       10:00:01  9.5

            trades.asof_join(quotes, AsofSpec([("symbol", "symbol")], order=AsofOrder("at", "quoted")))

            symbol  at        qty  quoted    bid
            A       10:00:03  100  10:00:01  9.5
        """
        right = check_relation(other, "asof_join")
        check_foreign("asof_join", self, right, {"suffixes": suffixes, "strategy": strategy, **unexpected})
        _expect(spec, AsofSpec, "asof_join", unexpected)
        assert isinstance(spec, AsofSpec)  # noqa: S101  # what _expect has checked
        check_order(self, spec, order_check)
        return join_frames(
            self,
            right,
            spec,
            project=resolve_projection(project, suffixes),
            stats=stats,
            strategy=strategy,
            statistics=statistics,
        )

    def interval_join(
        self,
        other: Frame,
        spec: IntervalSpec | None = None,
        /,
        *,
        project: JoinProjection | None = None,
        suffixes: tuple[str, str] | None = None,
        stats: MatchStats | None = None,
        on_null_time: NullTime | None = None,
        **unexpected: Any,
    ) -> Self:
        """Join pairs of rows whose times are within bounds of each other, or whose ranges overlap.

        Parameters
        ----------
        other
            The right relation.  Required.
        spec
            Keys, order columns, and bounds or end columns; see `IntervalSpec`.  Required.
        project, suffixes
            The columns of the result, a `JoinProjection`; ``suffixes=("", "_r")`` is short for
            ``project=JoinProjection(suffixes=("", "_r"))``.  None by default: all left columns, then the right ones
            without the keys.  If both order columns have the same name, the right one gets the right suffix.
        stats
            A `MatchStats` that counts matches while the job runs.  None by default.
        on_null_time
            For two streams, whose order columns must have a watermark: a row of an outer side without a time fails
            the query (``"error"``) or is dropped (``"drop"``).  None (default) is ``"error"``.

        Examples
        --------
        ::

            orders             shipments
            id  at             id  sent
            1   2026-01-01     1   2026-01-02

            spec = IntervalSpec([("id", "id")], order=AsofOrder("at", "sent"), lower="0 days", upper="3 days")
            orders.interval_join(shipments, spec)

            id  at          sent
            1   2026-01-01  2026-01-02
        """
        _expect(spec, IntervalSpec, "interval_join", unexpected)
        assert isinstance(spec, IntervalSpec)  # noqa: S101  # what _expect has checked
        right, project = check_relation(other, "interval_join"), resolve_projection(project, suffixes)
        return join_frames(self, right, spec, project=project, stats=stats, on_null_time=on_null_time)

    def window_join(
        self,
        other: Frame,
        spec: WindowSpec | None = None,
        /,
        *,
        project: JoinProjection | None = None,
        suffixes: tuple[str, str] | None = None,
        stats: MatchStats | None = None,
        on_null_time: NullTime | None = None,
        **unexpected: Any,
    ) -> Self:
        """Join pairs of rows whose times are in one tumbling, sliding or session window.

        Parameters
        ----------
        other
            The right relation.  Required.
        spec
            Keys, order columns and the window; see `WindowSpec`.  Required.
        project, suffixes
            The columns of the result, a `JoinProjection`; ``suffixes=("", "_r")`` is short for
            ``project=JoinProjection(suffixes=("", "_r"))``.  None by default: all left columns, then the right ones
            without the keys.  If both order columns have the same name, the right one gets the right suffix.
        stats
            A `MatchStats` that counts the matches of all windows while the job runs.  None by default.
        on_null_time
            For two streams, whose order columns must have a watermark: a row of an outer side without a time fails
            the query (``"error"``) or is dropped (``"drop"``).  None (default) is ``"error"``.

        Examples
        --------
        ::

            views              clicks
            user  seen         user  clicked
            u1    10:05        u1    10:40

            spec = WindowSpec([("user", "user")], order=AsofOrder("seen", "clicked"), window="tumbling", size="1 hour")
            views.window_join(clicks, spec)

            user  seen   clicked
            u1    10:05  10:40
        """
        _expect(spec, WindowSpec, "window_join", unexpected)
        assert isinstance(spec, WindowSpec)  # noqa: S101  # what _expect has checked
        right, project = check_relation(other, "window_join"), resolve_projection(project, suffixes)
        return join_frames(self, right, spec, project=project, stats=stats, on_null_time=on_null_time)

    def asof_join_all(
        self,
        parts: Sequence[tuple[Frame, AsofSpec] | tuple[Frame, AsofSpec, JoinProjection]],
        /,
        *,
        order_check: OrderCheck = "ignore",
        **unexpected: Any,
    ) -> Self:
        """As-of joins with several right relations in one shuffle.

        The result has the same rows, columns and names as a chain of `asof_join` calls.  All parts must have
        the same left keys and the same left order column; direction, tolerance and other options may differ.

        Parameters
        ----------
        parts
            A sequence of tuples: a right relation, its `AsofSpec` and, if columns collide, a `JoinProjection`.
            Required.
        order_check
            What to do if the left relation has no matching order marker: ``"warn"``, ``"error"`` or ``"ignore"``
            (default).

        Examples
        --------
        ::

            at = AsofOrder("event_ts", "event_ts")
            enriched = trades.asof_join_all(
                [
                    (quotes, AsofSpec([("symbol", "symbol")], order=at), JoinProjection(suffixes=("", "_quote"))),
                    (rates, AsofSpec([("symbol", "symbol")], order=at), JoinProjection(suffixes=("", "_rate"))),
                ]
            )
        """
        refuse_keywords("asof_join_all", unexpected, AsofSpec, ("order_check",))
        # The steps of `join_frames` for several right sides: specs, resolve, choose, lower, Relation.
        inputs = [_check_part(part, number) for number, part in enumerate(_check_parts(parts), start=1)]
        for right, _, _ in inputs:
            check_one_session(self.session, right.session)
        check_order(self, inputs[0][1], order_check)
        resolved = resolve_several(self.schema, [(spec, right.schema, project) for right, spec, project in inputs])
        for part, (right, _, _) in zip(resolved, inputs, strict=True):
            check_promises(self.df, right.df, part.chained)
            check_static_side(self.df, right.df, part.chained)
        df = lower_several(self.df, [right.df for right, _, _ in inputs], resolved)
        _, spec, project = inputs[-1]
        lineage = SeveralLineage(
            spec=spec,
            project=project,
            resolved=resolved[-1].chained,
            choice=choose_several(resolved),
            left_ordering=self.ordering,
            parts=resolved,
            specs=tuple(spec for _, spec, _ in inputs),
        )
        return replace(self, df=df, schema=resolved[-1].chained.schema, ordering=(), lineage=lineage, preview=None)


def _expect(spec: object, kind: type[TemporalSpec], method: str, unexpected: dict[str, Any]) -> None:
    taken = ("project", "suffixes", "stats")
    more = ("order_check", "strategy", "statistics") if kind is AsofSpec else ("on_null_time",)
    refuse_keywords(method, unexpected, kind, (*taken, *more))
    if not isinstance(spec, kind):
        raise ArgumentError(
            f"{method} takes a {kind.__name__}, not {type(spec).__name__}",
            help=f"write {kind.__name__}(order=AsofOrder(left='event_ts', right='quote_ts'), ...)",
        )


def _check_parts(parts: object) -> Sequence[Any]:
    if isinstance(parts, str | Frame) or not isinstance(parts, Sequence) or not parts:
        kind = "an empty sequence" if isinstance(parts, Sequence) and not parts else type(parts).__name__
        raise ArgumentError(f"asof_join_all takes a sequence of parts, not {kind}", help=_EXAMPLE)
    return parts


def _check_part(part: object, number: int) -> tuple[Frame, AsofSpec, JoinProjection | None]:
    if not isinstance(part, tuple) or len(part) not in (2, 3):
        kind = f"a tuple of {len(part)}" if isinstance(part, tuple) else type(part).__name__
        message = f"asof_join_all: part {number} must be a tuple of a relation and an AsofSpec, not {kind}"
        raise ArgumentError(message, help=_EXAMPLE)
    right = check_relation(part[0], f"asof_join_all: part {number}")
    if not isinstance(part[1], AsofSpec):
        raise ArgumentError(
            f"asof_join_all: part {number} takes an AsofSpec, not {type(part[1]).__name__}", help=_EXAMPLE
        )
    return right, part[1], resolve_projection(part[2] if len(part) == 3 else None, None)
