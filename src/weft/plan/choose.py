"""Which strategy runs a join, and why."""

from __future__ import annotations

from dataclasses import dataclass

from weft.plan.resolved import Exact, ResolvedJoin


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy by name, the reason it was taken, and what a reader should know of its cost."""

    strategy: str
    reason: str
    cost: str = ""


def choose(join: ResolvedJoin) -> Choice | None:
    """Return the strategy for a join, or None when no engine of this release runs it."""
    if not isinstance(join.match, Exact):
        return None
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
