"""Arguments of the natural joins: each checked on its own, every mistake told at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.core.mistakes import Mistakes
from weft.core.names import parse_name
from weft.errors import ArgumentError
from weft.joins.relation.frame import Frame
from weft.joins.relation.joining import settled_projection
from weft.joins.spark.stats import MatchStats
from weft.joins.spec.amount import check_distance
from weft.joins.spec.asof import UNBOUNDED, AsofHow, AsofOrder, name_list
from weft.joins.spec.join import alias_pairs, checked_predicates
from weft.joins.spec.words import (
    Direction,
    NearestTie,
    OrderCheck,
    Relationship,
    Statistics,
    Unmatched,
    a_bool,
    one_of,
)

Check = Callable[[Any, str], object]


def check_arguments(left: Frame, options: Mapping[str, Any], mistakes: Mistakes) -> None:
    """Note every option whose value is of the wrong kind.

    Where the left side has a column of that name, its alias was perhaps meant: the error of
    that option, and no other one, says how to write it.
    """
    for name, value in options.items():
        hint = f"to alias column {name!r} use keys={{{name!r}: ...}}" if name in left.schema else ""
        with mistakes.noted(hint):
            _CHECKS[name](value, name)


def _optional(check: Check) -> Check:
    return lambda value, name: None if value is None else check(value, name)


def _word(words: Any) -> Check:
    return lambda value, name: one_of(value, words, name)


def _stats(value: Any, name: str) -> None:
    if not isinstance(value, MatchStats):
        raise ArgumentError(
            f"{name} must be a MatchStats, not {type(value).__name__}",
            help="write stats = weft.MatchStats(), and stats=stats",
        )


def _order(value: Any, name: str) -> None:
    if not isinstance(value, AsofOrder):
        raise ArgumentError(
            f"{name} must be an AsofOrder, not {type(value).__name__}",
            help=f"write {name}=AsofOrder(left='event_ts', right='quote_ts')",
        )


def _tolerance(value: Any, name: str) -> None:
    if value != UNBOUNDED:
        check_distance(value, name)


def _strategy(value: Any, name: str) -> None:
    if not isinstance(value, str):
        raise ArgumentError(
            f"{name} must be a text, not {type(value).__name__}", help="weft.asof_strategies lists the names"
        )


_CHECKS: Mapping[str, Check] = {
    "strict": a_bool,
    "project": lambda value, _: settled_projection(value, None),
    "predicates": checked_predicates,
    "suffixes": lambda value, _: settled_projection(None, value),
    "keys": lambda value, _: alias_pairs({}, value),
    "exclude_shared": name_list,
    "nulls_equal": a_bool,
    "relationship": _optional(_word(Relationship)),
    "unmatched": _optional(_word(Unmatched)),
    "stats": _optional(_stats),
    "order": _order,
    "direction": _word(Direction),
    "tolerance": _optional(_tolerance),
    "how": _word(AsofHow),
    "allow_exact_matches": a_bool,
    "nearest_tie": _word(NearestTie),
    "tie_break": name_list,
    "range_predicates": checked_predicates,
    "known": _optional(_order),
    "tombstone": _optional(lambda value, name: parse_name(value, what=name)),
    "until": _optional(lambda value, name: parse_name(value, what=name)),
    "skip_nulls": name_list,
    "order_check": _word(OrderCheck),
    "strategy": _strategy,
    "statistics": _optional(_word(Statistics)),
}
