"""Directed joins: a JoinSpec names every key; ``on=`` is deprecated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, cast, overload

from weft.core.names import canonical_name
from weft.errors import ArgumentError
from weft.joins.relation.arguments import copy_signature, refuse_keywords, warn_caller
from weft.joins.relation.frame import Frame
from weft.joins.relation.joining import check_relation, join_frames, resolve_projection
from weft.joins.spark.stats import MatchStats
from weft.joins.spec.asof import TemporalSpec
from weft.joins.spec.join import JoinSpec, Keys, check_key_pairs
from weft.joins.spec.predicates import JoinPredicate
from weft.joins.spec.projection import JoinProjection
from weft.joins.spec.values import How

REMOVED_IN = "0.3"


def warn_deprecated(old: str, new: str) -> None:
    """Warn that `old` is deprecated, with the call to write instead."""
    warn_caller(f"{old} is deprecated and will be removed in weft {REMOVED_IN}: call {new}", DeprecationWarning)


def pairs_of(on: Any) -> tuple[tuple[str, str], ...]:
    """Return the key pairs of an ``on=`` argument: a name, names, pairs or a mapping."""
    if isinstance(on, str):
        on = [on]
    if isinstance(on, Mapping):
        on = list(on.items())
    if not isinstance(on, Sequence):
        raise ArgumentError(
            f"on must be a name, names, pairs or a mapping, not {type(on).__name__}",
            help="write JoinSpec(equal_keys=[('left_column', 'right_column')]) and leave on= out",
        )
    return check_key_pairs([(k, k) if isinstance(k, str) else k for k in on])


def spec_call(pairs: Sequence[tuple[str, str]], predicates: Sequence[JoinPredicate] = ()) -> str:
    """Return the expression that builds the spec, for a message."""
    arguments = [*map(repr, pairs)]
    if predicates:
        arguments.append(f"predicates=[{', '.join(map(repr, predicates))}]")
    return f"JoinSpec.from_tuples({', '.join(arguments)})"


def deprecated_on(left: Frame, right: Frame, method: str, spec: object, on: Any) -> JoinSpec:
    """Return the spec for ``method(other, on=...)`` and warn."""
    if spec is not None:
        raise ArgumentError(
            f"{method} takes a JoinSpec or on=, not both", code="W0305", help="leave on= out: it is deprecated"
        )
    # Without on=, the old methods joined on all shared columns.
    shared = [canonical_name(n) for n in left.columns if n in right.schema]
    pairs = pairs_of(shared if on is None else on)
    warn_deprecated(f"{method}(other, on=...)", f"{method}(other, {spec_call(pairs)})")
    return JoinSpec(pairs)


def _spec(spec: object, method: str, unexpected: dict[str, Any]) -> JoinSpec:
    refuse_keywords(method, unexpected)
    if isinstance(spec, TemporalSpec):
        verb = {"asof": "asof_join", "interval": "interval_join", "window": "window_join"}[spec.TYPE]
        raise ArgumentError(
            f"{method} takes a JoinSpec; a {type(spec).__name__} goes to {verb}", help=f"write {verb}(other, spec)"
        )
    if not isinstance(spec, JoinSpec):
        raise ArgumentError(
            f"{method} takes a JoinSpec, not {type(spec).__name__}",
            help="write JoinSpec(equal_keys=[('left_column', 'right_column')])",
        )
    return spec


def _directed(left: Any, other: object, spec: object, how: How, method: str, named: dict[str, Any]) -> Any:
    options = {name: named.pop(name, None) for name in ("project", "suffixes", "stats")}
    right = check_relation(other, method)
    # Presence counts, not the value: on=None was a valid call.
    if "on" in named:
        spec = deprecated_on(left, right, method, spec, named.pop("on"))
    return join_frames(
        left,
        right,
        _spec(spec, method, named),
        how=how,
        project=resolve_projection(options["project"], options["suffixes"]),
        stats=options["stats"],
    )


def _sibling(how: How, method: str) -> Callable[..., Any]:
    def call(self: Any, other: object, spec: object = None, /, **named: Any) -> Any:
        return _directed(self, other, spec, how, method, named)

    return call


class DirectedJoins(Frame):
    """Joins by a `JoinSpec`."""

    __slots__ = ()

    @overload
    def inner_join(
        self,
        other: Frame,
        spec: JoinSpec,
        /,
        *,
        project: JoinProjection | None = None,
        suffixes: tuple[str, str] | None = None,
        stats: MatchStats | None = None,
    ) -> Self: ...

    @overload
    def inner_join(
        self,
        other: Frame,
        /,
        *,
        on: Keys,
        project: JoinProjection | None = None,
        suffixes: tuple[str, str] | None = None,
        stats: MatchStats | None = None,
    ) -> Self: ...

    def inner_join(
        self,
        other: Frame,
        spec: JoinSpec | None = None,
        /,
        *,
        project: JoinProjection | None = None,
        suffixes: tuple[str, str] | None = None,
        stats: MatchStats | None = None,
        **unexpected: Any,
    ) -> Self:
        """Pairs of rows that match the spec.

        Parameters
        ----------
        other
            The right relation.  Required.
        spec
            Keys, predicates and promises; see `JoinSpec`.  Required.
        project, suffixes
            The columns of the result, a `JoinProjection`; ``suffixes=("", "_r")`` is short for
            ``project=JoinProjection(suffixes=("", "_r"))``.  None by default: all left columns, then the right ones
            without the keys.  Columns with the same name are an error.
        stats
            A `MatchStats` that counts matches while the job runs.  None by default.

        Examples
        --------
        ::

            orders.inner_join(customers, JoinSpec(equal_keys=[("customer_id", "id")]))
        """
        named = {"project": project, "suffixes": suffixes, "stats": stats, **unexpected}
        return cast("Self", _directed(self, other, spec, "inner", "inner_join", named))

    left_inner = copy_signature(
        inner_join,
        "left_inner",
        "Pairs of rows that satisfy the spec; same as `inner_join`.",
        _sibling("inner", "left_inner"),
    )
    left_outer = copy_signature(
        inner_join, "left_outer", "Every left row, with its matches or with NULLs.", _sibling("left", "left_outer")
    )
    left_right = copy_signature(
        inner_join,
        "left_right",
        "Every right row, with its matches or with NULLs; same as `right_outer`.",
        _sibling("right", "left_right"),
    )
    right_outer = copy_signature(
        inner_join,
        "right_outer",
        "Every right row, with its matches or with NULLs; same as `left_right`.",
        _sibling("right", "right_outer"),
    )
    outer_join = copy_signature(
        inner_join, "outer_join", "Every row of both sides; same as `full_outer`.", _sibling("full", "outer_join")
    )
    full_outer = copy_signature(
        inner_join, "full_outer", "Every row of both sides; same as `outer_join`.", _sibling("full", "full_outer")
    )
    semi_join = copy_signature(
        inner_join,
        "semi_join",
        "Left rows that have a match, each once, left columns only.",
        _sibling("semi", "semi_join"),
    )
    anti_join = copy_signature(
        inner_join, "anti_join", "Left rows that have no match, left columns only.", _sibling("anti", "anti_join")
    )

    def cross_join(
        self,
        other: Frame,
        /,
        *,
        project: JoinProjection | None = None,
        suffixes: tuple[str, str] | None = None,
        stats: MatchStats | None = None,
    ) -> Self:
        """Every pair of rows; the only join without a key or predicate.

        Parameters
        ----------
        other
            The right relation.  Required.
        project, suffixes
            The columns of the result, as in `inner_join`.  None by default.
        stats
            A `MatchStats` that counts rows while the job runs.  None by default.

        Examples
        --------
        ::

            days.cross_join(accounts)
        """
        right = check_relation(other, "cross_join")
        return join_frames(self, right, None, how="cross", project=resolve_projection(project, suffixes), stats=stats)
