"""Which strategy runs a join, and why."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.names import listed, near
from weft.errors import ArgumentError, JoinSpecError, StrategyRefusedError
from weft.plan.conditions import folded
from weft.plan.resolved import AsOf, Exact, Overlap, ResolvedJoin, SameWindow, Within
from weft.plan.strategies import ASOF


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy by name, the reason it was taken, and what a reader should know of its cost."""

    strategy: str
    reason: str
    cost: str = ""


def choose(join: ResolvedJoin, strategy: str = "auto") -> Choice:
    """Return the strategy for a join; a forced one that cannot serve it raises."""
    if isinstance(join.match, AsOf):
        return _choose_asof(folded(join), strategy)
    if isinstance(join.match, Within | Overlap):
        return _interval(join)
    if isinstance(join.match, SameWindow):
        return _window(join.match)
    return _equi(join)


_COSTS = {
    "kernel": "one shuffle of both sides by key; rows go to Python and back, a task holds its share of both sides",
    "union": "one shuffle and one sort of both sides together; a key's rows stay in one task",
    "rank": "every candidate pair is produced: a key costs the product of its rows",
}


def _choose_asof(join: ResolvedJoin, strategy: str) -> Choice:
    if not isinstance(strategy, str):
        raise ArgumentError(
            f"strategy must be a text, not {type(strategy).__name__}",
            help="weft.asof_strategies lists the names",
        )
    if strategy != "auto":
        if strategy not in ASOF:
            close = near(strategy, ("auto", *ASOF), most=1)
            raise JoinSpecError(
                f"strategy {strategy!r} is not one of {listed(('auto', *ASOF))}",
                help=f"did you mean {close[0]!r}?" if close else "",
            )
        refusal = ASOF[strategy](join)
        if refusal is not None:
            raise StrategyRefusedError(refusal, help="leave strategy= out, or take another one")
        return Choice(strategy, "asked for by name", _COSTS[strategy])
    refusal = ASOF["union"](join)
    if refusal is None:
        return Choice("union", "exact for any key sizes with one sort", _COSTS["union"])
    return Choice("rank", refusal, _COSTS["rank"])


def _equi(join: ResolvedJoin) -> Choice:
    assert isinstance(join.match, Exact)  # noqa: S101  # the other kinds are dealt with above
    if join.how == "cross":
        return Choice("equi", "a cross join was asked for by name", "every pair of rows is produced")
    if join.keys:
        return Choice(
            "equi",
            f"{len(join.keys)} equal key{'s' if len(join.keys) > 1 else ''}: Spark picks a broadcast-hash, "
            "shuffled-hash or sort-merge join by size",
            "both sides are shuffled by key unless one is broadcast",
        )
    return Choice(
        "equi",
        "no equal key, predicates only: Spark can do no better than a nested loop",
        "every pair of rows is compared; add an equal key if there is one",
    )


def _interval(join: ResolvedJoin) -> Choice:
    match = join.match
    if isinstance(match, Within) and (match.lower is None or match.upper is None):
        return Choice(
            "interval", "an open end: pairs of a key are compared", "a key costs the product of its rows"
        )
    return Choice(
        "interval",
        "both sides are cut into bins of time and joined by key and bin",
        "both sides are shuffled by key and bin; a range is copied into each bin it touches",
    )


def _window(match: SameWindow) -> Choice:
    if match.kind == "session":
        return Choice(
            "session",
            "sessions are numbered over both sides together, then joined by key and number",
            "one shuffle and sort to number, one join by key and session",
        )
    return Choice(
        "window",
        f"{match.kind} windows are numbers: joined by key and window",
        "both sides are shuffled by key and window",
    )
