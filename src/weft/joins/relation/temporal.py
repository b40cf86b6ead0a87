"""Joins in which time decides: as-of, interval and window joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from weft.core.findings import ErrorCollector
from weft.errors import ArgumentError, AsofOrderWarning, JoinKeyWarning, JoinSpecError, WeftError
from weft.joins.relation.arguments import check_arguments, notice, refuse_keywords
from weft.joins.relation.foreign import missing_order, refuse_foreign
from weft.joins.relation.frame import Frame
from weft.joins.relation.joining import check_relation, join_frames, resolve_projection
from weft.joins.relation.natural import PARAMETERS, infer
from weft.joins.resolve.join import Inference, check_conditions
from weft.joins.resolve.natural import NaturalKeys
from weft.joins.spec.asof import AsofOrder, AsofSpec, TemporalSpec
from weft.joins.spec.join import Keys, read_alias_pairs
from weft.joins.spec.temporal import IntervalSpec, WindowSpec
from weft.joins.spec.values import OrderCheck, Statistics, check_choice

if TYPE_CHECKING:
    from weft.joins.spark.stats import MatchStats
    from weft.joins.spark.streams import NullTime
    from weft.joins.spec.asof import AsofHow
    from weft.joins.spec.predicates import JoinPredicate
    from weft.joins.spec.projection import JoinProjection
    from weft.joins.spec.values import Direction, Distance, NearestTie, Unmatched

ASOF_PARAMETERS = (
    "order", "direction", "tolerance", "how", "allow_exact_matches", "nearest_tie", "tie_break",
    "range_predicates", "known", "tombstone", "until", "skip_nulls", "order_check", "strategy",
    "statistics",
    *(p for p in PARAMETERS if p != "relationship"),
)  # fmt: skip


def check_order(left: Frame, spec: AsofSpec, order_check: OrderCheck) -> None:
    """Warn or raise when the left side carries no marker that fits, if asked to; the rows are right either way."""
    check_choice(order_check, OrderCheck, "order_check")
    if order_check == "ignore" or _is_ordered(left, spec):
        return
    message = (
        f"the left side carries no order marker for {spec.order.left!r}; the result is correct regardless, "
        "and the order of its rows is not promised"
    )
    if order_check == "error":
        raise JoinSpecError(
            message, help=f"call order_by({spec.order.left!r}) first, or order_check='ignore'"
        )
    notice(message, AsofOrderWarning)


def _is_ordered(left: Frame, spec: AsofSpec) -> bool:
    """Whether the marker begins with the keys in any order and the order column, or with it alone."""
    schema = left.schema
    marked = [(schema.find(name), up) for name, up in left.ordering]
    wanted = schema.find(spec.order.left.strip("`"))
    keys = {schema.find(a.strip("`")) for a, _ in spec.equal_keys}
    lead = 0
    while lead < len(marked) and marked[lead][0] in keys and lead < len(keys):
        lead += 1
    starts = {0, lead} if lead == len(keys) else {0}
    return any(s < len(marked) and marked[s] == (wanted, True) for s in starts)


def _natural_spec(
    left: Frame, right: Frame, said: dict[str, Any], options: dict[str, Any], aliases: dict[str, str]
) -> tuple[AsofSpec, NaturalKeys]:
    """Return the spec of `natural_asof` and where its keys came from; order columns are never keys."""
    mistakes = ErrorCollector()
    check_arguments(left, {**said, **options}, mistakes)
    with mistakes.collect():
        read_alias_pairs(aliases, None, ASOF_PARAMETERS)
    mistakes.raise_all()
    keyless = AsofSpec((), **said)
    try:
        found = infer(
            left,
            right,
            aliases=aliases,
            order=keyless.order,
            parameters=ASOF_PARAMETERS,
            **{n: options[n] for n in ("strict", "keys", "exclude_shared")},
        )
    except WeftError as cause:
        # The keys stop here; what is wrong with the rest is told with them.
        mistakes.add(cause)
        check_conditions(keyless, left.schema, right.schema, mistakes)
        mistakes.raise_all()
        raise
    for note in found.notes:
        notice(note, JoinKeyWarning)
    return replace(keyless, equal_keys=found.pairs), found


class TemporalJoins(Frame):
    """``natural_asof``, ``asof_join``, ``interval_join`` and ``window_join``."""

    __slots__ = ()

    def natural_asof(
        self,
        other: Frame,
        /,
        *,
        order: AsofOrder | None = None,
        direction: Direction = "backward",
        tolerance: Distance | float | None = None,
        how: AsofHow = "left",
        allow_exact_matches: bool = True,
        nearest_tie: NearestTie = "backward",
        tie_break: Sequence[str] = (),
        range_predicates: Sequence[JoinPredicate] | None = None,
        known: AsofOrder | None = None,
        tombstone: str | None = None,
        until: str | None = None,
        skip_nulls: Sequence[str] = (),
        order_check: OrderCheck = "ignore",
        strategy: str = "auto",
        statistics: Statistics | None = None,
        strict: bool = True,
        project: JoinProjection | None = None,
        predicates: Sequence[JoinPredicate] | None = None,
        suffixes: tuple[str, str] | None = None,
        keys: Keys = None,
        exclude_shared: Sequence[str] = (),
        nulls_equal: bool = False,
        unmatched: Unmatched | None = None,
        stats: MatchStats | None = None,
        **key_aliases: str,
    ) -> Self:
        """For each left row the nearest right row among those with equal shared columns.

        Keys are inferred as in the natural joins, but order columns are never keys.  Candidates are filtered
        first and the choice is made second; `AsofSpec` says what a match is.

        Parameters
        ----------
        other
            The right relation.
        order
            The columns that are compared: ``AsofOrder(left="event_ts", right="quote_ts")``.  Required.
        direction
            ``"backward"`` (default) takes the last right row at or before the left one, ``"forward"`` the first
            at or after it, ``"nearest"`` the nearer of the two.
        tolerance
            The greatest distance: ``"5 seconds"`` or a timedelta for times, a number for numbers.  None (default)
            is any distance; ``"nearest"`` needs a tolerance, and ``"unbounded"`` says that any will do.
        how
            ``"left"`` (default) keeps left rows without a match, with NULLs; ``"inner"`` leaves them out.
        allow_exact_matches
            False leaves out right rows with an equal order value; True by default.
        nearest_tie
            Of two equally near rows the earlier (``"backward"``, default) or the later one (``"forward"``).
        tie_break
            Right columns that decide between right rows with equal order value: the greatest wins.  What is
            still equal falls to all right columns in order.
        range_predicates
            Conditions that name order columns and keys only.
        known
            A second time axis: of ``AsofOrder(left="as_known_at", right="known_from")`` a right row counts when it
            was known by then, and of equal event times the one known last wins.
        tombstone
            A boolean right column: when the chosen row has it true, there is no match.
        until
            A right column with the end of a state, exclusive: a chosen row that has ended is no match.
        skip_nulls
            Right columns that take the nearest value that is not NULL, each for itself.
        order_check
            ``"warn"`` or ``"error"`` when the left side has no order marker that fits; ``"ignore"`` by default,
            because the rows are right either way.
        strategy
            ``"auto"`` (default) or a name of `weft.asof_strategies`.
        statistics
            ``"sample"`` runs one small job first, whose facts decide when no strategy is forced.
        strict
            True (default) refuses aliases that name no column; False drops them, with a `JoinKeyWarning`.
        project, suffixes
            Columns and names of the result, a `JoinProjection`; ``suffixes=("", "_r")`` is short for
            ``project=JoinProjection(suffixes=("", "_r"))``.  By default all left columns, then the right ones
            without the keys; a right column with the name of a left one is an error.
        predicates
            Further conditions on a pair, in order; see `ColumnPredicate` and `ExpressionPredicate`.
        keys
            Aliases as a mapping ``{"left name": "right name"}`` or as pairs, for names that cannot be
            written as a keyword.
        exclude_shared
            Shared columns that are not keys.
        nulls_equal
            True lets a NULL key equal a NULL key; False by default.
        unmatched
            Which side must have a match for every row: ``"left"``, ``"right"``, ``"both"``, or ``"error"`` for the
            side that the join keeps.  The job fails otherwise.  None (default) checks nothing.
        stats
            A `MatchStats` that counts matches while the job runs.
        **key_aliases
            ``left_name="right_name"`` adds a pair of keys, or replaces the partner of a shared column.

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

            trades.natural_asof(
                quotes, order=AsofOrder(left="event_ts", right="quote_ts"), tolerance="5 seconds"
            )

            symbol  event_ts  quantity  quote_ts  bid
            A       10:00:03  100       10:00:01  9.5
            B       10:00:04  50        NULL      NULL
        """
        said: dict[str, Any] = {
            "order": order, "direction": direction, "tolerance": tolerance, "how": how,
            "allow_exact_matches": allow_exact_matches, "nearest_tie": nearest_tie, "tie_break": tie_break,
            "range_predicates": range_predicates, "known": known, "tombstone": tombstone, "until": until,
            "skip_nulls": skip_nulls, "nulls_equal": nulls_equal, "unmatched": unmatched,
            "predicates": predicates,
        }  # fmt: skip
        options = {
            "order_check": order_check, "strategy": strategy, "statistics": statistics, "strict": strict,
            "project": project, "suffixes": suffixes, "keys": keys, "exclude_shared": exclude_shared,
            "stats": stats,
        }  # fmt: skip
        right = check_relation(other, "natural_asof")
        refuse_foreign("natural_asof", self, right, {**said, **options, **key_aliases})
        if order is None:
            raise missing_order("natural_asof", self, right, said)
        spec, found = _natural_spec(self, right, said, options, key_aliases)
        check_order(self, spec, order_check)
        return join_frames(
            self,
            right,
            spec,
            project=resolve_projection(project, suffixes),
            inference=Inference(origins=found.origins, dropped=found.dropped, displaced=found.displaced),
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
        """For each left row the nearest right row that the spec allows, at most one.

        ``trades.asof_join(quotes, AsofSpec([("symbol", "symbol")], order=AsofOrder("event_ts", "quote_ts")))``

        Parameters
        ----------
        other
            The right relation.
        spec
            Keys, order columns, direction, tolerance and the rest; see `AsofSpec`.
        project, suffixes
            Columns and names of the result; ``suffixes=("", "_r")`` is short for
            ``project=JoinProjection(suffixes=("", "_r"))``.  By default a collision of names is an error.
        order_check
            ``"warn"`` or ``"error"`` when the left side has no order marker that fits; ``"ignore"`` by default.
        strategy
            ``"auto"`` (default) or a name of `weft.asof_strategies`.
        statistics
            ``"sample"`` runs one small job first, whose facts decide when no strategy is forced.
        stats
            A `MatchStats` that counts matches while the job runs.
        """
        right = check_relation(other, "asof_join")
        refuse_foreign("asof_join", self, right, {"suffixes": suffixes, "strategy": strategy, **unexpected})
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
        spec: IntervalSpec,
        /,
        *,
        project: JoinProjection | None = None,
        suffixes: tuple[str, str] | None = None,
        stats: MatchStats | None = None,
        on_null_time: NullTime | None = None,
        **unexpected: Any,
    ) -> Self:
        """Pairs whose times are within bounds of each other, or whose ranges meet.

        ``orders.interval_join(shipments, IntervalSpec([("id", "id")], order=AsofOrder("at", "at"), upper="24h"))``

        Parameters
        ----------
        other
            The right relation.
        spec
            Keys, order columns and bounds or end columns; see `IntervalSpec`.
        project, suffixes
            Columns and names of the result; ``suffixes=("", "_r")`` is short for
            ``project=JoinProjection(suffixes=("", "_r"))``.  Order columns with one name do not collide: the
            right one gets the right suffix.
        stats
            A `MatchStats` that counts matches while the job runs.
        on_null_time
            Two streams only, which need a watermark on their order columns: a row of an outer side without a time
            fails the query (``"error"``, default) or is left out (``"drop"``).
        """
        _expect(spec, IntervalSpec, "interval_join", unexpected)
        right = check_relation(other, "interval_join")
        return join_frames(
            self,
            right,
            spec,
            project=resolve_projection(project, suffixes),
            stats=stats,
            on_null_time=on_null_time,
        )

    def window_join(
        self,
        other: Frame,
        spec: WindowSpec,
        /,
        *,
        project: JoinProjection | None = None,
        suffixes: tuple[str, str] | None = None,
        stats: MatchStats | None = None,
        on_null_time: NullTime | None = None,
        **unexpected: Any,
    ) -> Self:
        """Pairs whose times fall into one tumbling, sliding or session window.

        ``clicks.window_join(views, WindowSpec(order=AsofOrder("at", "at"), window="tumbling", size="1 hour"))``

        Parameters
        ----------
        other
            The right relation.
        spec
            Keys, order columns and the window; see `WindowSpec`.
        project, suffixes
            Columns and names of the result; ``suffixes=("", "_r")`` is short for
            ``project=JoinProjection(suffixes=("", "_r"))``.  Order columns with one name do not collide: the
            right one gets the right suffix.
        stats
            A `MatchStats` that counts matches while the job runs.
        on_null_time
            Two streams only, which need a watermark on their order columns: a row of an outer side without a time
            fails the query (``"error"``, default) or is left out (``"drop"``).
        """
        _expect(spec, WindowSpec, "window_join", unexpected)
        right = check_relation(other, "window_join")
        return join_frames(
            self,
            right,
            spec,
            project=resolve_projection(project, suffixes),
            stats=stats,
            on_null_time=on_null_time,
        )


def _expect(spec: object, kind: type[TemporalSpec], method: str, unexpected: dict[str, Any]) -> None:
    taken = ("project", "suffixes", "stats")
    more = ("order_check", "strategy", "statistics") if kind is AsofSpec else ("on_null_time",)
    refuse_keywords(method, unexpected, kind, (*taken, *more))
    if not isinstance(spec, kind):
        raise ArgumentError(
            f"{method} takes a {kind.__name__}, not {type(spec).__name__}",
            help=f"write {kind.__name__}(order=AsofOrder(left='event_ts', right='quote_ts'), ...)",
        )
